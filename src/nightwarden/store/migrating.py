"""Numbered migrations: `migrations/<engine>/0001_first.sql`, `0002_….sql`, …

A database carries the number of the last one it went through. Opening an older one brings it up,
all in one transaction; opening a newer one is refused, unharmed.

Read next: `sqlite.py`, `postgres.py`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources

from nightwarden.errors import StoreError


@dataclass(frozen=True, slots=True)
class Migration:
    """One step from a form of the record to the next."""

    number: int
    name: str
    sql: str

    def statements(self) -> Iterator[str]:
        """Its statements, one by one."""
        gathered = ""
        for line in self.sql.splitlines(keepends=True):
            gathered += line
            if sqlite3.complete_statement(gathered):
                yield gathered
                gathered = ""
        if gathered.strip():
            raise AssertionError(f"{self.name} ends inside a statement")


@cache
def migrations(engine: str) -> tuple[Migration, ...]:
    """All steps for an engine, in order."""
    folder = resources.files("nightwarden.store").joinpath("migrations", engine)
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    found = tuple(
        Migration(int(f.name.split("_")[0]), f.name, f.read_text(encoding="utf-8")) for f in files
    )
    assert [step.number for step in found] == list(range(1, len(found) + 1)), "numbered in order"
    return found


def steps_from(version: int, engine: str, place: str) -> tuple[Migration, ...]:
    """What a database of `version` still has to go through. Raises `StoreError` for a newer one."""
    known = migrations(engine)
    if version > len(known):
        raise StoreError(
            f"{place} was written by a newer Nightwarden (form {version}; this one knows "
            f"{len(known)}): upgrade with `pip install -U nightwarden`; nothing was changed"
        )
    return known[version:]
