"""What `@node(…)` may say of a step, and what it may not (kernel.md §4)."""

from __future__ import annotations

from typing import Any

import pytest

from nightwarden.nodes.define import definition_of, node

WRONG: list[tuple[dict[str, Any], str]] = [
    (
        {"executor": "anything"},
        "there is no executor 'anything', only 'process'; leave it out for the loop or a thread",
    ),
    (
        {"executor": "proces"},
        "there is no executor 'proces', only 'process'; did you mean 'process'?",
    ),
    ({"executor": ""}, "there is no executor '', only 'process'; leave it out"),
    ({"executor": True}, "there is no executor True, only 'process'; leave it out"),
    ({"executor": ["process"]}, "there is no executor ['process'], only 'process'"),
    ({"retry_safe": "no"}, "retry_safe is True or False, not 'no'"),
    ({"inline": 1}, "inline is True or False, not 1"),
    ({"pure": None}, "pure is True or False, not None"),
    ({"concurrency": 0}, "concurrency is 0, but has to be a whole number from 1"),
    ({"concurrency": 2.5}, "concurrency is 2.5, but has to be a whole number from 1"),
    ({"concurrency": True}, "concurrency is True, but has to be a whole number from 1"),
    ({"timeout": 0}, "timeout is 0, but has to be a number of seconds above 0"),
    ({"timeout": float("nan")}, "timeout is nan, but has to be a number of seconds above 0"),
    ({"timeout": "10 s"}, "timeout is '10 s', but has to be a number of seconds above 0"),
    ({"label": 7}, "label is a text, not 7"),
    ({"type": " "}, "type is a text, not ' '"),
    ({"idempotent_by": "nope"}, "idempotent_by names no input slot: 'nope'"),
    ({"idempotent_by": True}, "idempotent_by names no input slot: True"),
    ({"join": "some"}, "join is 'all' or 'any', not 'some'"),
]


@pytest.mark.parametrize(("promises", "said"), WRONG)
def test_a_promise_that_is_none_is_refused_in_one_line_where_it_is_made(
    promises: dict[str, Any], said: str
) -> None:
    with pytest.raises(TypeError) as refused:

        @node(**promises)
        def copy(text: str) -> str:
            return text

    assert str(refused.value).startswith(f"copy: {said}")
    assert "\n" not in str(refused.value)


def test_a_step_may_ask_for_a_process_of_its_own_and_for_no_executor_at_all() -> None:
    @node(executor="process")
    def away(text: str) -> str:
        return text

    @node(executor=None)
    def here(text: str) -> str:
        return text

    known = [definition_of(away), definition_of(here)]
    assert [d.type.executor for d in known if d is not None] == ["process", None]


def test_everything_that_may_be_promised_is_taken_over() -> None:
    @node(
        type="x.Copy",
        idempotent_by="text",
        pure=True,
        concurrency=3,
        timeout=0.5,
        label="{text}",
        join="any",
    )
    def copy(text: str) -> str:
        return text

    found = definition_of(copy)
    assert found is not None
    assert found.type.name == "x.Copy"
    assert (found.type.idempotent_by, found.type.pure, found.type.join) == ("text", True, "any")
    assert (found.type.concurrency, found.type.timeout_s, found.type.label) == (3, 0.5, "{text}")
