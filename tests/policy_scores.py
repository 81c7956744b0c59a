"""How well a policy's monitors serve it over recorded sessions, with a scripted evaluator.

    python tests/policy_scores.py        a table

A look counts for an event when the event is among its reasons. *Caught* is the part of the events
that matter that were looked at, *spare* the looks the sessions allow and that were not taken.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nightwarden.spec.supervisors import SupervisorSpec
from nightwarden.steering.ports import Advice
from nightwarden.steering.rehearsal import Rehearsal, rehearse
from nightwarden.steering.wakes import Wake

FOLDER = Path(__file__).resolve().parent / "policies"


@dataclass(frozen=True, slots=True)
class Session:
    """One recorded session and what is expected of a supervisor over it."""

    policy: str
    name: str
    expect: Mapping[str, Any]

    def events(self) -> list[dict[str, Any]]:
        path = FOLDER / self.policy / f"{self.name}.jsonl"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def play(self) -> Rehearsal:
        spec = SupervisorSpec(
            name="coach", policy=self.policy, watches=tuple(self.expect.get("watches", ()))
        )
        return rehearse(self.events(), spec, advise=Scripted(self.expect["speaks"]))

    def missed(self, found: Rehearsal) -> list[int]:
        looked = {cause.seq for wake in found.wakes for cause in wake.causes}
        return [seq for seq in self.expect["looks"] if seq not in looked]


class Scripted:
    """Stands for the model: says one word when a reason holds what it listens for."""

    def __init__(self, listens_for: str) -> None:
        self.listens_for = listens_for
        self.spoken = False

    def __call__(self, wake: Wake) -> Advice:
        heard = any(self.listens_for in cause.text() for cause in wake.causes)
        if not self.listens_for or self.spoken or not heard:
            return Advice(intervene=False, reason="nothing to say")
        self.spoken = True
        return Advice(intervene=True, message=f"About {self.listens_for}.", reason="it matters")


@dataclass(frozen=True, slots=True)
class Score:
    policy: str
    sessions: int
    caught: float
    looks: int
    allowed: int
    words_right: float


def sessions(policy: str = "") -> Iterator[Session]:
    """The recorded sessions, of one policy or of all."""
    text = (FOLDER / "sessions.toml").read_text(encoding="utf-8")
    for name, group in tomllib.loads(text).items():
        for session, expect in group.items() if policy in ("", name) else ():
            yield Session(name, session, expect)


def score(policy: str) -> Score:
    """All sessions of a policy in one line."""
    wanted = missed = looks = allowed = right = count = 0
    for session in sessions(policy):
        found = session.play()
        count += 1
        wanted += len(session.expect["looks"])
        missed += len(session.missed(found))
        looks += len(found.wakes)
        allowed += session.expect["most"]
        right += len(found.messages) == session.expect["messages"]
    caught = 1.0 if not wanted else 1 - missed / wanted
    return Score(policy, count, caught, looks, allowed, right / count)


def main() -> int:
    for policy in sorted({session.policy for session in sessions()}):
        s = score(policy)
        print(
            f"{policy:<14}{s.sessions:>3} sessions   caught {s.caught:.0%}   "
            f"looks {s.looks} of {s.allowed}   words right {s.words_right:.0%}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
