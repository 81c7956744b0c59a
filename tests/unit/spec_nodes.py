"""Small node types for the tests of the specification, one for each kind of slot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from nightwarden.nodes.define import node
from nightwarden.nodes.io import Absent, Collect, Many, Stream, outputs
from nightwarden.nodes.registry import Registry
from nightwarden.spec.load import examine, load
from nightwarden.spec.workflow import Workflow


@dataclass(frozen=True)
class Page:
    url: str
    text: str
    status: int
    links: list[str]


@outputs
class Parts(NamedTuple):
    head: str
    tail: str | Absent


@node(type="t.Fetch", retry_safe=True, label="{url}")
def fetch(url: str, attempts: int = 3, token: str = "") -> Page:
    raise NotImplementedError


@node(type="t.Words")
def words(text: str) -> Iterator[str]:
    yield text


@node(type="t.Shout", retry_safe=True, inline=True)
def shout(text: str, times: int = 1, loud: bool = True) -> str:
    raise NotImplementedError


@node(type="t.Row", retry_safe=True, inline=True, pure=True)
def row(**fields: object) -> dict[str, object]:
    return fields


@node(type="t.Write")
def write(rows: Collect[dict[str, object]], path: Path) -> Path:
    raise NotImplementedError


@node(type="t.Store")
def store(lines: Stream[str], limit: int = 0) -> int:
    raise NotImplementedError


@node(type="t.Album")
def album(titles: list[str]) -> str:
    raise NotImplementedError


@node(type="t.Shelf")
def shelf(albums: Collect[list[str]]) -> int:
    raise NotImplementedError


@node(type="t.Pick")
def pick(values: Many[str]) -> str:
    raise NotImplementedError


@node(type="t.Any", join="any")
def either(left: str = "", right: str = "") -> str:
    raise NotImplementedError


@node(type="t.Split")
def split(text: str) -> Parts:
    raise NotImplementedError


@node(type="t.Total")
def total(values: Collect[int]) -> int:
    raise NotImplementedError


@node(type="t.Share")
def share(value: int, of: int) -> float:
    raise NotImplementedError


@node(type="t.Count")
def count(text: str) -> int:
    raise NotImplementedError


@node(type="t.Config")
def config(values: dict[str, object], names: Sequence[str] = (), ratio: float = 1.0) -> bool:
    raise NotImplementedError


ALL = (
    fetch,
    words,
    shout,
    row,
    write,
    store,
    album,
    shelf,
    pick,
    either,
    split,
    total,
    share,
    count,
    config,
)


def catalog() -> Registry:
    """A registry that knows `t.*` and `flow.*`."""
    registry = Registry()
    for target in ALL:
        registry.add(target)
    return registry


CATALOG = catalog()


def loaded(text: str, **more: object) -> Workflow:
    """The workflow of a text that has no errors."""
    return load(text, catalog=CATALOG, **more)  # type: ignore[arg-type]


def rules(text: str, **more: object) -> list[str]:
    """The rules a text breaks, warnings included, in the order of the report."""
    _, problems = examine(text, catalog=CATALOG, **more)  # type: ignore[arg-type]
    return [problem.rule for problem in problems]
