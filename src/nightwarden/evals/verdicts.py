"""Verdicts as cases write them.

Read next: `cases/pages.py`.
"""

from __future__ import annotations

from typing import Final

from nightwarden.evals.case import Harm
from nightwarden.verdict import ApplyTo, EndStream, Fail, Retry, Skip, Substitute, Verdict

RETRY: Final = Retry()
SKIP: Final = Skip()
SKIP_ALIKE: Final = Skip(apply_to=ApplyTo.SIGNATURE)
END: Final = EndStream()
STOP: Final = Fail()


def repair(value: object) -> Substitute:
    """A repair of a step with one output."""
    return Substitute({"output": value})


def lossy(verdict: Verdict = SKIP) -> tuple[Harm, Verdict]:
    """Giving something up here is a wrong skip."""
    return Harm.WRONG_SKIP, verdict


def poison(value: object) -> tuple[Harm, Verdict]:
    """This repair fits, and is wrong."""
    return Harm.POISONED_REPAIR, repair(value)


TWICE: Final = (Harm.DOUBLE_EFFECT, RETRY)
TOO_DEAR: Final = (Harm.OVERSPENDING, RETRY)
