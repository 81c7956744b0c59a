"""One look of a supervisor: the question to the evaluator, and the words that come of it.

The evaluator runs as a task of its own. It may raise, hang, answer prose or be deaf to being
cancelled: whatever it does is an answer, with advice or without.

Read next: `coordinator.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from nightwarden.spec.monitors import BadMonitor, Monitor, parse_monitor
from nightwarden.steering.ports import Advice, Answer, Evaluator, Injector, Snapshot, Words
from nightwarden.steering.wakes import Wake

EVALUATION_S: Final = 60.0
_INJECTION_S: Final = 10.0
_LONGEST_TEXT: Final = 4_000


class Thinking:
    """The evaluation under way, if there is one. `ring` is called when it has ended."""

    def __init__(
        self, evaluator: Evaluator | None, ring: Callable[[], None], limit_s: float = EVALUATION_S
    ) -> None:
        self._evaluator = evaluator
        self._ring = ring
        self._limit_s = limit_s
        self._task: asyncio.Task[Answer] | None = None
        self._since = 0.0
        self.wake: Wake | None = None

    def begin(self, wake: Wake, snapshot: Snapshot, now: float) -> None:
        """Ask."""
        assert self._evaluator is not None
        self.wake, self._since = wake, now
        self._task = asyncio.create_task(_asked(self._evaluator, snapshot))
        self._task.add_done_callback(lambda _task: self._ring())

    @property
    def deadline(self) -> float | None:
        """When it has taken too long."""
        return None if self._task is None else self._since + self._limit_s

    @property
    def has_answered(self) -> bool:
        """Whether there is an answer to take."""
        return self._task is not None and self._task.done()

    def answer(self, now: float) -> tuple[Answer, float] | None:
        """The answer and the seconds it took, if it is there or has taken too long."""
        task, took = self._task, now - self._since
        if task is None:
            return None
        if task.done():
            self._task = None
            return (Answer(detail="it was cancelled") if task.cancelled() else task.result()), took
        if took < self._limit_s:
            return None
        self.stop()
        return Answer(detail=f"no answer within {self._limit_s:g} s"), took

    def stop(self) -> None:
        """Let go of it; one that is deaf to that is left behind, unheard."""
        task, self._task = self._task, None
        if task is not None and not task.done():
            task.cancel()


async def _asked(evaluator: Evaluator, snapshot: Snapshot) -> Answer:
    try:
        answer: object = await evaluator.evaluate(snapshot)
    except Exception as error:
        return Answer(detail=f"{type(error).__name__}: {error}")
    if not isinstance(answer, Answer):
        return Answer(detail=f"it answered {type(answer).__name__}, not advice")
    if not isinstance(answer.advice, Advice) and not answer.detail:
        return Answer(detail="it answered without advice")
    return answer


def wanted(watch: Sequence[object]) -> Iterator[Monitor]:
    """The monitors an evaluator asks for; what cannot be used is left out."""
    for written in watch:
        with contextlib.suppress(BadMonitor):
            yield parse_monitor(written)


async def say(
    injector: Injector, advice: Advice, wake: Wake, *, run_id: str, author: str
) -> tuple[str, str]:
    """Queue the words of an advice: the message's id, and why they could not be queued."""
    text = advice.message.strip()[:_LONGEST_TEXT]
    if not text:
        return "", "it wanted to intervene without a word"
    body = f"[supervisor {author}] {text}" if author else text
    words = Words(
        message_id=_message_id(run_id, author, wake.number, body),
        run_id=run_id,
        node_id=wake.node,
        author=author or "supervisor",
        text=body,
    )
    try:
        async with asyncio.timeout(_INJECTION_S):
            await injector.inject(words)
    except TimeoutError:
        return "", f"nobody took the words within {_INJECTION_S:g} s"
    except Exception as error:
        return "", str(error) or type(error).__name__
    return words.message_id, ""


def _message_id(run_id: str, name: str, number: int, text: str) -> str:
    """The same for the same words of the same look, whatever process says them."""
    parts = "\0".join((run_id, name, str(number), text))
    return f"msg-{hashlib.blake2b(parts.encode('utf-8', 'replace'), digest_size=8).hexdigest()}"
