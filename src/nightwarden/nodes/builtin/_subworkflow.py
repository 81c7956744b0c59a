"""A workflow as a node, and a value as a node.

A `flow.Subworkflow` is inlined when its workflow is loaded, so its code is never called: its
steps run, fail and are answered for as if they stood in the outer workflow, under `outer/inner`.

Read next: `flow.py`, `spec/inline.py`.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator

from nightwarden.nodes.define import define, node, register
from nightwarden.spec.generics import VALUE
from nightwarden.spec.subworkflow import SUBWORKFLOW
from nightwarden.spec.types import parse_type

T = TypeVar("T")


def subworkflow(workflow: str, **inputs: object) -> Any:  # noqa: ARG001  (never called)
    """Another workflow as a step: `workflow` names its file, beside this one or below.

    Every other property is an input of that workflow; its outputs are wired as `$id.name`. Its
    steps become steps of this run, called `id/step`, each with its own safety. As a whole it is
    never repeated.
    """
    raise AssertionError("a subworkflow is inlined when it is loaded")


register(subworkflow, define(subworkflow, name=SUBWORKFLOW, engine_owned=True))


def _known(name: str) -> str:
    if name:
        parse_type(name)
    return name


@node(type=VALUE, retry_safe=True, inline=True)
def value(
    value: T,
    of: Annotated[str, AfterValidator(_known)] = "",  # noqa: ARG001  (for loading)
) -> T:
    """Put out a value as it is. `of` names its type, as an input would: `path`, `list[int]`.

    What a value given to a subworkflow becomes where it cannot stand at the slots inside.
    """
    return value
