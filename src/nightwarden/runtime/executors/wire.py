"""What an executor and its worker processes say to each other, over a pair of sockets.

    executor ─▶ Call + inputs          ─▶ worker       a step to run
             ◀─ Began                  ◀─              from here on it may have done something
             ◀─ Ask ─▶ Answer                          what needs the run: secrets, money, files
             ◀─ Tell                                   lines, progress, rejected records, logs
             ◀─ Done + result          ◀─
             ─▶ Bye                                    end when nothing is left to do

Messages are pickled: both ends run the same code. Inputs and results travel beside their
message as they are, so that a large one is not copied once more. Whatever a worker said before
it died is still read.

Read next: `attending.py`, `worker.py`.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any, Final, NamedTuple

from nightwarden.errors import NodeError
from nightwarden.lineage import Lineage
from nightwarden.nodes.io import is_outputs
from nightwarden.runtime.executors.references import MainScript, Reference, dumps


class Call(NamedTuple):
    """Run a step. Its inputs follow as a payload; `files` are modules loaded by hand."""

    number: int
    step: str
    reference: Reference
    context_name: str | None
    workdir: str
    lineage: Lineage
    attempt: int
    suspended_state: object
    absent_cause: str
    main: MainScript
    files: Mapping[str, str]


class Bye(NamedTuple):
    """Nothing more will come."""


class Answer(NamedTuple):
    """What came of an `Ask`; with `failed`, the packed error."""

    number: int
    failed: bool
    value: Any


class Began(NamedTuple):
    """The step's code is about to run."""

    call: int


class Ask(NamedTuple):
    """Something a step wants of the run, and waits for."""

    call: int
    number: int
    method: str
    arguments: Sequence[Any]


class Tell(NamedTuple):
    """Something a step has to say."""

    call: int
    method: str
    arguments: Sequence[Any]


class LogLine(NamedTuple):
    """A record of a library's logger; written by the process that has the handlers."""

    logger: str
    level: int
    file: str
    line: int
    function: str
    text: str


class Done(NamedTuple):
    """The step is over. What it returned, or the packed error, follows as a payload."""

    call: int
    failed: bool


Message = Call | Bye | Answer | Began | Ask | Tell | LogLine | Done
_WITH_PAYLOAD: Final = (Call, Done)


class Channel:
    """One end of the wire. Several threads may send, one receives."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._sending = threading.Lock()

    def send(self, message: Message, payload: bytes | None = None) -> None:
        """Raises `OSError` if the other end is gone, whatever pickle raises before anything is."""
        data = dumps(message)
        with self._sending:
            self._connection.send_bytes(data)
            if payload is not None:
                self._connection.send_bytes(payload)

    def receive(self) -> tuple[Message, bytes]:
        """The next message and its payload. Raises `EOFError` or `OSError` at the end."""
        message: Message = pickle.loads(self._connection.recv_bytes())
        payload = self._connection.recv_bytes() if isinstance(message, _WITH_PAYLOAD) else b""
        return message, payload

    def fileno(self) -> int:
        """What can be polled."""
        return self._connection.fileno()

    def close(self) -> None:
        """No more of this."""
        self._connection.close()


def pack_inputs(call: Call, values: Mapping[str, object]) -> bytes:
    """Pickle inputs by slot. Raises `NodeError` (code `not-picklable`) naming the slot."""
    try:
        return dumps(values)
    except Exception as error:  # pickling runs the values' own code
        raise _not_sendable(f"{call.step}: input", values, error) from error


def pack_result(call: Call, value: object) -> bytes:
    """Pickle what a step returned. Raises `NodeError` (code `not-picklable`) naming the slot."""
    try:
        return dumps(value)
    except Exception as error:  # pickling runs the value's own code
        names = fields_of(value) if is_outputs(type(value)) else ()
        slots = {name: getattr(value, name) for name in names} or {"output": value}
        raise _not_sendable(f"{call.step}: output", slots, error) from error


def fields_of(record: object) -> Sequence[str]:
    """The names of a record's fields: those of its class, be it a NamedTuple or a dataclass."""
    kind = type(record)
    return tuple(getattr(kind, "_fields", ()) or getattr(kind, "__dataclass_fields__", ()))


def _not_sendable(whose: str, slots: Mapping[str, object], error: Exception) -> NodeError:
    for slot, value in slots.items():
        why = unpicklable(value)
        if why:
            kind = type(value).__name__
            whose = f"{whose} {slot}: a {kind} cannot be sent to or from another process: {why}"
            return NodeError(whose, code="not-picklable")
    return NodeError(f"{whose}: {error}", code="not-picklable")


def unpicklable(value: object) -> str:
    """Why a value cannot be pickled; empty if it can."""
    try:
        dumps(value)
    except Exception as error:  # pickling runs the value's own code
        return str(error) or type(error).__name__
    return ""
