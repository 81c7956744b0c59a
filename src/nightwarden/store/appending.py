"""A run being driven here: what it says goes into its queue, and one thread takes it from there.

    append ─▶ an event     keep ─▶ a large value     when_durable ─▶ a mark     (`writing.py`)

`append` takes no lock. Where the disk is slower than the run, it waits, so that what is pending
does not fill the memory. Errors stay with the run: the next `append` or `barrier` raises.

Read next: `writing.py`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from nightwarden.errors import StoreError
from nightwarden.store.blobs import digest_of
from nightwarden.store.contract import Command

_MOST_PENDING: Final = 64 << 20

Told = Callable[[StoreError | None], None]


@dataclass(frozen=True, slots=True)
class LargeValue:
    """Bytes to be kept by their digest; `source` is a file that has them already."""

    digest: str
    data: bytes
    source: Path | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """Somebody waits until what was queued before it is durable."""

    call: Told


class Thread(Protocol):
    """The thread that writes, as a run sees it."""

    def nudge(self) -> None:
        """There is something to write."""
        ...

    def hurry(self) -> None:
        """Somebody waits."""
        ...

    def check(self) -> None:
        """Raise `StoreError` if nobody writes any more."""
        ...

    def let_go(self, run: RunWriter) -> None:
        """Forget a run and give its lease back."""
        ...


class RunWriter:
    """A run being driven here: implements `contract.OpenRun`."""

    def __init__(
        self,
        writer: Thread,
        *,
        run_id: str,
        run: int,
        owner: str,
        last_seq: int,
        head: bytes,
        on_command: Callable[[Command], None] | None,
    ) -> None:
        self.run_id, self.run, self.owner = run_id, run, owner
        self.last_seq = last_seq
        self.on_command = on_command
        self.error: StoreError | None = None
        self.queue: deque[bytes | LargeValue | Mark] = deque()
        self.written, self.head = last_seq, head
        self.bytes_out = 0
        self.beat_due = 0.0
        self._bytes_in = 0
        self._writer = writer
        self._closed = False

    def append(self, line: bytes) -> None:
        """Add one event; the thread writes it. Raises `StoreError` if writing has failed."""
        if self.error is not None:
            raise self.error
        self.queue.append(line)
        self._bytes_in += len(line)
        if self._bytes_in - self.bytes_out > _MOST_PENDING:
            self.barrier()  # a disk slower than the run must not fill the memory
        self._writer.nudge()

    def keep(self, data: bytes, source: Path | None = None) -> str:
        """Keep bytes as a blob; the thread writes them before any later event."""
        if self.error is not None:
            raise self.error
        digest = digest_of(data)
        self.queue.append(LargeValue(digest, data, source))
        self._bytes_in += len(data)
        if self._bytes_in - self.bytes_out > _MOST_PENDING:
            self.barrier()
        self._writer.nudge()
        return digest

    def when_durable(self, call: Told) -> None:
        """Call from the writer's thread when everything so far is durable, or cannot be."""
        self.queue.append(Mark(call))
        self._writer.hurry()

    def barrier(self) -> None:
        """Wait until everything so far is durable. Raises `StoreError` if it cannot be."""
        done = threading.Event()
        self.when_durable(lambda _: done.set())
        while not done.wait(0.5):
            self._writer.check()
        if self.error is not None:
            raise self.error

    def close(self) -> None:
        """Write what is left and give the lease back. Raises `StoreError` if it cannot be."""
        if self._closed:
            return
        self._closed = True
        try:
            self.barrier()
        finally:
            self._writer.let_go(self)
            self.error = self.error or StoreError(f"run {self.run_id} was closed: reopen it")

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
