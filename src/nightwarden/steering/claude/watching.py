"""A supervisor over a Claude Code session: everything put together.

    transcript ─▶ Coordinator ─▶ mailbox ─▶ the session's hooks
                      └ state and events beside the mailbox, for the next time it is attached

Read next: `observer.py`, `box.py`, `hooks.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from nightwarden.errors import NightwardenError
from nightwarden.events import Event, encode
from nightwarden.spec.supervisors import SupervisorSpec
from nightwarden.steering.claude import hooks
from nightwarden.steering.claude.box import SessionBox
from nightwarden.steering.claude.observer import TranscriptObserver
from nightwarden.steering.claude.sessions import find_transcript, is_alive
from nightwarden.steering.coordinator import Coordinator
from nightwarden.steering.files import safe_name
from nightwarden.steering.mailbox import Message, event_of
from nightwarden.steering.monitors import Tallies
from nightwarden.steering.ports import Evaluator
from nightwarden.steering.telling import cut_off
from nightwarden.steering.wakes import TriggerState
from nightwarden.store.alone import lock_file
from nightwarden.store.contract import Lock


class AlreadyWatched(NightwardenError):
    """Another process watches the session under this name."""


class _Kept(msgspec.Struct):
    """A state as it is kept: with both clocks at that moment, so that another can take it over."""

    wall: float
    clock: float
    state: TriggerState


class SessionWatch:
    """One supervisor over one session. Use on a running loop: `start`, `wait`, `close`."""

    def __init__(
        self,
        meant: str,
        spec: SupervisorSpec,
        evaluator: Evaluator,
        *,
        remark: Callable[[str], None] = lambda _line: None,
        told: Callable[[Event], None] = lambda _event: None,
        root: Path | None = None,
        env: Mapping[str, str] = os.environ,
    ) -> None:
        """Find the session that is meant. Raises `NoSession`."""
        self.transcript = find_transcript(meant, env)
        self.session_id = self.transcript.stem
        self.box = SessionBox(self.session_id, root=root, told=self._message)
        self._lock: Lock | None = None
        self._told = told
        self._remark = remark
        self._evaluator = evaluator
        self._state_path = self.box.path / "supervisors" / f"{safe_name(spec.name)}.json"
        observer = TranscriptObserver(
            self.transcript,
            alive=lambda: is_alive(self.session_id, env),
            stepped=self._stepped,
            remark=remark,
        )
        self._coordinator = Coordinator(
            msgspec.structs.replace(spec, watches=()),  # a session has no nodes
            run_id=self.session_id,
            observer=observer,
            evaluator=evaluator,
            injector=self.box,
            emit=self._record,
            keep=self._keep,
            state=self._restored(),
        )

    @property
    def state(self) -> TriggerState:
        """What it remembers."""
        return self._coordinator.state

    def start(self) -> None:
        """Watch as a task of its own. Raises `AlreadyWatched`."""
        self._lock = lock_file(self._state_path.with_suffix(".lock"))
        if self._lock is None:
            raise AlreadyWatched(
                f"a supervisor {self._coordinator.spec.name!r} watches session {self.session_id} "
                "already; give this one another --name"
            )
        self._coordinator.start()

    async def wait(self) -> None:
        """Return when the session has ended; what waits then has nobody to read it."""
        await self._coordinator.wait()
        self._unlock()
        with contextlib.suppress(OSError):
            self.box.session_ended()

    async def close(self) -> None:
        """Detach. The session goes on untouched, and reads what waits for it."""
        await self._coordinator.close()
        event = cut_off(self._coordinator.spec, self.state, self._evaluator, "it was let go of")
        if event is not None:
            self._record(event)
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    # -- what is kept --

    def _stepped(self) -> None:
        self.box.stepped()
        self.box.expire()

    def _message(self, message: Message) -> None:
        self._record(event_of(message, _stamp))

    def _record(self, event: Event) -> None:
        """Add an event to the session's own record; the session's transcript is not ours."""
        event.at = event.at or _stamp(time.time())
        self._told(event)
        try:
            self.box.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            with (self.box.path / "steering.jsonl").open("ab") as file:
                file.write(encode(event) + b"\n")
        except OSError as error:
            self._remark(f"{self.box.path} cannot be written: {error.strerror or error}")

    def _keep(self, state: TriggerState) -> None:
        kept = _Kept(time.time(), asyncio.get_running_loop().time(), state)
        self._state_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self._state_path.with_suffix(f".{os.getpid()}")
        draft.write_bytes(msgspec.json.encode(kept))
        draft.replace(self._state_path)

    def _restored(self) -> TriggerState | None:
        """Where it stood when it was attached last; None where nothing can be read of that."""
        try:
            kept = msgspec.json.decode(self._state_path.read_bytes(), type=_Kept)
        except (OSError, msgspec.MsgspecError):
            return None
        passed = max(0.0, time.time() - kept.wall)  # a clock that was set back stands still
        state = kept.state.moved(asyncio.get_running_loop().time() - kept.clock - passed)
        state.last_seq, state.cut, state.tallies = 0, 0, Tallies()  # the transcript is read again
        return state


def without_hooks(project: Path) -> str:
    """Why messages would not arrive in a project; empty where its hooks are in place."""
    try:
        found = {*hooks.installed(project), *hooks.installed(project, shared=True)}
    except hooks.BadSettingsFile as error:
        return str(error)
    if found.issuperset(hooks.EVENTS):
        return ""
    return f"no message can arrive: run `nightwarden hook install --cwd {project}` first"


def _stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
