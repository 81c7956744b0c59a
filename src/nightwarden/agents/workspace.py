"""Files of a workspace, and of nothing else: no path an agent writes leads out of it.

    "a/b/../c" ─▶ opened step by step from the workspace's own descriptor ─▶ (folder, name)

The kernel never resolves a path here. Each part is opened without following links, relative to
the folder before it; a link is read and walked like the rest; `..` goes back to the folder we
came from, and at the top it is refused. What is swapped for a link in between is not followed,
since what is used is what was opened. Writing replaces a file, so that a second name it may have
elsewhere keeps the old content.

Read next: `tools.py`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nightwarden.errors import NightwardenError

MOST_BYTES: Final = 10_000_000
"""The largest file that is read or written."""
MOST_ENTRIES: Final = 1_000
"""Entries a listing shows."""

_MOST_LINKS: Final = 40
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NOT_LISTED: Final = frozenset({".git", ".nightwarden", "__pycache__", "node_modules", ".venv"})


class ToolProblem(NightwardenError):
    """A tool cannot do what it was asked for; the agent reads why, and goes on."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A name in an open folder, and the way there without links: `src/dates.py`."""

    folder: int
    name: str
    path: str


class Workspace:
    """A folder agents work in. Raises `ToolProblem` for all it cannot or must not do."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    def read(self, path: str) -> str:
        """The text of a file."""
        with self._spot(path) as spot:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            fd = os.open(spot.name, flags, dir_fd=spot.folder)
            with os.fdopen(fd, "rb") as file:
                _check_file(os.fstat(fd), path)
                data = file.read(MOST_BYTES + 1)
        if b"\0" in data[:8_192]:
            raise ToolProblem(f"{path} is no text file")
        return data.decode("utf-8", "replace")

    def write(self, path: str, text: str) -> int:
        """Make a file of this text, and the folders on the way to it; gives its bytes."""
        data = text.encode("utf-8", "replace")
        if len(data) > MOST_BYTES:
            raise ToolProblem(f"{len(data):,} bytes are too many for a file: {MOST_BYTES:,}")
        with self._spot(path, make=True) as spot:
            mode = 0o644
            with contextlib.suppress(FileNotFoundError):
                found = os.stat(spot.name, dir_fd=spot.folder, follow_symlinks=False)
                _check_file(found, path)
                mode = stat.S_IMODE(found.st_mode) & 0o777
            self._replace(spot, data, mode)
        return len(data)

    def edit(self, path: str, old: str, new: str, *, replace_all: bool = False) -> int:
        """Put `new` where `old` stands; gives how many times. Once, unless all are meant."""
        text = self.read(path)
        times = text.count(old) if old else 0
        if not times:
            raise ToolProblem(f"{path} does not contain that text; read it, and copy exactly")
        if "\ufffd" in text:
            raise ToolProblem(f"{path} is not UTF-8 throughout, and would be changed elsewhere too")
        if times > 1 and not replace_all:
            raise ToolProblem(
                f"{path} contains that text {times} times; take more around it, or set replace_all"
            )
        self.write(path, text.replace(old, new))
        return times

    def entries(self, path: str = ".", *, recursive: bool = False) -> list[str]:
        """The names in a folder, folders with a slash; `recursive`: those below it as well."""
        found: list[str] = []
        with self.folder(path) as fd:
            self._list(fd, "", found, recursive=recursive)
        return found

    @contextmanager
    def folder(self, path: str) -> Iterator[int]:
        """A folder, open."""
        with self._spot(path) as spot:
            fd = os.open(spot.name, _FOLDER, dir_fd=spot.folder)
            try:
                yield fd
            finally:
                os.close(fd)

    # -- on the way --

    @contextmanager
    def _spot(self, path: str, *, make: bool = False) -> Iterator[Spot]:
        """Where a path leads. What the system refuses comes as a `ToolProblem` too."""
        if "\0" in path or not path.strip():
            raise ToolProblem(f"{path!r} is no path; give one relative to the workspace")
        walk: _Walk | None = None
        try:
            walk = _Walk(self.root, path, make=make)
            yield walk.to_its_end()
        except OSError as error:
            raise ToolProblem(_said(path, error)) from error
        finally:
            if walk is not None:
                walk.close()

    def _replace(self, spot: Spot, data: bytes, mode: int) -> None:
        temporary = f".{secrets.token_hex(8)}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(temporary, flags, 0o600, dir_fd=spot.folder)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                os.fchmod(file.fileno(), mode)
            os.replace(temporary, spot.name, src_dir_fd=spot.folder, dst_dir_fd=spot.folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=spot.folder)
            raise

    def _list(self, fd: int, before: str, found: list[str], *, recursive: bool) -> None:
        with os.scandir(fd) as entries:
            listed = sorted(entries, key=lambda entry: entry.name)
        for entry in listed:
            if len(found) >= MOST_ENTRIES:
                return
            name, is_folder = before + entry.name, entry.is_dir(follow_symlinks=False)
            found.append(name + ("/" if is_folder else "@" if entry.is_symlink() else ""))
            if recursive and is_folder and entry.name not in _NOT_LISTED:
                with contextlib.suppress(OSError):
                    below = os.open(entry.name, _FOLDER, dir_fd=fd)
                    try:
                        self._list(below, f"{name}/", found, recursive=True)
                    finally:
                        os.close(below)


class _Walk:
    """One way through a workspace, by descriptors."""

    def __init__(self, root: Path, path: str, *, make: bool) -> None:
        self._root = root
        self._path = path
        self._make = make
        self._links = 0
        self._todo = self._parts(path)
        self._names: list[str] = []
        self._folders = [os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]

    def close(self) -> None:
        for fd in self._folders:
            os.close(fd)

    def to_its_end(self) -> Spot:
        """Take every part but a last one that is no link."""
        while self._todo:
            name = self._todo.pop(0)
            if name == "..":
                self._up()
            elif (target := self._link(name)) is not None:
                self._follow(target)
            elif not self._todo:
                return self._spot(name)
            else:
                self._into(name)
        return self._spot(".")

    def _spot(self, name: str) -> Spot:
        path = "/".join([*self._names, name]) if name != "." else "/".join(self._names) or "."
        return Spot(self._folders[-1], name, path)

    def _parts(self, path: str) -> list[str]:
        """The parts of a path; an absolute one has to begin with the workspace itself."""
        if path.startswith("/"):
            inside = Path(os.path.normpath(path))
            if ".." in Path(path).parts or not inside.is_relative_to(self._root):
                raise self._outside()
            path = str(inside.relative_to(self._root))
        return [part for part in path.split("/") if part not in ("", ".")]

    def _up(self) -> None:
        if len(self._folders) == 1:
            raise self._outside()
        os.close(self._folders.pop())
        self._names.pop()

    def _link(self, name: str) -> str | None:
        try:
            return os.readlink(name, dir_fd=self._folders[-1])
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOENT):
                return None  # no link, or nothing yet
            raise

    def _follow(self, target: str) -> None:
        self._links += 1
        if self._links > _MOST_LINKS:
            raise ToolProblem(f"{self._path} leads from link to link without an end")
        parts = self._parts(target)
        if target.startswith("/"):
            while len(self._folders) > 1:
                self._up()
        self._todo[:0] = parts

    def _into(self, name: str) -> None:
        if self._make:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=self._folders[-1])
        self._folders.append(os.open(name, _FOLDER, dir_fd=self._folders[-1]))
        self._names.append(name)

    def _outside(self) -> ToolProblem:
        return ToolProblem(f"{self._path} lies outside the workspace; stay inside of it")


def _check_file(found: os.stat_result, path: str) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise ToolProblem(f"{path} is a folder; list it")
    if not stat.S_ISREG(found.st_mode):
        raise ToolProblem(f"{path} is no ordinary file")
    if found.st_size > MOST_BYTES:
        raise ToolProblem(f"{path} has {found.st_size:,} bytes, more than {MOST_BYTES:,}")


_WORDS: Final = {
    errno.ENOENT: "there is no such file or folder",
    errno.ENOTDIR: "a part of it is no folder",
    errno.ELOOP: "it became a link while it was opened",
    errno.EISDIR: "it is a folder; list it",
    errno.EACCES: "it may not be opened",
}


def _said(path: str, error: OSError) -> str:
    words = _WORDS.get(error.errno or 0) or (error.strerror or str(error))
    return f"{path}: {words}"
