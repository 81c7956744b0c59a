"""The PostgreSQL store and what can be wrong with servers (issue 4, Bad input)."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from nightwarden.errors import StoreError
from nightwarden.store import Unready, open_store

psycopg = pytest.importorskip("psycopg")


def kill_connections(url: str) -> None:
    """As if the server had been restarted: every other connection to its database breaks."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def line(seq: int) -> bytes:
    """Some event."""
    return b'{"type":"log","seq":%d}' % seq


def test_a_server_that_answers_nothing_is_named_without_the_password() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        with pytest.raises(Unready, match="is the server running") as caught:
            open_store(f"postgresql://me:s3cret@127.0.0.1:{port}/runs")
    assert f"postgresql://127.0.0.1:{port}/runs" in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_a_database_that_does_not_exist_is_named(postgres_socket: Path) -> None:
    with pytest.raises(StoreError, match="/nothing"):
        open_store(f"postgresql://tester@/nothing?host={postgres_socket}")


def test_a_user_without_the_right_to_create_is_told(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS guest")
        connection.execute("CREATE ROLE guest LOGIN")
    with pytest.raises(StoreError, match="right to CREATE in the database"):
        open_store(postgres_url.replace("tester@", "guest@"))


def test_nothing_is_lost_or_doubled_when_connections_break(
    postgres_url: str, tmp_path: Path
) -> None:
    with open_store(postgres_url, files=tmp_path) as store:
        run = store.create("r")
        for seq in range(1, 401):
            run.append(line(seq))
            if seq % 20 == 0:
                kill_connections(postgres_url)
                run.barrier()
        run.close()
    with open_store(postgres_url, files=tmp_path) as store:
        assert store.verify("r").whole
        assert list(store.lines("r")) == [line(seq) for seq in range(1, 401)]


def test_a_driver_hears_words_again_after_its_connection_broke(
    postgres_url: str, tmp_path: Path
) -> None:
    rang = threading.Event()
    with open_store(postgres_url, files=tmp_path) as store:
        run = store.create("r", on_command=lambda _: rang.set())
        run.append(line(1))
        run.barrier()
        kill_connections(postgres_url)
        with open_store(postgres_url, files=tmp_path) as other:
            other.send("r", "cancel")
        assert rang.wait(10)
        run.close()


def test_other_tables_of_the_database_are_left_alone(postgres_url: str, tmp_path: Path) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE runs (theirs text)")
    with open_store(postgres_url, files=tmp_path) as store:
        store.create("r").close()
        assert store.run_ids() == ["r"]
    with psycopg.connect(postgres_url) as connection:
        row = connection.execute("SELECT count(*) FROM public.runs").fetchone()
        assert row == (0,)
