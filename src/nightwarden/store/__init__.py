"""What is kept: runs as append-only records, in one SQLite file or a PostgreSQL database.

    with open_store(".nightwarden") as store:
        run = store.create(run_id)
        run.append(encode(event)); run.barrier(); run.close()
        for event in store.read(run_id): …

Read next: `contract.py`, `sqlstore.py`, `writing.py`.
"""

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
