"""Whether declared supervisors run: `--supervisors` → NIGHTWARDEN_SUPERVISORS → setting → on.

A declared supervisor never disappears in silence: a skip is announced, with how many and who
decided. The switch is not kept with the run: a resume has to be told again.

Read next: `team.py`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

VARIABLE: Final = "NIGHTWARDEN_SUPERVISORS"
FLAG: Final = "--supervisors"


@dataclass(frozen=True, slots=True)
class Switch:
    """Whether they run, and who says so. `remark` is about a variable that says neither."""

    on: bool = True
    by: str = ""
    remark: str = ""

    def skipped(self, declared: int) -> str:
        """The line that tells of supervisors that do not run; empty where none is skipped."""
        if self.on or not declared:
            return ""
        what = "supervisor does" if declared == 1 else "supervisors do"
        return f"{declared} declared {what} not run: {self.by}"


def switch(
    flag: str | None = None,
    env: Mapping[str, str] = os.environ,
    *,
    setting: bool | None = None,
) -> Switch:
    """What holds. Raises `ValueError` for a flag that is neither `on` nor `off`."""
    if flag is not None:
        said = flag.strip().casefold()
        if said not in ("on", "off"):
            raise ValueError(f"{FLAG} is {flag!r}, but has to be on or off")
        return Switch(said == "on", f"{FLAG} {said}")
    given = env.get(VARIABLE, "")
    said = given.strip().casefold()
    if said in ("on", "off"):
        return Switch(said == "on", f"{VARIABLE}={said}")
    on = setting is not False
    then = "supervisors run" if on else "steering.enabled holds"
    remark = f"{VARIABLE} is {given!r}, neither on nor off: {then}" if said else ""
    return Switch(on, "" if on else "steering.enabled = false", remark)
