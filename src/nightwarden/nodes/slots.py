"""A step's signature as slots: what it takes, what it gives, and who hands it the context.

    rows: Collect[dict]      an input slot that collects        ctx: Context   the context
    caption: str | Absent    one that takes what never comes    **fields: T    as many as there are
    -> Page                  `output`, and a projection a field
    -> @outputs class        a slot a field

Hints are types in all their forms, which Python can only call `Any`.

Read next: `io.py` (slot types), `define.py`.
"""

from __future__ import annotations

import types
import typing
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Generator,
    Iterable,
    Iterator,
    Mapping,
)
from dataclasses import dataclass, field
from inspect import Parameter
from typing import Annotated, Any, Final, Union, get_args, get_origin

from nightwarden.nodes.context import Context
from nightwarden.nodes.io import ARRIVAL, ONCE, Absent, Collect, Many, Step, Stream, is_outputs
from nightwarden.spec.catalog import MISSING, InputSlot, OutputSlot, Projection, SlotKind
from nightwarden.spec.records import record_fields

_YIELDS: Final = (AsyncIterator, AsyncGenerator, AsyncIterable, Iterator, Generator, Iterable)
_KINDS: Final = {Collect: SlotKind.COLLECT, Many: SlotKind.MANY, Stream: SlotKind.STREAM}


@dataclass(slots=True)
class Taken:
    """What a step takes: its inputs by name, `extra` for all others, the context by its name."""

    inputs: dict[str, InputSlot] = field(default_factory=dict)
    extra: InputSlot | None = None
    context_name: str | None = None


def hints_of(run: Step) -> dict[str, Any]:
    """The types a signature names. Raises `TypeError` for one that cannot be found."""
    try:
        return typing.get_type_hints(run, include_extras=True)
    except NameError as error:
        raise TypeError(
            f"{run.__qualname__}: an annotation cannot be resolved ({error}); "
            "define the type above the step, or import it at module level, not under TYPE_CHECKING"
        ) from error


def read_parameters(parameters: Iterable[Parameter], hints: Mapping[str, Any], name: str) -> Taken:
    """The input slots of the step called `name`. Raises `TypeError` for a nameless parameter."""
    taken = Taken()
    for parameter in parameters:
        hint = hints.get(parameter.name, Any)
        if hint is Context:
            taken.context_name = parameter.name
        elif parameter.kind is Parameter.VAR_KEYWORD:
            taken.extra = _input(parameter.name, hint, MISSING)
        elif parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.POSITIONAL_ONLY):
            raise TypeError(
                f"{name}: parameter {parameter.name!r} cannot be an input slot; "
                "use named parameters"
            )
        else:
            default = MISSING if parameter.default is Parameter.empty else parameter.default
            taken.inputs[parameter.name] = _input(parameter.name, hint, default)
    return taken


def _input(name: str, hint: Any, default: object) -> InputSlot:
    markers: tuple[object, ...] = ()
    base = hint
    if get_origin(hint) is Annotated:
        base, *rest = get_args(hint)
        markers = tuple(rest)
    base, accepts_absent = _without_absent(base)
    kind = _KINDS.get(get_origin(base) or base)
    if kind is not None:
        element = (get_args(base) or (Any,))[0]
    else:
        kind = SlotKind.PLAIN
        # Keep pydantic's own markers (Field, constraints) with the type.
        element = hint if markers and not accepts_absent else base
    doc = next((str(getattr(m, "description", "") or "") for m in markers), "")
    return InputSlot(
        name=name,
        type=element,
        kind=kind,
        default=default,
        accepts_absent=accepts_absent,
        by_arrival=ARRIVAL in markers,
        doc=doc,
    )


def read_result(
    hint: Any, *, fans_out: bool
) -> tuple[Mapping[str, OutputSlot], Mapping[str, Projection]]:
    """The output slots of what is returned, and the fields of a record edges may start at.

    Code that `fans_out` names what it yields: a slot is a stream then, unless it is `ONCE`.
    """
    if fans_out:
        hint = _yielded(hint)
    if is_outputs(get_origin(hint) or hint):
        slots = {}
        for name, field_hint in record_fields(get_origin(hint) or hint).items():
            base, once = field_hint, False
            if get_origin(field_hint) is Annotated:
                base = get_args(field_hint)[0]
                once = ONCE in get_args(field_hint)[1:]
            base, may_be_absent = _without_absent(base)
            slots[name] = OutputSlot(
                name=name,
                type=base,
                stream=fans_out and not once,
                may_be_absent=may_be_absent,
            )
        return slots, {}
    base, may_be_absent = _without_absent(hint)
    slot = OutputSlot(name="output", type=base, stream=fans_out, may_be_absent=may_be_absent)
    projections = {
        name: Projection(name=name, slot="output", type=field_hint)
        for name, field_hint in record_fields(base).items()
        if name != slot.name  # that name means the whole value; an edge leads to one thing
    }
    return {"output": slot}, projections


def says_it_yields(hint: Any) -> bool:
    """Whether what is said to be returned is what only code with a `yield` gives."""
    found = get_origin(hint) or hint
    return found in _YIELDS and found is not Iterable  # a list is one, too


def _yielded(hint: Any) -> Any:
    if get_origin(hint) in _YIELDS:
        return (get_args(hint) or (Any,))[0]
    return Any


def _without_absent(hint: Any) -> tuple[Any, bool]:
    """The type without its `| Absent` branch, and whether it had one."""
    if get_origin(hint) not in (Union, types.UnionType):
        return hint, False
    rest = tuple(arg for arg in get_args(hint) if arg is not Absent)
    if len(rest) == len(get_args(hint)):
        return hint, False
    return Union[rest], True  # noqa: UP007  (built at run time)
