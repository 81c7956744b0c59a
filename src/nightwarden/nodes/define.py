"""`@node`: a typed function, or a class with `run`, becomes a node type.

The decorated function stays an ordinary function. What the engine needs to know is
read from its signature once and kept beside it as a `NodeDef`:

    @node(retry_safe=True, label="{url}")
    async def fetch(url: str, ctx: Context) -> Page: ...

    async def   runs on the loop          inline=True  trivial and pure, on the loop
    def         runs in a worker thread   yield        fans out

Read next: `io.py` (slot types), `context.py`, `registry.py`.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
)
from enum import StrEnum
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, overload

from nightwarden.nodes.context import Context
from nightwarden.nodes.io import ARRIVAL, ONCE, Absent, Collect, Many, Step, Stream, is_outputs
from nightwarden.nodes.promises import problem_in
from nightwarden.spec.catalog import (
    MISSING,
    InputSlot,
    NodeType,
    OutputSchema,
    OutputSlot,
    Projection,
    Role,
    SlotKind,
)
from nightwarden.spec.records import record_fields

S = TypeVar("S", bound=Callable[..., Any])

_YIELDS = (AsyncIterator, AsyncGenerator, AsyncIterable, Iterator, Generator, Iterable)
_KINDS = {Collect: SlotKind.COLLECT, Many: SlotKind.MANY, Stream: SlotKind.STREAM}
_ATTRIBUTE = "__nightwarden_node__"


class Mode(StrEnum):
    """How the runtime calls a node's code."""

    COROUTINE = "coroutine"
    THREAD = "thread"
    INLINE = "inline"
    ASYNC_GENERATOR = "async_generator"
    THREAD_GENERATOR = "thread_generator"
    INLINE_GENERATOR = "inline_generator"


GENERATORS = (Mode.ASYNC_GENERATOR, Mode.THREAD_GENERATOR, Mode.INLINE_GENERATOR)
"""The modes of code that yields."""


class Node:
    """Base of nodes with set-up and tear-down per run: one instance a run.

    Subclasses define `run`, whose signature is the node's; `setup` and `teardown` are optional.
    """

    async def setup(self, ctx: Context) -> None:
        """Called once before the first `run`."""

    async def teardown(self) -> None:
        """Called once when the run ends, also after a failure."""


@dataclasses.dataclass(frozen=True, slots=True)
class NodeDef:
    """A node type together with its code.

    `target` is the function, or the `Node` subclass. `context_name` is the parameter that
    receives the `Context`, if any.
    """

    type: NodeType
    mode: Mode
    target: Step
    context_name: str | None
    is_class: bool


@overload
def node(target: S, /) -> S: ...
@overload
def node(
    *,
    type: str | None = ...,
    retry_safe: bool = ...,
    idempotent_by: str | None = ...,
    output_schema: OutputSchema | None = ...,
    inline: bool = ...,
    pure: bool = ...,
    executor: str | None = ...,
    concurrency: int | None = ...,
    timeout: float | None = ...,
    label: str | None = ...,
    join: str = ...,
) -> Callable[[S], S]: ...
def node(
    target: S | None = None,
    /,
    *,
    type: str | None = None,
    retry_safe: bool = False,
    idempotent_by: str | None = None,
    output_schema: OutputSchema | None = None,
    inline: bool = False,
    pure: bool = False,
    executor: str | None = None,
    concurrency: int | None = None,
    timeout: float | None = None,
    label: str | None = None,
    join: str = "all",
) -> S | Callable[[S], S]:
    """Make a node type of a function or a `Node` subclass.

    `retry_safe`: running it again does no harm. `idempotent_by`: the input slot whose value it
    passes outside as an idempotency key, which stands in for `retry_safe`. `output_schema` makes,
    of a call's inputs, the JSON Schema a repair of its output has to fit. `pure`: it never mutates
    its inputs. `executor="process"` runs it in a process of its own. `timeout` is in seconds.
    `label` names an item: a format string over the inputs. `join="any"` makes a merge node.
    Raises `TypeError` for a signature it cannot use, or a promise that is none.
    """

    def decorate(code: S) -> S:
        definition = define(
            code,
            name=type,
            retry_safe=retry_safe,
            idempotent_by=idempotent_by,
            output_schema=output_schema,
            inline=inline,
            pure=pure,
            executor=executor,
            concurrency=concurrency,
            timeout_s=timeout,
            label=label,
            join=join,
        )
        return register(code, definition)

    return decorate if target is None else decorate(target)


