"""Expressions over items, in Python's notation, with nothing of Python's reach.

    item.price * 1.19 > limit                    keys and fields, never attributes of objects
    upper(item.name)   item.name.upper()         functions of one fixed list
    [line.sku for line in item.lines if line.n]  bounded like everything else

Checked when a workflow is loaded: notation, functions, what is not allowed. The evaluator
is simpleeval's, with its doors closed further: parts of values are reached by `_lookup`
only, and an evaluation has a budget of steps, so that it ends within a fraction of a second.

Read next: `_expression_words.py`, `data.py`.
"""

from __future__ import annotations

import ast
import functools
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import AfterValidator
from simpleeval import EvalWithCompoundTypes, InvalidExpression  # type: ignore[import-untyped]

from nightwarden.errors import NodeError
from nightwarden.nodes.builtin._expression_words import FUNCTIONS, METHODS, OPERATORS
from nightwarden.nodes.builtin._lookup import part
from nightwarden.spec.mentions import Mentions

LONGEST_EXPRESSION: Final = 2_000
MOST_STEPS: Final = 100_000
MOST_NESTED: Final = 3
"""How many loops may stand in one another."""

_COMPREHENSIONS: Final = (ast.ListComp, ast.GeneratorExp, ast.DictComp)
_ALLOWED: Final = (
    *(ast.Expression, ast.Constant, ast.Name, ast.Load, ast.Store, ast.Attribute, ast.Subscript),
    *(ast.Slice, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.And, ast.Or, ast.Compare, ast.IfExp),
    *(ast.Call, ast.keyword, ast.List, ast.Tuple, ast.Dict, ast.comprehension),
    *_COMPREHENSIONS,
    *OPERATORS,
)


@dataclass(frozen=True, slots=True)
class Compiled:
    """A checked expression, and the names it needs from outside."""

    tree: ast.expr
    names: frozenset[str]


@functools.lru_cache(maxsize=256)
def compiled(expression: str) -> Compiled:
    """Check an expression. Raises `ValueError` that says what is wrong with it, and where."""
    tree = _parsed(expression)
    try:
        _check(tree, 0)
    except RecursionError as error:
        raise ValueError(f"{expression[:60]!r} is nested too deeply") from error
    bound = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and _is_target(n)}
    called = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in called}
    return Compiled(tree.body, frozenset(used - bound))


def _parsed(expression: str) -> ast.Expression:
    if len(expression) > LONGEST_EXPRESSION:
        raise ValueError(f"an expression has at most {LONGEST_EXPRESSION:,} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about odd escapes; they only mean themselves
            return ast.parse(expression.strip(), mode="eval")
    except SyntaxError as error:
        where = f" at character {error.offset}" if error.offset else ""
        raise ValueError(f"{expression!r} is no expression: {error.msg}{where}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"{expression[:60]!r} is no expression: {error}") from error


def _is_target(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def _check(node: ast.AST, loops: int) -> None:
    """Refuse what expressions may not contain."""
    if not isinstance(node, _ALLOWED):
        name = type(node).__name__
        raise ValueError(f"{name} is not allowed in an expression")  # noqa: TRY004
    if isinstance(node, _COMPREHENSIONS):
        loops += len(node.generators)
        if loops > MOST_NESTED:
            raise ValueError(f"at most {MOST_NESTED} loops may stand in one another")
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name) if name.startswith("_"):
            raise ValueError(f"{name!r}: names that begin with _ are not allowed")
        case ast.Call():
            _check_call(node)
        case ast.comprehension(target=target) if not all(
            isinstance(n, (ast.Name, ast.Tuple, ast.Store)) for n in ast.walk(target)
        ):
            raise ValueError("a loop in an expression binds plain names only")
    for child in ast.iter_child_nodes(node):
        _check(child, loops)


def _check_call(call: ast.Call) -> None:
    match call.func:
        case ast.Name(id=name) if name not in FUNCTIONS:
            raise ValueError(f"there is no function {name!r}; there are {_listed(FUNCTIONS)}")
        case ast.Attribute(attr=name) if name not in METHODS:
            raise ValueError(f"there is no method {name!r}; there are {_listed(METHODS)}")
        case ast.Name() | ast.Attribute():
            pass
        case _:
            raise ValueError("only functions can be called")
    if any(keyword.arg is None for keyword in call.keywords):
        raise ValueError("** is not allowed in a call")


def _checked(expression: str) -> str:
    compiled(expression)
    return expression


Expression = Annotated[str, AfterValidator(_checked), Mentions(lambda text: compiled(text).names)]
"""An expression; a mistake in it is found when the workflow is loaded."""


def evaluate(expression: str, names: Mapping[str, object]) -> object:
    """The value of an expression. Raises `NodeError`, code `expression`, if it has none."""
    try:
        return _value(compiled(expression), names)
    except (InvalidExpression, LookupError, TypeError, ValueError, ArithmeticError) as error:
        text = str(error.args[0]) if error.args else type(error).__name__
        shown = "" if text.startswith(repr(expression)) else f"{expression!r}: "
        raise NodeError(f"{shown}{text}", code="expression") from error
    except RecursionError as error:
        raise NodeError(f"{expression[:60]!r}: nested too deeply", code="expression") from error


def _value(form: Compiled, names: Mapping[str, object]) -> object:
    if missing := sorted(form.names - names.keys()):
        raise LookupError(f"no value for {_listed(missing)}; given: {_listed(names)}")
    return _Evaluator(names).eval("", form.tree)


class _Evaluator(EvalWithCompoundTypes):  # type: ignore[misc]  # the library has no types
    """One evaluation."""

    def __init__(self, names: Mapping[str, object]) -> None:
        super().__init__(operators=dict(OPERATORS), functions=dict(FUNCTIONS), names=dict(names))
        self._steps = 0

    def _eval(self, node: ast.AST) -> object:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise ValueError(f"takes more than {MOST_STEPS:,} steps")
        # The library would search each value for functions here; none can get into one.
        return self.nodes[type(node)](node)

    def _eval_name(self, node: ast.Name) -> object:
        return self.names[node.id]

    def _eval_attribute(self, node: ast.Attribute) -> object:
        return part(self._eval(node.value), node.attr)

    def _eval_subscript(self, node: ast.Subscript) -> object:
        container, key = self._eval(node.value), self._eval(node.slice)
        if isinstance(key, str):
            return part(container, key)
        if not isinstance(container, (list, tuple, str, Mapping)):
            raise TypeError(f"{type(container).__name__} cannot be indexed")
        try:
            return container[key]  # type: ignore[call-overload,index]
        except IndexError as error:
            raise LookupError(f"no item {key}, there are {len(container)}") from error
        except KeyError as error:
            raise LookupError(f"no {key!r} in it") from error

    def _eval_call(self, node: ast.Call) -> object:
        arguments = [self._eval(argument) for argument in node.args]
        named = {k.arg: self._eval(k.value) for k in node.keywords if k.arg is not None}
        if isinstance(node.func, ast.Attribute):
            arguments.insert(0, self._eval(node.func.value))
            return METHODS[node.func.attr](*arguments, **named)
        assert isinstance(node.func, ast.Name)
        return FUNCTIONS[node.func.id](*arguments, **named)


def _listed(names: Mapping[str, object] | list[str]) -> str:
    return ", ".join(sorted(names)) or "none"
