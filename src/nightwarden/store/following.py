"""Reading a run while it is written, by this process or another.

Read next: `database.py` (Watch), `sqlstore.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from nightwarden.errors import StoreError
from nightwarden.events.run import ENDS
from nightwarden.store.chain import Row
from nightwarden.store.database import Watch

LOOK_S: Final = 0.25
"""How long a follower waits before it asks whether it should go on."""

_OWNER_EVERY: Final = 4


class RunTail:
    """Implements `contract.Tail`: a page at a time, then whatever comes."""

    def __init__(self, fetch: Callable[[int], Sequence[Row]], watch: Watch, after: int = 0) -> None:
        self.seq = after
        self._fetch, self._watch = fetch, watch

    def read(self, timeout_s: float) -> Sequence[bytes]:
        """The events not read yet; waits for one, and gives none at the timeout."""
        rows = self._fetch(self.seq)
        if not rows and self._watch.wait(timeout_s):
            rows = self._fetch(self.seq)
        if rows:
            self.seq = rows[-1][0]
        return [line for _, _, line in rows]

    def close(self) -> None:
        """Let go of the connection."""
        self._watch.close()


def follow_tail(
    tail: RunTail,
    *,
    run_id: str,
    is_over: Callable[[], bool],
    stop: Callable[[], bool] | None,
) -> Iterator[Mapping[str, Any]]:
    """Events until a terminal one that stays the last, until nobody drives the run, or `stop`."""
    ended, waited = False, 0
    try:
        while not (stop is not None and stop()):
            last = tail.seq
            # After its end a run may have been resumed: what is there already goes on.
            lines = tail.read(0.0 if ended else LOOK_S)
            for number, line in enumerate(lines, start=last + 1):
                event = decoded(run_id, number, line)
                ended = event.get("type") in ENDS
                yield event
            waited = 0 if lines else waited + 1
            if not lines and (ended or (waited % _OWNER_EVERY == 1 and is_over())):
                yield from _rest(tail, run_id)
                return
    finally:
        tail.close()


def decoded(run_id: str, number: int, line: bytes) -> Mapping[str, Any]:
    """An event as a plain mapping. Raises `StoreError` naming its run and number."""
    try:
        event = msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        raise _no_event(run_id, number, str(error)) from error
    if not isinstance(event, dict):
        raise _no_event(run_id, number, "expected an object")
    return event


def _rest(tail: RunTail, run_id: str) -> Iterator[Mapping[str, Any]]:
    """What came between the last look and the owner's end."""
    while lines := tail.read(0.0):
        for number, line in enumerate(lines, start=tail.seq - len(lines) + 1):
            yield decoded(run_id, number, line)


def _no_event(run_id: str, number: int, why: str) -> StoreError:
    return StoreError(
        f"event {number} of run {run_id} is no event: {why}; `nightwarden verify {run_id}` looks "
        "the record over"
    )
