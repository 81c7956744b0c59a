"""Where a step's code is found again in another process.

    steps.chunk in an installed module    import steps, take chunk
    chunk in a Python file named by hand  load that file once, take chunk
    chunk in the script that was started  load the script once, but not as `__main__`

Code itself is never sent. A function inside another function, or one that stands behind a
decorator that hides it, cannot be found by name, and is refused with a sentence that says so.

Read next: `worker.py`.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import os
import pickle
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final, NamedTuple

from nightwarden.errors import NodeError, RunError
from nightwarden.nodes.by_hand import MODULES, file_of, taken
from nightwarden.nodes.define import GENERATORS, NodeDef
from nightwarden.nodes.io import Step

MAIN: Final = "__main__"
ALIAS: Final = "__mp_main__"
"""What the started script is called in a worker. `multiprocessing` calls it that as well, and
knows it under this name in the process that was started, so that its classes are the same."""

loading: int = 0
"""In a worker: how many modules of steps are being loaded right now."""


def refuse_while_loading() -> None:
    """Raises `RunError` in a worker that is importing a step's module: nothing is to run there."""
    if loading:
        raise RunError(
            "a run was started while a worker process was importing a step's module: put what "
            'starts runs under `if __name__ == "__main__":`'
        )


class Reference(NamedTuple):
    """A piece of code by name. `file` is set where its module cannot be imported by name."""

    module: str
    name: str
    file: str = ""


class MainScript(NamedTuple):
    """What the first process was started with: a module (`python -m`), or a file."""

    module: str = ""
    file: str = ""


def refusal(definition: NodeDef) -> str:
    """Why a step cannot run in another process whatever happens; empty if it can."""
    if definition.is_class:
        return "a class is set up once a run and cannot be in several processes: use a function"
    if definition.mode in GENERATORS or definition.type.reads:
        return "a step that streams stays where its stream is: return a list, and fan it out"
    if definition.type.inline:
        return "inline=True and executor='process' exclude each other: leave one out"
    return ""


def reference_of(definition: NodeDef) -> Reference:
    """Where another process finds a step. Raises `NodeError` (code `not-importable`)."""
    target, name = definition.target, definition.type.name
    refused = refusal(definition)
    if refused:
        raise NodeError(f"{name} cannot run in a process of its own: {refused}", code="bad-process")
    space = target.__globals__
    module = str(space.get("__name__", ""))
    if taken(space, target.__qualname__) is not target:
        raise NodeError(
            f"{name} cannot be found by another process: {module}.{target.__qualname__} is not the "
            "step itself; put it at the top of a module, under its own name",
            code="not-importable",
        )
    file = str(space.get("__file__") or "")
    if module == MAIN and not (main_script().module or main_script().file):
        raise NodeError(
            f"{name} cannot be found by another process: it was typed in, not read from a file; "
            "put it into one",
            code="not-importable",
        )
    file = os.path.abspath(file) if file else ""
    by_name = module in (MAIN, ALIAS) or "." in module or _importable(module, file)
    return Reference(module, target.__qualname__, "" if by_name and file not in MODULES else file)


def main_script() -> MainScript:
    """What this process was started with."""
    main = sys.modules[MAIN]
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name:
        return MainScript(module=str(spec.name))
    file = getattr(main, "__file__", None)
    return MainScript(file=os.path.abspath(file)) if file and os.path.isfile(file) else MainScript()


def _importable(module: str, file: str) -> bool:
    """Whether importing the name gives the module of this file, and no other."""
    spec = PathFinder.find_spec(module)
    if spec is None or spec.origin is None:
        return False
    return bool(file) and os.path.exists(file) and os.path.samefile(spec.origin, file)