def register(code: S, definition: NodeDef) -> S:
    """Keep a definition beside its code, where `definition_of` finds it."""
    setattr(code, _ATTRIBUTE, definition)
    return code


def definition_of(target: object) -> NodeDef | None:
    """The `NodeDef` of a decorated function or class, or None."""
    found = getattr(target, _ATTRIBUTE, None)
    if not isinstance(found, NodeDef):
        return None
    # A subclass of a decorated class inherits the attribute but is no node type itself.
    return found if found.target is target else None


def define(
    code: Step,
    *,
    name: str | None = None,
    engine_owned: bool = False,
    role: Role = Role.NONE,
    **promises: Any,
) -> NodeDef:
    """Read a node's signature. `promises` are the keyword arguments of `NodeType`."""
    is_class = inspect.isclass(code)
    run = getattr(code, "run", None) if is_class else code
    if run is None:
        raise TypeError(f"node class {code.__name__} has no `run` method")
    hints = _hints(run)
    parameters = list(inspect.signature(run).parameters.values())
    if is_class:
        parameters = parameters[1:]
    inputs: dict[str, InputSlot] = {}
    extra: InputSlot | None = None
    context_name: str | None = None
    for parameter in parameters:
        hint = hints.get(parameter.name, Any)
        if hint is Context:
            context_name = parameter.name
        elif parameter.kind is parameter.VAR_KEYWORD:
            extra = _input(parameter.name, hint, MISSING)
        elif parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise TypeError(
                f"{code.__name__}: parameter {parameter.name!r} cannot be an input slot; "
                "use named parameters"
            )
        else:
            default = MISSING if parameter.default is parameter.empty else parameter.default
            inputs[parameter.name] = _input(parameter.name, hint, default)
    mode = _mode(run, inline=bool(promises.get("inline")))
    fans_out = mode in GENERATORS
    returned = _yielded(hints.get("return", Any)) if fans_out else hints.get("return", Any)
    outputs, projections = _outputs(returned, fans_out=fans_out)
    problem = problem_in({**promises, "type": name}, inputs, outputs)
    if problem:
        raise TypeError(f"{code.__name__}: {problem}")
    node_type = NodeType(
        name=name or type_name(code),
        inputs=inputs,
        outputs=outputs,
        projections=projections,
        extra=extra,
        fans_out=fans_out,
        reads=any(slot.kind is SlotKind.STREAM for slot in inputs.values()),
        engine_owned=engine_owned,
        role=role,
        doc=inspect.cleandoc(code.__doc__ or ""),
        source=f"{code.__module__}.{code.__qualname__}",
        **promises,
    )
    return NodeDef(node_type, mode, code, context_name, is_class)


def type_name(code: Step) -> str:
    """`<module>.<CamelCase of the function>`: `fetch` in `http.py` is `http.Fetch`."""
    module = code.__module__.rpartition(".")[2]
    words = code.__name__.strip("_").split("_")
    return f"{module}." + "".join(word[:1].upper() + word[1:] for word in words)


def _hints(run: Step) -> dict[str, Any]:
    try:
        return typing.get_type_hints(run, include_extras=True)
    except NameError as error:
        raise TypeError(
            f"{run.__qualname__}: an annotation cannot be resolved ({error}); "
            "import the type at module level, not under TYPE_CHECKING"
        ) from error


def _mode(run: Step, *, inline: bool) -> Mode:
    if inspect.isasyncgenfunction(run):
        return Mode.ASYNC_GENERATOR
    if inspect.isgeneratorfunction(run):
        return Mode.INLINE_GENERATOR if inline else Mode.THREAD_GENERATOR
    if inspect.iscoroutinefunction(run):
        return Mode.COROUTINE
    return Mode.INLINE if inline else Mode.THREAD


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


def _yielded(hint: Any) -> Any:
    if get_origin(hint) in _YIELDS:
        return (get_args(hint) or (Any,))[0]
    return Any


def _outputs(
    hint: Any, *, fans_out: bool
) -> tuple[Mapping[str, OutputSlot], Mapping[str, Projection]]:
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


def _without_absent(hint: Any) -> tuple[Any, bool]:
    """The type without its `| Absent` branch, and whether it had one."""
    if get_origin(hint) not in (Union, types.UnionType):
        return hint, False
    rest = tuple(arg for arg in get_args(hint) if arg is not Absent)
    if len(rest) == len(get_args(hint)):
        return hint, False
    return Union[rest], True  # noqa: UP007  (built at run time)
