"""What integration tests share: stores on SQLite and on a real PostgreSQL server."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from postgres_server import NoServer, running_server

from nightwarden.store import open_store
from nightwarden.store.sqlstore import SqlStore

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres_socket() -> Iterator[Path]:
    """The folder of a running server's socket. In CI there has to be one."""
    server = running_server()
    try:
        folder = server.__enter__()
    except NoServer as error:
        if os.environ.get("CI"):
            pytest.fail(f"PostgreSQL is part of CI, but: {error}")
        print(f"\n!! the PostgreSQL store is NOT tested: {error}", file=sys.stderr)
        pytest.skip(f"the PostgreSQL store is not tested: {error}")
    try:
        yield folder
    finally:
        server.__exit__(None, None, None)


@pytest.fixture
def postgres_url(postgres_socket: Path) -> str:
    """A new, empty database."""
    import psycopg

    name = f"test_{next(_numbers)}"
    with psycopg.connect(
        host=str(postgres_socket), user="tester", dbname="postgres", autocommit=True
    ) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return f"postgresql://tester@/{name}?host={postgres_socket}"


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Each kind of store in turn, empty."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'store' / 'nightwarden.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def open_again(store_url: str, tmp_path: Path) -> Iterator[Callable[[], SqlStore]]:
    """Opens the store once more, as another process would; closed at the end."""
    opened: list[SqlStore] = []

    def again() -> SqlStore:
        opened.append(open_store(store_url, files=tmp_path / "store"))
        return opened[-1]

    yield again
    for store in opened:
        store.close()


@pytest.fixture
def store(open_again: Callable[[], SqlStore]) -> SqlStore:
    """An empty store."""
    return open_again()
