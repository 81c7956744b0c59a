"""Whether a process is still there."""

from __future__ import annotations

import os
import select


def is_gone(pid: int, *, within_s: float = 2.0) -> bool:
    """Whether a process has ended, or does within a moment: killing takes effect elsewhere."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], within_s)[0])
    finally:
        os.close(fd)
