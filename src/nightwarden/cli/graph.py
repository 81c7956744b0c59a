"""`nightwarden graph FILE`: a workflow as text, or as a picture.

Read next: `nodes.py`.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from nightwarden.cli.failing import COMPLETED
from nightwarden.cli.options import Debug, File, Nodes, Trust, settings_for
from nightwarden.cli.output import Output, is_terminal
from nightwarden.events.words import visible

_WIDTH = 100


def graph(
    file: File,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="FILE.svg", help="Write a picture; - is stdout.")
    ] = None,
    nodes: Nodes = None,
    trust: Trust = False,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """Draw a workflow: what is wired to what.

    What runs once an item is set apart.
    """
    out = Output()
    settings = settings_for(out)

    from nightwarden.library import load

    workflow = load(file, nodes=nodes or (), trust=trust or settings.run_trust)
    if svg is None:
        from nightwarden.spec.draw import graph_text

        width = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else _WIDTH
        for line in graph_text(workflow, width=width).splitlines():
            out.say(line)
        return COMPLETED
    from nightwarden.spec.svg import graph_svg

    picture = graph_svg(workflow)
    if str(svg) == "-":
        out.text(picture)
    else:
        put(svg, picture)
        out.say(f"wrote {visible(str(svg))}")
    return COMPLETED


def put(path: Path, text: str) -> None:
    """Write a file whole or not at all; what was there before stays until then."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        # The temporary name would tell nobody anything.
        raise OSError(error.errno, error.strerror, str(path)) from error
