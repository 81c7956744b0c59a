"""All supervisors of one run: one look at each event, a task for each of them.

    run's events ─▶ LiveRun ─▶ Shared lookout ─▶ Coordinator watchdog
                                              └▶ Coordinator pacer

Read next: `coordinator.py`, `post.py`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence

from nightwarden.events import Event
from nightwarden.spec.supervisors import SupervisorSpec
from nightwarden.steering.coordinator import Coordinator
from nightwarden.steering.lookout import Shared
from nightwarden.steering.ports import Evaluator, Fact, Injector, Sink

_log = logging.getLogger(__name__)


class LiveRun:
    """The run of this process as an observer. `subscribe` is its bus's, `history` what a resumed
    run has said before, up to number `cut`."""

    def __init__(
        self,
        subscribe: Callable[[Callable[[Event], None]], None],
        *,
        cut: int = 0,
        history: Callable[[], Iterable[Fact]] = tuple,
    ) -> None:
        self.cut = cut
        self._subscribe = subscribe
        self._history = history
        self._sink: Sink | None = None

    def observe(self, run_id: str, sink: Sink) -> LiveRun:  # noqa: ARG002  (it is one run)
        """Hand every event on, from now on."""
        self._sink = sink
        self._subscribe(self._take)
        return self

    def history(self) -> Iterable[Fact]:
        """What happened before."""
        return self._history()

    def release(self) -> None:
        """Hand nothing on any more."""
        self._sink = None

    def _take(self, event: Event) -> None:
        """Nothing that is done with an event may come back to who published it."""
        if self._sink is None:
            return
        try:
            self._sink(event)
        except Exception:
            _log.warning("an event could not be shown to a supervisor", exc_info=True)


class Team:
    """The supervisors of a run. `evaluator` makes one for each, None where it has no model."""

    def __init__(
        self,
        specs: Sequence[SupervisorSpec],
        *,
        run_id: str,
        run: LiveRun,
        evaluator: Callable[[SupervisorSpec], Evaluator | None],
        injector: Injector,
        emit: Callable[[Event], None],
    ) -> None:
        shared = Shared(run)
        self.coordinators = [
            Coordinator(
                spec,
                run_id=run_id,
                observer=shared,
                evaluator=evaluator(spec),
                injector=injector,
                emit=emit,
                lookout=shared.lookout,
            )
            for spec in specs
        ]

    @property
    def cost_micro_usd(self) -> int:
        """What they have spent: a line of their own, never the run's."""
        return sum(each.state.spent_micro_usd for each in self.coordinators)

    def start(self) -> None:
        """Watch, each as a task of its own."""
        for each in self.coordinators:
            each.start()

    async def close(self) -> None:
        """Let go of the run."""
        await asyncio.gather(*(each.close() for each in self.coordinators))
