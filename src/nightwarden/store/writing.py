"""One thread writes for a whole process, many events a commit.

    append ─▶ queue of the run ─┐
    append ─▶ queue of another ─┼▶ thread: hash, blobs, one transaction ─▶ barriers return
    barrier ─▶ a mark in it ────┘            └ also: heartbeats, commands from elsewhere

The thread lets events gather for a moment, unless somebody waits for them: a mark hurries it.
Blobs go out between two commits: referred to first, so that nobody removes them, then written,
then the events that name them.

Errors stay with the run: the next `append` or `barrier` raises. A database that is only locked
or away is tried again for `patience_s`.

Read next: `appending.py`, `journal.py`.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nightwarden.errors import StoreError
from nightwarden.store.appending import LargeValue, Mark, RunWriter, Told
from nightwarden.store.chain import chained
from nightwarden.store.commanding import take_commands
from nightwarden.store.contract import Blobs, Unready
from nightwarden.store.database import Database, Watch
from nightwarden.store.journal import Batch, put_references, write_batch
from nightwarden.store.leases import BEAT_S

POLL_S: Final = 0.05
LINGER_S: Final = 0.008
_AT_ONCE: Final = 10_000


@dataclass(slots=True)
class _Load:
    """What one run adds in one commit."""

    run: RunWriter
    batch: Batch
    blobs: dict[str, LargeValue]
    marks: list[Told]
    size: int


class GroupWriter:
    """The thread of one store; it starts with the first run."""

    def __init__(
        self, database: Database, blobs: Blobs, *, patience_s: float = 30.0, beat_s: float = BEAT_S
    ) -> None:
        self._database, self._blobs = database, blobs
        self._patience_s, self._beat_s = patience_s, beat_s
        self._runs: tuple[RunWriter, ...] = ()
        self._lock = threading.Lock()
        self._signal = threading.Event()
        self._idle = self._hurried = self._closing = False
        self._thread: threading.Thread | None = None
        self._watch: Watch | None = None
        self._look_due = 0.0
        self._news = False

    # -- called by runs, from any thread --

    def add(self, run: RunWriter) -> None:
        """Write for a run from now on."""
        run.beat_due = time.monotonic() + self._beat_s
        with self._lock:
            self._runs = (*self._runs, run)
            self._news = True  # words may have been waiting for this run
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="nightwarden-store", daemon=True
                )
                self._thread.start()
        self.hurry()

    def nudge(self) -> None:
        """There is something to write."""
        if self._idle:
            self._signal.set()

    def hurry(self) -> None:
        """Somebody waits."""
        self._hurried = True
        self._signal.set()

    def check(self) -> None:
        """Raise if nobody writes any more."""
        if self._thread is None or not self._thread.is_alive():
            raise StoreError(f"the writer of {self._database.place} has ended: open it again")

    def let_go(self, run: RunWriter) -> None:
        """Forget a run and give its lease back."""
        with self._lock:
            self._runs = tuple(other for other in self._runs if other is not run)
        # A lease that cannot be given back is taken over once this process has ended.
        with contextlib.suppress(StoreError), self._database.writing() as cursor:
            cursor.do("DELETE FROM leases WHERE run = ? AND owner = ?", run.run, run.owner)
            cursor.tell(run.run, run.written)

    def close(self) -> None:
        """End the thread. Runs that are still open keep their leases until this process ends."""
        self._closing = True
        self.hurry()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    # -- the thread --

    def _work(self) -> None:
        try:
            while not self._closing:
                self._rest()
                self._turn()
            self._turn()
        finally:
            self._fail(self._runs, StoreError(f"the writer of {self._database.place} has ended"))
            if self._watch is not None:
                self._watch.close()

    def _rest(self) -> None:
        """Sleep until there is something; then let more gather, unless somebody waits."""
        self._signal.clear()
        self._idle = True
        if not self._hurried and not any(run.queue for run in self._runs):
            self._signal.wait(POLL_S if self._runs else None)
        self._idle = False
        self._signal.clear()
        if not self._hurried and any(run.queue for run in self._runs):
            self._signal.wait(LINGER_S)

    def _turn(self) -> None:
        self._hurried = False
        loads = [load for run in self._runs if (load := self._gather(run)) is not None]
        if loads:
            self._commit(loads)
        if any(len(run.queue) >= _AT_ONCE for run in self._runs):
            self._hurried = True
        now = time.monotonic()
        if self._runs and now >= self._look_due:
            self._look_due = now + POLL_S
            self._look()

    def _gather(self, run: RunWriter) -> _Load | None:
        if run.error is not None:
            self._fail((run,), run.error)
            return None
        lines: list[bytes] = []
        blobs: dict[str, LargeValue] = {}
        marks: list[Told] = []
        size = 0
        for _ in range(min(len(run.queue), _AT_ONCE)):
            entry = run.queue.popleft()
            if isinstance(entry, bytes):
                lines.append(entry)
                size += len(entry)
            elif isinstance(entry, Mark):
                marks.append(entry.call)
            else:
                blobs[entry.digest] = entry
                size += len(entry.data)
        if not lines and not blobs and not marks and time.monotonic() < run.beat_due:
            return None
        rows = chained(run.head, run.written, lines)
        return _Load(
            run, Batch(run.run_id, run.run, run.owner, run.written, rows), blobs, marks, size
        )

    def _commit(self, loads: Sequence[_Load]) -> None:
        give_up = time.monotonic() + self._patience_s
        while True:
            try:
                self._put_blobs(loads)
                with self._database.writing() as cursor:
                    problems = [write_batch(cursor, load.batch) for load in loads]
                break
            except Unready as error:
                if time.monotonic() > give_up or self._closing:
                    problems = [error] * len(loads)
                    break
                time.sleep(POLL_S)
            except StoreError as error:
                problems = [error] * len(loads)
                break
        for load, problem in zip(loads, problems, strict=True):
            self._settle(load, problem)

    def _settle(self, load: _Load, problem: StoreError | None) -> None:
        run = load.run
        run.bytes_out += load.size
        if problem is not None:
            run.error = problem
        else:
            run.beat_due = time.monotonic() + self._beat_s
            if load.batch.rows:
                run.written, run.head, _ = load.batch.rows[-1]
        for call in load.marks:
            call(problem)

    def _put_blobs(self, loads: Sequence[_Load]) -> None:
        if not any(load.blobs for load in loads):
            return
        with self._database.writing() as cursor:
            for load in loads:
                sizes = {digest: len(blob.data) for digest, blob in load.blobs.items()}
                put_references(cursor, load.run.run, sizes)
        for load in loads:
            for digest, blob in load.blobs.items():
                self._blobs.put(digest, blob.data, blob.source)

    def _look(self) -> None:
        """Hand on commands that other processes left. What goes wrong shows at the next write."""
        with contextlib.suppress(StoreError):
            if self._watch is None:
                self._watch = self._database.watch(None)
            if not self._watch.changed() and not self._news:
                return
            # Taken back before looking, not after: a run that is added meanwhile is news again.
            self._news = False
            heard = {run.run: run.on_command for run in self._runs if run.on_command is not None}
            try:
                taken = take_commands(self._database, tuple(heard))
            except StoreError:
                self._news = True
                raise
            for number, command in taken:
                heard[number](command)

    def _fail(self, runs: Sequence[RunWriter], error: StoreError) -> None:
        """Nothing more of these runs is written; whoever waits for them is told."""
        for run in runs:
            run.error = run.error or error
            while run.queue:
                entry = run.queue.popleft()
                if isinstance(entry, Mark):
                    entry.call(run.error)
