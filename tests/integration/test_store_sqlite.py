"""The SQLite store and what can be wrong with disks, files and other programs (issue 4, Bad input).

Every message names the file and a remedy; nothing already recorded is lost.
"""

from __future__ import annotations

import os
import pwd
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nightwarden.errors import StoreError
from nightwarden.store import Unready, open_store
from nightwarden.store.blobs import FolderBlobs
from nightwarden.store.migrating import migrations
from nightwarden.store.sqlite import SqliteDatabase
from nightwarden.store.sqlite_errors import network_hint
from nightwarden.store.sqlstore import SqlStore

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "store-0001"


def line(seq: int, text: str = "") -> bytes:
    """Some event."""
    return b'{"type":"log","seq":%d,"text":"%s"}' % (seq, text.encode())


def record(store: SqlStore, run_id: str = "r", count: int = 3, text: str = "") -> None:
    """A run of some events."""
    run = store.create(run_id)
    for seq in range(1, count + 1):
        run.append(line(seq, text))
    run.close()


def impatient(path: Path) -> SqlStore:
    """A store that does not wait long for others."""
    database = SqliteDatabase(path, busy_timeout_s=0.05)
    return SqlStore(database, FolderBlobs(path.parent / "blobs"), path.parent, patience_s=0.1)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the database lies."""
    return tmp_path / "nightwarden.db"


# -- the file --


def test_only_its_owner_can_read_the_file(file: Path) -> None:
    with open_store(file) as store:
        record(store)
        modes = {path.name: path.stat().st_mode & 0o777 for path in file.parent.glob("*.db*")}
    assert set(modes.values()) == {0o600}


def test_looking_makes_no_file(tmp_path: Path) -> None:
    with open_store(tmp_path / "nowhere") as store:
        assert store.runs() == []
        with pytest.raises(StoreError, match=r"nightwarden\.db; --store names another place"):
            store.find("last")
    assert not (tmp_path / "nowhere").exists()


def test_a_deleted_run_gives_its_space_back(file: Path) -> None:
    with open_store(file) as store:
        record(store, count=2000, text="x" * 1000)
        store.delete("r")
    assert file.stat().st_size < 200_000


def test_a_folder_with_odd_characters_will_do(tmp_path: Path) -> None:
    with open_store(tmp_path / "a b?c#d%e'ü") as store:
        record(store)
        assert store.run_ids() == ["r"]
    assert (tmp_path / "a b?c#d%e'ü" / "nightwarden.db").exists()


# -- other programs --


def test_another_programs_database_is_left_alone(file: Path) -> None:
    other = sqlite3.connect(file)
    other.execute("CREATE TABLE theirs (x)")
    other.close()
    before = file.read_bytes()
    with open_store(file) as store, pytest.raises(StoreError, match="another program's database"):
        store.create("r")
    assert file.read_bytes() == before


def test_a_locked_database_is_waited_for_then_named(file: Path) -> None:
    with open_store(file) as store:
        record(store, "before")
    store, other = impatient(file), sqlite3.connect(file, isolation_level=None)
    run = store.create("r")
    other.execute("BEGIN IMMEDIATE")
    run.append(line(1))
    with pytest.raises(Unready, match=r"nightwarden\.db is locked by another program"):
        run.barrier()
    with pytest.raises(Unready, match="close what has it open"):
        store.create("r2")
    assert [event["seq"] for event in store.read("before")] == [1, 2, 3]
    other.execute("ROLLBACK")
    other.close()
    with pytest.raises(Unready):
        run.close()
    store.close()


def test_a_lock_that_is_let_go_in_time_costs_nothing(file: Path) -> None:
    with open_store(file) as store:
        run = store.create("r")
        other = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        run.append(line(1))
        let_go = threading.Timer(0.3, lambda: other.execute("ROLLBACK"))
        let_go.start()
        run.barrier()
        let_go.join()
        other.close()
        assert list(store.lines("r")) == [line(1)]


# -- damage --


def test_a_file_that_is_no_database_is_named(file: Path) -> None:
    file.write_bytes(b"hello, this is text" * 400)
    with open_store(file) as store, pytest.raises(StoreError, match="is no SQLite database"):
        store.runs()


def test_a_small_file_that_is_no_database_is_not_written_over(file: Path) -> None:
    """SQLite takes a file smaller than its smallest page for an empty one."""
    file.write_bytes(b"hello")
    with open_store(file) as store, pytest.raises(StoreError, match="is no SQLite database"):
        store.create("r")
    assert file.read_bytes() == b"hello"


@pytest.mark.parametrize("damage", ["overwritten", "cut off"])
def test_of_a_damaged_database_what_can_be_read_is_read(file: Path, damage: str) -> None:
    with open_store(file) as store:
        record(store, count=3000, text="y" * 200)
    size = file.stat().st_size
    with file.open("r+b") as raw:
        if damage == "cut off":
            raw.truncate(size * 2 // 3)
        else:
            raw.seek(size * 2 // 3 // 4096 * 4096)
            raw.write(b"\xff" * 4096 * 3)
    read: list[bytes] = []
    with open_store(file) as store:
        with pytest.raises(StoreError, match=r"nightwarden\.db (is damaged|could not be read)"):
            read += store.lines("r") if damage == "cut off" else _all(store, read)
        if damage == "overwritten":
            assert len(read) > 1000
            assert read == [line(seq, "y" * 200) for seq in range(1, len(read) + 1)]


def test_a_torn_last_page_is_damage_wherever_it_is_torn(file: Path) -> None:
    """Issue 4, Bad input: a clear error, never a fault of ours."""
    with open_store(file) as store:
        record(store, count=60, text="y" * 200)
    whole = file.read_bytes()
    damaged = 0
    for gone in range(64, 4096 * 2, 331):
        file.write_bytes(whole[:-gone])
        with open_store(file) as store:
            for look in (store.verify, lambda run: list(store.lines(run)), store.entry):
                try:
                    look("r")
                except StoreError as error:
                    assert "damaged" in str(error) or "could not be read" in str(error)
                    damaged += 1
    assert damaged > 20


def _all(store: SqlStore, into: list[bytes]) -> list[bytes]:
    for each in store.lines("r"):
        into.append(each)
    return []


# -- disks --


def in_a_process(code: str, *arguments: str) -> str:
    """Run code in a process of its own; gives what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


