"""A run in one portable file, and back.

    manifest.json        form, run id, number of events, hash of the last one, digests, files
    events.jsonl         the events as recorded, one a line
    blobs/<digest>       the large values it refers to
    files/<path>         its own files; those that are blobs as well are there once

A zip archive. Everything is checked before anything is taken in: the chain of events against the
hash in the manifest, each blob against its name. A record in the store's first form (a bare
`events.jsonl`) is taken in as well; its chain begins with that.

Read next: `keeping.py`.
"""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Final, Protocol

import msgspec

from nightwarden.errors import StoreError
from nightwarden.store.blobs import digest_of
from nightwarden.store.chain import chained, first_hash, verified
from nightwarden.store.contract import Blobs, Verified
from nightwarden.store.keeping import Intake

FORM: Final = 2
"""1 had every file twice that was a blob as well."""

_MANIFEST: Final = "manifest.json"
_EVENTS: Final = "events.jsonl"
_AT_ONCE: Final = 1000


class Source(Protocol):
    """What an archive is made from, and goes to."""

    @property
    def blobs(self) -> Blobs:
        """Large values, by digest."""
        ...

    def verify(self, run_id: str) -> Verified:
        """Whether a run's record is whole."""
        ...

    def lines(self, run_id: str, after: int = 0) -> Iterator[bytes]:
        """Its events as recorded."""
        ...

    def references(self, run_id: str) -> dict[str, int]:
        """The large values it refers to: bytes by digest."""
        ...

    def files(self, run_id: str) -> Path:
        """The folder of its own files."""
        ...

    def taking_in(self, run_id: str) -> AbstractContextManager[Intake]:
        """A new run that is there as a whole once this ends, or not at all."""
        ...


class _Manifest(msgspec.Struct):
    form: int
    run_id: str
    events: int
    head: str
    blobs: dict[str, int] = {}
    files: dict[str, str] = {}
    """Digests by path."""


def write_archive(store: Source, run_id: str, path: Path) -> None:
    """Put a run into a file, whole or not at all. Raises `StoreError` for a damaged record."""
    found = store.verify(run_id)
    if not found.whole:
        raise StoreError(f"run {run_id} is not whole: {found.problem}; nothing was exported")
    beside = path.with_name(path.name + ".part")
    with _explained(path):
        try:
            with zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED) as archive:
                _put_events(archive, islice(store.lines(run_id), found.events))
                blobs = store.references(run_id)
                for digest in blobs:
                    archive.writestr(f"blobs/{digest}", store.blobs.get(digest))
                manifest = _Manifest(
                    FORM,
                    run_id,
                    found.events,
                    found.head,
                    blobs,
                    _put_files(archive, store, run_id, blobs),
                )
                archive.writestr(_MANIFEST, msgspec.json.encode(manifest))
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)


def read_archive(store: Source, path: Path) -> str:
    """Take a run in; gives its id. Raises `StoreError`, and takes nothing in, if it is damaged."""
    with _explained(path):
        if not zipfile.is_zipfile(path):
            return _read_lines(store, path)
        with zipfile.ZipFile(path) as archive:
            manifest = _checked_manifest(archive, path)
            _check(archive, manifest, path)
            with store.taking_in(manifest.run_id) as intake:
                with archive.open(_EVENTS) as file:
                    _take_events(intake, manifest.run_id, _whole_lines(file))
                for digest in manifest.blobs:
                    intake.blob(digest, archive.read(f"blobs/{digest}"))
                _take_files(archive, manifest, store)
            return manifest.run_id


# -- out --


def _put_events(archive: zipfile.ZipFile, lines: Iterable[bytes]) -> None:
    with archive.open(_EVENTS, "w", force_zip64=True) as file:
        for line in lines:
            file.write(line + b"\n")


def _put_files(
    archive: zipfile.ZipFile, store: Source, run_id: str, blobs: Mapping[str, int]
) -> dict[str, str]:
    folder, found = store.files(run_id), {}
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not file.is_symlink():
            name, data = file.relative_to(folder).as_posix(), file.read_bytes()
            found[name] = digest_of(data)
            if found[name] not in blobs:
                archive.writestr(f"files/{name}", data)
    return found


# -- in --


