"""The context and the account of a step in a worker process: everything is asked of the run.

What changes the run's books is asked for and answered: money, files and secrets are known there
before the step goes on. What is only news is told, and read there in the same order.

Read next: `serving.py`, `worker.py`.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, Protocol

from nightwarden.errors import NodeError, Suspended
from nightwarden.nodes.context import Decided, spelled
from nightwarden.nodes.io import AssetRef
from nightwarden.nodes.working import Task
from nightwarden.runtime.accounting import Account
from nightwarden.runtime.executors.wire import Call
from nightwarden.runtime.mail import NO_MAIL, NoMail
from nightwarden.spec.catalog import NodeType


class Wire(Protocol):
    """The way from one invocation to its run."""

    def ask(self, method: str, *arguments: object) -> Any:
        """What the run says to a wish. Raises what the run raises."""
        ...

    def tell(self, method: str, *arguments: object) -> None:
        """Say something that needs no answer."""
        ...


class AskedAccount(Account):
    """The account of a step that runs here; what is booked on it is booked over there."""

    wire: Any = None

    def spend(self, usd: float) -> None:
        """Book money."""
        self.wire.ask("account.spend", usd)

    def made(self, asset: Mapping[str, object]) -> None:
        """Count an asset."""
        self.wire.ask("account.made", dict(asset))


class AskingContext:
    """Implements `nodes.Context`; it is its own `assets` and its own `log`."""

    def __init__(self, wire: Wire, call: Call) -> None:
        self._wire = wire
        self.workdir = Path(call.workdir)
        self.lineage = call.lineage
        self.attempt = call.attempt
        self.suspended_state = call.suspended_state

    @property
    def assets(self) -> AskingContext:
        """The run's files."""
        return self

    @property
    def log(self) -> AskingContext:
        """Lines for the record."""
        return self

    @property
    def item(self) -> str:
        """The item as people name it."""
        return str(self._wire.ask("item"))

    @property
    def controls(self) -> Mapping[str, NodeType]:
        """A step in another process controls nothing."""
        return {}

    def write(
        self, name: str, data: bytes, *, media_type: str = "application/octet-stream"
    ) -> AssetRef:
        """Keep `data` under `name` in the run's folder."""
        found = self._wire.ask("write", name, bytes(data), media_type)
        assert isinstance(found, AssetRef)
        return found

    def record(self, path: Path) -> None:
        """Count a file the step wrote itself."""
        self._wire.ask("record", path)

    def info(self, message: str, *values: object) -> None:
        """Something worth knowing."""
        self._wire.tell("info", spelled(message, values))

    def warning(self, message: str, *values: object) -> None:
        """Something the report should show."""
        self._wire.tell("warning", spelled(message, values))

    def secret(self, name: str) -> str:
        """The value of a secret, masked from here on."""
        return str(self._wire.ask("secret", name))

    def spend(self, usd: float, *, what: str = "") -> None:
        """Book money this invocation has spent."""
        self._wire.ask("spend", usd, what)

    def model(self, name: str, *, max_cost_usd: float | None = None) -> NoReturn:  # noqa: ARG002
        """Refused: connections to models are in the process this is not in."""
        raise NodeError(
            f"{name} cannot be asked from a process of its own: leave out executor='process' "
            "for the step that asks it",
            code="no-model",
        )

    async def work(self, task: Task) -> NoReturn:
        """Refused, as models are."""
        self.model(task.model)

    @property
    def decisions(self) -> Sequence[Decided]:
        """What has been decided in this run about steps that broke."""
        return tuple(self._wire.ask("decisions"))

    @property
    def mailbox(self) -> NoMail:
        """Messages reach the process the run is in."""
        return NO_MAIL

    def rejected(self, line: int, raw: str, reason: str) -> None:
        """Count one unusable input record."""
        self._wire.tell("rejected", line, raw, reason)

    def progress(self, done: int, total: int | None = None) -> None:
        """Tell how far the step is."""
        self._wire.tell("progress", done, total)

    def control(self, target: str, **_: object) -> None:
        """Refused: the nodes a step controls are in the process it is not in."""
        self._no_control(target)

    def call(self, target: str, **_: object) -> Coroutine[Any, Any, Mapping[str, object]]:
        """Refused, like `control`: also where nobody awaits it."""
        self._no_control(target)

    def end_control(self, target: str) -> None:
        """Refused, like `control`."""
        self._no_control(target)

    def suspend(self, reason: str, state: object = None) -> NoReturn:
        """Pause the run here."""
        raise Suspended(reason, state=state)

    def _no_control(self, target: str) -> NoReturn:
        raise NodeError(
            f"{target} cannot be controlled from a process of its own: leave out "
            "executor='process' for the step that controls it",
            code="no-control",
        )
