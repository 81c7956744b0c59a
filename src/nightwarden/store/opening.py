"""Which store a URL names.

    .nightwarden, /some/folder     the file nightwarden.db in it
    sqlite:PATH, PATH.db           that file
    postgresql://user@host/name    a PostgreSQL database (extra `postgres`)

Nothing is made before something is written. Blobs and the runs' own files lie beside the file; for
PostgreSQL in `.nightwarden` of the working directory, unless told otherwise.

Read next: `sqlite.py`, `postgres.py`.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Final

from nightwarden.errors import StoreError
from nightwarden.store.blobs import open_blobs
from nightwarden.store.database import Database
from nightwarden.store.sqlite import SqliteDatabase
from nightwarden.store.sqlstore import SqlStore

DATABASE_FILE: Final = "nightwarden.db"
_POSTGRES: Final = ("postgresql://", "postgres://")
_SUFFIXES: Final = (".db", ".sqlite", ".sqlite3")


def open_store(
    url: str | Path, *, blobs: str | Path | None = None, files: Path | None = None
) -> SqlStore:
    """The store a URL or path names. Raises `StoreError` for one that cannot be had.

    `blobs` is a folder or a URL of object storage; `files` the folder for the runs' own files.
    """
    text = str(url)
    if text.startswith(_POSTGRES):
        folder = files or Path(".nightwarden")
        return SqlStore(_postgres(text), open_blobs(blobs or folder / "blobs"), folder)
    path = _sqlite_path(text)
    folder = files or path.parent
    return SqlStore(SqliteDatabase(path), open_blobs(blobs or folder / "blobs"), folder)


def _sqlite_path(text: str) -> Path:
    named = text.removeprefix("sqlite:")
    if named != text:
        named = named.removeprefix("//") if named.startswith("//") else named
        if not named or named == ":memory:":
            raise StoreError(f"store {text!r} names no file: write sqlite:PATH")
        path = Path(named)
        return path if path.suffix and not path.is_dir() else _file_in(path)
    scheme, separator, _ = text.partition("://")
    if separator:
        raise StoreError(
            f"no store is known for {scheme}://: name a folder, sqlite:PATH or postgresql://…"
        )
    if not text:
        raise StoreError("the store's name is empty: name a folder, sqlite:PATH or postgresql://…")
    return _file_in(Path(text))


def _file_in(path: Path) -> Path:
    """A path with the suffix of a database is one; anything else is the folder for it."""
    if path.suffix in _SUFFIXES and not path.is_dir():
        return path
    return path / DATABASE_FILE


def _postgres(url: str) -> Database:
    try:
        module = importlib.import_module("nightwarden.store.postgres")
    except ImportError as error:
        raise StoreError(
            "a PostgreSQL store needs psycopg: pip install 'nightwarden[postgres]'"
        ) from error
    database: Database = module.PostgresDatabase(url)
    return database
