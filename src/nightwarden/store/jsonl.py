"""The record in its first form: one JSON line an event, under `.nightwarden/runs/<id>/`.

Lines are written in order by one thread, in batches, and can be read while they are
written. A failure to write is kept and raised at the next `append` or `barrier`.

Read next: `runtime/bus.py` (who writes), `report.py` (who reads).
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

from nightwarden.errors import StoreError
from nightwarden.events import decode_lines

EVENTS_FILE: Final = "events.jsonl"
_CHUNK: Final = 1 << 16


class JsonLines:
    """Appends lines to one file. Close it, or use it as a context manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_EXCL, 0o600)
        except FileExistsError as error:
            raise StoreError(f"{path} exists: a run is recorded once; choose another id") from error
        except OSError as error:
            raise _cannot_write(path, error) from error
        self._lines: list[bytes] = []
        self._wake = threading.Condition()
        self._written = self._appended = 0
        self._closing = False
        self._error: StoreError | None = None
        self._thread = threading.Thread(target=self._run, name="nightwarden-log", daemon=True)
        self._thread.start()

    def append(self, line: bytes) -> None:
        """Add one line; the thread writes it. Raises `StoreError` if writing has failed."""
        if self._error is not None:
            raise self._error
        with self._wake:
            self._lines.append(line)
            self._appended += 1
            self._wake.notify_all()

    def barrier(self) -> None:
        """Wait until all lines so far are on disk. Raises `StoreError` if they cannot be."""
        with self._wake:
            target = self._appended
            self._wake.wait_for(lambda: self._written >= target or self._error is not None)
        if self._error is not None:
            raise self._error
        os.fdatasync(self._fd)

    def close(self) -> None:
        """Write what is left and close the file."""
        with self._wake:
            self._closing = True
            self._wake.notify_all()
        self._thread.join()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._error is not None:
            raise self._error

    def __enter__(self) -> JsonLines:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _run(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._lines or self._closing)
                batch, self._lines = self._lines, []
                if not batch:
                    return
            try:
                _write_all(self._fd, b"\n".join(batch) + b"\n")
            except OSError as error:
                self._fail(_cannot_write(self.path, error))
                return
            with self._wake:
                self._written += len(batch)
                self._wake.notify_all()

    def _fail(self, error: StoreError) -> None:
        with self._wake:
            self._error = error
            self._wake.notify_all()


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _cannot_write(path: Path, error: OSError) -> StoreError:
    return StoreError(
        f"the run's record cannot be written: {path}: {error.strerror or error}; "
        "free space or name another place with --store"
    )


class RunFolder:
    """Where runs are kept: `<root>/runs/<id>/events.jsonl`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def events_path(self, run_id: str) -> Path:
        """The record of a run, existing or not."""
        return self.root / "runs" / run_id / EVENTS_FILE

    def run_ids(self) -> list[str]:
        """All recorded runs, the one written to last at the end. Raises `StoreError`."""
        folder = self.root / "runs"
        written: list[tuple[int, str]] = []
        try:
            for path in folder.iterdir():
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    written.append(((path / EVENTS_FILE).stat().st_mtime_ns, path.name))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"{folder} cannot be read: {error.strerror or error}") from error
        return [name for _, name in sorted(written)]

    def find(self, run_id: str) -> str:
        """The run that is meant: an id, the start of one, or `last`. Raises `StoreError`."""
        known = self.run_ids()
        if not known:
            raise StoreError(f"no run is recorded in {self.root}; --store names another place")
        if run_id == "last":
            return known[-1]
        matches = [known_id for known_id in known if known_id.startswith(run_id)]
        if run_id in known:
            return run_id
        if len(matches) == 1:
            return matches[0]
        if not matches:
            raise StoreError(f"no run {run_id!r} in {self.root}; `nightwarden runs` lists them")
        raise StoreError(f"{run_id!r} could be any of {', '.join(matches[:5])}; write more of it")

    def ends(self, run_id: str) -> Iterator[Mapping[str, Any]]:
        """The first and the last event of a run, without what lies between. Raises `StoreError`."""
        path = self.events_path(run_id)
        with _explained(path), path.open("rb") as lines:
            first = lines.readline()
            yield from decode_lines([first])
            last = _last_line(lines, len(first))
            if last:
                yield from decode_lines([last])

    def read(self, run_id: str) -> Iterator[Mapping[str, Any]]:
        """The events of a run, as plain mappings. Raises `StoreError` for a broken record."""
        path = self.events_path(self.find(run_id))
        with _explained(path), path.open("rb") as lines:
            yield from decode_lines(lines)


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise StoreError(f"{path}: {error}") from error


def _last_line(file: BinaryIO, start: int) -> bytes:
    """The last whole line after `start`; empty where there is none."""
    end = file.seek(0, os.SEEK_END)
    tail = b""
    while end > start and tail.count(b"\n", 0, -1) < 2:
        begin = max(start, end - _CHUNK)
        file.seek(begin)
        tail, end = file.read(end - begin) + tail, begin
    whole = tail[: tail.rfind(b"\n") + 1]
    return whole[whole.rfind(b"\n", 0, -1) + 1 :]
