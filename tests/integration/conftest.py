"""What integration tests share: stores on SQLite and on a real PostgreSQL server."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from postgres_server import NoServer, running_server

from nightwarden.store import open_store
from nightwarden.store.sqlstore import SqlStore


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
    """An empty database: the same each time, for a new one costs a second and 7 MB."""
    import psycopg

    url = f"postgresql://tester@/postgres?host={postgres_socket}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        connection.execute("DROP SCHEMA IF EXISTS nightwarden CASCADE")
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return url


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
