"""A store in memory whose process dies at a chosen event, and what is then left of the record.

    store = FragileStore(files, dies_after=57, keeps=3)   # three events not yet durable survive
    mortal(Session(…, store=store), store)   raises Killed ─▶ resume_session(store, …)

What a barrier has returned for is always kept; of what came after it, only the first few. After
its death no callback of the process runs any more: what a step had in hand is simply gone.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any

from nightwarden.errors import StoreError
from nightwarden.result import RunResult
from nightwarden.session import Session
from nightwarden.store import RunEntry
from nightwarden.testing import VirtualLoop


class Killed(BaseException):
    """The process is gone."""


class MortalLoop(VirtualLoop):
    """A virtual loop that ends with the process."""

    def __init__(self, store: FragileStore, seed: int | None) -> None:
        super().__init__(seed)
        self.store = store

    def _run_once(self) -> None:
        if self.store.dead:
            raise Killed
        super()._run_once()
        if self.store.dead:
            raise Killed


def mortal(session: Session, store: FragileStore, *, seed: int | None = None) -> RunResult:
    """Run a session to its end. Raises `Killed` when its process dies."""
    return mortally(session.run(), store, seed=seed)


def mortally(
    main: Coroutine[Any, Any, RunResult], store: FragileStore, *, seed: int | None = None
) -> RunResult:
    """Run a process to its end. Raises `Killed` when it dies before."""
    store.dead = False
    loop = MortalLoop(store, seed)
    try:
        return loop.run_until_complete(main)
    finally:
        for task in asyncio.all_tasks(loop):
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        _GONE.append((loop, main, asyncio.all_tasks(loop)))
        loop.close()


_GONE: list[object] = []
"""Loops of dead processes are kept: tidying them up would run code of the dead."""


class FragileLog:
    """One run being driven; implements `store.OpenRun`."""

    def __init__(self, store: FragileStore, run_id: str) -> None:
        self.store, self.run_id = store, run_id
        self.last_seq = len(store.records[run_id])
        self.durable = self.last_seq

    def append(self, line: bytes) -> None:
        """Add an event, or die."""
        if self.store.dead:
            return
        lines = self.store.records[self.run_id]
        lines.append(line)
        if self.store.dies_after is not None:
            self.store.dies_after -= 1
            if self.store.dies_after <= 0:
                self.die()

    def keep(self, data: bytes, source: Path | None = None) -> str:
        """Keep a blob."""
        del source
        digest = hashlib.sha256(data).hexdigest()
        self.store.kept[digest] = data
        return digest

    def barrier(self) -> None:
        """All so far is safe."""
        if self.store.dead:
            raise Killed
        self.durable = len(self.store.records[self.run_id])

    def when_durable(self, call: Callable[[StoreError | None], None]) -> None:
        """All so far is safe."""
        self.barrier()
        call(None)

    def close(self) -> None:
        """Nothing to close."""

    def die(self) -> None:
        """Die here."""
        self.store.dead = True
        self.store.dies_after = None
        lines = self.store.records[self.run_id]
        del lines[min(len(lines), self.durable + self.store.keeps) :]


class FragileStore:
    """Implements what a session and `resuming` need of a `store.Store`."""

    def __init__(self, files: Path, *, dies_after: int | None = None, keeps: int = 1_000) -> None:
        self.records: dict[str, list[bytes]] = {}
        self.kept: dict[str, bytes] = {}
        self.dies_after = dies_after
        self.keeps = keeps
        self.dead = False
        self.open: FragileLog | None = None
        self.place = "memory"
        self._files = files

    @property
    def blobs(self) -> FragileStore:
        """Itself."""
        return self

    def get(self, digest: str) -> bytes:
        """A blob."""
        return self.kept[digest]

    def give(self, digest: str, path: Path) -> bool:
        """Nothing in memory has a name."""
        del digest, path
        return False

    def create(self, run_id: str, *, on_command: object = None) -> FragileLog:
        """A new run."""
        del on_command
        self.records[run_id] = []
        self.open = FragileLog(self, run_id)
        return self.open

    def reopen(self, run_id: str, *, on_command: object = None) -> FragileLog:
        """A run again."""
        del on_command
        self.open = FragileLog(self, run_id)
        return self.open

    def die(self) -> None:
        """The process dies here: nothing that is said after this is recorded."""
        assert self.open is not None
        self.open.die()

    def find(self, run_id: str) -> str:
        """The run that is meant."""
        return next(iter(self.records)) if run_id == "last" else run_id

    def lines(self, run_id: str, after: int = 0) -> Iterator[bytes]:
        """The record."""
        return iter(list(self.records[run_id])[after:])

    def read(self, run_id: str, after: int = 0) -> Iterator[Mapping[str, Any]]:
        """The record, decoded."""
        return (json.loads(line) for line in self.lines(run_id, after))

    def entry(self, run_id: str) -> RunEntry:
        """The run in the list; nobody drives it."""
        return RunEntry(
            run_id=run_id,
            workflow="",
            status="interrupted",
            supervised=False,
            started_at="",
            ended_at="",
            headline="",
            events=len(self.records[run_id]),
            owner="",
            owner_alive=False,
        )

    def files(self, run_id: str) -> Path:
        """Where the run's files are."""
        return self._files / run_id
