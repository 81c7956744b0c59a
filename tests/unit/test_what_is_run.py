"""What a host hands to `run` and the like: what is no workflow is said to be none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import nightwarden as nw
from nightwarden.errors import RunError


@nw.node(type="handed.One")
async def one() -> int:
    return 1


def drawn() -> Any:
    with nw.workflow("handed", registry=nw.Registry()) as w:
        w.add(one, id="one")
    return w


OTHERS = [
    ("flow.yaml", "'flow.yaml' is no workflow: nw.load(…) reads one from a file"),
    (Path("flow.yaml"), "'flow.yaml' is no workflow: nw.load(…) reads one from a file"),
    (None, "a workflow is expected, from nw.load(…) or nw.workflow(…); got NoneType"),
    ({"nodes": []}, "a workflow is expected, from nw.load(…) or nw.workflow(…); got dict"),
    (drawn(), "a Builder is no workflow yet: call its build() when all is drawn"),
]


@pytest.mark.parametrize(("other", "says"), OTHERS)
@pytest.mark.parametrize("take", [nw.run, nw.Session, nw.WorkflowAgent])
def test_what_is_no_workflow_is_refused_in_words(take: Any, other: object, says: str) -> None:
    with pytest.raises(RunError) as told:
        take(other)
    assert str(told.value) == says


@pytest.mark.parametrize(("inputs", "kind"), [([1], "list"), ("x", "str"), (3, "int")])
def test_inputs_without_names_are_refused_in_words(inputs: Any, kind: str) -> None:
    with pytest.raises(RunError) as told:
        nw.run(drawn().build(), inputs)
    assert str(told.value) == f"inputs are given by name, as in {{'url': …}}; got {kind}"
