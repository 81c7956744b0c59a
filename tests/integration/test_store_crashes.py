"""Writers killed with SIGKILL at seeded moments: nothing acknowledged is lost (issue 4)."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nightwarden.store import open_store
from nightwarden.store.sqlstore import SqlStore

VICTIM = Path(__file__).with_name("store_victim.py")


class Victims:
    """Starts writers, reads what they acknowledge, kills them."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.process = subprocess.Popen(
            [sys.executable, str(VICTIM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def write_and_die(self, run_id: str, seed: int) -> int:
        """Have a writer killed at a moment the seed chooses; gives the last number acknowledged."""
        chance = random.Random(seed)
        assert self.process.stdin is not None
        self.process.stdin.write(f"{self.url} {run_id} {seed}\n".encode())
        self.process.stdin.flush()
        child, acknowledged = int(self.read()[1:]), 0
        acks = chance.randrange(1, 12)
        spin = chance.randrange(60_000)  # somewhere between two acknowledgements
        while (said := self.read()) != "-":
            acknowledged = int(said)
            acks -= 1
            if acks == 0:
                for _ in range(spin):
                    pass
                os.kill(child, signal.SIGKILL)
        return acknowledged

    def read(self) -> str:
        """The next line of the writer or its parent."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().decode().strip()

    def close(self) -> None:
        """No more of them."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(10)


@pytest.fixture
def victims(store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Victims]:
    """Writers on a store, blobs of PostgreSQL in the test's own folder."""
    monkeypatch.chdir(tmp_path)
    found = Victims(store_url)
    yield found
    found.close()


def check(store: SqlStore, run_id: str, acknowledged: int) -> int:
    """The record is whole, holds all that was acknowledged, and every blob it names."""
    found = store.verify(run_id)
    assert found.whole, found.problem
    assert found.events >= acknowledged
    for event in store.read(run_id, after=max(0, found.events - 300)):
        if event["blob"]:
            assert store.blobs.get(event["blob"])
    return found.events


def test_no_acknowledged_event_is_ever_lost_and_every_run_goes_on(
    victims: Victims, store_url: str
) -> None:
    kills, total = (150, 0) if store_url.startswith("sqlite") else (40, 0)
    with open_store(store_url) as store:
        for seed in range(kills):
            run_id = f"run-{seed // 5}"  # the same run five times: a dead owner's is taken over
            before = store.entry(run_id).events if run_id in store.run_ids() else 0
            acknowledged = victims.write_and_die(run_id, seed)
            after = check(store, run_id, acknowledged)
            assert after >= before
            total += after - before
            assert store.entry(run_id).status == "interrupted"
    assert total > kills


def test_a_torn_write_ahead_log_costs_only_what_was_torn(tmp_path: Path) -> None:
    """What the disk did not finish is the end of the record, never a reason not to read it."""
    victims = Victims(f"sqlite:{tmp_path}/store/nightwarden.db")
    try:
        for seed in range(40):
            folder = tmp_path / f"torn-{seed}"
            victims.write_and_die(f"r{seed}", 1000 + seed)
            shutil.copytree(tmp_path / "store", folder)
            (folder / "nightwarden.db-shm").unlink(missing_ok=True)
            tear(folder / "nightwarden.db-wal", random.Random(seed))
            with open_store(folder) as store:
                for run_id in store.run_ids():
                    found = store.verify(run_id)
                    assert found.whole, found.problem
    finally:
        victims.close()


def tear(wal: Path, chance: random.Random) -> None:
    """Cut the end off, or leave a last page that was half written."""
    size = wal.stat().st_size if wal.exists() else 0
    if size < 9000:
        return
    cut = chance.randrange(1, 8000)
    with wal.open("r+b") as file:
        if chance.random() < 0.5:
            file.truncate(size - cut)
        else:
            file.seek(size - cut)
            file.write(chance.randbytes(min(cut, 3000)))
