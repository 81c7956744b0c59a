"""Small wrongs that can be put into a module of the kernel: what they are, and the wrong code.

    source ─▶ places (a comparison, a constant, a call …) ─▶ `Wrong` ─▶ the module with it

Sources are read below the current folder, once: numbers stay those of the changes that were
listed. Read next: `mutate.py`, which tries them.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

KERNEL = Path("src") / "nightwarden" / "kernel"


@dataclass(frozen=True, slots=True)
class Wrong:
    """One change: where it is, how it reads, and the number it is found by again.

    `function` is the outermost one around it, empty for what is done when the module is loaded.
    `first` and `last` are the lines of the smallest statement around it. Of changes that read the
    same, `nth` tells one from the other.
    """

    module: str
    number: int
    line: int
    function: str
    first: int
    last: int
    text: str
    change: str
    nth: int

    @property
    def said(self) -> tuple[str, str, str]:
        """What it is called in a list: this stays when lines are moved."""
        return self.module, self.text, self.change

    def __str__(self) -> str:
        return f"{self.module}.py:{self.line}  {self.text}   [{self.change}]"


@dataclass(frozen=True, slots=True)
class _Found:
    line: int
    change: str


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

    def __init__(self, wanted: int = -1) -> None:
        self._wanted = wanted
        self.found: list[_Found] = []

    def visit(self, node: ast.AST) -> ast.AST:
        if _says_nothing(node):
            return node
        if isinstance(node, ast.ClassDef) and node.keywords:
            return node  # a record: its fields and how it is kept, nothing that is done
        for make in _changes(node):
            number = len(self.found)
            text = f"{_line(node)} → {_line(make())}" if self._wanted < 0 else ""
            self.found.append(_Found(getattr(node, "lineno", 0), text))
            if number == self._wanted:
                return ast.fix_missing_locations(ast.copy_location(make(), node))
        return self.generic_visit(node)


def _says_nothing(node: ast.AST) -> bool:
    """Imports, docstrings, annotations and assertions: no behaviour of the kernel."""
    if isinstance(node, ast.Import | ast.ImportFrom | ast.Assert | ast.Raise | ast.AnnAssign):
        return True
    if isinstance(node, ast.If) and "trace" in ast.unparse(node.test):
        return True
    if isinstance(node, ast.Assign) and "trace" in ast.unparse(node.targets[0]):
        return True
    return isinstance(node, ast.arg) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def _line(node: ast.AST) -> str:
    text = ast.unparse(ast.fix_missing_locations(node)).strip().splitlines()
    return text[0] + (" …" if len(text) > 1 else "")


def wrongs(module: str) -> list[Wrong]:
    """Every change this tool knows for a module of the kernel."""
    place, tree = _Place(), _parsed(module)
    lines = [line.strip() for line in _source(module).splitlines()]
    functions, statements = _functions(tree), _statements(tree)
    place.visit(tree)
    times: Counter[tuple[str, str]] = Counter()
    listed = []
    for number, found in enumerate(place.found):
        key = lines[found.line - 1], found.change
        first, last = statements[found.line]
        function = functions.get(found.line, "")
        listed.append(
            Wrong(module, number, found.line, function, first, last, *key, nth=times[key])
        )
        times[key] += 1
    return listed


def changed(wrong: Wrong) -> ast.Module:
    """The module with this one change."""
    tree = _Place(wrong.number).visit(_parsed(wrong.module))
    assert isinstance(tree, ast.Module)
    return ast.fix_missing_locations(tree)


def _functions(tree: ast.Module) -> dict[int, str]:
    """The outermost function of each line that is in the body of one."""
    found = {}
    within: list[tuple[str, ast.stmt]] = [("", statement) for statement in tree.body]
    for before, node in within:
        if isinstance(node, ast.ClassDef):
            within += [(f"{before}{node.name}.", inner) for inner in node.body]
        elif isinstance(node, ast.FunctionDef):
            for line in range(node.body[0].lineno, (node.end_lineno or 0) + 1):
                found[line] = before + node.name
    return found


def _statements(tree: ast.Module) -> dict[int, tuple[int, int]]:
    """The smallest statement each line belongs to, from its first line to its last."""
    found = {}
    for node in ast.walk(tree):  # the outer ones first
        if isinstance(node, ast.stmt):
            span = node.lineno, node.end_lineno or node.lineno
            found.update(dict.fromkeys(range(span[0], span[1] + 1), span))
    return found


def _parsed(module: str) -> ast.Module:
    return ast.parse(_source(module))


@cache
def _source(module: str) -> str:
    return (KERNEL / f"{module}.py").read_text(encoding="utf-8")
