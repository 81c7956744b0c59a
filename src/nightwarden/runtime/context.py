"""The `Context` a step receives: the engine as one invocation sees it.

Read next: `binding.py`, `assets.py`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn, Protocol

from nightwarden.errors import Suspended
from nightwarden.events import (
    AssetWritten,
    Event,
    InvocationSpent,
    Log,
    NodeProgress,
    RecordRejected,
)
from nightwarden.lineage import Lineage
from nightwarden.nodes.context import Decided, Mailbox, spelled
from nightwarden.nodes.models import StepModel
from nightwarden.nodes.working import Task, Work
from nightwarden.runtime.accounting import Account
from nightwarden.runtime.assets import Shelves, StepAssets
from nightwarden.runtime.paying import Payer
from nightwarden.runtime.telling import StepDesk
from nightwarden.spec.catalog import NodeType

_PROGRESS_EVERY_S: Final = 0.2


class Services(Shelves, Protocol):
    """What a context needs of the run."""

    workdir: Path

    def secret(self, name: str) -> str:
        """The value of a secret, registered for masking."""
        ...

    def mask(self, text: str) -> str:
        """The text without secrets, cut."""
        ...

    def shown(self, value: object) -> object:
        """A value as a record may show it: masked and cut."""
        ...

    @property
    def told(self) -> bool:
        """Whether anybody hears what is told."""
        ...

    def tell(self, event: Event) -> None:
        """Publish an event from any thread."""
        ...

    def rejected(self, node_id: str, line: int, reason: str) -> None:
        """Count an unusable record, from any thread."""
        ...

    def spent(self, micro_usd: int) -> None:
        """Count what a step spent by itself, from any thread."""
        ...

    def asked(self, micro_usd: int) -> None:
        """Count what a model call cost."""
        ...

    def model(self, name: str, payer: Payer, max_cost_usd: float | None) -> StepModel:
        """A model, paid for by one invocation; on the run's loop."""
        ...

    async def durable(self) -> None:
        """Return once what was told would survive a crash."""
        ...

    def decided(self) -> Sequence[Decided]:
        """What was decided so far."""
        ...

    def mailbox(self, node_id: str) -> Mailbox:
        """What was left for a node; from any thread."""
        ...


class Controls(Protocol):
    """How a step sends control events."""

    def targets(self) -> Mapping[str, NodeType]:
        """The nodes it controls."""
        ...

    def send(self, target: str, overrides: Mapping[str, object]) -> None:
        """Send an event."""
        ...

    def ask(
        self, target: str, overrides: Mapping[str, object]
    ) -> Coroutine[Any, Any, Mapping[str, object]]:
        """Send an event and wait for its answer."""
        ...

    def end(self, target: str) -> None:
        """No further event will come."""
        ...


