"""What the steps of a run share: where files lie, secrets, masking, and a way to be heard.

Safe to use from any thread.

Read next: `recording.py`.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from pathlib import Path

from nightwarden.events import Event
from nightwarden.masking.redaction import SecretRegistry
from nightwarden.runtime.bus import Bus
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
    ) -> None:
        self.bus = bus
        self.registry = registry
        self.workdir = workdir
        self.assets_dir = assets_dir
        self.rejects: Counter[str] = Counter()
        self._secrets = secrets
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0

    def open(self) -> None:
        """Events told from other threads go through the running loop from now on."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def secret(self, name: str) -> str:
        """The value of a secret, registered for masking."""
        return self._secrets.secret(name)

    def mask(self, text: str) -> str:
        """The text without secrets, cut."""
        return self.registry.mask_text(text)

    def tell(self, event: Event) -> None:
        """Publish an event, in the order in which it is told."""
        if not self.bus.active:
            return
        if threading.get_ident() == self._thread:
            self.bus.publish(event)
        elif self._loop is not None:
            self._loop.call_soon_threadsafe(self.bus.publish, event)

    def rejected(self, node_id: str, line: int, reason: str) -> None:
        """Count an unusable record; the closing line shows how many."""
        del line, reason
        with self._lock:
            self.rejects[node_id] += 1
