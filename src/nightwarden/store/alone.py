"""One at a time: a lock that others see, and that goes with the process that holds it.

    lock_file(path)          by the file system, for what is on this machine
    Database.alone(run, …)   by the database, for all who use it

Read next: `database.py`.
"""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import Final

from nightwarden.store.contract import Lock


class _Unheld:
    def close(self) -> None:
        return


UNHELD: Final[Lock] = _Unheld()
"""Where no lock can be made: two at once are better than none."""


def lock_file(path: Path) -> Lock | None:
    """Lock a file, made if it is not there; None where somebody has it."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = path.open("a", encoding="utf-8")
    except OSError:
        return UNHELD
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    except OSError:  # a file system without locks
        file.close()
        return UNHELD
    return file
