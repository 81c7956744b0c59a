"""Whether a repair may enter the graph: every declared slot, deeply and strictly checked.

A repair names every declared output slot, with a value of its type (and of the schema the step
declared for this call), or `{"$absent": true}` where the slot may stay empty. Files it names must
exist. Text that still carries a mask or a cut mark is refused: it is not what it seems.

Read next: `deciding.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from nightwarden.kernel.plan import NodePlan
from nightwarden.masking.marks import contains_mark
from nightwarden.nodes.io import ABSENT, AssetRef
from nightwarden.runtime.binding import Binding
from nightwarden.runtime.services import RunServices
from nightwarden.spec.checker import Misfit
from nightwarden.spec.json_schema import problems_of

ABSENT_FORM = {"$absent": True}


class Repairs:
    """The repairs of one run, held against what its nodes declare and the files it has."""

    def __init__(self, bindings: Iterable[Binding], services: RunServices) -> None:
        self._bindings = {binding.node.id: binding for binding in bindings}
        self._services = services

    def check(
        self,
        node_id: str,
        outputs: Mapping[str, object],
        form: Mapping[str, object] | None = None,
    ) -> tuple[tuple[object, ...], Sequence[str]]:
        """The values in the order of `NodePlan.outs`, and what is wrong; values or problems."""
        binding = self._bindings[node_id]
        values, problems = check_repair(
            binding, outputs, form, is_marked=contains_mark, resolves=self._resolves
        )
        return (() if problems else binding.repaired(values)), problems

    def _resolves(self, reference: object) -> bool:
        """Whether a file that a repair names is there, inside the run's own places."""
        if isinstance(reference, AssetRef):
            return self._services.fetch(reference) is not None
        workdir = self._services.workdir
        path = workdir / str(reference)
        return path.resolve().is_relative_to(workdir.resolve()) and path.exists()


def check_repair(
    binding: Binding,
    outputs: Mapping[str, object],
    form: Mapping[str, object] | None = None,
    *,
    is_marked: Callable[[object], bool],
    resolves: Callable[[object], bool],
) -> tuple[dict[str, object], Sequence[str]]:
    """The values to use, by slot, and what is wrong; with problems the values are not complete.

    `form` is the JSON Schema that `output` has to fit besides its type.
    """
    node = binding.node
    problems = [
        f"{name} is no output of {node.id}; it has {', '.join(node.type.outputs)}"
        for name in outputs
        if name not in node.type.outputs
    ]
    values: dict[str, object] = {}
    for name, slot in node.type.outputs.items():
        if name not in outputs:
            problems.append(f"{name} is missing: a repair names every output")
            continue
        value = outputs[name]
        if value is ABSENT or value == ABSENT_FORM:
            if slot.may_be_absent:
                values[name] = ABSENT
            else:
                problems.append(f"{name} may not be absent")
            continue
        if is_marked(value):
            problems.append(f"{name} carries a mask or a cut mark; give the value itself")
            continue
        found = [f"{name}: {problem}" for problem in binding.checker(name).strict_problems(value)]
        if not found:
            found, values[name] = _revived(binding, name, value, resolves)
        if not found and form is not None and name == "output":
            found = [f"{name}: {problem}" for problem in _misfits(binding, value, form)]
        problems += found
    return values, problems


def _misfits(binding: Binding, value: object, form: Mapping[str, object]) -> Sequence[str]:
    """What of a value, plain data or of the declared type, does not fit the declared schema."""
    try:
        return problems_of(value, form)
    except (TypeError, ValueError):  # no plain data
        return problems_of(binding.checker("output").dumped(value), form)


def can_be_repaired(node: NodePlan, binding: Binding) -> bool:
    """Whether every declared output has a type that can be checked."""
    return all(binding.checker(name).checkable for name in node.type.outputs)


def _revived(
    binding: Binding, name: str, value: object, resolves: Callable[[object], bool]
) -> tuple[list[str], object]:
    try:
        made = binding.checker(name).revive(value)
    except Misfit as misfit:
        return [f"{name}: {problem}" for problem in misfit.problems], None
    missing = [ref for ref in _references(made) if not resolves(ref)]
    return [f"{name}: {_named(ref)} is no file of this run" for ref in missing], made


def _references(value: Any, depth: int = 0) -> list[object]:
    """Every file a value names, to a depth no honest value exceeds."""
    if isinstance(value, (PurePath, AssetRef)):
        return [value]
    if depth > 20:
        return []
    return [ref for part in _parts(value) for ref in _references(part, depth + 1)]


def _parts(value: Any) -> Sequence[object]:
    """What a container or record holds; a record's fields may stand in its class's slots."""
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    slots = [n for cls in type(value).__mro__ for n in getattr(cls, "__slots__", ())]
    fields = [n for n in slots if isinstance(n, str) and not n.startswith("__")]
    return [*getattr(value, "__dict__", {}).values(), *(getattr(value, n, None) for n in fields)]


def _named(ref: object) -> str:
    return ref.name if isinstance(ref, AssetRef) else str(ref)
