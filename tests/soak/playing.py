"""A drawn run through the real driver on virtual time, and what must hold whatever came of it.

    Plan ─▶ Session on a VirtualLoop ─▶ Played ─▶ faults(…) is empty

Read next: `run.py`.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from soak.drawing import Plan, workflow_of
from soak.steps import World

from nightwarden import Collect, Session
from nightwarden.errors import SupervisionError
from nightwarden.events import (
    InvocationFailed,
    RunEnded,
    SupervisorDecision,
    SupervisorEscalation,
    SupervisorOutcome,
)
from nightwarden.nodes.builtin.flow import assert_
from nightwarden.runtime.supervision import Bounds, SupervisorBase
from nightwarden.testing import InlineExecutor, Played, play
from nightwarden.verdict import (
    Action,
    ApplyTo,
    Decision,
    EndStream,
    Escalation,
    Fail,
    Retry,
    Skip,
    Substitute,
    Verdict,
)

assert assert_  # the flow nodes are registered

HEED_S = 2.0
"""How long after a cancel a run may take: all these steps and supervisors heed it."""
EXIT_WORDS = ("delivered", "not_taken", "lost", "left", "failed", "unrun", "suspended")
ENDINGS = (
    *("succeeded", "repaired", "skipped", "ended_early", "pruned"),
    *("failed", "cancelled", "suspended", "unrun"),
)


class Moody(SupervisorBase):
    """Answers what is allowed, mostly; takes its time; if harsh, stops the run or breaks down."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.asked = 0

    async def decide(self, escalation: Escalation) -> Decision:
        """Some answer."""
        self.asked += 1
        dice = random.Random(f"{self._plan.seed} {escalation.node_id} {escalation.lineage}")
        await asyncio.sleep((self._plan.patience or 0.0) * dice.random())
        if self._plan.harsh and dice.randrange(8) == 0:
            raise SupervisionError("it has had enough")
        return Decision(verdict=self._verdict(dice, escalation), rationale="as it likes")

    def _verdict(self, dice: random.Random, escalation: Escalation) -> Verdict:
        actions = list(Action) if self._plan.harsh else list(escalation.allowed_actions)
        if not self._plan.harsh:
            actions = [a for a in actions if a is not Action.FAIL] or [Action.FAIL]
        match dice.choice(actions):
            case Action.RETRY:
                return Retry()
            case Action.SUBSTITUTE:
                return Substitute(dict.fromkeys(escalation.declared_outputs, 5))
            case Action.SKIP:
                return Skip(dice.choice(list(ApplyTo)))
            case Action.END_STREAM:
                return EndStream()
            case Action.FAIL:
                return Fail("it said so")


def play_plan(plan: Plan, workdir: Path) -> tuple[Played, Session, World]:
    """Run a plan to its end. Raises whatever the engine raises, `Deadlock` included."""
    world = World(plan.seed, plan.wrong, plan.suspends)
    session = Session(
        workflow_of(plan, world),
        supervise=None if plan.patience is None else Moody(plan),
        bounds=Bounds(max_decisions=plan.decisions, max_retries=plan.retries),
        executor=InlineExecutor(),
        keep_going=plan.keep_going,
        window=plan.window,
        stop_grace_s=plan.grace,
        workdir=workdir,
        seed=plan.seed,
    )
    at = [] if plan.cancel_after is None else [(plan.cancel_after, session.cancel)]
    return play(session, seed=plan.shuffle, at=at), session, world


def faults(plan: Plan, workdir: Path) -> list[str]:
    """What a run did that none may do."""
    played, session, world = play_plan(plan, workdir)
    return [
        *world.seen,
        *_endings(played, plan),
        *_interventions(played),
        *_ledger(played.result.ledger, played.result.status),
        *_calls(played, world),
        *_outputs(played),
        *_left(played, session),
    ]


def _endings(played: Played, plan: Plan) -> Iterator[str]:
    ends = played.of(RunEnded)
    if len(ends) != 1 or played.events[-1] is not ends[0]:
        yield f"terminal events: {played.types()[-3:]}"
    status = played.result.status
    if status == "cancelled" and plan.cancel_after is None:
        yield "cancelled by nobody"
    if plan.cancel_after is not None and played.ended_s > plan.cancel_after + HEED_S:
        yield f"cancelled at {plan.cancel_after}, over at {played.ended_s}"
    if status == "suspended" and not plan.suspends:
        yield "suspended by nobody"
    if status == "failed" and not played.of(InvocationFailed) and not _gave_up(played):
        yield f"failed for no reason: {played.result.reason}"


