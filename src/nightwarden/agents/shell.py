"""Commands an agent runs: bounded in time and output, without secrets, and gone when it is over.

    command ─▶ a session of its own ─▶ output, its head and its tail ─▶ code
                     │ time is up, the step is cancelled, or we are gone
                     └─▶ the whole group is killed

The environment holds what programs need to run and nothing that may be a key. A command is no
file tool: it can reach whatever the user who runs the workflow can reach.

Read next: `tools.py`, `../leash.py`.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nightwarden.agents.workspace import ToolProblem
from nightwarden.leash import Leash

_KEPT: Final = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "TMPDIR"}
    | {"VIRTUAL_ENV", "SSL_CERT_FILE", "SSL_CERT_DIR", "SYSTEMROOT"}
)
_CHUNK: Final = 65_536
_LAST_WORDS_S: Final = 0.5
"""How long output may still come when the command itself is over and its group is killed."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command did. `code` is None where its time was up; `output` is cut in its middle."""

    output: str
    code: int | None


def clean_environment(
    environ: Mapping[str, str] = os.environ, more: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What a command finds in its environment: names that are known to hold no key, and `more`."""
    kept = {k: v for k, v in environ.items() if k in _KEPT or k.startswith("LC_")}
    return {**kept, **(more or {})}


async def run_command(
    command: Sequence[str],
    *,
    cwd: Path | str,
    env: Mapping[str, str],
    timeout_s: float,
    max_chars: int,
    pass_fds: Sequence[int] = (),
) -> Ran:
    """Run a command to its end. Whatever it started in its group is killed then.

    Raises `ToolProblem` where it cannot be started.
    """
    reading, writing = os.pipe()
    kept, leash = _Kept(max_chars), Leash()
    try:
        process = await asyncio.create_subprocess_exec(
            *leash.command(command[0], command[1:]),
            cwd=cwd,
            env=dict(env),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=writing,
            stderr=writing,
            start_new_session=True,
            pass_fds=pass_fds,
        )
    except BaseException as error:
        leash.kill()  # one that is being started while the step is cancelled never begins
        os.close(reading)
        if isinstance(error, (OSError, ValueError)):
            raise ToolProblem(f"the command cannot be started: {error}") from error
        raise
    finally:
        os.close(writing)
    ended = _listen(reading, kept)
    code: int | None = None
    try:
        async with asyncio.timeout(timeout_s):
            code = await process.wait()
    except TimeoutError:
        code = None
    finally:
        leash.kill()
        try:
            # One that left the group may hold the pipe open: what it says is not waited for.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(ended), _LAST_WORDS_S)
            await process.wait()
        finally:
            asyncio.get_running_loop().remove_reader(reading)
            os.close(reading)
    return Ran(kept.text(), code)


def _listen(fd: int, kept: _Kept) -> asyncio.Future[None]:
    """Take what comes through a pipe; the future is done at its end."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    os.set_blocking(fd, False)

    def readable() -> None:
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            kept.add(data)
            return
        loop.remove_reader(fd)
        if not ended.done():
            ended.set_result(None)

    loop.add_reader(fd, readable)
    return ended


class _Kept:
    """The beginning and the end of what came, whatever came between."""

    def __init__(self, max_chars: int) -> None:
        self._half = max(max_chars // 2, 1)
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._head = ""
        self._tail = ""
        self._total = 0

    def add(self, data: bytes) -> None:
        text = self._decode(data)
        self._total += len(text)
        room = self._half - len(self._head)
        if room > 0:
            self._head += text[:room]
            text = text[room:]
        self._tail = (self._tail + text)[-self._half :]

    def text(self) -> str:
        left_out = self._total - len(self._head) - len(self._tail)
        if left_out <= 0:
            return self._head + self._tail
        return f"{self._head}\n… {left_out:,} characters left out …\n{self._tail}"
