"""What services say when they fail: errors with the words and codes real ones have.

A passing trouble asks to be left alone for no time at all, so that a retry does not make
whoever evaluates a model wait.

Read next: `world.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from nightwarden.errors import NodeError

Trouble = Callable[[], Exception]


class Passing(Exception):
    """A trouble that may pass by itself."""

    retry_after_s = 0.0


class ServiceTimeout(Passing, TimeoutError):
    """No answer in time."""


class ConnectionLost(Passing, ConnectionError):
    """The connection could not be made, or broke."""


class HttpStatus(Exception):
    """A service answered with a status that is no success."""

    def __init__(self, status: int, message: str) -> None:
        self.status_code = status
        super().__init__(message)


class Busy(HttpStatus, Passing):
    """A service that is busy, restarting, or has had too many requests."""


def timeout(message: str) -> Trouble:
    """No answer in time."""
    return lambda: ServiceTimeout(message)


def lost(message: str) -> Trouble:
    """The connection broke."""
    return lambda: ConnectionLost(message)


def status(code: int, message: str) -> Trouble:
    """A status that is no success; 429 and 5xx may pass by themselves."""
    kind = Busy if code == 429 or code >= 500 else HttpStatus
    return lambda: kind(code, message)


def refused(code: str, message: str) -> Trouble:
    """The step itself says what is wrong, by a code of its own."""
    return lambda: NodeError(message, code=code)


def broken(message: str) -> Trouble:
    """An error nobody has classified."""
    return lambda: ValueError(message)
