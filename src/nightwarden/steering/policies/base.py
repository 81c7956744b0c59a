"""A policy: what a supervisor is told to look for, and what wakes it for that.

Read next: `perseverance.py`.
"""

from __future__ import annotations

import msgspec

from nightwarden.spec.monitors import Monitor, parse_monitor


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt with its monitors. `version` goes up whenever either of them says something else.

    `cooldown_s` and `max_evals` hold where a supervisor does not set its own.
    """

    name: str
    version: int
    about: str
    prompt: str
    monitors: tuple[Monitor, ...]
    cooldown_s: float = 300.0
    max_evals: int = 10
    boundaries: bool = False


def monitors(*written: str) -> tuple[Monitor, ...]:
    """Monitors from their texts."""
    return tuple(parse_monitor(text) for text in written)
