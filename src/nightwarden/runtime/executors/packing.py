"""Errors on their way from one process to another.

    as it is        what pickle gives back says the same
    taken apart     made again from type, arguments, attributes (None for what cannot be sent)
    described       a `NodeError` with its words and its signature as code

The first that works is taken, so that a failure is recognised, repaired and retried like one
that happened here. What an error was raised from goes with it, link by link.

Read next: `worker.py`.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from nightwarden.errors import NodeError, RecoverableError
from nightwarden.runtime.executors.references import dumps
from nightwarden.runtime.executors.wire import unpicklable
from nightwarden.signatures.signature import retry_after_s, signature_of

_MOST_LINKS: Final = 8


class _Parts(NamedTuple):
    """An error taken apart."""

    kind: type[BaseException]
    arguments: tuple[Any, ...]
    state: Mapping[str, Any]


class _Packed(NamedTuple):
    """An error in a form that can always be read: `data` may not, then the words are used."""

    data: bytes
    words: str
    code: str | None
    recoverable: bool
    candidate: bytes
    retry_after_s: float | None
    cause: _Packed | None = None
    context: _Packed | None = None
    quiet: bool = False


def pack_error(error: BaseException) -> bytes:
    """The error as bytes; never raises on account of the error."""
    return dumps(_packed(error, _MOST_LINKS))


def unpack_error(data: bytes) -> BaseException:
    """The error, or one that describes it."""
    return _unpacked(pickle.loads(data))


def _packed(error: BaseException, links: int) -> _Packed:
    signature = signature_of(error)
    data = _data(error, signature)
    recoverable = isinstance(error, RecoverableError)
    # The error as it is holds its candidate; a large one need not travel twice.
    candidate = error.candidate_output if recoverable and not data else None  # type: ignore[attr-defined]
    packed = _Packed(
        data=data,
        words=_words(error),
        code=None if signature is None else signature.removeprefix("node:"),
        recoverable=recoverable,
        candidate=b"" if unpicklable(candidate) else dumps(candidate),
        retry_after_s=retry_after_s(error, time.time()),
        quiet=error.__suppress_context__,
    )
    if links == 0:
        return packed
    cause, context = error.__cause__, error.__context__
    return packed._replace(
        cause=None if cause is None else _packed(cause, links - 1),
        context=None if context is None or cause is not None else _packed(context, links - 1),
    )


def _data(error: BaseException, signature: str | None) -> bytes:
    """The error as it is, or else taken apart; empty if neither says the same when read."""
    for form in (error, _Parts(type(error), _sendable(error.args), _sendable_state(error))):
        try:
            data = dumps(form)
            if _says_the_same(_made(pickle.loads(data)), error, signature):
                return data
        except Exception:  # the error's own code; the next form may do
            continue
    return b""


def _says_the_same(again: BaseException, error: BaseException, signature: str | None) -> bool:
    """Whether nothing is missing that an error is read or recognised by."""
    again.__cause__ = error.__cause__
    alike = type(again) is type(error) and str(again) == str(error)
    return alike and signature_of(again) == signature


def _made(form: BaseException | _Parts) -> BaseException:
    if not isinstance(form, _Parts):
        return form
    error = form.kind.__new__(form.kind, *form.arguments)
    error.args = form.arguments
    error.__dict__.update(form.state)
    return error


def _sendable(arguments: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(repr(a) if unpicklable(a) else a for a in arguments)


def _sendable_state(error: BaseException) -> dict[str, object]:
    return {n: None if unpicklable(value) else value for n, value in vars(error).items()}


def _words(error: BaseException) -> str:
    try:
        words = str(error)
    except Exception:  # the error's own code
        words = ""
    name = type(error).__name__
    if isinstance(error, NodeError) and words:
        return words
    return f"{name}: {words}" if words else name


def _unpacked(packed: _Packed) -> BaseException:
    error = _read(packed)
    if packed.cause is not None:
        error.__cause__ = _unpacked(packed.cause)
    elif packed.context is not None:
        error.__context__ = _unpacked(packed.context)
    error.__suppress_context__ = packed.quiet
    return error


def _read(packed: _Packed) -> BaseException:
    if packed.data:
        try:
            found = _made(pickle.loads(packed.data))
            if isinstance(found, BaseException):
                return found
        except Exception:  # a class this process does not know
            pass
    described = _described(packed)
    if packed.retry_after_s is not None:
        described.retry_after_s = packed.retry_after_s  # type: ignore[attr-defined]
    return described


def _described(packed: _Packed) -> NodeError:
    if packed.recoverable and packed.candidate:
        try:
            candidate = pickle.loads(packed.candidate)
        except Exception:  # a class this process does not know
            candidate = None
        return RecoverableError(packed.words, candidate_output=candidate, code=packed.code)
    return NodeError(packed.words, code=packed.code)
