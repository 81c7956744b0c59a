"""A plain `Context` for calling a node's function directly: it keeps what it is told."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from nightwarden.errors import Suspended
from nightwarden.nodes.context import spelled
from nightwarden.nodes.io import AssetRef


@dataclass
class FakeAssets:
    """Keeps the paths of files a step says it wrote."""

    recorded: list[Path] = field(default_factory=list)

    def write(self, name: str, data: bytes, *, media_type: str = "") -> AssetRef:
        return AssetRef(name, "", len(data), media_type)

    def record(self, path: Path) -> None:
        self.recorded.append(path)


@dataclass
class FakeLog:
    """Keeps a step's lines."""

    infos: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def info(self, message: str, *values: object) -> None:
        self.infos.append(spelled(message, values))

    def warning(self, message: str, *values: object) -> None:
        self.warnings.append(spelled(message, values))


class FakeMailbox:
    """Nobody writes to it."""

    def take(self) -> tuple[()]:
        return ()

    def stepped(self) -> None:
        pass


@dataclass
class FakeContext:
    """One invocation at the run's own scope."""

    workdir: Path = field(default_factory=Path.cwd)
    assets: FakeAssets = field(default_factory=FakeAssets)
    log: FakeLog = field(default_factory=FakeLog)
    mailbox: FakeMailbox = field(default_factory=FakeMailbox)
    lineage: tuple[int, ...] = ()
    attempt: int = 1
    suspended_state: object = None
    item: str = ""
    rejections: list[tuple[int, str, str]] = field(default_factory=list)

    def secret(self, name: str) -> str:
        return f"value-of-{name}"

    def spend(self, usd: float, *, what: str = "") -> None:
        raise AssertionError("no built-in node spends money")

    def rejected(self, line: int, raw: str, reason: str) -> None:
        self.rejections.append((line, raw, reason))

    def progress(self, done: int, total: int | None = None) -> None:
        pass

    def suspend(self, reason: str, state: object = None) -> NoReturn:
        raise Suspended(reason, state=state)
