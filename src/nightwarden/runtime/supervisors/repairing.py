"""A repaired value from a person: written in an editor, in a file, or on the line.

    draft (masked candidate) ──▶ $EDITOR on a private file ──▶ text ──▶ {slot: value}

The file is readable by its owner only, lies in a directory of its own that vanishes with
everything an editor leaves behind, and never holds more than the escalation does: what is
masked there is masked here, and has to be written anew.

Read next: `operator.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import tempfile
import termios
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from nightwarden.errors import SupervisionError
from nightwarden.runtime.supervisors.terminal import Terminal
from nightwarden.verdict import Escalation

_LARGEST_BYTES: Final = 16 * 1024 * 1024
_EDITOR_GRACE_S: Final = 1.0


class NotTaken(SupervisionError):
    """The value cannot be used as it is; the person is told, and asked again."""


def draft_of(escalation: Escalation) -> str:
    """What the editor opens with: every declared slot, the candidate where it belongs."""
    slots = list(escalation.declared_outputs)
    candidate = escalation.candidate_output
    fits = isinstance(candidate, Mapping) and any(slot in candidate for slot in slots)
    if len(slots) == 1 and not fits:
        draft: dict[str, object] = {slots[0]: candidate}
    else:
        known = candidate if isinstance(candidate, Mapping) else {}
        draft = {slot: known.get(slot) for slot in slots}
    return json.dumps(draft, indent=2, ensure_ascii=False, default=str) + "\n"


def outputs_from(text: str, slots: Sequence[str]) -> Mapping[str, object]:
    """The outputs a JSON text stands for: slot → value, or the value itself of an only slot.

    Raises `NotTaken` with what is wrong and where.
    """
    try:
        value = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_once)
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise NotTaken(f"not JSON: {error.msg.lower()} ({place})") from None
    except (ValueError, RecursionError) as error:
        raise NotTaken(f"not JSON: {error}") from None
    if isinstance(value, dict) and value and set(value) <= set(slots):
        return value
    if len(slots) == 1:
        return {slots[0]: value}
    raise NotTaken(f"expected an object with the slots {', '.join(slots)}")


def read_value(name: str) -> str:
    """The text of a file. Raises `NotTaken` when it is no regular file, too large, or no text."""
    try:
        path = Path(name).expanduser()
        if not path.is_file():
            raise NotTaken(f"there is no file {name!r}")
        if path.stat().st_size > _LARGEST_BYTES:
            raise NotTaken(f"{name!r} is larger than {_LARGEST_BYTES // 1024**2} MB")
        return path.read_text("utf-8")
    except OSError as error:
        raise NotTaken(f"cannot read {name!r}: {error.strerror}") from None
    except RuntimeError:
        raise NotTaken(f"{name!r} names no home directory") from None
    except ValueError:
        raise NotTaken(f"{name!r} is not UTF-8 text") from None


async def edited(command: str, draft: str, terminal: Terminal) -> str:
    """The draft as a person left it in an editor.

    Raises `NotTaken` when the editor cannot be started or ends with an error. Cancelling ends
    the editor and gives the terminal back as it was.
    """
    words = _words(command)
    with tempfile.TemporaryDirectory(prefix="repair-") as directory, _settings_kept(terminal):
        path = Path(directory) / "repair.json"
        _write_private(path, draft)
        code = await _run([*words, str(path)], terminal)
        if code != 0:
            raise NotTaken(f"{words[0]} ended with {code}, nothing was taken")
        return read_value(str(path))


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise NotTaken(f"$EDITOR cannot be read: {error}") from None
    if not words:
        raise NotTaken("no editor is set: set $EDITOR, or give @FILE or JSON")
    return words


def _write_private(path: Path, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(fd, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)


async def _run(words: Sequence[str], terminal: Terminal) -> int:
    """Run the editor on the terminal, in the foreground; it never outlives the question."""
    nothing = asyncio.subprocess.DEVNULL
    sink = nothing if terminal.sink_fd is None else terminal.sink_fd
    source = nothing if terminal.source_fd is None else terminal.source_fd
    try:
        process = await asyncio.create_subprocess_exec(
            *words, stdin=source, stdout=sink, stderr=sink
        )
    except OSError as error:
        raise NotTaken(f"cannot start {words[0]}: {error.strerror}") from None
    try:
        return await process.wait()
    finally:
        if process.returncode is None:
            await _end(process)


async def _end(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _EDITOR_GRACE_S)
        except TimeoutError:
            process.kill()
            await process.wait()
        finally:
            if process.returncode is None:  # cancelled once more
                process.kill()


@contextlib.contextmanager
def _settings_kept(terminal: Terminal) -> Iterator[None]:
    """An editor that is ended in the middle leaves a terminal that echoes nothing."""
    fd = terminal.source_fd
    if fd is None or not terminal.interactive:
        yield
        return
    before = termios.tcgetattr(fd)
    try:
        yield
    finally:
        with contextlib.suppress(termios.error):
            termios.tcsetattr(fd, termios.TCSADRAIN, before)


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON value")


def _once(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    once: dict[str, object] = {}
    for key, value in pairs:
        if key in once:
            raise ValueError(f"{key!r} is given twice")
        once[key] = value
    return once
