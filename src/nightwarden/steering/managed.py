"""Steering of one run of this process: its mailbox, its declared supervisors, words from outside.

    Session ─▶ RunSteering ─▶ Post       what agents read, words of people and of others
                          └─▶ Team       declared supervisors, watching the run's own bus
    another process ─▶ store ─▶ obey     a message, or what a supervisor there has to tell

Made only for a run that has supervisors, agents, or a word to take. The record holds all of its
state: a resumed run reads it back. Nothing here may slow, fail or change the run.

Read next: `team.py`, `post.py`, `evaluating.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import msgspec

from nightwarden.events import Event, Log, NodeFinished, SteeringEvaluated
from nightwarden.masking.redaction import SecretRegistry
from nightwarden.spec.findings import Findings
from nightwarden.spec.supervisors import (
    OPERATOR,
    SupervisorSpec,
    read_supervisors,
    reads_messages,
)
from nightwarden.spec.workflow import Workflow
from nightwarden.steering.mailbox import Message
from nightwarden.steering.ports import Evaluator, Fact, NotQueued, Words
from nightwarden.steering.post import Post
from nightwarden.steering.relayed import told_elsewhere
from nightwarden.steering.switch import Switch
from nightwarden.steering.team import LiveRun, Team
from nightwarden.steering.telling import cut_off
from nightwarden.steering.wakes import TriggerState

MESSAGE: Final = "message"
TOLD: Final = "steering"
"""Kinds of words another process leaves: a text, and an event of a supervisor over there."""

Evaluators = Callable[[SupervisorSpec], Evaluator | None]
"""Makes the evaluator of a supervisor; None, or an error with the reason, where it has none."""

_CLOSING_S: Final = 0.5
_OWN: Final = (b'"user_message_', b'"steering_evaluated"')


class Word(Protocol):
    """A word from another process, as a store gives it."""

    @property
    def number(self) -> int:
        """Its number."""
        ...

    @property
    def kind(self) -> str:
        """What it is."""
        ...

    @property
    def body(self) -> Mapping[str, Any]:
        """What it says."""
        ...

    @property
    def sent_at(self) -> str:
        """When it was left."""
        ...


class Live(Protocol):
    """The bus of the run."""

    seq: int

    def subscribe(self, subscriber: Callable[[Event], None]) -> None:
        """Call `subscriber` with every event from now on."""
        ...

    def publish(self, event: Event) -> None:
        """Number an event, write it down, tell everyone."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What steering is given of its run. `lines` is its record so far, `finished` the nodes that
    are over; both empty for a new run. `tell` publishes from any thread."""

    run_id: str
    workflow: Workflow
    bus: Live
    registry: SecretRegistry
    tell: Callable[[Event], None]
    switch: Switch
    evaluators: Callable[[Mapping[str, int]], Evaluators]
    """Given what each supervisor has spent before."""
    lines: Callable[[], Iterable[bytes]] = tuple
    finished: frozenset[str] = frozenset()


class NodeMailbox:
    """Implements `nodes.Mailbox` for one node."""

    def __init__(self, post: Post, node_id: str) -> None:
        self._post = post
        self._node_id = node_id

    def take(self) -> Sequence[Message]:
        """What waits for the node."""
        return self._post.take(self._node_id)

    def stepped(self) -> None:
        """The agent has gone on."""
        self._post.stepped(self._node_id)


class RunSteering:
    """Everything steering does in one run. `open` it after the run's first event, on its loop;
    `close` it before the last."""

    def __init__(self, given: Setting) -> None:
        self._given = given
        before = [msgspec.json.decode(line) for line in given.lines() if _is_own(line)]
        self._post = Post(given.run_id, given.tell, history=before)
        self._nodes = {node.id for node in given.workflow.nodes}
        self._readers = {n.id for n in given.workflow.nodes if reads_messages(n.type)}
        self._ended = set(given.finished)
        self._spent = _spent(before)
        self._evaluators: list[tuple[SupervisorSpec, Evaluator]] = []
        self._team: Team | None = None
        self._closed = False

    @property
    def spent_micro_usd(self) -> int:
        """What the run's supervisors have spent, also before it was resumed."""
        return sum(self._spent.values())

    def open(self) -> None:
        """Deliver, and watch."""
        self._given.bus.subscribe(self._hear)
        self._post.cut_off(self._ended.__contains__)
        workflow, switch = self._given.workflow, self._given.switch
        if not workflow.supervisors:
            return
        findings = Findings(workflow.file)
        specs = read_supervisors(workflow, findings)
        self._warn(switch.remark)
        self._warn(switch.skipped(len(workflow.supervisors)))
        if switch.on:
            for problem in findings.report():  # what a supervisor lacks is never lost in silence
                remedy = f"; {problem.remedy}" if problem.remedy else ""
                self._warn(f"{problem.message}{remedy}")
            if specs:
                self._watch(specs)

    def mailbox(self, node_id: str) -> NodeMailbox:
        """The mailbox of a node that asks for it: from now on it is one that reads messages."""
        self._readers.add(node_id)
        return NodeMailbox(self._post, node_id)

    def obey(self, word: Word) -> None:
        """Take a word from another process; what cannot be used is passed over."""
        if self._closed:
            return
        if word.kind == MESSAGE:
            self._message(word)
        elif word.kind == TOLD:
            event = told_elsewhere(word.body)
            if event is not None:
                self._given.tell(event)

    async def close(self) -> None:
        """The run is over: let go, and say what became of what still waits."""
        if self._closed:
            return
        self._closed = True
        if self._team is not None:
            await self._team.close()
        for spec, evaluator in self._evaluators:
            self._settle(spec, evaluator)
            with contextlib.suppress(Exception):
                async with asyncio.timeout(_CLOSING_S):
                    await getattr(evaluator, "aclose", _nothing)()
        self._post.run_ended()

    # -- supervisors --

    def _watch(self, specs: Sequence[SupervisorSpec]) -> None:
        given = self._given
        make = given.evaluators(self._spent)
        self._team = Team(
            specs,
            run_id=given.run_id,
            run=LiveRun(given.bus.subscribe, cut=given.bus.seq, history=self._history),
            evaluator=lambda spec: self._evaluator(make, spec),
            injector=self._post,
            emit=given.bus.publish,
        )
        self._team.start()

    def _evaluator(self, make: Evaluators, spec: SupervisorSpec) -> Evaluator | None:
        try:
            found = make(spec)
            why = "nobody thinks for it"
        except Exception as error:  # whatever is wrong with a model, the run goes on
            found, why = None, str(error) or type(error).__name__
        if found is None:
            self._warn(f"supervisor {spec.name} does not run: {why}")
            return None
        self._evaluators.append((spec, found))
        return found

    def _history(self) -> Iterable[Fact]:
        """What the run said before it was resumed."""
        resumed = False
        for line in self._given.lines():
            resumed = True
            yield msgspec.json.decode(line)
        if resumed:
            yield {"type": "run_resumed", "seq": self._given.bus.seq}

    def _settle(self, spec: SupervisorSpec, evaluator: Evaluator) -> None:
        """A look that was cut off by the end has cost something, at worst."""
        each = self._team.coordinators if self._team else ()
        state = next((c.state for c in each if c.spec.name == spec.name), TriggerState())
        event = cut_off(spec, state, evaluator, "the run ended while it thought")
        if event is not None:
            self._given.bus.publish(event)

    # -- messages --

    def _hear(self, event: Event) -> None:
        if isinstance(event, SteeringEvaluated):
            before = self._spent.get(event.supervisor, 0)
            self._spent[event.supervisor] = before + event.cost_micro_usd
        elif isinstance(event, NodeFinished):
            self._ended.add(event.node_id)
            # Not amid the event, of which others are still to be told.
            asyncio.get_running_loop().call_soon(self._post.node_ended, event.node_id)

    def _message(self, word: Word) -> None:
        body, mask = word.body, self._given.registry.mask
        words = Words(
            message_id=str(body.get("message_id") or _message_id(self._given.run_id, word)),
            run_id=self._given.run_id,
            node_id=str(body.get("node") or ""),
            author=mask(str(body.get("author") or OPERATOR)),
            text=mask(str(body.get("text") or "")),
        )
        why = self._unread(words.node_id)
        with contextlib.suppress(NotQueued):
            if why:
                self._post.refuse(words, why)
            else:
                self._post.queue(words)

    def _unread(self, node_id: str) -> str:
        """Why nobody would read a message; empty where somebody will."""
        if not node_id:
            return "" if self._readers - self._ended else "nobody is left who reads messages"
        if node_id not in self._nodes:
            return f"there is no node {node_id}"
        if node_id not in self._readers:
            return f"{node_id} reads no messages"
        return "the node ended" if node_id in self._ended else ""

    def _warn(self, line: str) -> None:
        if line:
            self._given.tell(Log(level="warning", message=self._given.registry.mask_text(line)))


def _is_own(line: bytes) -> bool:
    return any(mark in line for mark in _OWN)


def _spent(events: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for event in events:
        cost, name = event.get("cost_micro_usd"), event.get("supervisor")
        if event.get("type") == "steering_evaluated" and isinstance(cost, int):
            found[str(name)] = found.get(str(name), 0) + cost
    return found


def _message_id(run_id: str, word: Word) -> str:
    """Its own for each word, also where a run has moved to another store."""
    parts = f"{run_id}\0{word.number}\0{word.sent_at}\0{word.body.get('text')}"
    return f"msg-{hashlib.blake2b(parts.encode('utf-8', 'replace'), digest_size=8).hexdigest()}"


async def _nothing() -> None:
    """For an evaluator with nothing to close."""
