"""How fast the record is, as ratios to plain SQLite on the same disk in the same run (G7, G12).

    python benchmarks/store.py               a table, in about a minute
    python benchmarks/store.py --quick       small sizes, one round: does it work at all?
    python benchmarks/store.py --json --url postgresql://…

    writing    60,000 events of steps through a run, until a barrier has returned, against the same
               bytes in plain batches of 1,000 with a synced commit each
    barriers   events that are each waited for, as the starts of effectful steps are
    follow     from `append` in one process to the event in another
    reading    100,000 events back, as mappings
    run        whole runs with everything on record, against the same in memory; and resumed

Read next: `recorded.py`, `engine.py`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from recorded import in_turns, resumed

from nightwarden.events import Event, InvocationSucceeded, encode
from nightwarden.store import open_store
from nightwarden.store.sqlstore import SqlStore

STEPS = 3
STAMP = "2026-11-30T20:15:00.123Z"


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    items: int = 20_000
    rounds: int = 5
    barriers: int = 500
    news: int = 100
    read: int = 100_000


QUICK = Sizes(items=500, rounds=1, barriers=20, news=10, read=2_000)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="How fast the record is.")
    parser.add_argument("--quick", action="store_true", help="small sizes, one round")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--url", help="a store to measure instead of a new SQLite file")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="nw-bench-") as folder:
        found = measure(Path(folder), options.url, QUICK if options.quick else Sizes())
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        for name, value in found.items():
            print(f"{name:<36} {value:>14,.3f}".rstrip("0").rstrip("."))
    return 0


def measure(folder: Path, url: str | None, sizes: Sizes) -> dict[str, float]:
    """All numbers, by name."""
    events = list(made(sizes.items * STEPS))
    lines = [encode(event) for event in events]
    ours, plain, fed = [], [], []
    for number in range(sizes.rounds):  # in turns, so that a busy machine is busy for all
        plain.append(plain_batches(folder / f"plain-{number}.db", lines))
        place = url or str(folder / f"store-{number}")
        with open_store(place, files=folder) as store:
            ours.append(written(store, fresh("written"), lines))
            fed.append(published(store, fresh("published"), events))
    with open_store(url or folder / "more", files=folder) as store:
        found = {
            "events": float(len(lines)),
            "events_per_s": len(lines) / statistics.median(ours),
            "events_per_s_with_encoding": len(lines) / statistics.median(fed),
            "plain_sqlite_events_per_s": len(lines) / statistics.median(plain),
            "ratio_to_plain_sqlite": statistics.median(
                [one / other for one, other in zip(ours, plain, strict=True)]
            ),
            "bytes_per_event_of_content": sum(map(len, lines)) / len(lines),
            "barriers_per_s": barriers(store, sizes.barriers, lines),
            **following(store, url or str(folder / "more"), sizes.news),
            **reading(store, sizes.read),
        }
    found |= in_turns(folder, sizes.items, sizes.rounds)
    found |= resumed(folder, sizes.read)
    if url is None:
        size = (folder / "store-0" / "nightwarden.db").stat().st_size
        found["bytes_per_event_on_disk"] = size / (2 * len(lines))
    return found


def made(count: int) -> list[Event]:
    """Events as the steps of a fan-out publish them."""
    events: list[Event] = []
    for number in range(count):
        event = InvocationSucceeded(
            node_id=f"step{number % STEPS}",
            lineage=(number // STEPS,),
            attempt=1,
            outputs={"output": number},
        )
        event.seq, event.at = number + 1, STAMP
        events.append(event)
    return events


def fresh(name: str) -> str:
    """A run id that was not used before, in whatever store."""
    return f"bench-{name}-{time.time_ns()}"


def timed(work: Callable[[], object]) -> float:
    """Seconds."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def written(store: SqlStore, run_id: str, lines: Sequence[bytes]) -> float:
    """Through a run, until all of it is durable."""
    run = store.create(run_id)

    def work() -> None:
        for line in lines:
            run.append(line)
        run.barrier()

    seconds = timed(work)
    run.close()
    return seconds


def published(store: SqlStore, run_id: str, events: Sequence[Event]) -> float:
    """The same, encoded on the way as a run does it."""
    run = store.create(run_id)

    def work() -> None:
        for event in events:
            run.append(encode(event))
        run.barrier()

    seconds = timed(work)
    run.close()
    return seconds


def plain_batches(path: Path, lines: Sequence[bytes], batch: int = 1000) -> float:
    """The least that SQLite asks for the same bytes: one table, one index, synced batches."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE events (id INTEGER PRIMARY KEY, body BLOB)")

    def work() -> None:
        for start in range(0, len(lines), batch):
            connection.execute("BEGIN")
            connection.executemany(
                "INSERT INTO events VALUES (?, ?)",
                enumerate(lines[start : start + batch], start=start),
            )
            connection.execute("COMMIT")

    seconds = timed(work)
    connection.close()
    return seconds


def barriers(store: SqlStore, count: int, lines: Sequence[bytes]) -> float:
    """Events a second when each is waited for."""
    run = store.create(fresh("barriers"))

    def work() -> None:
        for number in range(count):
            run.append(lines[number])
            run.barrier()

    seconds = timed(work)
    run.close()
    return count / seconds


def following(store: SqlStore, url: str, count: int) -> dict[str, float]:
    """Milliseconds from `append` here to the event in another process."""
    run = store.create(fresh("follow"))
    run.barrier()
    mine, theirs = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=follower, args=(url, run.run_id, theirs)
    )
    process.start()
    mine.recv()
    delays = []
    for number in range(1, count + 1):
        time.sleep(0.02 + (number * 7 % 40) / 1000)  # at all phases of whoever polls
        sent = time.monotonic()
        run.append(b'{"type":"log","seq":%d}' % number)
        delays.append((mine.recv() - sent) * 1000)
    run.append(b'{"type":"run_completed","seq":%d}' % (count + 1))
    run.close()
    process.join()
    delays.sort()
    return {
        "follow_ms_median": statistics.median(delays),
        "follow_ms_95th": delays[int(len(delays) * 0.95)],
        "follow_ms_longest": delays[-1],
    }


def follower(url: str, run_id: str, pipe: Connection) -> None:
    """Tell when each event came."""
    with open_store(url) as store:
        pipe.send("ready")
        for event in store.follow(run_id):
            if event["type"] == "log":
                pipe.send(time.monotonic())


def reading(store: SqlStore, count: int) -> dict[str, float]:
    """Seconds until many events are back, and until the first of them is."""
    run_id = fresh("read")
    written(store, run_id, [encode(event) for event in made(count)])
    return {
        "read_s": timed(lambda: sum(1 for _ in store.read(run_id))),
        "first_event_ms": timed(lambda: next(iter(store.read(run_id)))) * 1000,
        "verify_s": timed(lambda: store.verify(run_id)),
        "list_runs_ms": timed(store.runs) * 1000,
    }


if __name__ == "__main__":
    raise SystemExit(main())
