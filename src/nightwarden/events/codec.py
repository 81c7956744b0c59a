"""Events to bytes and back: one JSON object a line.

Values are encoded as they are, as fast as can be. Where one of them has no form in JSON (a key
that is no text, a number beyond 64 bits, a thing whose `repr` raises), the event is made plain
first: a record must not fail for what a step put out.

Read next: `plain.py`, `render.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from nightwarden.events.base import Event
from nightwarden.events.plain import odd_text, plain

_encoder = msgspec.json.Encoder(enc_hook=odd_text)


def encode(event: Event) -> bytes:
    """The event as one line of JSON, without its line end. Never raises."""
    try:
        return _encoder.encode(event)
    except Exception:
        return _encoder.encode(plain(event))


def decode_lines(lines: Iterable[bytes]) -> Iterator[Mapping[str, Any]]:
    """The events of a record as plain mappings, unknown types and fields included.

    Stops before an unfinished last line. Raises `ValueError` with the line number for any
    other line that is no JSON object.
    """
    for number, line in enumerate(lines, start=1):
        if not line.endswith(b"\n"):
            return
        try:
            event = msgspec.json.decode(line)
        except msgspec.DecodeError as error:
            raise ValueError(f"line {number} is no event: {error}") from error
        if not isinstance(event, dict):
            raise ValueError(f"line {number} is no event: expected an object")  # noqa: TRY004
        yield event
