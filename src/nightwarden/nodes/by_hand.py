"""Python files that were imported by hand, and what in this process came of them.

Two of them may have one name. What is defined in them is told apart by its file, then, and not by
its module's name: `sys.modules` knows the last of them only.

Read next: `registry.py`, `runtime/executors/references.py`.
"""

from __future__ import annotations

from types import FunctionType, ModuleType
from typing import Any, Final

MODULES: Final[dict[str, ModuleType]] = {}
"""By the whole path of their file."""


def file_of(thing: type | FunctionType) -> str:
    """The file in which a class or function is found under its own name; empty for any other."""
    for file, module in tuple(MODULES.items()):
        if module.__name__ == thing.__module__ and taken(vars(module), thing.__qualname__) is thing:
            return file
    return ""


def taken(space: dict[str, Any], qualified: str) -> object:
    """What stands under a dotted name; None if nothing does."""
    first, *rest = qualified.split(".")
    found = space.get(first)
    for part in rest:
        found = getattr(found, part, None)
    return found
