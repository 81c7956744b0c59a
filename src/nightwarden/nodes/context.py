"""What a running step may ask of the engine.

A parameter annotated `ctx: Context` is not a slot; it receives one of these. What is
spent or written through it is booked on that one invocation, also from threads it starts.

Read next: `define.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn, Protocol

from nightwarden.lineage import Lineage
from nightwarden.nodes.io import AssetRef
from nightwarden.nodes.models import StepModel
from nightwarden.nodes.working import Task, Work
from nightwarden.spec.catalog import NodeType


class Assets(Protocol):
    """Files that belong to the run."""

    def write(self, name: str, data: bytes, *, media_type: str = ...) -> AssetRef:
        """Keep `data` under `name`; the invocation counts as having made an asset.

        Raises `NodeError` for a name that leads away (code `bad-name`), and where a secret of the
        run stands in the name or the data (code `secret-in-asset`).
        """
        ...

    def read(self, reference: AssetRef) -> bytes:
        """The content of an asset of this run. Raises `NodeError` (code `no-asset`)."""
        ...

    def record(self, path: Path) -> None:
        """Count a file the step wrote itself as an asset of this invocation."""
        ...


def spelled(message: object, values: tuple[object, ...]) -> str:
    """A message with its values in their places; beside it where they do not fit."""
    if not values:
        return str(message)
    try:
        return str(message) % values
    except (TypeError, ValueError):
        return " ".join(str(part) for part in (message, *values))


class StepLog(Protocol):
    """A step's own lines in the record; masked like everything else.

    Values may follow a message, as in `logging`: `ctx.log.info("%d of %d", done, total)`.
    """

    def info(self, message: str, *values: object) -> None:
        """Something worth knowing."""
        ...

    def warning(self, message: str, *values: object) -> None:
        """Something the report should show."""
        ...


class Note(Protocol):
    """A text somebody left for an agent."""

    @property
    def text(self) -> str:
        """What the agent is to read."""
        ...


class Mailbox(Protocol):
    """What people and supervisors have left for this step: an agent drains it at every turn."""

    def take(self) -> Sequence[Note]:
        """What waits for this step, a person's words first; from here on it counts as delivered.

        Hand all of it to the agent with its next turn.
        """
        ...

    def stepped(self) -> None:
        """The agent has gone on since: what it was handed, it has taken up."""
        ...


class Decided(NamedTuple):
    """A decision as steps may read it; masked. `action` is retry, substitute, skip, end_stream or
    fail; `decided_by` says who: agent, operator, sticky, bounds, …"""

    node_id: str
    lineage: Lineage
    item: str
    detail: str
    action: str
    decided_by: str
    rationale: str


class Context(Protocol):
    """The engine as one invocation sees it."""

    @property
    def workdir(self) -> Path:
        """The directory relative paths are meant from."""
        ...

    @property
    def assets(self) -> Assets:
        """The run's files."""
        ...

    @property
    def log(self) -> StepLog:
        """Lines for the record."""
        ...

    @property
    def lineage(self) -> Lineage:
        """Which item this is, 0-based."""
        ...

    @property
    def attempt(self) -> int:
        """1 for the first try."""
        ...

    @property
    def item(self) -> str:
        """The item as people name it: `148/200 https://…`; empty at the run's own scope."""
        ...

    def secret(self, name: str) -> str:
        """The value of a secret; from here on it is masked wherever it would be written.

        Raises `NodeError` (code `secret-missing`) when no source knows it.
        """
        ...

    def spend(self, usd: float, *, what: str = "") -> None:
        """Book money this invocation has spent. After that it is never run again by itself."""
        ...

    def model(self, name: str, *, max_cost_usd: float | None = None) -> StepModel:
        """A model, as `provider:name`, whose calls this invocation pays for.

        The worst case of each call is reserved before it is made, in the budget of the run
        (`run --max-cost`) and in `max_cost_usd`, which is what all calls of this node may cost in
        the run. Only for `async def` steps. Raises `ModelError` for a model that cannot be had,
        `NodeError` (code `no-model`) in a thread or a process of the step's own.
        """
        ...

    async def work(self, task: Task) -> Work:
        """Let a model work on a task with tools; it reads its mailbox at every turn.

        What it does is told as the events of agents, what it costs is booked on this invocation.
        Cancelling the step ends it: its request is closed, its commands are killed. Only for
        `async def` steps. Raises as `model` does, and `NodeError` where a limit ended the work.
        """
        ...

    @property
    def decisions(self) -> Sequence[Decided]:
        """What has been decided in this run about steps that broke, in the order of failing."""
        ...

    @property
    def mailbox(self) -> Mailbox:
        """What was left for this step while it runs; empty for whoever gets no messages."""
        ...

    def rejected(self, line: int, raw: str, reason: str) -> None:
        """Count one input record the step could not use; the closing line and report show it."""
        ...

    def progress(self, done: int, total: int | None = None) -> None:
        """Tell how far the step is; throttled."""
        ...

    @property
    def controls(self) -> Mapping[str, NodeType]:
        """The nodes this step may send control events to, by id: as tools, say."""
        ...

    def control(self, target: str, **overrides: object) -> None:
        """Send a control event: `target` runs once with these properties instead of its own.

        Raises `NodeError` (code `no-control`) for a node this step does not control.
        """
        ...

    async def call(self, target: str, **overrides: object) -> Mapping[str, object]:
        """Send a control event and wait for its own answer: what `target` put out, by slot.

        For `async def` steps. Raises `NodeError` (code `no-answer`) with the reason when there is
        none: it was skipped, failed, or the run is ending.
        """
        ...

    def end_control(self, target: str) -> None:
        """Say that no further event will come; otherwise the end of this step says so."""
        ...

    def suspend(self, reason: str, state: object = None) -> NoReturn:
        """Pause the run here; when it is resumed, this step runs again, with `suspended_state`."""
        ...

    @property
    def suspended_state(self) -> object:
        """What this step gave to `suspend` before the run was resumed; None in a first run."""
        ...
