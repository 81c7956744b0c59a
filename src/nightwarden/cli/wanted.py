"""What the options of a run come to: made by the command line, carried out here or detached.

Read next: `run.py`, `detaching.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nightwarden.cli.supervising import Limits


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the options of a run come to. None where an option was not given."""

    file: Path
    input: Sequence[str]
    inputs: Path | None
    nodes: Sequence[Path]
    trust: bool
    supervise: str | None
    limits: Limits
    supervisors: str | None
    max_cost: float | None
    keep_going: bool
    store: str | None
    run_id: str | None
    strict_exit: bool
