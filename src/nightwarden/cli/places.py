"""Paths and commands as they can be typed from here.

Read next: `demo.py`, `new.py`.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path


def from_here(path: Path) -> str:
    """A path as short as it can be written from here."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def program() -> str:
    """How this program is called from here: by its name if it is found by it."""
    called = Path(sys.argv[0])
    if called.name not in ("nightwarden", "nw"):
        return "nightwarden"
    found = shutil.which(called.name)
    if found is not None and os.path.realpath(found) == os.path.realpath(called):
        return called.name
    return from_here(called.absolute())


def explained_commands(commands: Mapping[str, str]) -> Iterator[str]:
    """Commands to type, each with what it is for."""
    width = max(len(command) for command in commands)
    for command, why in commands.items():
        yield f"  {command:<{width}}  # {why}"
