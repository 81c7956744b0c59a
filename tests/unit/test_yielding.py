"""A step whose type says that it yields has to (kernel.md §4): else nothing would fan out."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
from typing import Any

import pytest

from nightwarden.nodes.define import definition_of, node


def returns(code: Callable[..., Any], hint: object) -> Callable[..., Any]:
    code.__annotations__["return"] = hint
    return code


def listed(n: int) -> Any:
    return list(range(n))


def yielding(n: int) -> Any:
    yield from range(n)


async def waiting(n: int) -> Any:
    return n


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        (listed, Iterator[int]),
        (listed, Iterator),
        (listed, Generator[int, None, None]),
        (waiting, AsyncIterator[int]),
    ],
)
def test_code_without_a_yield_cannot_say_that_it_yields(
    code: Callable[..., Any], hint: object
) -> None:
    says = re.escape(f"{code.__name__}: it is to give {hint}, and has no `yield`: write")
    with pytest.raises(TypeError, match=says):
        node(returns(code, hint))


@pytest.mark.parametrize(
    ("code", "hint", "fans_out"),
    [
        (listed, Iterable[int], False),
        (listed, list[int], False),
        (listed, Any, False),
        (yielding, Iterator[int], True),
        (yielding, int, True),
    ],
)
def test_what_a_list_is_too_may_be_returned(
    code: Callable[..., Any], hint: object, fans_out: bool
) -> None:
    found = definition_of(node(returns(code, hint)))
    assert found is not None
    assert found.type.fans_out is fans_out
