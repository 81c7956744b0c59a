"""A person at a terminal: lines out, lines in, without holding up the loop.

Reading waits on the file descriptor, in the loop itself, so that it ends at once when it is
cancelled and leaves no thread behind. Regular files and streams in memory are read directly;
they never block.

Read next: `operator.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import termios
from typing import Final, TextIO

from nightwarden.errors import SupervisionError

_CHUNK: Final = 65_536
_LONGEST_LINE: Final = 1_048_576


class Terminal:
    """Two text streams, used as a terminal; neither has to be one."""

    def __init__(self, source: TextIO, sink: TextIO) -> None:
        self.source_fd = _fd(source)
        self.sink_fd = _fd(sink)
        self._source = source
        self._sink = sink
        self._typed = b""

    @property
    def interactive(self) -> bool:
        """Whether input comes from a terminal."""
        return self.source_fd is not None and os.isatty(self.source_fd)

    def say(self, text: str = "", *, end: str = "\n") -> None:
        """Write one line; what the stream's encoding lacks is spelled out."""
        encoding = getattr(self._sink, "encoding", None) or "utf-8"
        self._sink.write(text.encode(encoding, "backslashreplace").decode(encoding) + end)
        self._sink.flush()

    async def ask(self, prompt: str) -> str | None:
        """The next line without its end; None when there is no more input."""
        self.say(prompt, end="")
        while b"\n" not in self._typed:
            chunk = await self._chunk()
            if not chunk:
                return self._last()
            self._typed += chunk
            if len(self._typed) > _LONGEST_LINE:
                self._typed = b""
                raise SupervisionError(f"a line of more than {_LONGEST_LINE:,} bytes was typed")
        line, _, self._typed = self._typed.partition(b"\n")
        return line.decode("utf-8", "replace").removesuffix("\r")

    def forget_typed_ahead(self) -> None:
        """Drop what was typed before the question stood there; it answers another one."""
        if self.source_fd is not None and self.interactive:
            self._typed = b""
            with contextlib.suppress(termios.error):
                termios.tcflush(self.source_fd, termios.TCIFLUSH)

    async def _chunk(self) -> bytes:
        """Some input; empty at its end."""
        fd = self.source_fd
        if fd is None:
            return self._source.readline().encode("utf-8", "replace")
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        try:
            loop.add_reader(fd, _wake, ready)
        except PermissionError:  # what epoll refuses never blocks
            return os.read(fd, _CHUNK)
        try:
            await ready
        finally:
            loop.remove_reader(fd)
        try:
            return os.read(fd, _CHUNK)
        except OSError:  # the terminal is gone
            return b""

    def _last(self) -> str | None:
        """A file may end without a newline; a person who ends the input gives no answer."""
        rest, self._typed = self._typed, b""
        return rest.decode("utf-8", "replace") if rest and not self.interactive else None


def _wake(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


def _fd(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError, AttributeError):
        return None
