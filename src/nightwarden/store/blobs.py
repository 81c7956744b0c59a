"""Large values and assets: bytes by their SHA-256, in a folder or in object storage.

    FolderBlobs   <folder>/ab/cdef…   written beside, synced, then moved into place;
                  an asset is there once, and has its name in its run's folder as well (hard link)
    ObjectBlobs   s3:// gs:// az:// file:// memory://   through obstore (extra `objects`)

obstore was taken over fsspec: one compiled wheel speaks to every object store, its calls block
without an event loop, and it imports in 10 ms; fsspec needs a driver package a store, and each
brings an async stack.

What is read is checked against its name, so a damaged blob is an error and never a value.

Read next: `writing.py` (who puts them), `sqlstore.py` (who removes them).
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

from nightwarden.errors import StoreError
from nightwarden.store.contract import Blobs

LARGE: Final = 16 * 1024
"""Values of more bytes than this are blobs."""

_READ_ONLY: Final = 0o400
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


def digest_of(data: bytes) -> str:
    """The name of some bytes."""
    return sha256(data).hexdigest()


def open_blobs(place: str | Path) -> Blobs:
    """Blobs in a folder, or in the object store of a URL. Raises `StoreError`."""
    if isinstance(place, str) and "://" in place:
        return ObjectBlobs(place)
    return FolderBlobs(Path(place))


class FolderBlobs:
    """Blobs in a folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def place(self) -> str:
        """The folder."""
        return str(self.folder)

    def put(self, digest: str, data: bytes, source: Path | None = None) -> None:
        """Keep `data`; durable on return. A `source` becomes the blob if it holds just that."""
        path = self._path(digest)
        try:
            if source is None:
                whole = _is_whole(path, len(data))
            else:
                whole = _is(path, digest) or _adopted(path, source, digest)
            if not whole:
                _write(path, data)
        except OSError as error:
            raise StoreError(
                f"{path} cannot be written: {error.strerror or error}; free space there, or name "
                "another place for large values"
            ) from error

    def get(self, digest: str) -> bytes:
        """What was kept. Raises `StoreError` if it is missing or damaged."""
        path = self._path(digest)
        try:
            data = path.read_bytes()
        except FileNotFoundError as error:
            raise _missing(digest, self.place) from error
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error
        return _checked(digest, data, self.place)

    def give(self, digest: str, path: Path) -> bool:
        """Make `path` another name of what was kept; False where that cannot be."""
        kept = self._path(digest)
        return _is(kept, digest) and _link(kept, path)

    def has(self, digest: str) -> bool:
        """Whether it is here."""
        return self._path(digest).is_file()

    def remove(self, digest: str) -> None:
        """Let go of it, if it is here."""
        path = self._path(digest)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{path} cannot be removed: {error.strerror or error}") from error
        with contextlib.suppress(OSError):
            path.parent.rmdir()

    def _path(self, digest: str) -> Path:
        _check_name(digest)
        return self.folder / digest[:2] / digest[2:]


class ObjectBlobs:
    """Blobs in object storage. Credentials come from the environment, as its own tools take them.

    `options` go to obstore as they are (region, endpoint, …).
    """

    def __init__(self, url: str, **options: object) -> None:
        self._url = _without_secrets(url)
        try:
            self._obstore: Any = importlib.import_module("obstore")
            from_url = importlib.import_module("obstore.store").from_url
        except ImportError as error:
            raise StoreError(
                f"large values at {self._url} need obstore: pip install 'nightwarden[objects]'"
            ) from error
        with self._explained("cannot be used"):
            self._store = from_url(url, **options)

    @property
    def place(self) -> str:
        """The URL, without what stands before an @ or after a ?."""
        return self._url

    def put(self, digest: str, data: bytes, source: Path | None = None) -> None:
        """Keep `data`; durable on return."""
        del source  # it lies on this machine
        with self._explained(f"does not take blob {digest}"):
            self._obstore.put(self._store, _key(digest), data)

    def get(self, digest: str) -> bytes:
        """What was kept. Raises `StoreError` if it is missing or damaged."""
        try:
            with self._explained(f"does not give blob {digest}"):
                data = bytes(self._obstore.get(self._store, _key(digest)).bytes())
        except FileNotFoundError as error:
            raise _missing(digest, self.place) from error
        return _checked(digest, data, self.place)

    def give(self, digest: str, path: Path) -> bool:
        """Nothing elsewhere has a name on this machine."""
        del digest, path
        return False

    def has(self, digest: str) -> bool:
        """Whether it is here."""
        try:
            with self._explained(f"does not answer for blob {digest}"):
                self._obstore.head(self._store, _key(digest))
        except FileNotFoundError:
            return False
        return True

    def remove(self, digest: str) -> None:
        """Let go of it, if it is here."""
        with (
            contextlib.suppress(FileNotFoundError),
            self._explained(f"does not let go of blob {digest}"),
        ):
            self._obstore.delete(self._store, _key(digest))

    @contextlib.contextmanager
    def _explained(self, what: str) -> Any:
        try:
            yield
        except FileNotFoundError:
            raise
        except (self._obstore.exceptions.BaseError, OSError, ValueError) as error:
            reason = str(error).strip().split("\n", 1)[0]  # what follows is a dump for developers
            raise StoreError(f"{self._url} {what}: {reason}") from error


def _check_name(digest: str) -> None:
    if not _DIGEST.fullmatch(digest):
        raise StoreError(f"{digest[:80]!r} names no blob: expected 64 hexadecimal digits")


def _key(digest: str) -> str:
    _check_name(digest)
    return f"{digest[:2]}/{digest[2:]}"


def _checked(digest: str, data: bytes, place: str) -> bytes:
    if digest_of(data) != digest:
        raise StoreError(f"blob {digest} in {place} is damaged: its content has another hash")
    return data


def _missing(digest: str, place: str) -> StoreError:
    return StoreError(
        f"blob {digest} is not in {place}; if large values are kept elsewhere, name that place"
    )


def _is_whole(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except FileNotFoundError:
        return False


def _is(path: Path, digest: str) -> bool:
    try:
        return digest_of(path.read_bytes()) == digest
    except OSError:
        return False


def _adopted(path: Path, source: Path, digest: str) -> bool:
    """Whether a file has become the blob; by its other name it can be read only from now on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        source.chmod(_READ_ONLY)
        _sync(source)
    except OSError:  # it has been moved away since
        return False
    if not _is(source, digest) or not _link(source, path):
        return False
    for folder in (path.parent, path.parent.parent, source.parent):
        _sync(folder)
    return _is(path, digest)  # somebody may have written to it just before


def _link(old: Path, new: Path) -> bool:
    """Give a file another name, in the place of what has it; False where that cannot be."""
    beside = new.with_name(f".new-{uuid4().hex}")
    try:
        beside.hardlink_to(old)
        beside.replace(new)
    except OSError:
        return False
    finally:
        beside.unlink(missing_ok=True)  # still there where both were the same file
    return True


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fd, beside = tempfile.mkstemp(prefix=".new-", dir=path.parent)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(beside).replace(path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
    _sync(path.parent)
    _sync(path.parent.parent)


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _without_secrets(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))
