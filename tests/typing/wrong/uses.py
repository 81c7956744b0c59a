"""What a type checker has to refuse. `# E:` is part of the error on its line."""

from __future__ import annotations

from collections.abc import AsyncIterator

import nightwarden as nw
from nightwarden.runtime.supervision import SupervisorBase
from nightwarden.verdict import Decision, Escalation, Skip


@nw.node(retry_safe=True)
def length(word: str, ctx: nw.Context) -> int:
    ctx.spend("much")  # E: Argument 1 to "spend" of "Context" has incompatible type "str"
    ctx.attempt = 2  # E: Property "attempt" defined in "Context" is read-only
    return len(word)


@nw.node(retry_save=True)  # E: Unexpected keyword argument "retry_save" # E: Untyped decorator
def misspelt(word: str) -> str:
    return word


@nw.node
def total(prices: nw.Collect[float]) -> float:
    return prices.lost  # E: "Collect[float]" has no attribute "lost" # E: Returning Any


@nw.node
def caption(text: str | nw.Absent) -> str:
    return text.upper()  # E: Item "Absent" of "str | Absent" has no attribute "upper"


@nw.node
async def read(words: nw.Stream[str]) -> int:
    found = 0
    async for word in words:
        found += word  # E: Unsupported operand types for + ("int" and "str")
    for _ in words:  # E: "Stream[str]" has no attribute "__iter__"
        pass
    return found


@nw.node
async def frames() -> AsyncIterator[int]:
    yield "one"  # E: Incompatible types in "yield" (actual type "str", expected type "int")


class NoAttach:
    """A supervisor that lacks two methods."""

    async def decide(self, escalation: Escalation) -> Decision:
        raise NotImplementedError


class NoPromise(SupervisorBase):
    """A supervisor whose answer does not wait."""

    def decide(self, escalation: Escalation) -> Decision:
        raise NotImplementedError


word: str = length("four", None)  # E: Incompatible types in assignment # E: Argument 2 to "length"
first: nw.Supervisor = NoAttach()  # E: Incompatible types in assignment
second: nw.Supervisor = NoPromise()  # E: Incompatible types in assignment
bounds = nw.Bounds(max_decisions="10")  # E: incompatible type "str"; expected "int"
skip = Skip(apply_to="always")  # E: incompatible type "str"; expected "ApplyTo"

w = nw.workflow("w")
w.add(length, timeout="2 s")  # E: incompatible type "str"; expected "float | None"
w.output("line", "length")  # E: incompatible type "str"; expected "Handle"
session = nw.Session(w.build(), watch=print, keep_going="yes")  # E: incompatible type "str"
nw.Session(w)  # E: incompatible type "Builder"; expected "Workflow"
nw.load("w.yaml", trusted=True)  # E: Unexpected keyword argument "trusted" for "load"
nw.verify("w.yaml")  # E: Module has no attribute "verify"
