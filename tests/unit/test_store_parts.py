"""Pure parts of the store: chain, facts, names, URLs, migrations, retention."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwarden.errors import StoreError
from nightwarden.events import RunCompleted, RunFailed, RunStarted, encode
from nightwarden.store import RunEntry, expired, open_store
from nightwarden.store.chain import chained, first_hash, verified
from nightwarden.store.database import key_of, seq_of
from nightwarden.store.facts import facts_in
from nightwarden.store.migrating import Migration, migrations, steps_from
from nightwarden.store.naming import meant


def lines(count: int) -> list[bytes]:
    """Some events."""
    return [b'{"type":"log","seq":%d}' % seq for seq in range(1, count + 1)]


# -- chain --


def test_a_hash_is_that_of_the_hash_before_and_the_bytes() -> None:
    ((_, first, _), (_, second, _)) = chained(first_hash("r"), 0, lines(2))
    assert first == sha256(sha256(b"nightwarden 1 r").digest() + lines(1)[0]).digest()
    assert second == sha256(first + lines(2)[1]).digest()


def test_a_chain_can_be_made_in_pieces() -> None:
    whole = chained(first_hash("r"), 0, lines(9))
    begun = chained(first_hash("r"), 0, lines(9)[:4])
    assert begun + chained(begun[-1][1], 4, lines(9)[4:]) == whole


@given(count=st.integers(1, 12), data=st.data())
def test_any_change_breaks_the_chain_where_it_was_made(count: int, data: st.DataObject) -> None:
    rows = chained(first_hash("r"), 0, lines(count))
    at = data.draw(st.integers(0, count - 1))
    byte = data.draw(st.integers(0, len(rows[at][2]) - 1))
    text = bytearray(rows[at][2])
    text[byte] ^= data.draw(st.integers(1, 255))
    changed = [*rows[:at], (at + 1, rows[at][1], bytes(text)), *rows[at + 1 :]]
    assert verified("r", rows, count, rows[-1][1]).whole
    assert verified("r", changed, count, rows[-1][1]).first_bad == at + 1


def test_a_chain_belongs_to_one_run() -> None:
    rows = chained(first_hash("r"), 0, lines(2))
    assert verified("other", rows, 2, rows[-1][1]).first_bad == 1


def test_an_event_that_calls_itself_otherwise_is_found_out() -> None:
    rows = chained(first_hash("r"), 0, [lines(1)[0], lines(1)[0]])
    found = verified("r", rows, 2, rows[-1][1])
    assert (found.first_bad, found.problem) == (2, "event 2 calls itself 1")


@given(run=st.integers(1, 2**23 - 2), seq=st.integers(0, 2**40 - 1))
def test_a_key_keeps_run_and_number_apart(run: int, seq: int) -> None:
    assert seq_of(key_of(run, seq)) == seq
    assert key_of(run, 0) <= key_of(run, seq) < key_of(run + 1, 0) < 2**63


# -- facts --


def test_the_list_of_runs_is_drawn_from_events_as_the_codec_writes_them() -> None:
    begun = RunStarted(run_id="r", workflow="w", definition={}, definition_hash="", inputs={})
    begun.at = "a"
    over = RunCompleted(supervised=True, ledger={"headline": "fine"})
    over.at = "b"
    assert facts_in([encode(begun), b'{"type":"log"}', encode(over)]) == {
        "workflow": "w",
        "started_at": "a",
        "status": "completed",
        "ended_at": "b",
        "supervised": 1,
        "headline": "fine",
    }


def test_a_run_that_failed_early_shows_its_reason() -> None:
    assert facts_in([encode(RunFailed(reason="no input"))])["headline"] == "no input"


def test_a_resumed_run_has_no_end() -> None:
    assert facts_in([encode(RunFailed()), b'{"type":"run_resumed"}'])["status"] == ""


@pytest.mark.parametrize("line", [b'{"type":"run_', b'{"type":"run_started","workflow":7}', b"[]"])
def test_an_odd_event_is_no_fact(line: bytes) -> None:
    assert not any(facts_in([line]).values())


# -- names and URLs --


def test_a_run_is_meant_by_its_id_a_beginning_or_last() -> None:
    known = ["a1", "a", "b"]
    assert [meant(text, known, "here") for text in ("a", "b", "last")] == ["a", "b", "b"]
    for text in ("a2", ""):
        with pytest.raises(StoreError, match="no run"):
            meant(text, known, "here")


@pytest.mark.parametrize(
    ("url", "file"),
    [
        ("x", "x/nightwarden.db"),
        (".nightwarden", ".nightwarden/nightwarden.db"),
        ("x/my.db", "x/my.db"),
        ("sqlite:x/y.db", "x/y.db"),
        ("sqlite:x", "x/nightwarden.db"),
        ("sqlite:///abs/y.sqlite3", "/abs/y.sqlite3"),
    ],
)
def test_a_url_names_a_file(url: str, file: str) -> None:
    with open_store(url) as store:
        assert store.place == file
        assert store.blobs.place == str(Path(file).parent / "blobs")


@pytest.mark.parametrize("url", ["mysql://x/y", "sqlite:", "sqlite::memory:", ""])
def test_a_url_of_no_store_says_what_there_is(url: str) -> None:
    with pytest.raises(StoreError, match="sqlite:PATH"):
        open_store(url)


def test_a_postgres_url_that_is_none_keeps_its_password_to_itself() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(StoreError, match="expected postgresql://") as caught:
        open_store("postgresql://me:s3cret@host/db?nonsense=1&x")
    assert "s3cret" not in str(caught.value)


# -- migrations --


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_migrations_are_numbered_without_gaps(engine: str) -> None:
    assert [step.number for step in migrations(engine)] == [1]
    assert steps_from(1, engine, "here") == ()


def test_both_engines_keep_the_same_tables() -> None:
    tables = [
        [s.split()[2] for s in migrations(e)[0].statements() if "CREATE TABLE" in s.upper()[:200]]
        for e in ("sqlite", "postgres")
    ]
    assert tables[0] == tables[1]


def test_a_migration_is_taken_apart_at_its_semicolons() -> None:
    step = Migration(
        1, "x", "CREATE TABLE a (\n  b TEXT -- one; two\n);\nCREATE INDEX c ON a (b);\n"
    )
    assert len(list(step.statements())) == 2


# -- retention --

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def entry(run_id: str, status: str = "completed", *, day: int = 1, alive: bool = False) -> RunEntry:
    """A run that ended on a day of November."""
    return RunEntry(
        run_id=run_id,
        workflow="w",
        status=status,
        supervised=False,
        started_at="",
        ended_at=f"2026-11-{day:02}T00:00:00.000Z",
        headline="",
        events=1,
        owner="",
        owner_alive=alive,
    )


def test_runs_that_ended_long_ago_expire() -> None:
    entries = [entry("a", day=1), entry("b", day=20), entry("c", day=29)]
    assert expired(entries, NOW, keep_days=5) == ["a", "b"]


def test_all_but_the_last_expire() -> None:
    entries = [entry("a"), entry("b"), entry("c")]
    assert expired(entries, NOW, keep_last=1) == ["a", "b"]
    assert expired(entries, NOW, keep_last=0) == ["a", "b", "c"]


def test_unfinished_runs_expire_only_when_asked_for_and_driven_ones_never() -> None:
    entries = [entry("f", "failed"), entry("s", "suspended"), entry("d", "running", alive=True)]
    assert expired(entries, NOW, keep_last=0) == []
    assert expired(entries, NOW, keep_last=0, unfinished=True) == ["f", "s"]


def test_without_a_limit_nothing_expires() -> None:
    assert expired([entry("a")], NOW) == []
