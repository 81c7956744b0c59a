"""What every store promises, on SQLite and on a real PostgreSQL server (issue 4, Store)."""

from __future__ import annotations

import json
import threading
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nightwarden.errors import StoreError
from nightwarden.events import RunCompleted, RunStarted, encode
from nightwarden.store import Command, LeaseLost, RunBusy, prune
from nightwarden.store.blobs import digest_of
from nightwarden.store.leases import Place
from nightwarden.store.sqlstore import SqlStore

Again = Callable[[], SqlStore]


def line(seq: int, **more: object) -> bytes:
    """Some event."""
    return json.dumps({"type": "log", "seq": seq, **more}).encode()


def record(store: SqlStore, run_id: str, count: int = 3, *, end: bool = False) -> None:
    """A run of some events; with `end` a completed one."""
    run = store.create(run_id)
    started = RunStarted(run_id=run_id, workflow="w", definition={}, definition_hash="", inputs={})
    started.seq, started.at = 1, "2026-01-02T03:04:05.000Z"
    run.append(encode(started))
    for seq in range(2, count + 1):
        run.append(line(seq))
    if end:
        over = RunCompleted(supervised=True, ledger={"headline": "all done"})
        over.seq, over.at = count + 1, "2026-01-02T03:05:05.000Z"
        run.append(encode(over))
    run.close()


def elsewhere(store: SqlStore) -> SqlStore:
    """The same store, as if this process ran on another machine."""
    store._me = Place("elsewhere", 1, boot="another")
    store._reading._me = store._me
    return store


def change(store: SqlStore, sql: str, *values: object) -> None:
    """Change the database behind the store's back."""
    with store.database.writing() as cursor:
        assert cursor.do(sql, *values) > 0


# -- recording and reading --


def test_events_are_read_back_byte_for_byte(store: SqlStore) -> None:
    lines = [line(seq, text="x" * (seq % 40), ü="\n\0") for seq in range(1, 2501)]
    run = store.create("r")
    for each in lines:
        run.append(each)
    run.close()
    assert list(store.lines("r")) == lines


def test_reading_begins_after_a_number(store: SqlStore) -> None:
    record(store, "r", 5)
    assert [event["seq"] for event in store.read("r", after=3)] == [4, 5]


def test_what_a_barrier_returned_for_is_there_for_others(
    store: SqlStore, open_again: Again
) -> None:
    run = store.create("r")
    run.append(line(1))
    run.barrier()
    assert list(open_again().lines("r")) == [line(1)]


def test_a_large_event_is_kept_whole(store: SqlStore) -> None:
    run = store.create("r")
    run.append(line(1, text="x" * 2_000_000))
    run.close()
    assert list(store.lines("r")) == [line(1, text="x" * 2_000_000)]


def test_when_durable_calls_after_the_events_before_it(store: SqlStore, open_again: Again) -> None:
    other, run, told = open_again(), store.create("r"), threading.Event()
    seen: list[object] = []

    def call(error: StoreError | None) -> None:
        seen.extend([error, list(other.lines("r"))])
        told.set()

    run.append(line(1))
    run.when_durable(call)
    assert told.wait(10)
    assert seen == [None, [line(1)]]


def test_runs_of_one_process_are_written_apart(store: SqlStore) -> None:
    runs = [store.create(f"r{n}") for n in range(3)]
    for seq in range(1, 101):
        for run in runs:
            run.append(line(seq, run=run.run_id))
    for run in runs:
        run.close()
    for run in runs:
        assert list(store.lines(run.run_id)) == [line(s, run=run.run_id) for s in range(1, 101)]


