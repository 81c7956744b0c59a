"""What the options of `run` and `resume` ask of a supervisor, and what is wrong with that.

Bounds of supervision without supervision are a mistake, and said to be one.

Read next: `run.py`, `resume.py`, `asking.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nightwarden.cli.failing import Usage

if TYPE_CHECKING:
    from nightwarden import Bounds
    from nightwarden.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The options that bound a supervisor, and name its model. None where one was not given."""

    supervisor_model: str | None = None
    max_decisions: int | None = None
    max_retries: int | None = None
    decision_timeout: float | None = None
    supervisor_cost_cap: float | None = None

    def check(self) -> None:
        """Raise `Usage` for a bound below zero, or for none that can be counted with."""
        for option, value in self._given().items():
            if not isinstance(value, str) and not 0 <= value < float("inf"):
                raise Usage(f"{option} is {value:g}, but has to be 0 or more; 0 means none")

    def check_use(self, mode: str | None) -> None:
        """Raise `Usage` for a bound of a supervisor where there is none."""
        if mode not in (None, "", "off"):
            return
        for option, value in self._given().items():
            does = "names a model for" if isinstance(value, str) else "bounds"
            raise Usage(
                f"{option} {does} a supervisor, and none was asked for; "
                "add --supervise MODE, or leave it out"
            )

    def chosen(self) -> dict[str, float]:
        """The bounds that were given, by their names in `Bounds`."""
        cap_usd = self.supervisor_cost_cap
        bounds = {
            "max_decisions": self.max_decisions,
            "max_retries": self.max_retries,
            "decision_timeout_s": self.decision_timeout,
            "cost_cap_micro_usd": None if cap_usd is None else round(cap_usd * 1_000_000),
        }
        return {name: value for name, value in bounds.items() if value is not None}

    def _given(self) -> Mapping[str, float | str]:
        options = {
            "--supervisor-model": self.supervisor_model,
            "--max-decisions": self.max_decisions,
            "--max-retries": self.max_retries,
            "--decision-timeout": self.decision_timeout,
            "--supervisor-cost-cap": self.supervisor_cost_cap,
        }
        return {option: value for option, value in options.items() if value is not None}


def switched(supervisors: str | None) -> str | None:
    """The switch of declared supervisors, as the run takes it. Raises `Usage`."""
    if supervisors is None:
        return None
    said = supervisors.strip().casefold()
    if said not in ("on", "off"):
        raise Usage(f"--supervisors is {supervisors!r}, but has to be on or off")
    return said


def bounds_of(settings: Settings, limits: Limits | None = None) -> Bounds:
    """The bounds of a run: an option, else the setting, else the engine's default."""
    from nightwarden import Bounds

    cap_usd = settings.supervisor_cost_cap_usd
    set_ones = {
        "max_decisions": settings.supervisor_max_decisions,
        "max_retries": settings.supervisor_max_retries,
        "decision_timeout_s": settings.supervisor_decision_timeout_s,
        "cost_cap_micro_usd": None if cap_usd is None else round(cap_usd * 1_000_000),
        "max_retry_delay_s": settings.run_max_retry_delay_s,
    }
    known = {name: value for name, value in set_ones.items() if value is not None}
    return Bounds(**{**known, **(limits or Limits()).chosen()})  # type: ignore[arg-type]
