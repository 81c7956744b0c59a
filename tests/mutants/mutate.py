"""`make mutants`: small wrongs put into the kernel one by one, to see which of them no test minds.

    source ─▶ sites (a comparison, a constant, a call …) ─▶ one wrong at a time
           ─▶ a forked process in which that module is the wrong one ─▶ the kernel's quick tests
    killed: a test fails, or the run hangs or takes too much memory.  survived: all pass.

    python tests/mutants/mutate.py [--minutes 10] [--file matching] [--seed 0] [--jobs 2] [--list]

The standard library only, and pytest. A survivor is either a gap in the tests or a change that
means the same; `docs/design/mutation-testing.md` says which of them is what.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.abc
import importlib.machinery
import io
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent.parent
KERNEL = ROOT / "src" / "nightwarden" / "kernel"
FILES = (
    "matching",
    "closing",
    "reading",
    "routing",
    "allowed",
    "escalating",
    "engine",
    "control",
    "ledger",
    "causes",
    "stopping",
    "waiting",
)
TESTS = (
    "tests/unit/test_kernel_rules.py",
    "tests/unit/test_kernel_rules_failing.py",
    "tests/unit/test_kernel_rules_engine.py",
    "tests/unit/test_kernel_meaning_woven.py",
    "tests/unit/test_kernel_meaning.py::test_the_kernel_does_what_the_workflow_means",
    "tests/unit/test_kernel_meaning.py::test_keep_going_does_all_that_does_not_depend_on_a_failure",
)
EXAMPLES = 25
"""Drawn cases per property: enough to be a second net, few enough for a thousand runs."""
HANGS_AFTER_S = 60
MOST_BYTES = 3 * 1024**3
_QUICKLY = (
    *("-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:faulthandler"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning", "--hypothesis-profile=mutants"),
)


@dataclass(frozen=True, slots=True)
class Wrong:
    """One change: where it is, how it reads, and the number it is found by again."""

    module: str
    line: int
    number: int
    text: str


# -- the changes --

_FLIPS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_NAMES = {
    "append": "appendleft",
    "appendleft": "append",
    "popleft": "pop",
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "LOST": "NOT_TAKEN",
    "NOT_TAKEN": "LOST",
    "FAILED": "LOST",
    "SKIP": "FAIL",
    "LEFT": "None",
}
_BINARY: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
}


def _changes(node: ast.AST) -> Iterator[Callable[[], ast.AST]]:
    """Every wrong that can be put in the place of a node; each is made when it is asked for."""
    match node:
        case ast.Compare(ops=[comparison]) if type(comparison) in _FLIPS:
            yield lambda: _copy(node, ops=[_FLIPS[type(comparison)]()])
        case ast.BoolOp(op=junction):
            other = ast.Or() if isinstance(junction, ast.And) else ast.And()
            yield lambda: _copy(node, op=other)
            for left_out in range(len(node.values)):
                kept = [v for i, v in enumerate(node.values) if i != left_out]
                yield lambda kept=kept: kept[0] if len(kept) == 1 else _copy(node, values=kept)  # type: ignore[misc]
        case ast.UnaryOp(op=ast.Not()):
            yield lambda: node.operand
        case ast.BinOp(op=op) if type(op) in _BINARY:
            yield lambda: _copy(node, op=_BINARY[type(op)]())
        case ast.AugAssign(op=op) if type(op) in _BINARY:
            yield lambda: _copy(node, op=_BINARY[type(op)]())
            yield ast.Pass
        case ast.Constant(value=bool()):
            yield lambda: ast.Constant(not node.value)
        case ast.Constant(value=int() | float()):
            yield lambda: ast.Constant(node.value + 1)  # type: ignore[operator]
            yield lambda: ast.Constant(node.value - 1)  # type: ignore[operator]
        case ast.Attribute(attr=name) if name in _NAMES:
            yield lambda: _copy(node, attr=_NAMES[name])
        case ast.Name(id=name, ctx=ast.Load()) if name in _NAMES:
            yield lambda: _copy(node, id=_NAMES[name])
        case ast.Expr(value=ast.Call()) | ast.Delete():
            yield ast.Pass
        case ast.Assign() if any(
            isinstance(t, ast.Attribute | ast.Subscript) for t in node.targets
        ):
            yield ast.Pass
        case ast.If() | ast.While():
            yield lambda: _copy(node, test=ast.Constant(False))
            if isinstance(node, ast.If) and not isinstance(node.test, ast.Compare):
                yield lambda: _copy(node, test=ast.UnaryOp(ast.Not(), node.test))
        case ast.IfExp():
            yield lambda: node.body
            yield lambda: node.orelse
        case ast.Continue():
            yield ast.Break
        case ast.Break():
            yield ast.Continue


def _copy(node: ast.AST, **fields: object) -> ast.AST:
    return type(node)(**{**{f: getattr(node, f, None) for f in node._fields}, **fields})


class _Place(ast.NodeTransformer):
    """Goes through a module in order; puts the wanted change in, or lists all of them."""

    def __init__(self, module: str, wanted: int = -1) -> None:
        self.module, self.wanted = module, wanted
        self.found: list[Wrong] = []

    def visit(self, node: ast.AST) -> ast.AST:
        if _says_nothing(node):
            return node
        if isinstance(node, ast.ClassDef) and node.keywords:
            return node  # a record: its fields and how it is kept, nothing that is done
        for make in _changes(node):
            number = len(self.found)
            line = getattr(node, "lineno", 0)
            text = ""
            if self.wanted < 0:
                where = _source(self.module).splitlines()[line - 1].strip()
                text = f"{where}   [{_line(node)} → {_line(make())}]"
            self.found.append(Wrong(self.module, line, number, text))
            if number == self.wanted:
                return ast.fix_missing_locations(ast.copy_location(make(), node))
        return self.generic_visit(node)


def _says_nothing(node: ast.AST) -> bool:
    """Imports, docstrings, annotations and assertions: no behaviour of the kernel."""
    if isinstance(node, ast.Import | ast.ImportFrom | ast.Assert | ast.Raise | ast.AnnAssign):
        return True
    if isinstance(node, ast.If) and "trace" in ast.unparse(node.test):
        return True
    return isinstance(node, ast.arg) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def _line(node: ast.AST) -> str:
    text = ast.unparse(ast.fix_missing_locations(node)).strip().splitlines()
    return text[0] + (" …" if len(text) > 1 else "")


def wrongs(module: str) -> list[Wrong]:
    """Every change this tool knows for a module of the kernel."""
    place = _Place(module)
    place.visit(_parsed(module))
    return place.found


def _parsed(module: str) -> ast.Module:
    return ast.parse(_source(module))


@cache
def _source(module: str) -> str:
    """Read once: numbers stay those of the changes that were listed, whoever edits meanwhile."""
    return (KERNEL / f"{module}.py").read_text(encoding="utf-8")


def changed(wrong: Wrong) -> ast.Module:
    """The module with this one change."""
    tree = _Place(wrong.module, wrong.number).visit(_parsed(wrong.module))
    assert isinstance(tree, ast.Module)
    return ast.fix_missing_locations(tree)


# -- running one --


class _Loader(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives one module its changed code; everything else is found as ever."""

    def __init__(self, wrong: Wrong) -> None:
        self._name = f"nightwarden.kernel.{wrong.module}"
        self._path = str(KERNEL / f"{wrong.module}.py")
        self._code = compile(changed(wrong), self._path, "exec")
        self.used = False

    def find_spec(
        self, name: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self._name:
            return None
        return importlib.machinery.ModuleSpec(name, self, origin=self._path)

    def exec_module(self, module: ModuleType) -> None:
        self.used = True
        exec(self._code, module.__dict__)


def _attempt(wrong: Wrong | None, tests: Sequence[str]) -> int:
    """In a forked process: run tests against the change; 0 if they all pass."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    signal.alarm(HANGS_AFTER_S)
    loader = _Loader(wrong) if wrong is not None else None
    if loader is not None:
        sys.meta_path.insert(0, loader)
    import pytest

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        code = pytest.main([*tests, *_QUICKLY, "--rootdir", os.getcwd()])
    import nightwarden

    assert Path.cwd() in Path(nightwarden.__file__).parents, "not the copy"
    assert loader is None or loader.used, "the tests never loaded what was changed"
    return int(code)


def _settle(copy: Path) -> None:
    """Work on a copy, whoever edits meanwhile; import, before any fork, what is not ours."""
    import hypothesis
    import msgspec  # noqa: F401
    import pydantic  # noqa: F401
    import pytest  # noqa: F401

    hypothesis.settings.register_profile(
        "mutants",
        deadline=None,
        derandomize=True,
        database=None,
        max_examples=EXAMPLES,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
        report_multiple_bugs=False,
    )
    for folder in ("src", "tests"):
        shutil.copytree(ROOT / folder, copy / folder)
        sys.path.insert(0, str(copy / folder))
    shutil.copy2(ROOT / "pyproject.toml", copy)
    os.chdir(copy)


def _forked(wrong: Wrong | None, tests: Sequence[str]) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        code = _attempt(wrong, tests)
    except BaseException:
        code = 1
    finally:
        os._exit(min(code, 125))


@dataclass(slots=True)
class Tally:
    """What has come of the changes so far."""

    killed: int = 0
    hung: int = 0
    survived: list[Wrong] = field(default_factory=list)

    def note(self, wrong: Wrong, status: int) -> None:
        """A process has ended."""
        if os.WIFSIGNALED(status):
            self.hung += 1
        elif os.WEXITSTATUS(status):
            self.killed += 1
        else:
            self.survived.append(wrong)
            print(f"survived  {wrong.module}.py:{wrong.line}  {wrong.text}", flush=True)


def _sound() -> list[str]:
    """The tests that pass without any change; only they have something to say about one."""
    sound = []
    for test in TESTS:
        _, status = os.waitpid(_forked(None, [test]), 0)
        if status:
            print(f"left out, for it fails without any change: {test}", flush=True)
        else:
            sound.append(test)
    return sound


def run(
    chosen: Sequence[Wrong], tests: Sequence[str], minutes: float, jobs: int
) -> tuple[Tally, int]:
    """Try changes, so many at once, until all are tried or the time is over."""
    tally, ends = Tally(), time.monotonic() + 60 * minutes
    running: dict[int, Wrong] = {}
    ahead = list(reversed(chosen))
    while ahead or running:
        while ahead and len(running) < jobs and time.monotonic() < ends:
            wrong = ahead.pop()
            running[_forked(wrong, tests)] = wrong
        if not running:
            break
        child, status = os.wait()
        tally.note(running.pop(child), status)
    return tally, len(chosen) - len(ahead)


def main() -> int:
    """The command line."""
    options = argparse.ArgumentParser(description="which wrongs in the kernel no test minds")
    options.add_argument("--minutes", type=float, default=10)
    options.add_argument("--file", action="append", choices=FILES, help="only this module")
    options.add_argument("--seed", type=int, default=0, help="which changes come first")
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--list", action="store_true", help="show the changes, try none")
    given = options.parse_args()
    found = [wrong for name in given.file or FILES for wrong in wrongs(name)]
    if given.list:
        for wrong in found:
            print(f"{wrong.module}.py:{wrong.line}  {wrong.text}")
        return 0
    random.Random(given.seed).shuffle(found)
    with tempfile.TemporaryDirectory() as copy:
        _settle(Path(copy))
        tests = _sound()
        began = time.monotonic()
        tally, tried = run(found, tests, given.minutes, given.jobs)
        spent = time.monotonic() - began
    print(
        f"{tried} of {len(found)} changes tried in {spent:.0f} s: {tally.killed} killed by a test, "
        f"{tally.hung} by time or memory, {len(tally.survived)} survived"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
