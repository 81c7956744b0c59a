"""The inputs of one run: filled in, checked, and which of them stay open.

Read next: `session.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import get_args, get_origin

import msgspec

from nightwarden.errors import RunError
from nightwarden.kernel.plan import Plan
from nightwarden.masking.redaction import SecretRegistry
from nightwarden.runtime.feeding import InputFeed
from nightwarden.runtime.past import Past
from nightwarden.runtime.secrets import secrets_in
from nightwarden.spec.catalog import MISSING
from nightwarden.spec.checker import Checker, Misfit
from nightwarden.spec.findings import nearest
from nightwarden.spec.generics import input_types
from nightwarden.spec.storing import original, plain_form
from nightwarden.spec.workflow import INPUTS, Workflow


def resolve_inputs(workflow: Workflow, given: Mapping[str, object]) -> dict[str, object]:
    """The run's inputs: defaults filled in, every value of its declared type.

    Raises `RunError` naming every input that is missing, unknown or does not fit.
    """
    problems = []
    types = input_types(workflow)
    names = [spec.name for spec in workflow.inputs]
    for name in given:
        if name not in names:
            hint = nearest(name, names)
            meant = f"; did you mean {hint}?" if hint else f"; it has {', '.join(names) or 'none'}"
            problems.append(f"input {name}: {workflow.name} has no such input{meant}")
    values: dict[str, object] = {}
    for spec in workflow.inputs:
        if spec.name not in given:
            if spec.default is MISSING:
                problems.append(
                    f"input {spec.name} ({spec.type}) is missing: give --input {spec.name}=…"
                )
            else:
                values[spec.name] = spec.default
            continue
        try:
            values[spec.name] = Checker(types[spec.name]).coerce(given[spec.name])
        except Misfit as misfit:
            problems += [f"input {spec.name}: {problem}" for problem in misfit.problems]
    if problems:
        raise RunError("\n".join(problems))
    return values


def kept_inputs(
    workflow: Workflow, inputs: Mapping[str, object], registry: SecretRegistry
) -> tuple[dict[str, object], tuple[str, ...]]:
    """The inputs as a record has them, and which of them are not what they are there."""
    types = input_types(workflow)
    kept: dict[str, object] = {}
    sealed = []
    for name, value in inputs.items():
        masked, changed = registry.mask_value(value)
        kept[name], whole = plain_form(Checker(types[name]), masked)
        if changed or not whole:
            sealed.append(name)
    return kept, tuple(sealed)


def values_pushed(
    past: Past, name: str, blob: Callable[[str], bytes], checker: Checker
) -> Iterator[object]:
    """What was pushed to an open input before, in order. Raises `RunError` if it is not there."""
    for event in past.pushed.get(name, ()):
        if event.get("sealed"):
            raise RunError(
                f"input {name}: an item that was pushed held a secret and is not on record; "
                "this run cannot be resumed"
            )
        digest = event.get("blobs", {}).get(name)
        plain = msgspec.json.decode(blob(digest)) if digest else event["inputs"][name]
        yield original(checker, plain)


def secret_names(workflow: Workflow) -> list[str]:
    """Every secret the workflow's properties name, each once."""
    written = (value for node in workflow.nodes for value in node.properties.values())
    return sorted({name for value in written for name in secrets_in(value)})


def open_elements(workflow: Workflow, names: Iterable[str]) -> dict[str, Checker]:
    """The check of one item of each input that stays open.

    Raises `RunError` for an input that is no list, or is used other than item by item.
    """
    types = input_types(workflow)
    checks = {}
    for name in names:
        if name not in types:
            known = ", ".join(types) or "none"
            raise RunError(f"input {name} cannot stay open: there is no such input; it has {known}")
        if get_origin(types[name]) is not list:
            raise RunError(f"input {name} cannot stay open: it is no list")
        whole = [
            edge.target
            for edge in workflow.edges
            if edge.source == INPUTS
            and edge.source_slot == name
            and workflow.types[edge.target].name != "flow.ForEach"
        ]
        if whole:
            raise RunError(
                f"input {name} cannot stay open: {whole[0]} takes the whole list; "
                f"only $inputs.{name}[*] can be fed while the run goes on"
            )
        fanned = [e.target for e in workflow.edges if e.source == INPUTS and e.source_slot == name]
        if len(fanned) > 1:
            raise RunError(
                f"input {name} cannot stay open: it is fanned out {len(fanned)} times "
                f"({', '.join(fanned)}), and a pushed item goes to one of them only"
            )
        checks[name] = Checker(get_args(types[name])[0])
    return checks


def fed_nodes(plan: Plan, feeds: Mapping[str, InputFeed]) -> dict[int, InputFeed]:
    """Which fan-out each open input feeds, by node number."""
    return {
        plan.node(edge.target).index: feeds[edge.source_slot]
        for edge in plan.workflow.edges
        if edge.source == INPUTS and edge.source_slot in feeds
    }
