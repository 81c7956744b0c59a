"""The program itself: started with nothing of ours but what it needs, and gone when it is over.

    start ─▶ lines of JSON in, lines of JSON out ─▶ end: its input is closed, then it is killed,
                                                   with all that bears its mark

What it runs gets sessions of its own and so escapes its group. Therefore it is started with a mark
in its environment, which everything it starts inherits.

It is what the SDK calls a transport. Read next: `starting.py`, `working.py`, `../../leash.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from nightwarden.errors import NodeError
from nightwarden.leash import Leash

MARK: Final = "NIGHTWARDEN_WORK"
"""The variable that holds the mark."""

_LONGEST_LINE: Final = 2**26
_GOING_S: Final = 0.3
"""How long it may take to end by itself, once its input is closed."""
_KILLING_S: Final = 1.0
_LAST_WORDS: Final = 2_000


class Program:
    """One process. `heard` has every line it has said that nobody has taken yet."""

    def __init__(
        self, command: Sequence[str], *, env: Mapping[str, str], cwd: Path, errors: Path
    ) -> None:
        mark = secrets.token_hex(16)
        self.heard: deque[dict[str, Any]] = deque()
        self._command = command
        self._env = {**env, MARK: mark}
        self._cwd = cwd
        self._errors = errors
        self._leash = Leash(f"{MARK}={mark}")
        self._process: asyncio.subprocess.Process | None = None
        self._writing = asyncio.Lock()
        self._ending = False

    async def connect(self) -> None:
        """Start it. Raises `NodeError` where it cannot be started."""
        command = self._leash.command(self._command[0], self._command[1:])
        with self._errors.open("wb") as errors:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *command,
                    cwd=self._cwd,
                    env=self._env,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=errors,
                    start_new_session=True,
                    limit=_LONGEST_LINE,
                )
            except OSError as error:
                raise NodeError(f"Claude Code cannot be started: {error}", code="claude") from error
            finally:
                if self._process is None:
                    self._leash.kill()  # one that is just being started never begins

    async def write(self, data: str) -> None:
        """Tell it something."""
        async with self._writing:
            assert self._process is not None
            assert self._process.stdin is not None
            self._process.stdin.write(data.encode())
            await self._process.stdin.drain()

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        """What it says. Raises `NodeError` if it ends without having been told to."""
        assert self._process is not None
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            if (message := _message(line)) is not None:
                self.heard.append(message)
                yield message
        code = await self._process.wait()
        if not self._ending:
            said = " ".join(self.last_words().split())[-300:] or "it said nothing"
            raise NodeError(f"Claude Code ended with code {code}: {said}", code="claude")

    def last_words(self) -> str:
        """The end of what it complained about."""
        try:
            return self._errors.read_bytes()[-_LAST_WORDS:].decode("utf-8", "replace")
        except OSError:
            return ""

    def is_ready(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.returncode is None

    async def end_input(self) -> None:
        """Say that nothing more will be said."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    async def close(self) -> None:
        """End it, and all it has started. More than once changes nothing."""
        self._ending = True
        process = self._process
        if process is None:
            return
        await self.end_input()
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), _GOING_S)
        finally:
            self._leash.kill()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _KILLING_S)


def _message(line: bytes) -> dict[str, Any] | None:
    """A line that is no JSON object says nothing."""
    try:
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return found if isinstance(found, dict) else None
