"""The operators and functions of expressions, each with a limit on what it can make.

Numbers that came as decimals stay decimals: a float beside one is taken by its digits.
Texts grow to `LONGEST` characters, integers to `MOST_BITS` bits; lists are never repeated.

Read next: `_expressions.py`.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

LONGEST: Final = 1_000_000
MOST_BITS: Final = 10_000
_MOST_DIGITS: Final = 3_000

Operand = Any
"""A value of an expression: whatever the items are."""


class TooBigError(ValueError):
    """What the expression would make is too big."""


def _arithmetic(function: Callable[[Operand, Operand], object]) -> Callable[..., object]:
    def apply(left: Operand, right: Operand) -> object:
        return function(*_alike(left, right))

    return apply


def _alike(left: Operand, right: Operand) -> tuple[Operand, Operand]:
    if isinstance(left, Decimal) and isinstance(right, float):
        return left, Decimal(repr(right))
    if isinstance(left, float) and isinstance(right, Decimal):
        return Decimal(repr(left)), right
    return left, right


def _add(left: Operand, right: Operand) -> object:
    if isinstance(left, (str, list, tuple)) and isinstance(right, (str, list, tuple)):
        _limit(len(left) + len(right))
    return left + right


def _multiply(left: Operand, right: Operand) -> object:
    if isinstance(left, int) and isinstance(right, int):
        _limit_bits(left.bit_length() + right.bit_length())
    elif isinstance(left, str) and isinstance(right, int):
        _limit(len(left) * right)
    elif not (_is_number(left) and _is_number(right)):
        raise TypeError(f"cannot multiply {_kind(left)} and {_kind(right)}")
    return left * right


def _power(left: Operand, right: Operand) -> object:
    if not (_is_number(left) and _is_number(right)):
        raise TypeError(f"cannot raise {_kind(left)} to the power of {_kind(right)}")
    if isinstance(left, int) and isinstance(right, int):
        _limit_bits(left.bit_length() * abs(right))
    return left**right


def _modulo(left: Operand, right: Operand) -> object:
    # On texts the sign means formatting, which can ask for any width.
    if not (_is_number(left) and _is_number(right)):
        raise TypeError(f"cannot take {_kind(left)} modulo {_kind(right)}")
    return left % right


OPERATORS: Final[Mapping[type[ast.AST], Callable[..., object]]] = {
    ast.Add: _arithmetic(_add),
    ast.Sub: _arithmetic(operator.sub),
    ast.Mult: _arithmetic(_multiply),
    ast.Div: _arithmetic(operator.truediv),
    ast.FloorDiv: _arithmetic(operator.floordiv),
    ast.Mod: _arithmetic(_modulo),
    ast.Pow: _arithmetic(_power),
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


def _sum(values: Iterable[Operand], start: Operand = 0) -> object:
    total = start
    for value in values:
        if not _is_number(value):
            raise TypeError(f"sum() adds numbers, not {_kind(value)}")
        left, right = _alike(total, value)
        total = left + right
    return total


def _int(value: Operand) -> int:
    if isinstance(value, Decimal) and value.adjusted() > _MOST_DIGITS:
        raise TooBigError("the number has too many digits")
    return int(value)


def _str(value: Operand) -> str:
    if isinstance(value, (Mapping, list, tuple, set)):
        raise TypeError(f"str() takes a single value, not {_kind(value)}")
    return str(value)


def _decimal(value: Operand) -> Decimal:
    return Decimal(repr(value) if isinstance(value, float) else value)


def _replace(text: str, old: str, new: str) -> str:
    _limit(len(text) + text.count(old) * len(new))
    return text.replace(old, new)


def _join(separator: str, parts: Sequence[str]) -> str:
    _limit(sum(map(len, parts)) + len(separator) * len(parts))
    return separator.join(parts)


def _get(value: Mapping[object, object], key: object, default: object = None) -> object:
    if not isinstance(value, Mapping):
        raise TypeError(f"get() takes a record of named values, not {_kind(value)}")
    return value.get(key, default)


def _keys(value: Mapping[object, object]) -> list[object]:
    return list(value.keys())


def _values(value: Mapping[object, object]) -> list[object]:
    return list(value.values())


_NUMBERS: Final[Mapping[str, Callable[..., object]]] = {
    "abs": abs,
    "bool": bool,
    "decimal": _decimal,
    "float": float,
    "int": _int,
    "len": len,
    "max": max,
    "min": min,
    "round": round,
    "sum": _sum,
}
_LISTS: Final[Mapping[str, Callable[..., object]]] = {
    "all": all,
    "any": any,
    "list": list,
    "sorted": sorted,
    "str": _str,
}

METHODS: Final[Mapping[str, Callable[..., object]]] = {
    "count": lambda value, part: value.count(part),
    "endswith": str.endswith,
    "get": _get,
    "join": _join,
    "keys": _keys,
    "lower": str.lower,
    "replace": _replace,
    "split": str.split,
    "startswith": str.startswith,
    "strip": str.strip,
    "title": str.title,
    "upper": str.upper,
    "values": _values,
}
"""May also stand behind a value: `item.name.upper()` is `upper(item.name)`."""

FUNCTIONS: Final[Mapping[str, Callable[..., object]]] = {**_NUMBERS, **_LISTS, **METHODS}


def _limit(length: int) -> None:
    if length > LONGEST:
        raise TooBigError(f"the result would be longer than {LONGEST:,}")


def _limit_bits(bits: int) -> None:
    if bits > MOST_BITS:
        raise TooBigError("the number would have too many digits")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, Decimal))


def _kind(value: object) -> str:
    return type(value).__name__
