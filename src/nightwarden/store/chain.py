"""Tamper evidence: each event is bound to everything before it.

    hash(0) = SHA-256("nightwarden 1 " + run id)
    hash(n) = SHA-256(hash(n-1) + bytes of event n)

A changed, missing, added or moved event breaks the chain at its number. Who can rewrite the whole
database can rewrite the chain too: then only a hash noted elsewhere tells.

Read next: `sqlstore.py` (verify).
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import msgspec

from nightwarden.store.contract import Verified

Row = tuple[int, bytes, bytes]
"""An event as it is kept: number, hash, bytes."""


class _Numbered(msgspec.Struct):
    seq: int = 0


_numbered = msgspec.json.Decoder(_Numbered)


def first_hash(run_id: str) -> bytes:
    """What stands before the first event."""
    return sha256(b"nightwarden 1 " + run_id.encode()).digest()


def linked(head: bytes, line: bytes) -> bytes:
    """The hash of an event that follows `head`."""
    return sha256(head + line).digest()


def chained(head: bytes, last_seq: int, lines: Iterable[bytes]) -> list[Row]:
    """Events after `last_seq`, each with its number and hash."""
    rows: list[Row] = []
    for number, line in enumerate(lines, start=last_seq + 1):
        head = sha256(head + line).digest()
        rows.append((number, head, line))
    return rows


def verified(run_id: str, rows: Iterable[Row], last_seq: int, head: bytes) -> Verified:
    """Check a record against its hashes, its numbers, and what the list of runs says of it."""
    before, count = first_hash(run_id), 0
    for number, found, line in rows:
        problem = _problem(count + 1, number, found == linked(before, line), line)
        if problem:
            return Verified(
                run_id=run_id, events=count, head=before.hex(), first_bad=count + 1, problem=problem
            )
        before, count = found, number
    if count < last_seq:
        problem = f"the record ends at event {count}, but {last_seq} were written"
    elif count > last_seq:
        problem = f"events were added after {last_seq}, the last one that was written"
    elif before != head:
        problem = "the last event is not the one that was written"
    else:
        return Verified(run_id=run_id, events=count, head=before.hex())
    bad = min(count, last_seq) + 1 if count != last_seq else max(count, 1)
    return Verified(run_id=run_id, events=count, head=before.hex(), first_bad=bad, problem=problem)


def _problem(expected: int, number: int, bound: bool, line: bytes) -> str:
    if number != expected:
        return f"event {expected} is missing: after {expected - 1} comes {number}"
    if not bound:
        return f"event {number} or its hash was changed"
    try:
        said = _numbered.decode(line).seq
    except msgspec.DecodeError as error:
        return f"event {number} is no event: {error}"
    return "" if said == number else f"event {number} calls itself {said}"
