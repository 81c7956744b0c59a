"""A module's docstring leads on to modules that are there (house.md §3)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import nightwarden

ROOT = Path(nightwarden.__file__).parent
NAMED = re.compile(r"`([\w./]+\.py)`")


def named() -> Iterator[tuple[str, str]]:
    """Every module another module's docstring names, beside it, from the root, or with the root."""
    for path in sorted(ROOT.rglob("*.py")):
        doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        for name in NAMED.findall(doc):
            places = (path.parent / name, ROOT / name, ROOT.parent / name)
            if not any(place.is_file() for place in places):
                yield str(path.relative_to(ROOT)), name


def test_a_docstring_names_modules_that_are_there() -> None:
    assert list(named()) == []
