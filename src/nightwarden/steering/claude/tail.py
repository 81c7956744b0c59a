"""Following a file of JSON lines while somebody else writes it.

    bytes ─▶ whole lines ─▶ records; an unfinished line stays unread

A line that is no JSON object is reported once, with its number, when a later good line shows that
it is not simply being written. `Position` says how far everything has been read for good: going
on from there after a restart gives the same records, none twice. A file that was cut or rewritten
is read from its start again, and that is said; one that is not there yet is waited for.

Read next: `transcript.py`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

CHUNK: Final = 1 << 20
LONGEST_LINE: Final = 64 << 20
_TRACE: Final = 64
"""Bytes before the position that are compared, to see that the file is still the same."""
_NAMED: Final = 5
_DOUBTED: Final = 10
_MARK: Final = b"\xef\xbb\xbf"
"""What some programs put at the start of a file of UTF-8."""


class Position(msgspec.Struct, frozen=True):
    """Read for good: `offset` bytes, `lines` lines, of the file `inode`; `trace` ends them."""

    offset: int = 0
    lines: int = 0
    inode: int = 0
    trace: str = ""


class JsonLines:
    """Bytes in, records out; pure. `consumed` bytes and `lines` are read for good."""

    def __init__(self, consumed: int = 0, lines: int = 0) -> None:
        self.consumed = consumed
        self.lines = lines
        self.broken: list[int] = []
        self._partial = bytearray()
        self._searched = 0
        self._doubtful: list[int] = []
        self._beyond = consumed
        self._number = lines

    def feed(self, chunk: bytes) -> list[Mapping[str, Any]]:
        """The records that these bytes complete; `broken` has grown by what was none."""
        found: list[Mapping[str, Any]] = []
        self._partial += chunk
        start = 0
        while (end := self._partial.find(b"\n", max(start, self._searched))) >= 0:
            record = self._line(bytes(self._partial[start:end]), end + 1 - start)
            if record is not None:
                found.append(record)
            start = end + 1
        del self._partial[:start]
        self._searched = len(self._partial)
        if len(self._partial) > LONGEST_LINE:
            self._skip_ahead()
        return found

    @property
    def unread(self) -> int:
        """Bytes held back: an unfinished line, and what is in doubt before it."""
        return self._beyond - self.consumed + len(self._partial)

    @property
    def in_doubt(self) -> int:
        """Lines that are none, since the last good one."""
        return len(self._doubtful)

    def _line(self, line: bytes, size: int) -> Mapping[str, Any] | None:
        self._beyond += size
        self._number += 1
        if not line.strip():
            self._pass_over()
            return None
        record = _decoded(line.removeprefix(_MARK) if self._number == 1 else line)
        if not isinstance(record, dict):
            self._doubtful.append(self._number)
            return None
        self.broken += self._doubtful
        self._doubtful.clear()
        self.consumed, self.lines = self._beyond, self._number
        return record

    def _pass_over(self) -> None:
        if not self._doubtful:
            self.consumed, self.lines = self._beyond, self._number

    def _skip_ahead(self) -> None:
        """A line without an end: what is there of it is let go, so that memory is bounded."""
        self._beyond += len(self._partial)
        self._partial.clear()
        self._searched = 0


def _decoded(line: bytes) -> object:
    """The value of a line of JSON, None for what is none.

    Whoever cuts a text may leave half a character at its end, which JavaScript writes as an
    escape of its own; here it is a question mark.
    """
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        whole = json.dumps(json.loads(line), ensure_ascii=False).encode("utf-8", "replace")
        found: object = json.loads(whole)
    except (ValueError, RecursionError):
        return None
    return found


class Tail:
    """Follows one file. `remarks` are lines for people about what happened to it."""

    def __init__(self, path: Path, position: Position | None = None) -> None:
        self.path = path
        self.position = position or Position()
        self.remarks: list[str] = []
        self.broken: list[int] = []
        self.behind = False
        self._lines = JsonLines(self.position.offset, self.position.lines)
        self._begun = 0
        self._doubted = False
        self._end = b""

    def poll(self, most_bytes: int = CHUNK) -> list[Mapping[str, Any]]:
        """What has been written since; `behind` where there is more than was read now.

        Raises `OSError` for a file that is there and cannot be read.
        """
        self.behind = False
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            return []
        with file:
            self._see_if_it_is_the_same(file)
            file.seek(self.position.offset + self._lines.unread)
            chunk = file.read(most_bytes)
            self._end = (self._end + chunk)[-_TRACE:]
            self.behind = len(chunk) == most_bytes
            found = self._lines.feed(chunk)
            self._report()
            if self._lines.consumed != self.position.offset or not self.position.inode:
                self.position = self._position(file)
        return found

    def _report(self) -> None:
        """Say which lines were none, and once where there are nothing but such lines."""
        broken, self._lines.broken = self._lines.broken, []
        self.broken += broken
        if broken:
            named = ", ".join(map(str, broken[:_NAMED]))
            more = f" and {len(broken) - _NAMED:,} more" if len(broken) > _NAMED else ""
            where = f", counted from byte {self._begun:,}," if self._begun else ""
            one = len(broken) == 1
            self.remarks.append(
                f"{self.path}: line{'' if one else 's'} {named}{more}{where} "
                f"{'is no JSON object and was' if one else 'are no JSON objects and were'} left out"
            )
        if self._lines.in_doubt >= _DOUBTED and not self._doubted:
            self._doubted = True
            self.remarks.append(
                f"{self.path}: {self._lines.in_doubt} lines in a row are no JSON objects; "
                "is this a transcript of Claude Code?"
            )

    def skip_to_last(self, most_bytes: int) -> None:
        """Begin near the end of a long file, at the first whole line there."""
        try:
            with self.path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size <= most_bytes:
                    return
                file.seek(size - most_bytes)
                skipped = len(file.readline())
                self._begun = size - most_bytes + skipped
                self._lines = JsonLines(self._begun)
                self.position = self._position(file)
        except OSError:
            return  # polling says what is the matter
        self.remarks.append(f"{self.path}: only its last {most_bytes >> 20} MB are read")

    def _see_if_it_is_the_same(self, file: BinaryIO) -> None:
        stat = os.fstat(file.fileno())
        before = self.position
        if not before.inode and not before.offset:
            return
        if stat.st_ino != before.inode:
            self._start_over("was replaced by another file")
        elif stat.st_size < (end := before.offset + self._lines.unread):
            self._start_over("was cut")
        elif _trace(file, before.offset) != before.trace or _differs(file, end, self._end):
            self._start_over("was rewritten")

    def _start_over(self, why: str) -> None:
        self.remarks.append(f"{self.path} {why}; it is read from its start again")
        self.position = Position()
        self._begun = 0
        self._lines = JsonLines()
        self._end = b""

    def _position(self, file: BinaryIO) -> Position:
        lines = self._lines
        inode = os.fstat(file.fileno()).st_ino
        return Position(lines.consumed, lines.lines, inode, _trace(file, lines.consumed))


def _differs(file: BinaryIO, end: int, read: bytes) -> bool:
    """Whether something else stands before `end` now than was read there."""
    file.seek(max(0, end - len(read)))
    return file.read(len(read)) != read


def _trace(file: BinaryIO, offset: int) -> str:
    start = max(0, offset - _TRACE)
    file.seek(start)
    return file.read(offset - start).hex()