def test_appending_from_several_threads_loses_nothing(store: SqlStore) -> None:
    run = store.create("r")
    threads = [
        threading.Thread(target=lambda: [run.append(b'{"type":"log"}') for _ in range(2000)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    run.close()
    assert store.entry("r").events == 8000


def test_the_ends_are_the_first_and_the_last_event(store: SqlStore) -> None:
    record(store, "r", 4, end=True)
    assert [event["type"] for event in store.ends("r")] == ["run_started", "run_completed"]


def test_a_run_without_events_reads_as_empty(store: SqlStore) -> None:
    store.create("r").close()
    assert list(store.read("r")) == list(store.ends("r")) == []
    assert store.verify("r").whole


def test_a_closed_run_takes_no_more_events(store: SqlStore) -> None:
    run = store.create("r")
    run.close()
    with pytest.raises(StoreError, match="closed"):
        run.append(line(1))


def test_an_event_that_is_none_is_named(store: SqlStore) -> None:
    run = store.create("r")
    run.append(line(1))
    run.append(b"{]")
    run.close()
    with pytest.raises(StoreError, match="event 2 of run r"):
        list(store.read("r"))


# -- the list of runs --


def test_the_list_of_runs_says_how_each_stands(store: SqlStore) -> None:
    record(store, "a", end=True)
    record(store, "b")
    store.create("c")
    entries = {entry.run_id: entry for entry in store.runs()}
    assert {name: entry.status for name, entry in entries.items()} == {
        "a": "completed",
        "b": "interrupted",
        "c": "running",
    }
    assert (entries["a"].workflow, entries["a"].supervised) == ("w", True)
    assert (entries["a"].headline, entries["a"].events) == ("all done", 4)
    assert entries["a"].started_at < entries["a"].ended_at
    assert entries["c"].owner_alive
    assert not entries["b"].owner_alive


def test_a_resumed_run_is_running_and_last_again(store: SqlStore) -> None:
    record(store, "a", end=True)
    record(store, "b", end=True)
    run = store.reopen("a")
    run.append(b'{"type":"run_resumed","seq":5}')
    run.barrier()
    assert store.entry("a").status == "running"
    assert store.find("last") == "a"


def test_a_run_is_found_by_the_beginning_of_its_id(store: SqlStore) -> None:
    for name in ("alpha-1", "alpha-2", "beta"):
        record(store, name)
    assert [store.find(name) for name in ("be", "alpha-1", "last")] == ["beta", "alpha-1", "beta"]
    with pytest.raises(StoreError, match="alpha-1, alpha-2"):
        store.find("alpha")
    with pytest.raises(StoreError, match="no run 'gamma'"):
        store.find("gamma")


def test_an_empty_store_says_so(store: SqlStore) -> None:
    assert store.runs() == store.run_ids() == []
    with pytest.raises(StoreError, match="no run is recorded in"):
        store.find("last")


# -- one driver a run --


def test_an_id_is_recorded_once(store: SqlStore) -> None:
    record(store, "r")
    with pytest.raises(StoreError, match="exists"):
        store.create("r")


def test_a_second_driver_is_refused(store: SqlStore, open_again: Again) -> None:
    run = store.create("r")
    with pytest.raises(RunBusy, match="driven by process"):
        open_again().reopen("r")
    run.append(line(1))
    run.close()
    assert store.entry("r").events == 1


def test_a_closed_run_goes_on_with_its_numbers_and_its_chain(
    store: SqlStore, open_again: Again
) -> None:
    record(store, "r", 3)
    run = open_again().reopen("r")
    assert run.last_seq == 3
    run.append(line(4))
    run.close()
    assert [event["seq"] for event in store.read("r")] == [1, 2, 3, 4]
    assert store.verify("r").whole


def test_a_foreign_owner_seen_lately_is_alive(store: SqlStore, open_again: Again) -> None:
    elsewhere(open_again()).create("r")
    with pytest.raises(RunBusy, match="elsewhere"):
        store.reopen("r")


@pytest.mark.parametrize("shift_s", [-3600.0, 3600.0], ids=["late", "clock jumped back"])
def test_a_foreign_owner_that_stands_still_is_dead_whatever_the_clock(
    store: SqlStore, open_again: Again, shift_s: float
) -> None:
    elsewhere(open_again()).create("r")
    change(store, "UPDATE leases SET beat_at = beat_at + ?, ttl_s = 0.05", shift_s)
    assert not store.entry("r").owner_alive
    store.reopen("r").close()


def test_of_many_that_take_over_one_succeeds(store: SqlStore, open_again: Again) -> None:
    elsewhere(open_again()).create("r")
    change(store, "UPDATE leases SET beat_at = 0, ttl_s = 0.05")
    stores = [open_again() for _ in range(6)]
    begin, outcomes = threading.Barrier(len(stores)), []

    def take(mine: SqlStore) -> None:
        begin.wait()
        try:
            mine.reopen("r")
            outcomes.append("mine")
        except RunBusy:
            outcomes.append("busy")

    threads = [threading.Thread(target=take, args=(mine,)) for mine in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["busy"] * 5 + ["mine"]


def test_who_lost_its_lease_records_nothing_more(store: SqlStore, open_again: Again) -> None:
    old = elsewhere(open_again()).create("r")
    old.append(line(1))
    old.barrier()
    change(store, "UPDATE leases SET beat_at = 0, ttl_s = 0.05")
    new = store.reopen("r")
    old.append(line(2, by="old"))
    with pytest.raises(LeaseLost, match="taken over"):
        old.barrier()
    with pytest.raises(LeaseLost):
        old.append(line(3, by="old"))
    new.append(line(2, by="new"))
    new.close()
    with pytest.raises(LeaseLost):
        old.close()
    assert list(store.lines("r")) == [line(1), line(2, by="new")]
    assert store.verify("r").whole


def test_a_lost_lease_does_not_harm_other_runs_of_the_process(
    store: SqlStore, open_again: Again
) -> None:
    mine = elsewhere(open_again())
    lost, kept = mine.create("lost"), mine.create("kept")
    change(store, "DELETE FROM leases WHERE run = ?", lost.run)
    lost.append(line(1))
    kept.append(line(1))
    kept.barrier()
    with pytest.raises(LeaseLost):
        lost.barrier()
    assert list(store.lines("kept")) == [line(1)]
    assert list(store.lines("lost")) == []


# -- words from elsewhere --


class Ear:
    """Hears commands."""

    def __init__(self) -> None:
        self.heard: list[Command] = []
        self.rang = threading.Semaphore(0)

    def __call__(self, command: Command) -> None:
        self.heard.append(command)
        self.rang.release()


def test_a_running_run_hears_a_word_from_another_process(
    store: SqlStore, open_again: Again
) -> None:
    ear, other = Ear(), open_again()
    store.create("r", on_command=ear)
    number = other.send("r", "cancel", {"reason": "enough ü"})
    assert ear.rang.acquire(timeout=10)
    assert [(c.kind, c.body, c.number) for c in ear.heard] == [
        ("cancel", {"reason": "enough ü"}, number)
    ]
    assert other.taken("r", number)
    assert not other.withdraw("r", number)


def test_words_to_a_run_nobody_drives_wait_for_the_next_driver(store: SqlStore) -> None:
    record(store, "r")
    first = store.send("r", "message", {"text": "one"})
    assert store.withdraw("r", store.send("r", "message", {"text": "taken back"}))
    store.send("r", "message", {"text": "two"})
    assert not store.taken("r", first)
    ear = Ear()
    store.reopen("r", on_command=ear)
    assert ear.rang.acquire(timeout=10)
    assert ear.rang.acquire(timeout=10)
    assert [command.body["text"] for command in ear.heard] == ["one", "two"]


def test_a_word_reaches_only_the_run_it_is_for(store: SqlStore) -> None:
    ears = {name: Ear() for name in ("a", "b")}
    for name, ear in ears.items():
        store.create(name, on_command=ear)
    store.send("b", "cancel")
    assert ears["b"].rang.acquire(timeout=10)
    assert ears["a"].heard == []


# -- following --


def test_following_sees_what_another_process_writes_and_ends_with_the_run(
    store: SqlStore, open_again: Again
) -> None:
    run, other, seen, first = store.create("r"), open_again(), [], threading.Event()

    def follow() -> None:
        for event in other.follow("r"):
            seen.append(event["seq"])
            first.set()

    thread = threading.Thread(target=follow)
    thread.start()
    run.append(line(1))
    assert first.wait(10)
    for seq in range(2, 1501):
        run.append(line(seq))
    run.append(b'{"type":"run_failed","seq":1501}')
    run.barrier()  # the run is not closed: the terminal event is enough
    thread.join(20)
    assert seen == list(range(1, 1502))


def test_following_goes_on_past_the_end_of_a_resumed_run(store: SqlStore) -> None:
    record(store, "r", 2, end=True)
    run = store.reopen("r")
    run.append(b'{"type":"run_resumed","seq":4}')
    run.append(b'{"type":"run_completed","seq":5}')
    run.close()
    assert [event["seq"] for event in store.follow("r")] == [1, 2, 3, 4, 5]


def test_following_ends_when_nobody_drives_the_run(store: SqlStore) -> None:
    record(store, "r", 3)
    assert [event["seq"] for event in store.follow("r", after=1)] == [2, 3]


def test_following_stops_when_told(store: SqlStore) -> None:
    store.create("r").append(line(1))
    seen: list[object] = []
    for event in store.follow("r", stop=lambda: bool(seen)):
        seen.append(event["seq"])
    assert seen == [1]


def test_a_tail_gives_nothing_at_its_timeout(store: SqlStore) -> None:
    run = store.create("r")
    tail = store.tail("r")
    assert tail.read(0.0) == []
    run.append(line(1))
    run.barrier()
    assert tail.read(5.0) == [line(1)]
    tail.close()


# -- tamper evidence --


def test_an_untouched_record_is_whole(store: SqlStore) -> None:
    record(store, "r", 1200, end=True)
    found = store.verify("r")
    assert (found.whole, found.events, found.problem) == (True, 1201, "")


@pytest.mark.parametrize(
    ("sql", "first_bad", "problem"),
    [
        ("UPDATE events SET body = ? WHERE id = (SELECT max(id) FROM events) - 3", 7, "changed"),
        ("UPDATE events SET hash = ? WHERE id = (SELECT max(id) FROM events) - 3", 7, "changed"),
        ("DELETE FROM events WHERE id = (SELECT max(id) FROM events) - 4", 6, "is missing"),
        ("DELETE FROM events WHERE id = (SELECT max(id) FROM events)", 10, "ends at event 9"),
        ("DELETE FROM events WHERE id = (SELECT min(id) FROM events)", 1, "is missing"),
        ("UPDATE runs SET head = ?", 10, "not the one that was written"),
    ],
)
def test_a_changed_record_is_found_out_at_its_number(
    store: SqlStore, sql: str, first_bad: int, problem: str
) -> None:
    record(store, "r", 10)
    change(store, sql, *([b'{"type":"log"}'] * sql.count("?")))
    found = store.verify("r")
    assert (found.whole, found.first_bad) == (False, first_bad)
    assert problem in found.problem


def test_an_event_moved_from_another_run_is_found_out(store: SqlStore) -> None:
    record(store, "a", 2)
    record(store, "b", 2)
    change(
        store,
        "UPDATE events SET body = o.body, hash = o.hash FROM events o "
        "WHERE events.id = (1::bigint << 40) + 2 AND o.id = (2::bigint << 40) + 2".replace(
            "::bigint", "" if not store.database.locking else "::bigint"
        ),
    )
    assert store.verify("a").first_bad == 2
    assert store.verify("b").whole


def test_an_added_event_is_found_out(store: SqlStore) -> None:
    record(store, "r", 3)
    change(store, "UPDATE runs SET last_seq = 2")
    found = store.verify("r")
    assert (found.first_bad, "were added" in found.problem) == (3, True)


# -- blobs --


def test_a_blob_is_durable_with_the_events_after_it(store: SqlStore, open_again: Again) -> None:
    run = store.create("r")
    digest = run.keep(b"large")
    run.append(line(1, blob=digest))
    run.barrier()
    assert digest == digest_of(b"large")
    assert open_again().blobs.get(digest) == b"large"
    assert store.references("r") == {digest: 5}


def test_a_blob_goes_with_the_last_run_that_refers_to_it(store: SqlStore) -> None:
    digests = []
    for name in ("a", "b"):
        run = store.create(name)
        digests.append(run.keep(b"shared"))
        run.close()
    store.delete("a")
    assert store.blobs.get(digests[0]) == b"shared"
    store.delete("b")
    assert not store.blobs.has(digests[0])


def test_blobs_doomed_before_a_crash_go_with_the_next_sweep(store: SqlStore) -> None:
    store.blobs.put(digest_of(b"left"), b"left")
    change(store, "INSERT INTO doomed_blobs (digest) VALUES (?)", digest_of(b"left"))
    record(store, "r")
    store.delete("r")
    assert not store.blobs.has(digest_of(b"left"))


def test_a_blob_that_cannot_be_kept_ends_the_record_before_what_refers_to_it(
    store: SqlStore,
) -> None:
    run = store.create("r")
    run.append(line(1))
    run.barrier()
    Path(store.blobs.place).parent.mkdir(parents=True, exist_ok=True)
    Path(store.blobs.place).write_text("a file where the folder should be")
    digest = run.keep(b"large")
    run.append(line(2, blob=digest))
    with pytest.raises(StoreError, match="cannot be written"):
        run.barrier()
    assert list(store.lines("r")) == [line(1)]
    assert store.references("r") == {}  # it is not missed: nothing on record names it


def test_what_is_on_record_and_missing_is_missed(store: SqlStore) -> None:
    run = store.create("r")
    named, begun = run.keep(b"named"), run.keep(b"begun")
    run.append(line(1, blob=named))
    run.append(b'{"type":"asset_written","seq":2,"asset":{"digest":"%s"}}' % begun.encode())
    run.close()
    store.blobs.remove(named)
    store.blobs.remove(begun)
    assert store.references("r") == {named: 5}


# -- whole runs --


def test_a_deleted_run_is_gone_and_others_are_not(store: SqlStore) -> None:
    record(store, "a", 5)
    record(store, "b", 5)
    store.files("a").mkdir(parents=True)
    (store.files("a") / "asset").write_text("x")
    store.send("a", "message")
    store.delete("a")
    assert store.run_ids() == ["b"]
    assert not store.files("a").exists()
    assert store.verify("b").whole
    record(store, "a", 2)
    assert len(list(store.lines("a"))) == 2


def test_a_driven_run_is_not_deleted(store: SqlStore, open_again: Again) -> None:
    store.create("r")
    with pytest.raises(RunBusy):
        open_again().delete("r")


def test_an_exported_run_comes_back_as_it_was(store: SqlStore, tmp_path: Path) -> None:
    run = store.create("r")
    digest = run.keep(b"\x00large\xff")
    run.append(line(1, blob=digest))
    run.append(b'{"type":"run_suspended","seq":2,"reason":"wait"}')
    run.close()
    asset = store.files("r") / "assets" / "a.txt"
    asset.parent.mkdir(parents=True)
    asset.write_text("kept")
    before, entry, lines = store.verify("r"), store.entry("r"), list(store.lines("r"))
    store.export_run("r", tmp_path / "r.nwrun")
    store.delete("r")
    assert store.import_run(tmp_path / "r.nwrun") == "r"
    assert (store.verify("r"), store.entry("r"), list(store.lines("r"))) == (before, entry, lines)
    assert store.blobs.get(digest) == b"\x00large\xff"
    assert asset.read_text() == "kept"
    with pytest.raises(StoreError, match="already"):
        store.import_run(tmp_path / "r.nwrun")


def test_a_driven_run_is_exported_as_far_as_it_is(store: SqlStore, tmp_path: Path) -> None:
    run = store.create("r")
    run.append(line(1))
    run.barrier()
    store.export_run("r", tmp_path / "r.nwrun")
    run.append(line(2))
    run.close()
    store.delete("r")
    store.import_run(tmp_path / "r.nwrun")
    assert list(store.lines("r")) == [line(1)]


def rewritten(path: Path, name: str, data: bytes) -> None:
    """Change one member of an archive."""
    with zipfile.ZipFile(path) as old:
        members = {each: old.read(each) for each in old.namelist()}
    with zipfile.ZipFile(path, "w") as new:
        for each, content in {**members, name: data}.items():
            new.writestr(each, content)


@pytest.mark.parametrize("member", ["events.jsonl", "blob", "manifest.json"])
def test_a_damaged_archive_is_refused_whole(store: SqlStore, tmp_path: Path, member: str) -> None:
    run = store.create("r")
    digest = run.keep(b"large")
    run.append(line(1))
    run.append(line(2))
    run.close()
    store.export_run("r", path := tmp_path / "r.nwrun")
    store.delete("r")
    rewritten(path, f"blobs/{digest}" if member == "blob" else member, line(1) + b"\n")
    with pytest.raises(StoreError, match=r"r\.nwrun"):
        store.import_run(path)
    assert store.run_ids() == []
    assert not store.blobs.has(digest)


def test_an_archive_cannot_write_outside_its_folder(store: SqlStore, tmp_path: Path) -> None:
    record(store, "r")
    store.export_run("r", path := tmp_path / "r.nwrun")
    store.delete("r")
    with zipfile.ZipFile(path) as archive:
        manifest = json.loads(archive.read("manifest.json"))
    manifest["files"] = {"../../evil": digest_of(b"x")}
    rewritten(path, "manifest.json", json.dumps(manifest).encode())
    with pytest.raises(StoreError, match="outside its folder"):
        store.import_run(path)


def test_a_record_in_the_first_form_is_taken_in_without_its_torn_line(
    store: SqlStore, tmp_path: Path
) -> None:
    first = b'{"type":"run_started","run_id":"old","workflow":"w","seq":1,"at":"t"}'
    path = tmp_path / "events.jsonl"
    path.write_bytes(first + b"\n" + line(2) + b"\n" + line(3)[:-4])
    assert store.import_run(path) == "old"
    assert list(store.lines("old")) == [first, line(2)]
    assert (store.verify("old").whole, store.entry("old").workflow) == (True, "w")


def test_what_is_no_archive_is_named(store: SqlStore, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("hello\n")
    with pytest.raises(StoreError, match="no exported run"):
        store.import_run(tmp_path / "x")
    with pytest.raises(StoreError, match="does not exist"):
        store.import_run(tmp_path / "y")


def test_a_damaged_run_is_not_exported(store: SqlStore, tmp_path: Path) -> None:
    record(store, "r", 3)
    change(store, "DELETE FROM events WHERE id = (SELECT max(id) FROM events)")
    with pytest.raises(StoreError, match="not whole"):
        store.export_run("r", tmp_path / "r.nwrun")
    assert list(tmp_path.glob("r.nwrun*")) == []


def test_pruning_deletes_what_has_expired(store: SqlStore) -> None:
    for name in ("a", "b", "c"):
        record(store, name, end=True)
    record(store, "unfinished")
    store.create("driven")
    now = datetime(2026, 6, 1, tzinfo=UTC)
    assert prune(store, now, keep_days=365) == []
    assert prune(store, now, keep_last=1) == ["a", "b"]
    assert prune(store, now, keep_days=30) == ["c"]
    assert store.run_ids() == ["unfinished", "driven"]


# -- opening --


def test_many_can_open_an_empty_store_at_once(open_again: Again) -> None:
    begin, problems = threading.Barrier(8), []

    def use(number: int) -> None:
        begin.wait()
        try:
            record(open_again(), f"r{number}")
        except StoreError as error:
            problems.append(str(error))

    threads = [threading.Thread(target=use, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert sorted(open_again().run_ids()) == [f"r{n}" for n in range(8)]


def test_a_store_of_a_newer_version_is_refused_unharmed(store: SqlStore, open_again: Again) -> None:
    record(store, "r")
    newer = "UPDATE form SET number = 99" if store.database.locking else "PRAGMA user_version = 99"
    with store.database.writing() as cursor:
        cursor.do(newer)
    store.close()
    with pytest.raises(StoreError, match=r"newer Nightwarden \(form 99; this one knows 1\)"):
        list(open_again().read("r"))


def test_a_process_that_closed_its_store_can_open_it_again(
    store: SqlStore, open_again: Again
) -> None:
    record(store, "r")
    store.close()
    assert open_again().run_ids() == ["r"]
