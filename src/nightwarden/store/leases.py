"""Who drives a run, and when that may be taken over.

A lease is a row: an owner, a count of heartbeats and the time of the last one. The owner's every
write checks the row, so one that lost it records nothing more. Whether an owner is dead:

    process known to this machine     it lives or it does not; no clock is asked
    anything else, beat seen lately   alive
    anything else                     unsure: watch the *count* by the monotonic clock; if it
                                      stands still for long enough, the owner is dead

So neither a clock that jumps back nor one that jumps ahead takes a run from a living owner, or
keeps it with a dead one for longer than `ttl_s` of watching.

Read next: `sqlstore.py` (acquiring).
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

TTL_S: Final = 12.0
BEAT_S: Final = 2.0
_BEATS_MISSED: Final = 2.5
"""When the clock says that an owner is dead, it has to miss this many beats as well."""


class Place(msgspec.Struct, frozen=True):
    """A process: which machine, boot and namespace its number is valid in, and when it began."""

    host: str
    pid: int
    boot: str = ""
    namespace: str = ""
    born: str = ""

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


@dataclass(frozen=True, slots=True)
class Lease:
    """Who drives a run, as recorded."""

    owner: str
    place: Place
    beats: int
    beat_at: float
    ttl_s: float


class Life(StrEnum):
    """What can be said of an owner at once."""

    ALIVE = "alive"
    DEAD = "dead"
    UNSURE = "unsure"


def here() -> Place:
    """This process."""
    pid = os.getpid()
    return Place(
        host=socket.gethostname(),
        pid=pid,
        boot=_text("/proc/sys/kernel/random/boot_id"),
        namespace=_namespace(),
        born=_born(pid) or "",
    )


def judge(lease: Lease, now: float, me: Place) -> Life:
    """Whether the owner of a lease lives, without waiting. `now` by the database's clock."""
    lives = _lives(lease.place, me)
    if lives is not None:
        return Life.ALIVE if lives else Life.DEAD
    return Life.ALIVE if abs(now - lease.beat_at) <= lease.ttl_s else Life.UNSURE


def stands_still(
    lease: Lease,
    now: float,
    beats: Callable[[], int | None],
    *,
    sleep: Callable[[float], None] = time.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> bool:
    """Watch an unsure lease: True once its count has stood still for long enough."""
    late = now - lease.beat_at > lease.ttl_s  # else the clock jumped back, and tells nothing
    window = min(lease.ttl_s, _BEATS_MISSED * BEAT_S) if late else lease.ttl_s
    end = monotonic() + window
    while monotonic() < end:
        if beats() != lease.beats:
            return False
        sleep(min(0.2, window / 5))
    return beats() == lease.beats


def _lives(place: Place, me: Place) -> bool | None:
    """Whether a process exists; None where it cannot be told from here."""
    if not me.boot or (place.boot, place.namespace) != (me.boot, me.namespace):
        return None
    born = _born(place.pid)
    return born is not None and born == place.born


def _born(pid: int) -> str | None:
    """When a process began, in ticks since boot; None if there is none, or only its remains."""
    stat = _text(f"/proc/{pid}/stat")
    fields = stat[stat.rfind(")") + 2 :].split()  # the name before may hold anything
    if len(fields) < 20 or fields[0] in "ZX":
        return None
    return fields[19]


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
