"""A supervisor over a run that another process drives: everything put together.

    record ─tail─▶ Coordinator ─▶ word left in the store ─▶ whoever drives the run ─▶ the agent
                       └ what it does ─▶ words as well, so that the run's record has them

What is on record at attach is history, cut by number. The record keeps everything, so nothing is
missed, however late one comes. Letting go leaves the run as it is.

Read next: `relayed.py`, `managed.py` (the other end), `coordinator.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from nightwarden.errors import NightwardenError, StoreError
from nightwarden.events import Event
from nightwarden.spec.supervisors import SupervisorSpec
from nightwarden.steering.coordinator import Coordinator
from nightwarden.steering.files import safe_name
from nightwarden.steering.managed import MESSAGE, TOLD
from nightwarden.steering.ports import Evaluator, Fact, NotQueued, Sink, Words
from nightwarden.steering.relayed import relayed
from nightwarden.steering.telling import cut_off
from nightwarden.steering.wakes import TriggerState
from nightwarden.store.contract import Lock, Store

AHEAD: Final = 5_000
"""Events that may wait for the supervisor before reading pauses: the record keeps the rest."""

_TAKEN_S: Final = 5.0
_LOOK_S: Final = 0.05


class AlreadyAttached(NightwardenError):
    """A supervisor of that name watches the run."""


class RecordObserver:
    """A recorded run as an `Observer`, while it is written."""

    def __init__(self, store: Store, remark: Callable[[str], None] = lambda _line: None) -> None:
        self.store = store
        self.remark = remark

    def observe(self, run_id: str, sink: Sink) -> Following:
        """What is on record now is history; what comes is handed on."""
        return Following(self, run_id, sink)


class Following:
    """One watch over a record: read in a thread of its own, handed on upon the loop."""

    def __init__(self, observer: RecordObserver, run_id: str, sink: Sink) -> None:
        self._store, self._remark = observer.store, observer.remark
        self._run_id, self._sink = run_id, sink
        ends = list(self._store.ends(run_id))
        self.cut: int = int(ends[-1]["seq"]) if ends else 0
        self._loop = asyncio.get_running_loop()
        self._released = threading.Event()
        self._room = threading.Semaphore(AHEAD)

    def history(self) -> Iterator[Fact]:
        """What was on record at attach; following begins when it has been read."""
        for event in self._store.read(self._run_id):
            if event["seq"] > self.cut:
                break
            yield event
        threading.Thread(target=self._follow, name="steering record", daemon=True).start()

    def release(self) -> None:
        """Stop following."""
        self._released.set()
        self._room.release()

    def _follow(self) -> None:
        why = ""
        try:
            stop = self._released.is_set
            for event in self._store.follow(self._run_id, self.cut, stop=stop):
                self._room.acquire()
                if stop() or not self._upon_the_loop(self._hand_on, event):
                    return
        except (StoreError, OSError) as error:
            why = str(error)
        self._upon_the_loop(self._end, why)

    def _upon_the_loop(self, call: Callable[..., object], *arguments: object) -> bool:
        try:
            self._loop.call_soon_threadsafe(call, *arguments)
        except RuntimeError:  # the loop is closed: nobody listens any more
            return False
        return True

    def _hand_on(self, event: Mapping[str, Any]) -> None:
        self._room.release()
        if not self._released.is_set():
            self._sink(event)

    def _end(self, why: str) -> None:
        if self._released.is_set():
            return
        if why:
            self._remark(f"run {self._run_id} can be followed no further: {why}")
        self._sink(None)


class StoreInjector:
    """Words for a run that another process drives."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def inject(self, words: Words) -> None:
        """Leave them, and wait until they are taken. Raises `NotQueued`."""
        body = {
            "message_id": words.message_id,
            "author": words.author,
            "text": words.text,
            "node": words.node_id,
        }
        try:
            number = await asyncio.to_thread(self._store.send, words.run_id, MESSAGE, body)
            await self._taken(words.run_id, number)
        except (StoreError, OSError) as error:
            raise NotQueued(str(error)) from error

    async def _taken(self, run_id: str, number: int) -> None:
        """Return when the run has taken the word; one nobody takes is withdrawn."""
        loop = asyncio.get_running_loop()
        until = loop.time() + _TAKEN_S
        while not await asyncio.to_thread(self._store.taken, run_id, number):
            alive = (await asyncio.to_thread(self._store.entry, run_id)).owner_alive
            if not alive or loop.time() > until:
                if await asyncio.to_thread(self._store.withdraw, run_id, number):
                    why = "does not take it" if alive else "is not driven any more"
                    raise NotQueued(f"run {run_id} {why}: nobody is left to read this")
                return
            await asyncio.sleep(_LOOK_S)


class Attached:
    """One supervisor over one run of another process. On a running loop: `start`, `wait`,
    `close`. `told` gets every event of steering on the record of the run from now on."""

    def __init__(
        self,
        store: Store,
        run_id: str,
        spec: SupervisorSpec,
        evaluator: Evaluator,
        *,
        remark: Callable[[str], None] = lambda _line: None,
        told: Callable[[Event], None] = lambda _event: None,
    ) -> None:
        self._store, self._run_id, self._spec = store, run_id, spec
        self._told = told
        self._evaluator = evaluator
        self._words: asyncio.Queue[Mapping[str, object]] = asyncio.Queue()
        self._teller: asyncio.Task[None] | None = None
        self._remark = remark
        self._lock: Lock | None = None
        self.coordinator = Coordinator(
            spec,
            run_id=run_id,
            observer=RecordObserver(store, remark),
            evaluator=evaluator,
            injector=StoreInjector(store),
            emit=self._emit,
        )

    @property
    def state(self) -> TriggerState:
        """What it remembers."""
        return self.coordinator.state

    def start(self) -> None:
        """Watch as a task of its own. Raises `AlreadyAttached`."""
        self._lock = self._store.alone(self._run_id, f"supervisor-{safe_name(self._spec.name)}")
        if self._lock is None:
            raise AlreadyAttached(
                f"a supervisor {self._spec.name!r} watches this run already; "
                "give this one another --name"
            )
        self._teller = asyncio.create_task(self._tell(), name="steering words")
        self.coordinator.start()

    async def wait(self) -> None:
        """Return when the run is over."""
        await self.coordinator.wait()

    async def close(self) -> None:
        """Let go; what is to be told yet is told."""
        await self.coordinator.close()
        event = cut_off(self._spec, self.state, self._evaluator, "it was let go of")
        if event is not None:
            self._emit(event)
        if self._teller is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_TAKEN_S):
                    await self._words.join()
            self._teller.cancel()
        if self._lock is not None:
            self._lock.close()

    def _emit(self, event: Event) -> None:
        self._told(event)
        body = relayed(event)
        if body is not None:
            self._words.put_nowait(body)

    async def _tell(self) -> None:
        """Leave what the supervisor does for whoever writes the record, in order."""
        while True:
            body = await self._words.get()
            try:
                if not self.coordinator.closed:
                    await asyncio.to_thread(self._store.send, self._run_id, TOLD, body)
            except (StoreError, OSError) as error:
                self._remark(f"what it does cannot be put on record: {error}")
            finally:
                self._words.task_done()
