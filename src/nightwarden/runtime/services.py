"""What the steps of a run share: where files lie, secrets, masking, and a way to be heard.

Safe to use from any thread.

Read next: `recording.py`.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from nightwarden.errors import NodeError, StoreError
from nightwarden.events import Event
from nightwarden.masking.redaction import SecretRegistry
from nightwarden.nodes.context import Decided, Mailbox
from nightwarden.nodes.io import AssetRef
from nightwarden.nodes.models import StepModel
from nightwarden.runtime.assets import asset_bytes
from nightwarden.runtime.bus import Blobs, Bus
from nightwarden.runtime.mail import NO_MAIL
from nightwarden.runtime.paying import Models, NoModels, Payer, Spending
from nightwarden.runtime.secrets import SecretResolver


class RunServices:
    """Implements `context.Services`. Call `open` on the run's loop before the first step."""

    def __init__(
        self,
        bus: Bus,
        registry: SecretRegistry,
        secrets: SecretResolver,
        *,
        workdir: Path,
        assets_dir: Path,
        blobs: Blobs | None = None,
        max_cost_micro_usd: int | None = None,
    ) -> None:
        self.bus = bus
        self.registry = registry
        self.workdir = workdir
        self.assets_dir = assets_dir
        self._blobs = blobs
        self.rejects: Counter[str] = Counter()
        self.mailboxes: Callable[[str], Mailbox] | None = None
        """Gives the mailbox of a node, where somebody delivers."""
        self.spending = Spending(max_cost_micro_usd)
        self.on_overspent: Callable[[str], None] = _passed_over
        """Told on the loop that steps have spent more than the run may, in words."""
        self.make_models: Callable[[], Models] = NoModels
        """Makes what `ctx.model` asks, when the first step asks."""
        self.decided: Callable[[], Sequence[Decided]] = tuple
        """What was decided so far."""
        self._models: Models | None = None
        self._secrets = secrets
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0

    def open(self) -> None:
        """Events told from other threads go through the running loop from now on."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def give(self, digest: str, path: Path) -> bool:
        """Make `path` a name of what is kept already; False where it is not."""
        return self._blobs is not None and self._blobs.give(digest, path)

    def keep(self, data: bytes, path: Path) -> None:
        """Keep a file of the run where its large values are."""
        self.bus.keep(data, path)

    def fetch(self, reference: AssetRef) -> bytes | None:
        """What an asset holds; None if it is neither in the run's folder nor kept by its digest."""
        found = asset_bytes(self.assets_dir, reference)
        if found is not None or self._blobs is None:
            return found
        try:
            return self._blobs.get(reference.digest)
        except StoreError:
            return None

    def secret(self, name: str) -> str:
        """The value of a secret, registered for masking."""
        return self._secrets.secret(name)

    def mask(self, text: str) -> str:
        """The text without secrets, cut."""
        return self.registry.mask_text(text)

    def masked(self, text: str) -> str:
        """The text without secrets, uncut."""
        return self.registry.mask(text)

    def secret_in(self, data: bytes) -> str:
        """The name of a secret that stands in the content of a file; empty where none does."""
        return self.registry.plain_in(data)

    def shown(self, value: object) -> object:
        """A value as a record may show it: masked and cut."""
        return self.registry.redact(self.mask(value) if isinstance(value, str) else value)

    @property
    def told(self) -> bool:
        """Whether anybody hears what is told."""
        return self.bus.active

    def tell(self, event: Event) -> None:
        """Publish an event, in the order in which it is told."""
        if not self.bus.active:
            return
        if threading.get_ident() == self._thread:
            self.bus.publish(event)
        elif self._loop is not None:
            self._loop.call_soon_threadsafe(self.bus.publish, event)

    async def durable(self) -> None:
        """Return once what was told would survive a crash."""
        await self.bus.durable()

    def spent(self, micro_usd: int) -> None:
        """Count what a step spent by itself, or before the run was resumed."""
        self.spending.add(micro_usd)
        over = self.spending.over()
        if over and self._loop is not None:
            # Not at once: whoever spends it may be in the middle of anything.
            self._loop.call_soon_threadsafe(lambda: self.on_overspent(over))

    def asked(self, micro_usd: int) -> None:
        """Count what a model call cost."""
        self.spending.asked(micro_usd)

    def model(self, name: str, payer: Payer, max_cost_usd: float | None) -> StepModel:
        """A model, paid for by one invocation. Raises `NodeError` in another thread."""
        if threading.get_ident() != self._thread:
            raise NodeError(
                f"{name} can be asked on the run's own loop only: make the step `async def`",
                code="no-model",
            )
        if self._models is None:
            self._models = self.make_models()
        return self._models.of(name, payer, max_cost_usd)

    async def aclose(self) -> None:
        """Close what was opened for the steps."""
        models, self._models = self._models, None
        if models is not None:
            await models.aclose()

    def mailbox(self, node_id: str) -> Mailbox:
        """What was left for a node; empty where nobody delivers."""
        return NO_MAIL if self.mailboxes is None else self.mailboxes(node_id)

    def rejected(self, node_id: str, line: int, reason: str) -> None:
        """Count an unusable record; the closing line shows how many."""
        del line, reason
        with self._lock:
            self.rejects[node_id] += 1


def _passed_over(reason: str) -> None:
    """Nobody drives the run yet."""
