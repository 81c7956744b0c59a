"""Renders modules of the standard library as web pages. Runs as a program of its own.

    python render.py DIRECTORY < {"001.html": "abc", …}

Importing two hundred modules changes a process, so it happens in one that ends. What is
particular to a machine (paths, addresses, values of variables) is left out: the same
Python writes the same pages everywhere. Every page that cannot be made is named on the
error stream, and then the program ends with 1.

Imports nothing of the package. Read next: `pages.py`, which calls this.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import pydoc
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{name} – The Python library</title>
<style>body {{ font: 1rem/1.5 sans-serif; margin: 2rem auto; max-width: 48rem }}
.code {{ white-space: pre-wrap }}</style>
</head>
<body>
<header><p>The Python library, rendered by pydoc</p>
<nav><a href="/">All pages</a> <a href="#top">Top</a></nav></header>
<main id="top">
<article>
{contents}
</article>
</main>
<footer><p>Served from this machine for a demonstration.</p></footer>
</body>
</html>
"""
ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


class Site(pydoc.HTMLDoc):
    """pydoc's own HTML, with headings and paragraphs where it has tables."""

    def page(self, title: str, contents: str) -> str:
        """The whole page."""
        return PAGE.format(name=self.escape(title), contents=contents)

    def heading(self, title: str, *_: str) -> str:
        """The module's name; pydoc also passes the file it lies in."""
        return f"<h1>{title}</h1>\n"

    def section(self, title: str, *args: Any, **named: Any) -> str:
        """A class, or a list of functions. `Data` is left out: values differ by machine."""
        contents, prelude = _section_text(*args, **named)
        if "bigsection" in title and ">Data<" in title:
            return ""
        level = "h2" if "bigsection" in title else "h3"
        return f"<section>\n<{level}>{title}</{level}>\n<p>{prelude}</p>\n{contents}\n</section>\n"

    def preformat(self, text: str) -> str:
        """A docstring, or a piece of one."""
        escape: Callable[[str], str] = self.escape
        return escape(text.expandtabs()).replace("\n\n", "<br>\n")

    def multicolumn(self, list: list[Any], format: Callable[[Any], str]) -> str:
        """The modules a module refers to."""
        return "<p>" + ", ".join(format(entry) for entry in list) + "</p>"


def _section_text(
    _style: str, contents: str, _width: int = 6, prelude: str = "", *_: str, **__: str
) -> tuple[str, str]:
    """What stands in a section, and above it; pydoc passes six arguments for layout."""
    return contents, prelude


def render(module: ModuleType, name: str) -> str:
    """The page of one module."""
    site = Site()
    text = site.page(name, site.document(module, name))
    return ADDRESS.sub(" at 0x…", text).replace(sys.base_prefix, "…").replace("&nbsp;", " ")


def main(directory: Path, wanted: dict[str, str]) -> int:
    """Write each page; name those that failed. The exit code."""
    failed = 0
    for file, name in wanted.items():
        try:
            # Some modules greet whoever imports them.
            with contextlib.redirect_stdout(io.StringIO()):
                text = render(importlib.import_module(name), name)
        except BaseException as error:  # a module may raise anything at all
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)  # noqa: T201
            failed = 1
        else:
            (directory / file).write_text(text, encoding="utf-8")
    return failed


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), json.load(sys.stdin)))
