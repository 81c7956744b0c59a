"""What a coordinator is connected to: events in, a judge, words out.

    Observer    a run id → its history, then its events as they come
    Evaluator   what happened → whether to say a word, what to watch for, whether that was all
    Injector    a text → queued for the agent's next turn

Each is implemented twice, for runs of ours and for Claude Code sessions, and scripted in tests.

Read next: `coordinator.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import msgspec

from nightwarden.errors import NightwardenError
from nightwarden.events import Event

Fact = Event | Mapping[str, Any]
Sink = Callable[[Fact | None], None]
"""Takes the next event; None when there will be no more. Returns at once, whatever happens."""


class Observation(Protocol):
    """One watch over one run."""

    @property
    def cut(self) -> int:
        """The sequence number at attach: what is not beyond it is history.

        It may be settled only when the history has been read to its end.
        """
        ...

    def history(self) -> Iterable[Fact]:
        """What happened before, in order, read once before anything that comes through the sink."""
        ...

    def release(self) -> None:
        """Nothing more is wanted."""
        ...


class Observer(Protocol):
    """Where events come from."""

    def observe(self, run_id: str, sink: Sink) -> Observation:
        """Watch a run from now on."""
        ...


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What an evaluator is shown. `recent` are lines, oldest first; `reasons` why it is asked.

    `repeated` says how often the same evidence has been judged in a row before. `last` is what
    was advised last, so that nothing is said twice.
    """

    supervisor: str
    run_id: str
    policy: str
    model: str
    node: str
    reasons: tuple[str, ...]
    recent: tuple[str, ...]
    monitors: tuple[str, ...]
    number: int
    limit: int
    repeated: int = 0
    last: Advice | None = None


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """An evaluator's answer. `watch` are monitors, as text or as mappings of their keys."""

    intervene: bool
    message: str = ""
    reason: str = ""
    watch: tuple[str | dict[str, str | float | int], ...] = ()
    done: bool = False


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Advice and what it cost. Without advice the evaluation has failed; `detail` says how."""

    advice: Advice | None = None
    detail: str = ""
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_micro_usd: int = 0


class Evaluator(Protocol):
    """Who judges. May raise anything; that is a failed evaluation."""

    async def evaluate(self, snapshot: Snapshot) -> Answer:
        """Look once."""
        ...


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """A text for an agent. `message_id` is the same if the same is queued again."""

    message_id: str
    run_id: str
    node_id: str
    author: str
    text: str


class NotQueued(NightwardenError):
    """A text that could not be queued: the run is over, or its mailbox cannot be written."""


class Injector(Protocol):
    """Where words go."""

    async def inject(self, words: Words) -> None:
        """Queue a text. Raises `NotQueued`."""
        ...


def advice_of(answer: object) -> Advice:
    """Advice from a mapping or from JSON text. Raises `ValueError` for prose."""
    try:
        if isinstance(answer, Advice):
            return answer
        if isinstance(answer, (str, bytes)):
            return msgspec.json.decode(answer, type=Advice)
        return msgspec.convert(answer, Advice)
    except msgspec.MsgspecError as error:
        raise ValueError(f"no advice could be read: {error}") from error