class Modules:
    """In a worker: loads the modules that steps, and the classes of their values, live in.

    `files` are Python files that were loaded by hand, as `module name: file`.
    """

    def __init__(self, main: MainScript, files: Mapping[str, str]) -> None:
        self._main = main
        self._files = dict(files)
        self._main_loaded: ModuleType | None = None

    def code(self, reference: Reference) -> Step:
        """The step a reference stands for. Raises what its module raises on being imported."""
        if reference.file:
            module = _from_file(reference.module, reference.file)
        elif reference.module in (MAIN, ALIAS):
            module = self._main_module()
        else:
            with _loading():
                module = importlib.import_module(reference.module)
        found: Any = taken(vars(module), reference.name)
        if found is None:
            raise NodeError(f"{reference.module} has no {reference.name}", code="not-importable")
        return found  # type: ignore[no-any-return]

    def loads(self, data: bytes) -> Any:
        """Unpickle a value; what its classes live in is loaded first."""
        return _Unpickler(io.BytesIO(data), self).load()

    def know(self, files: Mapping[str, str]) -> None:
        """More Python files that were loaded by hand."""
        self._files.update(files)

    def provide(self, name: str) -> None:
        """Have a module ready that cannot be imported by name."""
        if name in (MAIN, ALIAS):
            self._main_module()
        elif name in self._files and name not in sys.modules:
            _from_file(name, self._files[name])

    def _main_module(self) -> ModuleType:
        """The script that was started, under another name, so that it does not start again."""
        if self._main_loaded is None:
            module, code = _main_code(self._main)
            with _known(module, ALIAS), _known(module, MAIN):
                exec(code, vars(module))
            sys.modules[MAIN] = sys.modules[ALIAS] = module
            self._main_loaded = module
        return self._main_loaded


def dumps(value: object) -> bytes:
    """Pickle a value; what is defined in a file imported by hand goes by that file's name."""
    into = io.BytesIO()
    _Pickler(into, pickle.HIGHEST_PROTOCOL).dump(value)
    return into.getvalue()


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        """How classes and functions of such files travel; everything else as it always does."""
        if isinstance(value, (type, FunctionType)) and (file := file_of(value)):
            return _found_in, (file, value.__module__, value.__qualname__)
        return NotImplemented


def _found_in(file: str, module: str, name: str) -> object:
    found = taken(vars(_from_file(module, file)), name)
    if found is None:
        raise NodeError(f"{file} has no {name}", code="not-importable")
    return found


def _from_file(name: str, file: str) -> ModuleType:
    """The module in a Python file; imported now, unless this process has it already."""
    if file not in MODULES:
        spec = importlib.util.spec_from_file_location(name, file)
        if spec is None or spec.loader is None:
            raise NodeError(f"{file} is no Python file", code="not-importable")
        module = importlib.util.module_from_spec(spec)
        with _known(module, name):
            spec.loader.exec_module(module)
        MODULES[file] = module
    return MODULES[file]


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, modules: Modules) -> None:
        super().__init__(file)
        self._modules = modules

    def find_class(self, module_name: str, global_name: str) -> Any:
        self._modules.provide(module_name)
        return super().find_class(module_name, global_name)


@contextmanager
def _known(module: ModuleType, name: str) -> Iterator[None]:
    """Have a module known by a name while it is executed, and after if nothing else has it."""
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        with _loading():
            yield
    except BaseException:
        sys.modules.pop(name, None)
        raise
    finally:
        if before is not None:
            sys.modules[name] = before


@contextmanager
def _loading() -> Iterator[None]:
    global loading  # noqa: PLW0603  (one process, one worker)
    loading += 1
    try:
        yield
    finally:
        loading -= 1


def _main_code(main: MainScript) -> tuple[ModuleType, CodeType]:
    module = ModuleType(ALIAS)
    if not main.module:
        module.__file__ = main.file
        return module, compile(Path(main.file).read_bytes(), main.file, "exec", dont_inherit=True)
    spec = importlib.util.find_spec(main.module)
    get_code = getattr(spec.loader, "get_code", None) if spec is not None else None
    code = None if get_code is None else get_code(main.module)
    if spec is None or code is None:
        raise NodeError(f"{main.module} cannot be loaded again", code="not-importable")
    module.__file__, module.__package__ = spec.origin, spec.parent
    return module, code
