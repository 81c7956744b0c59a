"""What kind of failure an error is, as a word like `http:451`, or None.

Failures with equal signatures at one node may share one answer, so a signature is categorical:
made of codes and types, never of message text. Recognisers are asked in order, the more specific
first, and the first answer counts:

    node:no-main        a `NodeError`'s code; one with a `:` stands as it is (`parse:no-main`)
    (plug-ins)          recognisers of installed packages
    http:451            an HTTP status, wherever clients and SDKs keep it
    aws:Throttling…     provider codes: `aws:`, `provider:`, `sqlstate:`, `sqlite:`
    errno:110           the system's number; `ssl:…` for a failed handshake
    timeout, connect    by the names of the error's classes
    validation:rows.*.price/missing    path and rule of the first violation
    exit:2              how a child process ended
    code:card_declined  any other error's own `code`

A plain exception has none, and then nothing sticks. A `NodeError` without a code takes the
signature of what it was raised from, a group that of its members when they agree; any other
wrapper hides what it wraps, since its author chose to say something else.

Read next: `recognisers.py` (the built-in ones), `runtime/sticky.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from nightwarden.errors import NodeError
from nightwarden.signatures import recognisers as known
from nightwarden.signatures.recognisers import Recogniser, attribute
from nightwarden.signatures.retry_hint import retry_after_s

__all__ = ["DEFAULT", "Recogniser", "asked", "retry_after_s", "signature_of", "with_plugins"]

DEFAULT: Final[tuple[Recogniser, ...]] = (
    known.node_code,
    known.http_status,
    known.provider_code,
    known.system_error,
    known.timeout,
    known.connection,
    known.validation,
    known.exit_status,
    known.own_code,
)

_SIGNATURE = re.compile(r"[a-z][a-z0-9_-]{0,31}(?::[A-Za-z0-9_.\-/*]{1,128})?")
_MOST_LEVELS: Final = 8


def with_plugins(plugins: Sequence[Recogniser]) -> tuple[Recogniser, ...]:
    """The default recognisers with those of installed packages right after the node's own code."""
    return (DEFAULT[0], *plugins, *DEFAULT[1:])


def signature_of(
    error: BaseException, recognisers: Sequence[Recogniser] = DEFAULT, *, _level: int = 0
) -> str | None:
    """The signature of `error`, or None. A recogniser that raises or errs is passed over."""
    for recogniser in recognisers:
        signature = asked(recogniser, error)
        if signature is not None:
            return signature
    if _level >= _MOST_LEVELS:
        return None
    inner = {signature_of(part, recognisers, _level=_level + 1) for part in _speaking_for(error)}
    return inner.pop() if len(inner) == 1 else None


def asked(recogniser: Recogniser, error: BaseException) -> str | None:
    """What one recogniser makes of an error; None where it raises, or what it says is no code."""
    try:
        signature = recogniser(error)
    except BaseException:  # properties of the error are its author's code; nothing is awaited
        return None
    if isinstance(signature, str) and _SIGNATURE.fullmatch(signature):
        return signature
    return None


def _speaking_for(error: BaseException) -> Sequence[BaseException]:
    """Errors whose kind is also the kind of `error`."""
    if isinstance(error, BaseExceptionGroup):
        members = attribute(error, "exceptions")
        return members if isinstance(members, tuple) else ()
    cause = attribute(error, "__cause__") if isinstance(error, NodeError) else None
    return (cause,) if isinstance(cause, BaseException) else ()
