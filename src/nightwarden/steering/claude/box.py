"""The mailbox of a Claude Code session: one file a message, its folder says where it stands.

    ~/.nightwarden/claude/<session id>/queued/1-msg-….json ─▶ claimed ─▶ delivered ─▶ consumed
                                                          └▶ cancelled, expired

The drain command of the session's hooks takes messages out (`drain.py`); this side puts them in,
takes them back, and notes what the agent has taken up. Every change is one atomic rename, so that
any number of processes may share a mailbox.

Read next: `drain.py`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from nightwarden.spec.supervisors import OPERATOR
from nightwarden.steering.claude import drain
from nightwarden.steering.mailbox import Message, State, TooLate
from nightwarden.steering.ports import NotQueued, Words

_FOLDERS: Final = {
    State.QUEUED: drain.QUEUED,
    State.DELIVERED: drain.DELIVERED,
    State.CONSUMED: drain.CONSUMED,
    State.CANCELLED: drain.CANCELLED,
    State.EXPIRED: drain.EXPIRED,
}
_STATES: Final = {folder: state for state, folder in _FOLDERS.items()} | {
    drain.CLAIMED: State.QUEUED
}
TTL_S: Final = 900.0
"""So long a supervisor's word waits for a boundary before it is stale."""


class SessionBox:
    """The mailbox of one session; an `Injector`. `told` gets every message that changed."""

    def __init__(
        self,
        session_id: str,
        *,
        root: Path | None = None,
        ttl_s: float | None = TTL_S,
        told: Callable[[Message], None] = lambda _message: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        if not drain.is_session_id(session_id):
            raise NotQueued(f"{session_id!r} is no session id")
        self.session_id = session_id
        self.path = (root or Path(drain.mailbox_root())) / session_id
        self._ttl_s = ttl_s
        self._told = told
        self._now = now

    # -- in --

    async def inject(self, words: Words) -> None:
        """Queue a supervisor's words; they wait for a quarter of an hour."""
        self.enqueue(words, ttl_s=self._ttl_s)

    def enqueue(self, words: Words, *, ttl_s: float | None = None) -> Message | None:
        """Queue a text for the session; None where its id is known, whatever became of it.

        Raises `NotQueued` for a mailbox that cannot be written, or without a word.
        """
        if not words.text.strip():
            raise NotQueued("the message is empty; write what the agent should read")
        if self._find(words.message_id) is not None:
            return None
        now = self._now()
        message = Message(
            message_id=words.message_id,
            run_id=self.session_id,
            text=words.text,
            author=words.author or OPERATOR,
            queued_at=now,
            expires_at=None if ttl_s is None else now + ttl_s,
        )
        try:
            self._make()
            older = [] if message.by_operator else self._queued_by(message.author)
            added = self._add(message)
        except OSError as error:
            why = error.strerror or error
            raise NotQueued(f"the mailbox {self.path} cannot be written: {why}") from error
        for name in older if added else ():
            self._end(name, drain.CANCELLED, "a newer one replaced it")
        if added:
            self._told(message)
        return message if added else None

    def _make(self) -> None:
        for folder in drain.FOLDERS:
            (self.path / folder).mkdir(mode=0o700, parents=True, exist_ok=True)

    def _add(self, message: Message) -> bool:
        """Whether it is queued by us: the file appears whole, and once."""
        name = _file_name(message)
        draft = self.path / f".{name}.{os.getpid()}"
        draft.write_text(json.dumps(_as_json(message)), encoding="ascii")
        try:
            os.link(draft, self.path / drain.QUEUED / name)
        except FileExistsError:
            return False
        finally:
            draft.unlink(missing_ok=True)
        return True

    # -- what became of it --

    def messages(self) -> list[Message]:
        """Every message of the session, in the order they came."""
        found = [m for folder, name in self._files() if (m := self._read(folder, name))]
        return sorted(found, key=lambda message: message.queued_at)

    def cancel(self, message_id: str) -> Message:
        """Take a message back. Raises `TooLate` where it is not waiting any more."""
        for name in drain.waiting(str(self.path)):
            if name in (f"0-{message_id}.json", f"1-{message_id}.json"):
                ended = self._end(name, drain.CANCELLED, "")
                if ended is not None:
                    return ended
        raise TooLate(f"message {message_id} does not wait in {self.path}")

    def stepped(self) -> list[Message]:
        """The agent has taken a step: what it was handed before, it has taken up."""
        return self._all_to(drain.DELIVERED, drain.CONSUMED, lambda _m: True, "")

    def expire(self) -> list[Message]:
        """What waited too long."""
        now = self._now()
        late = lambda m: m.expires_at is not None and now >= m.expires_at  # noqa: E731
        return self._all_to(drain.QUEUED, drain.EXPIRED, late, "its time passed")

    def session_ended(self) -> list[Message]:
        """The session is over: what waits has nobody to read it."""
        return self._all_to(drain.QUEUED, drain.EXPIRED, lambda _m: True, "the session ended")

    # -- inside --

    def _all_to(
        self, source: str, target: str, which: Callable[[Message], bool], reason: str
    ) -> list[Message]:
        found = []
        for name in drain.waiting(str(self.path), source):
            message = self._read(source, name)
            if message is not None and which(message):
                ended = self._end(name, target, reason, source)
                if ended is not None:
                    found.append(ended)
        return found

    def _end(
        self, name: str, target: str, reason: str, source: str = drain.QUEUED
    ) -> Message | None:
        if not drain.move(str(self.path), name, source, target):
            return None
        message = self._read(target, name, reason)
        if message is not None:
            self._told(message)
        return message

    def _queued_by(self, author: str) -> list[str]:
        names = drain.waiting(str(self.path))
        return [n for n in names if (m := self._read(drain.QUEUED, n)) and m.author == author]

    def _find(self, message_id: str) -> str | None:
        wanted = {f"0-{message_id}.json", f"1-{message_id}.json"}
        return next((folder for folder, name in self._files() if name in wanted), None)

    def _files(self) -> Iterator[tuple[str, str]]:
        for folder in _STATES:
            with contextlib.suppress(OSError):
                for path in sorted((self.path / folder).iterdir()):
                    if path.suffix == ".json":
                        yield folder, path.name

    def _read(self, folder: str, name: str, reason: str = "") -> Message | None:
        found = drain.read(str(self.path), folder, name)
        if found is None:
            return None
        expires = found.get("expires_at")
        queued = found.get("queued_at")
        return Message(
            message_id=name[2:].removesuffix(".json"),
            run_id=self.session_id,
            text=str(found.get("text", "")),
            author=str(found.get("author", OPERATOR)),
            state=_STATES[folder],
            queued_at=float(queued) if isinstance(queued, (int, float)) else 0.0,
            expires_at=float(expires) if isinstance(expires, (int, float)) else None,
            reason=reason,
        )


def _file_name(message: Message) -> str:
    safe = re.sub(r"[^A-Za-z0-9_.-]", "_", message.message_id)[:150]
    return f"{0 if message.by_operator else 1}-{safe}.json"


def _as_json(message: Message) -> dict[str, object]:
    return {
        "text": message.text,
        "author": message.author,
        "queued_at": message.queued_at,
        "expires_at": message.expires_at,
    }