FILLS = """
import resource, sys
from nightwarden.errors import StoreError
from nightwarden.store import open_store
store = open_store(sys.argv[1])
if sys.argv[2] == "limit":
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
run = store.create("r")
acknowledged = 0
try:
    for seq in range(1, 20_000):
        run.append(b'{"type":"log","seq":%d,"text":"%s"}' % (seq, b"z" * 500))
        if seq % 10 == 0:
            run.barrier()
            acknowledged = seq
except StoreError as error:
    print(error)
print(acknowledged)
"""


def test_a_file_that_may_not_grow_ends_the_record_and_keeps_what_it_has(file: Path) -> None:
    message, acknowledged = in_a_process(FILLS, str(file), "limit").splitlines()
    assert str(file) in message
    assert "free space" in message
    with open_store(file) as store:
        assert store.verify("r").whole
        assert store.entry("r").events >= int(acknowledged) > 0
        store.reopen("r").close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB, where one may be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    made = mount and subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if not made or made.returncode:
        pytest.skip("no file system can be mounted here; the limit on file sizes is tested instead")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_ends_the_record_and_keeps_what_it_has(small_disk: Path) -> None:
    file = small_disk / "nightwarden.db"
    message, acknowledged = in_a_process(FILLS, str(file), "disk").splitlines()
    assert "the disk is full; free space and resume the run" in message
    with open_store(file) as store:
        found = store.verify("r")
        assert found.whole
        assert found.events >= int(acknowledged) > 0


@pytest.fixture
def shut_folder() -> Iterator[Path]:
    """A folder that nobody but a superuser may write to, with a record in it."""
    folder = Path(tempfile.mkdtemp(prefix="nw-shut-"))
    with open_store(folder) as store:
        record(store)
    for path in folder.rglob("*"):
        path.chmod(0o444)
    folder.chmod(0o555)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def as_somebody(work: Callable[[], str]) -> str:
    """Run in a child that is not the superuser, whom nothing stops; gives what it said."""
    migrations("sqlite")  # the child may not be able to read where the package lies
    mine, childs = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # threads of others do not matter to what it does
        child = os.fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                account = pwd.getpwnam("nobody")
                os.setgroups([])
                os.setgid(account.pw_gid)
                os.setuid(account.pw_uid)
            said = work()
        except BaseException as error:
            said = f"{type(error).__name__} {error}"
        os.write(childs, said.encode())
        os._exit(0)
    os.close(childs)
    with os.fdopen(mine) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


