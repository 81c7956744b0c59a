"""The outside of a case: what services answer, when they fail, and what was done to them.

A step calls `meet` where it would call a service. The world knows which faults stand there, and
raises them as often as they are to come; it counts what was posted and what was charged, also
where no step recorded it. What it knows is what harm is judged by, not what a record says.

Read next: `troubles.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from nightwarden.evals.troubles import Passing
from nightwarden.lineage import show
from nightwarden.nodes.context import Context

OWN_TRIES: Final = 2
"""How often a step of a case asks a service before it gives up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong at a step: for one item (1-based, `"3.1"`) or, without one, for all.

    The first `times` calls fail, all of them where it is None. `after`: once the step took
    effect. `charges_usd` is what the service takes for a call that fails; the step knows of it
    and books it where `booked`.
    """

    at: str
    raises: Callable[[], Exception]
    item: str | None = None
    times: int | None = None
    after: bool = False
    charges_usd: float = 0.0
    booked: bool = False


class World:
    """The outside of one run. `posts` is what arrived, key and text, in order."""

    def __init__(
        self, faults: Iterable[Fault], replies: Mapping[str, str], *, purse_usd: float | None
    ) -> None:
        self.posts: list[tuple[str, str]] = []
        self.charged_micro_usd = 0
        self.purse_micro_usd = None if purse_usd is None else round(purse_usd * 1_000_000)
        self._faults = tuple(faults)
        self._replies = replies
        self._calls: Counter[tuple[int, str]] = Counter()

    async def meet(self, step: str, ctx: Context, *, after: bool = False) -> None:
        """Call the service behind a step; what passes by itself, and took no money, is tried again.

        Raises what is to go wrong.
        """
        for left in reversed(range(OWN_TRIES)):
            fault = self._fault(step, ctx, after=after)
            if fault is None:
                return
            error = fault.raises()
            again = left and not after and not fault.charges_usd and isinstance(error, Passing)
            if not again:
                raise error

    def reply(self, step: str, ctx: Context, usual: str) -> str:
        """What a service answers for this item: the case's own reply, or the usual one."""
        return self._replies.get(f"{step}[{show(ctx.lineage)}]", usual)

    def post(self, key: str, text: str, *, once: bool = False) -> None:
        """Something arrives outside; `once`: the outside knows a key it has seen."""
        if not (once and any(key == known for known, _ in self.posts)):
            self.posts.append((key, text))

    def charge(self, usd: float) -> None:
        """The service takes money."""
        self.charged_micro_usd += round(usd * 1_000_000)

    def _fault(self, step: str, ctx: Context, *, after: bool) -> Fault | None:
        """The fault that this call meets; counted and charged."""
        item = show(ctx.lineage)
        for number, fault in enumerate(self._faults):
            if fault.at != step or fault.after != after or fault.item not in (None, item):
                continue
            if fault.times is not None and self._calls[number, item] >= fault.times:
                continue
            self._calls[number, item] += 1
            self.charge(fault.charges_usd)
            if fault.booked:
                ctx.spend(fault.charges_usd)
            return fault
        return None