def _checked_manifest(archive: zipfile.ZipFile, path: Path) -> _Manifest:
    try:
        manifest = msgspec.json.decode(archive.read(_MANIFEST), type=_Manifest)
    except (KeyError, msgspec.DecodeError, msgspec.ValidationError) as error:
        raise StoreError(f"{path} is no exported run: its manifest is missing or bad") from error
    if manifest.form > FORM:
        raise StoreError(
            f"{path} was exported by a newer Nightwarden (form {manifest.form}; this one knows "
            f"{FORM}): upgrade with `pip install -U nightwarden`"
        )
    return manifest


def _check(archive: zipfile.ZipFile, manifest: _Manifest, path: Path) -> None:
    """Everything against its hash. Raises `StoreError` naming the first thing that is wrong."""
    with archive.open(_EVENTS) as file:
        head, count = first_hash(manifest.run_id), 0
        for lines in _batches(_whole_lines(file)):
            rows = chained(head, count, lines)
            count, head, _ = rows[-1]
    if (count, head.hex()) != (manifest.events, manifest.head):
        raise StoreError(f"{path} is damaged: its {count} events have another hash than exported")
    expected = {f"blobs/{digest}": digest for digest in manifest.blobs}
    for name, digest in manifest.files.items():
        _check_name(name, path)
        if manifest.form == 1 or digest not in manifest.blobs:
            expected[f"files/{name}"] = digest
    for member, digest in expected.items():
        if member not in archive.namelist() or digest_of(archive.read(member)) != digest:
            raise StoreError(f"{path} is damaged: {member} is missing or has another hash")


def _check_name(name: str, path: Path) -> None:
    parts = PurePosixPath(name)
    if parts.is_absolute() or ".." in parts.parts or "\\" in name or not parts.parts:
        raise StoreError(f"{path} is refused: it would write outside its folder, to {name!r}")


def _take_events(intake: Intake, run_id: str, lines: Iterable[bytes]) -> None:
    head, count = first_hash(run_id), 0
    for batch in _batches(lines):
        rows = chained(head, count, batch)
        count, head, _ = rows[-1]
        intake.events(rows)


def _take_files(archive: zipfile.ZipFile, manifest: _Manifest, store: Source) -> None:
    folder = store.files(manifest.run_id)
    for name, digest in manifest.files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        kept = digest in manifest.blobs
        if kept and store.blobs.give(digest, target):
            continue
        member = f"blobs/{digest}" if kept else f"files/{name}"
        with archive.open(member) as source, target.open("wb") as copy:
            shutil.copyfileobj(source, copy)


def _read_lines(store: Source, path: Path) -> str:
    """Take in a record in the first form: its events, as far as they are whole lines."""
    with path.open("rb") as file:
        run_id = _run_of(next(_whole_lines(file), b""), path)
    with path.open("rb") as file:
        rows = chained(first_hash(run_id), 0, _whole_lines(file))
    found = verified(run_id, rows, rows[-1][0], rows[-1][1])
    if not found.whole:
        raise StoreError(f"{path} is no whole record: {found.problem}; nothing was taken in")
    with path.open("rb") as file, store.taking_in(run_id) as intake:
        _take_events(intake, run_id, _whole_lines(file))
    return run_id


def _run_of(line: bytes, path: Path) -> str:
    event: Mapping[str, Any] | object
    try:
        event = msgspec.json.decode(line)
    except msgspec.DecodeError:
        event = None
    run_id = event.get("run_id") if isinstance(event, dict) else None
    if not isinstance(run_id, str) or not run_id:
        raise StoreError(
            f"{path} is no exported run: expected what `nightwarden runs export` makes, or an "
            "events.jsonl that begins with run_started"
        )
    return run_id


def _whole_lines(file: Iterable[bytes] | BinaryIO | Any) -> Iterator[bytes]:
    """Lines without their ends; an unfinished last one is left out."""
    return (line[:-1] for line in file if line.endswith(b"\n"))


def _batches(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    rest = iter(lines)
    while batch := list(islice(rest, _AT_ONCE)):
        yield batch


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise StoreError(f"{error.filename or path} does not exist") from error
    except OSError as error:
        where = error.filename or path
        raise StoreError(f"{where} cannot be used: {error.strerror or error}") from error
    except (zipfile.BadZipFile, EOFError) as error:
        raise StoreError(f"{path} is damaged: {error}") from error
