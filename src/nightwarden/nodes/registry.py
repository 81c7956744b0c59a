"""Where node types are found: built in, installed, or in Python files the user named.

Built-in modules are imported only when one of their types is asked for: `http.Fetch`
lives in `nodes/builtin/http.py`, or in a module beside it that this one imports it from.

Read next: `builtin/`.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

from nightwarden.errors import Problem, SpecError
from nightwarden.nodes.by_hand import MODULES
from nightwarden.nodes.define import NodeDef, definition_of
from nightwarden.plugins import NODES_GROUP
from nightwarden.spec.catalog import NodeType

BUILTIN_MODULES = ("agent", "data", "feed", "file", "flow", "html", "http", "json", "llm", "text")

_imported: dict[Path, tuple[bytes, ModuleType]] = {}
"""The Python files this process has imported by hand: what stood in them, what came of it."""


class Registry:
    """The node types one session may use; satisfies `spec.Catalog`."""

    def __init__(self) -> None:
        self._known: dict[str, NodeDef] = {}
        self._searched: set[str] = set()
        self._files: dict[Path, Sequence[NodeDef]] = {}

    def find(self, name: str) -> NodeType | None:
        """The node type of that name, or None."""
        found = self.definition(name)
        return None if found is None else found.type

    def definition(self, name: str) -> NodeDef | None:
        """The node type together with its code, or None."""
        if name not in self._known:
            self._search(name.partition(".")[0])
        if name not in self._known:
            self._search_installed()
        return self._known.get(name)

    def names(self) -> Sequence[str]:
        """Every known name, sorted. Imports all built-in modules."""
        for module in BUILTIN_MODULES:
            self._search(module)
        self._search_installed()
        return sorted(self._known)

    def add(self, target: object) -> NodeDef:
        """Register a decorated function or class. Raises `TypeError` for anything else.

        Raises `TypeError` too for a name that is taken by other code.
        """
        found = definition_of(target)
        if found is None:
            raise TypeError(f"{target!r} is no node: decorate it with @node")
        self._search(found.type.name.partition(".")[0])
        known = self._known.get(found.type.name)
        if known is not None and known.target is not found.target:
            whose = "is built in" if _is_builtin(known) else f"is {known.type.source} already"
            raise TypeError(
                f"node type {found.type.name!r} {whose}; give yours another name with @node(type=…)"
            )
        self._known[found.type.name] = found
        return found

    def load_file(self, path: Path) -> Sequence[NodeDef]:
        """Import a Python file and register every node in it.

        A file is imported once by a process, and again when it has changed. Relative imports do
        not work there. Raises `SpecError` when it cannot be read or fails while being imported.
        """
        path = path.resolve()
        if path in self._files:
            return self._files[path]
        if not path.is_file():
            what = "it is a folder" if path.is_dir() else "there is no such file"
            raise SpecError([_file_problem(path, what, "check the path")])
        try:
            module = _module_in(path)
            found = [self.add(definition.target) for definition in _definitions(module)]
        except SpecError:
            raise
        except (Exception, SystemExit) as error:  # a script that ends itself is no node file
            message = f"{type(error).__name__}: {error}"
            raise SpecError([_file_problem(path, message, "mend the file")]) from error
        self._files[path] = found
        return found

    @property
    def files(self) -> Sequence[Path]:
        """The Python files that were loaded by hand."""
        return tuple(self._files)

    def _search(self, module: str) -> None:
        if module not in BUILTIN_MODULES or module in self._searched:
            return
        self._searched.add(module)
        family = importlib.import_module(f"nightwarden.nodes.builtin.{module}")
        for value in list(vars(family).values()):
            found = definition_of(value)
            if found is not None and found.type.name.startswith(f"{module}."):
                self._known.setdefault(found.type.name, found)

    def _search_installed(self) -> None:
        if NODES_GROUP in self._searched:
            return
        self._searched.add(NODES_GROUP)
        from importlib.metadata import entry_points  # noqa: PLC0415  (12 ms most runs never need)

        for point in entry_points(group=NODES_GROUP):
            loaded = point.load()
            if isinstance(loaded, ModuleType):
                self._register_module(loaded)
            else:
                self.add(loaded)

    def _register_module(self, module: ModuleType) -> None:
        for definition in _definitions(module):
            self._known.setdefault(definition.type.name, definition)


def _module_in(path: Path) -> ModuleType:
    """The module in a Python file, imported now unless it has been. Raises what it raises.

    It is found by its name from then on, so that its values can be sent to other processes: of
    several files of one name the last has it; what was imported in the ordinary way keeps it.
    """
    text, before = path.read_bytes(), sys.modules.get(path.stem)
    free = before is None or any(before is mine for _, mine in _imported.values())
    known = _imported.get(path)
    module = known[1] if known is not None and known[0] == text else None
    if module is None:
        module = _import(path)
        _imported[path] = (text, module)
    MODULES[str(path)] = module
    if free:
        sys.modules[path.stem] = module
    return module


def _import(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise SpecError([_file_problem(path, "not a Python file", "name a .py file")])
    module, before = importlib.util.module_from_spec(spec), sys.modules.get(path.stem)
    # Dataclasses and type hints look their module up by name while it is being imported.
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    finally:
        sys.modules.pop(path.stem, None)
        if before is not None:
            sys.modules[path.stem] = before
    return module


def _definitions(module: ModuleType) -> Iterator[NodeDef]:
    for value in list(vars(module).values()):
        definition = definition_of(value)
        if definition is not None and definition.target.__module__ == module.__name__:
            yield definition


def _is_builtin(definition: NodeDef) -> bool:
    return definition.target.__module__.startswith("nightwarden.nodes.builtin.")


def _file_problem(path: Path, message: str, remedy: str) -> Problem:
    return Problem(file=str(path), message=message, rule="python-file", remedy=remedy)
