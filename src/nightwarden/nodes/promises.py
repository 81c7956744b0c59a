"""What `@node(…)` may say of a step, checked where it is said.

A promise that is misspelt must not pass for one that is kept: `retry_safe="no"` would count as
yes, and an executor nobody knows as none. The first thing that is wrong is told, in one line.

Read next: `define.py`.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Container, Iterator, Mapping
from typing import Final

from nightwarden.spec.limits import concurrency_problem, timeout_problem

EXECUTORS: Final = ("process",)
"""Where a step may run instead of on the loop or in a thread."""

JOINS: Final = ("all", "any")
_YES_OR_NO: Final = ("retry_safe", "inline", "pure")
_TEXTS: Final = ("label", "type")


def problem_in(
    promises: Mapping[str, object], inputs: Container[object], outputs: Collection[str]
) -> str:
    """What is wrong with the promises of a step with these slots; empty when nothing is."""
    return next(_problems(promises, inputs, outputs), "")


def _problems(
    promises: Mapping[str, object], inputs: Container[object], outputs: Collection[str]
) -> Iterator[str]:
    for name in _YES_OR_NO:
        value = promises.get(name, False)
        if not isinstance(value, bool):
            yield f"{name} is True or False, not {value!r}"
    for name in _TEXTS:
        value = promises.get(name)
        if value is not None and not (isinstance(value, str) and value.strip()):
            yield f"{name} is a text, not {value!r}"
    key = promises.get("idempotent_by")
    if key is not None and key not in inputs:
        yield f"idempotent_by names no input slot: {key!r}"
    schema = promises.get("output_schema")
    if schema is not None and not callable(schema):
        yield "output_schema is a function from a call's inputs to a JSON Schema"
    elif schema is not None and list(outputs) != ["output"]:
        yield f"output_schema is for a step with one output; this one has {', '.join(outputs)}"
    if promises.get("join", "all") not in JOINS:
        yield f"join is 'all' or 'any', not {promises['join']!r}"
    executor = promises.get("executor")
    if executor is not None and executor not in EXECUTORS:
        yield _unknown_executor(executor)
    for problem in (
        concurrency_problem(promises.get("concurrency")),
        timeout_problem(promises.get("timeout_s")),
    ):
        if problem:
            yield problem


def _unknown_executor(executor: object) -> str:
    near = difflib.get_close_matches(str(executor), EXECUTORS, n=1)
    meant = f"did you mean {near[0]!r}?" if near else "leave it out for the loop or a thread"
    return f"there is no executor {executor!r}, only {', '.join(map(repr, EXECUTORS))}; {meant}"
