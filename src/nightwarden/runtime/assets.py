"""The files of a run: written whole or not at all, known by the digest of what they hold.

    ctx.assets.write(name, data) ─▶ counted ─▶ in the run's folder ─▶ kept where large values are

A name that leads out of the folder is refused, and so is a secret in it or in the data. A file is
counted before it is written: if writing fails half-way, something may have been made, and the step
may not simply run again.

Read next: `context.py`, `accounting.py`.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from nightwarden.errors import NodeError
from nightwarden.nodes.io import AssetRef
from nightwarden.runtime.accounting import Account


class Shelves(Protocol):
    """Where the files of a run are."""

    assets_dir: Path

    def give(self, digest: str, path: Path) -> bool:
        """Make `path` a name of what is kept already; False where it is not."""
        ...

    def keep(self, data: bytes, path: Path) -> None:
        """Keep a file of the run where large values are."""
        ...

    def fetch(self, reference: AssetRef) -> bytes | None:
        """What an asset holds; None if it is nowhere."""
        ...

    def masked(self, text: str) -> str:
        """The text without secrets, uncut."""
        ...

    def secret_in(self, data: bytes) -> str:
        """The name of a secret that stands in `data`; empty where none does."""
        ...


class StepAssets:
    """The run's files, as one invocation writes them."""

    def __init__(
        self,
        services: Shelves,
        account: Account,
        note: Callable[[Mapping[str, object]], None],
    ) -> None:
        self._services = services
        self._account = account
        self._note = note

    def write(
        self, name: str, data: bytes, *, media_type: str = "application/octet-stream"
    ) -> AssetRef:
        """Keep `data` under `name` in the run's folder.

        Raises `NodeError` for an unsafe name, and for a secret.
        """
        folder = self._services.assets_dir
        self._refuse_secrets(name, data)
        target = (folder / name).resolve()
        if not name or not target.is_relative_to(folder.resolve()) or target == folder.resolve():
            raise NodeError(f"{name!r} is no name for an asset: it leads away", code="bad-name")
        digest = hashlib.sha256(data).hexdigest()
        reference = AssetRef(name, digest, len(data), media_type)
        # Counted first: if writing fails half-way, something may have been made.
        self._made({"name": name, "digest": digest, "size_bytes": len(data)})
        target.parent.mkdir(parents=True, exist_ok=True)
        if not self._services.give(digest, target):
            _put(target, data)
        self._services.keep(data, target)
        return reference

    def read(self, reference: AssetRef) -> bytes:
        """The content of an asset of this run. Raises `NodeError` for one that is not there."""
        data = self._services.fetch(reference)
        if data is None:
            raise NodeError(f"{reference.name!r} is no asset of this run", code="no-asset")
        return data

    def record(self, path: Path) -> None:
        """Count a file the step wrote itself."""
        self._made({"path": str(path)})

    def _refuse_secrets(self, name: str, data: bytes) -> None:
        """Assets lie beside the record, and are kept as long."""
        shown = self._services.masked(name)
        if shown != name:
            raise NodeError(
                f"an asset cannot be called {shown}: a secret stands in its name", code="bad-name"
            )
        secret = self._services.secret_in(data)
        if secret:
            raise NodeError(
                f"the asset {name!r} holds the secret {secret}: what is kept with a run must not; "
                "leave it out, or write the file yourself where it is needed",
                code="secret-in-asset",
            )

    def _made(self, asset: Mapping[str, object]) -> None:
        mask = self._services.masked
        asset = {key: mask(v) if isinstance(v, str) else v for key, v in asset.items()}
        self._account.made(asset)
        self._note(asset)


def _put(target: Path, data: bytes) -> None:
    """Write a file whole, or not at all."""
    fd, temporary = tempfile.mkstemp(dir=target.parent, prefix=".tmp-")
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def asset_bytes(folder: Path, reference: AssetRef) -> bytes | None:
    """What an asset holds; None unless it lies in the folder and is just what it claims to be."""
    path = (folder / reference.name).resolve()
    if not path.is_relative_to(folder.resolve()) or not path.is_file():
        return None
    data = path.read_bytes()
    same = len(data) == reference.size_bytes
    return data if same and hashlib.sha256(data).hexdigest() == reference.digest else None