class StepContext:
    """Implements `nodes.Context`."""

    def __init__(
        self,
        services: Services,
        account: Account,
        *,
        node_id: str,
        lineage: Lineage,
        attempt: int,
        item: Callable[[], str],
        controls: Controls,
        suspended_state: object = None,
        rejected_before: int = 0,
    ) -> None:
        self._services = services
        self._account = account
        self._node_id = node_id
        self._item = item
        self._controls = controls
        self._progress_told = -math.inf
        self._rejected_before = rejected_before
        self.suspended_state = suspended_state
        self.lineage = lineage
        self.attempt = attempt
        self.assets = StepAssets(services, account, self._note_asset)

    @property
    def workdir(self) -> Path:
        """The directory relative paths are meant from."""
        return self._services.workdir

    @property
    def log(self) -> StepContext:
        """Lines for the record."""
        return self

    @property
    def item(self) -> str:
        """The item as people name it."""
        return self._item()

    def info(self, message: str, *values: object) -> None:
        """Something worth knowing."""
        self._write("info", spelled(message, values))

    def warning(self, message: str, *values: object) -> None:
        """Something the report should show."""
        self._write("warning", spelled(message, values))

    def secret(self, name: str) -> str:
        """The value of a secret, masked from here on."""
        return self._services.secret(name)

    def spend(self, usd: float, *, what: str = "") -> None:
        """Book money this invocation has spent."""
        before = self._account.cost_micro_usd
        self._account.spend(usd)
        micro_usd = self._account.cost_micro_usd - before
        self._services.spent(micro_usd)
        self._tell_spent(micro_usd, what=self._services.mask(what))
        if what:
            self._write("info", f"spent ${usd:.6f} on {what}")

    def model(self, name: str, *, max_cost_usd: float | None = None) -> StepModel:
        """A model whose calls this invocation pays for."""
        payer = Payer(
            node_id=self._node_id,
            lineage=self.lineage,
            attempt=self.attempt,
            book=self._book,
            tell=self._services.tell,
            on_record=self._services.durable,
        )
        return self._services.model(name, payer, max_cost_usd)

    async def work(self, task: Task) -> Work:
        """Let a model work on a task with tools."""
        model = self.model(task.model, max_cost_usd=task.limits.max_cost_usd)
        desk = StepDesk(self._services, self.mailbox, self._node_id, self.lineage, self.attempt)
        return await model.work(task, desk)

    def _book(self, micro_usd: int, model: str) -> None:
        """A model call cost this."""
        if micro_usd:
            self._account.book(micro_usd)
            self._services.asked(micro_usd)
            self._tell_spent(micro_usd, model=model)

    def _tell_spent(self, micro_usd: int, *, what: str = "", model: str = "") -> None:
        self._services.tell(
            InvocationSpent(
                node_id=self._node_id,
                lineage=self.lineage,
                attempt=self.attempt,
                cost_micro_usd=micro_usd,
                what=what,
                model=model,
            )
        )

    @property
    def decisions(self) -> Sequence[Decided]:
        """What has been decided in this run about steps that broke."""
        return self._services.decided()

    @property
    def mailbox(self) -> Mailbox:
        """What was left for this step while it runs."""
        return self._services.mailbox(self._node_id)

    def rejected(self, line: int, raw: str, reason: str) -> None:
        """Count one unusable input record."""
        services = self._services
        if self._rejected_before:  # said and counted before the run was resumed
            self._rejected_before -= 1
            return
        services.rejected(self._node_id, line, services.mask(reason))
        services.tell(
            RecordRejected(
                node_id=self._node_id,
                lineage=self.lineage,
                attempt=self.attempt,
                line=line,
                raw=services.mask(raw),
                reason=services.mask(reason),
            )
        )

    def progress(self, done: int, total: int | None = None) -> None:
        """Tell how far the step is; in between only now and then."""
        now = time.monotonic()
        if done != total and now - self._progress_told < _PROGRESS_EVERY_S:
            return
        self._progress_told = now
        self._services.tell(
            NodeProgress(node_id=self._node_id, lineage=self.lineage, done=done, total=total)
        )

    @property
    def controls(self) -> Mapping[str, NodeType]:
        """The nodes this step may send control events to."""
        return self._controls.targets()

    def control(self, target: str, **overrides: object) -> None:
        """Send a control event."""
        self._controls.send(target, overrides)

    def call(self, target: str, **overrides: object) -> Coroutine[Any, Any, Mapping[str, object]]:
        """Send a control event and wait for its own answer."""
        return self._controls.ask(target, overrides)

    def end_control(self, target: str) -> None:
        """Say that no further event will come."""
        self._controls.end(target)

    def suspend(self, reason: str, state: object = None) -> NoReturn:
        """Pause the run here."""
        raise Suspended(reason, state=state)

    def _note_asset(self, asset: Mapping[str, object]) -> None:
        self._services.tell(
            AssetWritten(
                node_id=self._node_id, lineage=self.lineage, attempt=self.attempt, asset=asset
            )
        )

    def _write(self, level: str, message: str) -> None:
        text = self._services.mask(message)
        self._services.tell(
            Log(
                node_id=self._node_id,
                lineage=self.lineage,
                attempt=self.attempt,
                level=level,
                message=text,
            )
        )
