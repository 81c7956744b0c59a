"""A Claude Code session as a run: its transcript is followed, its end is noticed.

    transcript ─tail─▶ records ─▶ events: history at once, then whatever is written

Read next: `transcript.py`, `tail.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from nightwarden.steering.claude.tail import CHUNK, Tail
from nightwarden.steering.claude.transcript import Transcript
from nightwarden.steering.ports import Fact, Sink

POLL_S: Final = 0.3
ALIVE_S: Final = 5.0
LONGEST_HISTORY: Final = 8 << 20
"""Bytes of a transcript that are read as history; what lies before is not needed to steer."""
_STEPS: Final = ("assistant_text", "tool_started")
_NOT_YET: Final = 2**62


class TranscriptObserver:
    """Watches the transcript at `path`. `stepped` is called when the agent has taken a step.

    `alive` says whether the session's process runs, None if that cannot be known; once it did
    and does no more, the session has ended. `remark` gets lines for people.
    """

    def __init__(
        self,
        path: Path,
        *,
        alive: Callable[[], bool | None] = lambda: None,
        stepped: Callable[[], object] = lambda: None,
        remark: Callable[[str], None] = lambda _line: None,
        poll_s: float = POLL_S,
    ) -> None:
        self.path = path
        self.alive = alive
        self.stepped = stepped
        self.remark = remark
        self.poll_s = poll_s

    def observe(self, run_id: str, sink: Sink) -> Following:  # noqa: ARG002  (it is one session)
        """Follow the session from now on; what was written before is history."""
        return Following(self, sink)


class Following:
    """One watch over a transcript."""

    def __init__(self, observer: TranscriptObserver, sink: Sink) -> None:
        self._observer = observer
        self._sink = sink
        self._tail = Tail(observer.path)
        self._transcript = Transcript()
        self._task: asyncio.Task[None] | None = None
        self._was_alive = False
        self._unreadable = ""
        self.cut = _NOT_YET

    @property
    def transcript(self) -> Transcript:
        """The reader, for what has been used."""
        return self._transcript

    def history(self) -> Iterable[Fact]:
        """What was written so far; following begins when it has been read."""
        self._tail.skip_to_last(LONGEST_HISTORY)
        while True:
            yield from self._read()
            if not self._tail.behind:
                break
        self.cut = self._transcript.seq
        self._task = asyncio.create_task(self._follow(), name="transcript")

    def release(self) -> None:
        """Stop following."""
        if self._task is not None:
            self._task.cancel()

    async def _follow(self) -> None:
        since_looked = 0.0
        self._has_ended()  # whether it runs now, should it end before the next look
        while True:
            await asyncio.sleep(0 if self._tail.behind else self._observer.poll_s)
            events = self._read()
            for event in events:
                self._sink(event)
            if any(event["type"] in _STEPS for event in events):
                with contextlib.suppress(Exception):
                    self._observer.stepped()
            since_looked += self._observer.poll_s
            if since_looked >= ALIVE_S and not self._tail.behind:
                since_looked = 0.0
                if self._has_ended():
                    self._sink(self._end())
                    return

    def _read(self) -> list[dict[str, Any]]:
        try:
            records = self._tail.poll(CHUNK)
        except OSError as error:
            self._say_once(f"{self._observer.path} cannot be read: {error.strerror or error}")
            return []
        for line in self._tail.remarks:
            self._observer.remark(line)
        self._tail.remarks.clear()
        return [event for record in records for event in self._transcript.take(record)]

    def _say_once(self, line: str) -> None:
        if line != self._unreadable:
            self._unreadable = line
            self._observer.remark(line)

    def _has_ended(self) -> bool:
        alive = self._observer.alive()
        self._was_alive = self._was_alive or alive is True
        return self._was_alive and alive is False

    def _end(self) -> dict[str, Any]:
        self._transcript.seq += 1
        return {"type": "session_ended", "seq": self._transcript.seq}
