"""`@node`: a typed function, or a class with `run`, becomes a node type.

The decorated function stays an ordinary function. What the engine needs to know is
read from its signature once and kept beside it as a `NodeDef`:

    @node(retry_safe=True, label="{url}")
    async def fetch(url: str, ctx: Context) -> Page: ...

    async def   runs on the loop          inline=True  trivial and pure, on the loop
    def         runs in a worker thread   yield        fans out

Read next: `io.py` (slot types), `slots.py`, `context.py`, `registry.py`.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeVar, overload

from nightwarden.nodes.context import Context
from nightwarden.nodes.io import Step
from nightwarden.nodes.promises import problem_in
from nightwarden.nodes.slots import hints_of, read_parameters, read_result, says_it_yields
from nightwarden.spec.catalog import NodeType, OutputSchema, Role, SlotKind

S = TypeVar("S", bound=Callable[..., Any])

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
    hints = hints_of(run)
    parameters = list(inspect.signature(run).parameters.values())
    if is_class:
        parameters = parameters[1:]
    taken = read_parameters(parameters, hints, code.__name__)
    mode = _mode(run, inline=bool(promises.get("inline")))
    fans_out = mode in GENERATORS
    if says_it_yields(hints.get("return")) and not fans_out:
        raise TypeError(
            f"{code.__name__}: it is to give {hints['return']}, and has no `yield`: "
            "write `yield from …` to fan out, or return a list"
        )
    outputs, projections = read_result(hints.get("return", Any), fans_out=fans_out)
    problem = problem_in({**promises, "type": name}, taken.inputs, outputs)
    if problem:
        raise TypeError(f"{code.__name__}: {problem}")
    node_type = NodeType(
        name=name or type_name(code),
        inputs=taken.inputs,
        outputs=outputs,
        projections=projections,
        extra=taken.extra,
        fans_out=fans_out,
        reads=any(slot.kind is SlotKind.STREAM for slot in taken.inputs.values()),
        engine_owned=engine_owned,
        role=role,
        doc=inspect.cleandoc(code.__doc__ or ""),
        source=f"{code.__module__}.{code.__qualname__}",
        **promises,
    )
    return NodeDef(node_type, mode, code, taken.context_name, is_class)


def type_name(code: Step) -> str:
    """`<module>.<CamelCase of the function>`: `fetch` in `http.py` is `http.Fetch`."""
    module = code.__module__.rpartition(".")[2]
    words = code.__name__.strip("_").split("_")
    return f"{module}." + "".join(word[:1].upper() + word[1:] for word in words)


def _mode(run: Step, *, inline: bool) -> Mode:
    if inspect.isasyncgenfunction(run):
        return Mode.ASYNC_GENERATOR
    if inspect.isgeneratorfunction(run):
        return Mode.INLINE_GENERATOR if inline else Mode.THREAD_GENERATOR
    if inspect.iscoroutinefunction(run):
        return Mode.COROUTINE
    return Mode.INLINE if inline else Mode.THREAD
