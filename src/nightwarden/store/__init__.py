"""What is kept: runs as append-only records, in one SQLite file or a PostgreSQL database.

    with open_store(".nightwarden") as store:
        run = store.create(run_id)
        run.append(encode(event)); run.barrier(); run.close()
        for event in store.read(run_id): …

Names are imported when they are first used: who wants one module does not pay for a database.

Read next: `contract.py`, `sqlstore.py`, `writing.py`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nightwarden.store.blobs import LARGE, open_blobs
    from nightwarden.store.contract import (
        Blobs,
        Command,
        LeaseLost,
        OpenRun,
        RunBusy,
        RunEntry,
        Store,
        Tail,
        Unready,
        Verified,
    )
    from nightwarden.store.opening import DATABASE_FILE, open_store
    from nightwarden.store.retention import expired, prune

_HOMES = {
    "blobs": ("LARGE", "open_blobs"),
    "contract": (
        "Blobs",
        "Command",
        "LeaseLost",
        "OpenRun",
        "RunBusy",
        "RunEntry",
        "Store",
        "Tail",
        "Unready",
        "Verified",
    ),
    "opening": ("DATABASE_FILE", "open_store"),
    "retention": ("expired", "prune"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "DATABASE_FILE",
    "LARGE",
    "Blobs",
    "Command",
    "LeaseLost",
    "OpenRun",
    "RunBusy",
    "RunEntry",
    "Store",
    "Tail",
    "Unready",
    "Verified",
    "expired",
    "open_blobs",
    "open_store",
    "prune",
]


if not TYPE_CHECKING:  # a type checker would take every misspelt name for one of these

    def __getattr__(name: str) -> object:
        module = _HOME.get(name)
        if module is None:
            raise AttributeError(f"module 'nightwarden.store' has no attribute {name!r}")
        value = getattr(importlib.import_module(f"nightwarden.store.{module}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