def _gave_up(played: Played) -> bool:
    """Whether a node the kernel itself runs has failed: it has no invocations."""
    return any(node["failed"] for node in played.result.ledger["nodes"])


def _interventions(played: Played) -> Iterator[str]:
    asked = Counter(str(e.escalation.id) for e in played.of(SupervisorEscalation))
    decided = Counter(str(e.escalation_id) for e in played.of(SupervisorDecision))
    came = Counter(str(e.escalation_id) for e in played.of(SupervisorOutcome))
    for number in {*asked, *decided, *came}:
        counts = (asked[number], decided[number], came[number])
        if counts != (1, 1, 1):
            yield f"{number}: escalated, decided, concluded {counts} times"
    for found in played.result.interventions:
        if found.decision is None or found.outcome is None:
            yield f"{found.escalation.id} is not concluded in the result"


def _ledger(ledger: Mapping[str, Any], status: str) -> Iterator[str]:
    for root in (*ledger["roots"], {"node": "run", "items": 1, "kept": None, **ledger["run"]}):
        for exit_ in root["exits"]:
            if sum(exit_[w] for w in EXIT_WORDS) != root["items"] or exit_["unrun"] < 0:
                yield f"(1) {root['node']}: {root['items']} items, {exit_}"
            if status == "completed" and (exit_["unrun"] or exit_["failed"]):
                yield f"(6) {root['node']}: {exit_}"
        if root["kept"] is not None:
            told = root["kept"] + len(root["missing"]) + root["unfinished"]
            if told != root["items"] or min(root["kept"], root["unfinished"]) < 0:
                yield f"{root['node']}: kept {root['kept']} of {root['items']}, {root}"
            if status == "completed" and root["unfinished"]:
                yield f"(6) {root['node']}: {root['unfinished']} unfinished"
        for missing in root["missing"]:
            if not missing["escalation"]:
                yield f"{root['node']}: {missing} is missing, and nothing says why"
    for node in ledger["nodes"]:
        if sum(node[w] for w in ENDINGS) != node["due"] or node["unrun"] < 0:
            yield f"(4) {node}"
        if node["attempts"] != node["started"] + node["retries_run"]:
            yield f"(5) {node}"
        if status == "completed" and any(
            node[w] for w in ("failed", "cancelled", "suspended", "unrun")
        ):
            yield f"(6) {node}"


def _calls(played: Played, world: World) -> Iterator[str]:
    """Every attempt in the ledger is a call of the step's code, and the other way round."""
    for node in played.result.ledger["nodes"]:
        name = node["node_id"]
        calls, attempts = world.calls[name], node["attempts"]
        if name in world.calls and calls != attempts:
            yield f"{name}: {calls} calls, {attempts} attempts in the ledger"


def _outputs(played: Played) -> Iterator[str]:
    """What a per-item output holds and misses is what its exit counted."""
    ledger = played.result.ledger
    exits = {e["name"]: e for r in ledger["roots"] for e in r["exits"]}
    roots = {root["node"] for root in ledger["roots"]}
    nodes = {node["node_id"]: node for node in ledger["nodes"]}
    for name, value in played.result.outputs.items():
        # The items of a fan-out end at its slot; its own exit counts how often it ran.
        exit_ = exits.get(f"{name}.output" if name in roots else name)
        if not isinstance(value, Collect) or exit_ is None:
            continue
        if len(value) != len(value.indices) or len(value) > exit_["delivered"]:
            yield f"{name}: {len(value)} values, {len(value.indices)} indices, {exit_}"
        # A step that ended early has been there, yet left nothing behind.
        early = nodes[name]["ended_early"] if name in nodes and name not in roots else 0
        lost = exit_["lost"] + exit_["failed"] + early
        # What broke off while the run ended has failed there, and settled nothing.
        broken = 0 if played.result.status == "completed" else exit_["failed"]
        if not lost - broken <= len(value.losses) <= lost:
            yield f"{name}: {len(value.losses)} losses, {exit_}, {early} ended early"


def _left(played: Played, session: Session) -> Iterator[str]:
    if played.left_open:
        yield f"tasks left open: {played.left_open}"
    assert session.begun or played.result.status == "cancelled"
    if session.begun and played.result.status == "completed":
        yield from (f"pending: {line}" for line in session.pending())