def test_a_read_only_folder_is_read(shut_folder: Path) -> None:
    def work() -> str:
        with open_store(shut_folder) as store:
            numbers = [event["seq"] for event in store.follow("r")]
            return f"{store.verify('last').whole} {numbers} {store.run_ids()}"

    assert as_somebody(work) == "True [1, 2, 3] ['r']"


@pytest.mark.parametrize("below", ["", "new"])
def test_a_read_only_folder_is_not_written(shut_folder: Path, below: str) -> None:
    said = as_somebody(lambda: str(open_store(shut_folder / below).create("x")))
    assert said.startswith(f"StoreError {shut_folder / below}")
    assert "cannot be" in said
    assert "--store" in said


def test_a_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    with (
        open_store(tmp_path / "f" / "g") as store,
        pytest.raises(StoreError, match=r"cannot be used: (Not a directory|File exists)"),
    ):
        store.create("r")


def test_a_network_file_system_is_mentioned_with_an_error(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        "server:/x /home nfs4 rw 0 0\n/dev/a / ext4 rw 0 0\nh:/y /mnt/a\\040b cifs rw\n"
    )
    assert "network file system (nfs4)" in network_hint(Path("/home/me/x.db"), mounts)
    assert "(cifs)" in network_hint(Path("/mnt/a b/x.db"), mounts)
    assert network_hint(Path("/srv/x.db"), mounts) == ""


# -- two processes, clocks --


def test_two_processes_never_drive_one_run(file: Path) -> None:
    code = (
        "import sys\nfrom nightwarden.store import open_store, RunBusy\n"
        "try:\n    open_store(sys.argv[1]).reopen('r')\n    print('took it')\n"
        "except RunBusy as error:\n    print(error)"
    )
    with open_store(file) as store:
        run = store.create("r")
        assert f"driven by process {os.getpid()} on " in in_a_process(code, str(file))
        run.close()
    assert in_a_process(code, str(file)) == "took it\n"


def test_a_clock_that_jumps_back_does_not_end_a_run_or_let_another_in(file: Path) -> None:
    clock = [1_000_000.0]
    database = SqliteDatabase(file, wall=lambda: clock[0])
    with SqlStore(database, FolderBlobs(file.parent), file.parent) as store:
        run = store.create("r")
        run.append(line(1))
        run.barrier()
        clock[0] -= 500_000
        run.append(line(2))
        run.barrier()
        with open_store(file) as other, pytest.raises(StoreError, match="is driven by"):
            other.reopen("r")
        run.close()
        assert list(store.lines("r")) == [line(1), line(2)]


# -- old files load for ever --


def test_a_database_of_this_version_loads_for_ever(tmp_path: Path) -> None:
    """tests/golden/store-0001 was written when the form was 1; it is never written again."""
    shutil.copytree(GOLDEN, tmp_path / "store")
    with open_store(tmp_path / "store") as store:
        assert [(e.run_id, e.status, e.workflow, e.supervised) for e in store.runs()] == [
            ("20261130-101500-first", "completed", "summarise-pages", True),
            ("20261130-102000-other", "interrupted", "ingest", False),
        ]
        for run_id in store.run_ids():
            expected = (GOLDEN / f"{run_id}.jsonl").read_bytes().splitlines()
            assert list(store.lines(run_id)) == expected
            assert store.verify(run_id).whole
        first = store.verify("20261130-101500-first")
        assert first.head == (GOLDEN / "head.txt").read_text().strip()
        (digest,) = store.references("20261130-101500-first")
        assert len(store.blobs.get(digest)) == 20_000
        run = store.reopen("last")
        run.append(line(run.last_seq + 1))
        run.close()
        assert store.verify("last").whole


def test_an_archive_of_this_version_is_taken_in_for_ever(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        assert store.import_run(GOLDEN / "first.nwrun") == "20261130-101500-first"
        assert store.verify("last").head == (GOLDEN / "head.txt").read_text().strip()


def test_an_old_database_ends_up_in_the_form_of_a_new_one(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN, tmp_path / "old")
    forms = []
    for folder in ("old", "new"):
        with open_store(tmp_path / folder) as store:
            record(store)
        plain = sqlite3.connect(tmp_path / folder / "nightwarden.db")
        schema = plain.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY name").fetchall()
        forms.append((schema, plain.execute("PRAGMA user_version").fetchone()))
        plain.close()
    assert forms[0] == forms[1]
