"""Files as steps read and replace them: paths, encodings, whole or not at all.

    locate     a path as the author meant it: from the run's working directory
    sniff      UTF-8 (a few broken places stay broken), UTF-16/32 by their mark, else Windows-1252
    lines      decoded lines with their numbers; what does not decode is marked, not lost
    replacing  a new file under a temporary name, then in place in one step

A writer that fails, or is killed, leaves the file that was there before.

Read next: `file.py`.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from errno import EACCES
from pathlib import Path
from typing import IO, Final, NamedTuple

from nightwarden.errors import NodeError
from nightwarden.nodes.builtin._charset import BOMS, FALLBACK, known_encoding, looks_binary
from nightwarden.nodes.context import Context

AUTO: Final = "auto"
_CHUNK: Final = 1 << 20
_NOT_ASCII: Final = re.compile("[^\x00-\x7f]")
_UNDECODED: Final = re.compile("[\udc80-\udcff]")


class FileError(NodeError, OSError):
    """A file could not be read or written; `errno` is the system's, where it said so."""

    def __init__(self, message: str, *, code: str | None = None, errno: int | None = None) -> None:
        super().__init__(message, code=code)
        self.errno = errno


class Encoding(NamedTuple):
    """How a file is to be read, and a remark where that was a guess."""

    name: str
    note: str = ""


def locate(path: Path, ctx: Context) -> Path:
    """The absolute path: relative ones are meant from the working directory, `~` is home."""
    return Path(os.path.abspath(ctx.workdir / path.expanduser()))


@contextlib.contextmanager
def explained(path: Path, doing: str) -> Iterator[None]:
    """Turn the system's errors about a file into one clear line."""
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        why = error.strerror or str(error) or type(error).__name__
        message = f"cannot {doing} {path}: {why[:1].lower()}{why[1:]}"
        raise FileError(message, errno=error.errno) from error


def sniff(path: Path, declared: str) -> Encoding:
    """The encoding of a file; `declared` is the author's word, or `auto`.

    The whole file is looked at. Valid UTF-8 is UTF-8; where more non-ASCII characters are valid
    than broken, the broken ones are faults in a UTF-8 file; else it is Windows-1252.
    """
    if declared != AUTO:
        return Encoding(_author_encoding(declared, path))
    with path.open("rb") as file:
        start = file.read(4096)
        for mark, name in BOMS:
            if start.startswith(mark):
                return Encoding(name)
        if looks_binary(start):
            raise FileError(
                f"{path} is no text: it holds zero bytes; "
                "for UTF-16 without a mark give encoding: utf-16-le (or -be)",
                code="not-text",
            )
        file.seek(0)
        return _by_validity(file, path)


def _author_encoding(declared: str, path: Path) -> str:
    name = known_encoding(declared)
    if name is None:
        raise FileError(f"{path}: unknown encoding {declared!r}", code="encoding")
    # Its mark, if a UTF-8 file has one, is no part of the text.
    return "utf-8-sig" if name == "utf-8" else name


def _by_validity(file: IO[bytes], path: Path) -> Encoding:
    with contextlib.suppress(UnicodeDecodeError):
        for _ in _chunks(file, "strict"):
            pass
        return Encoding("utf-8")
    file.seek(0)
    broken = valid = 0
    for text in _chunks(file, "surrogateescape"):
        bad = len(_UNDECODED.findall(text))
        broken += bad
        valid += len(_NOT_ASCII.findall(text)) - bad
    if broken > valid:
        return Encoding(FALLBACK, f"{path} is not UTF-8; read as Windows-1252")
    return Encoding("utf-8", f"{path} is UTF-8 with {broken} broken bytes")


def _chunks(file: IO[bytes], errors: str) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")(errors)
    while chunk := file.read(_CHUNK):
        yield decoder.decode(chunk)
    yield decoder.decode(b"", final=True)


def open_text(path: Path, encoding: Encoding, *, newline: str | None = None) -> IO[str]:
    """Open for reading; bytes that do not decode become surrogates (see `undecoded`).

    Line ends become `\\n`, unless `newline` is `""`.
    """
    multibyte = encoding.name.startswith(("utf-16", "utf-32"))
    errors = "replace" if multibyte else "surrogateescape"
    return path.open(encoding=encoding.name, errors=errors, newline=newline)


def undecoded(text: str) -> str:
    """What is wrong with a text that `open_text` could not decode; empty if nothing is."""
    if text.isascii() or not (found := _UNDECODED.search(text)):
        return ""
    return f"not in the file's encoding: byte 0x{ord(found.group()) - 0xDC00:02x}"


def readable(text: str, limit: int = 1_000) -> str:
    """A raw line for a report: bytes that did not decode as `\\xNN`, cut with a mark."""
    shown = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return shown if len(shown) <= limit else f"{shown[:limit]}… (+{len(shown) - limit} characters)"


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to that takes the place of `path` when the block ends well.

    Directories are made. The new file is complete and on the disk before it gets its name; a
    symbolic link stays one. Raises `FileError`; whatever was there before is then untouched.
    """
    with explained(path, "write"):
        target = Path(os.path.realpath(path))
        mode = _mode_of(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.tmp")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            with os.fdopen(descriptor, "wb") as file:
                if mode is not None:
                    os.fchmod(file.fileno(), mode)
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        _sync_directory(target.parent)


def _mode_of(target: Path) -> int | None:
    """The permissions of the file to replace, None if there is none; refuses what is no file."""
    try:
        found = target.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        kind = "a directory" if stat.S_ISDIR(found.st_mode) else "no ordinary file"
        raise FileError(f"cannot write {target}: it is {kind}", code="not-a-file")
    if not os.access(target, os.W_OK):
        raise FileError(f"cannot write {target}: it is write-protected", errno=EACCES)
    return stat.S_IMODE(found.st_mode)


def _sync_directory(directory: Path) -> None:
    # Not every file system can do this; the file itself is safe already.
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
