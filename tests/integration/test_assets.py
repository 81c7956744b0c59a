"""The files of a run: kept once, by what they hold, and found by their names. (issue 4, Store)"""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

import nightwarden as nw
from nightwarden import AssetRef, Context
from nightwarden.errors import NodeError
from nightwarden.session import Session, run_session
from nightwarden.store import open_store
from nightwarden.store.blobs import FolderBlobs, digest_of

PAGE = b"<p>page</p>" * 5


@nw.node(type="assets.Write")
async def write(name: str, ctx: Context) -> AssetRef:
    return ctx.assets.write(f"pages/{name}.html", PAGE, media_type="text/html")


@nw.node(type="assets.Read", retry_safe=True)
async def read(made: AssetRef, ctx: Context) -> str:
    return ctx.assets.read(made).decode()


def run(place: Path, run_id: str, names: list[str]) -> list[str]:
    with nw.workflow("assets") as w:
        given = w.input("names", list[str])
        made = w.add(write, id="write", name=given.each())
        w.add(read, id="read", made=made)
    with open_store(place) as store:
        session = Session(w.build(), {"names": names}, store=store, run_id=run_id, workdir=place)
        return list(run_session(session).outputs["read"])


def blobs(place: Path) -> list[Path]:
    return [path for path in (place / "blobs").rglob("*") if path.is_file()]


def page(place: Path, run_id: str, name: str) -> Path:
    return place / "runs" / run_id / "assets" / "pages" / f"{name}.html"


def test_a_file_is_kept_once_and_has_its_name_in_its_runs_folder(tmp_path: Path) -> None:
    assert run(tmp_path, "r", ["a"]) == [PAGE.decode()]
    (kept,) = blobs(tmp_path)
    assert kept == tmp_path / "blobs" / digest_of(PAGE)[:2] / digest_of(PAGE)[2:]
    assert page(tmp_path, "r", "a").read_bytes() == PAGE
    assert kept.samefile(page(tmp_path, "r", "a"))


def test_equal_files_of_one_run_and_of_two_take_their_place_once(tmp_path: Path) -> None:
    run(tmp_path, "r1", ["a"])
    run(tmp_path, "r2", ["a", "b"])
    (kept,) = blobs(tmp_path)
    names = [page(tmp_path, "r1", "a"), page(tmp_path, "r2", "a"), page(tmp_path, "r2", "b")]
    assert [kept.samefile(name) for name in names] == [True] * 3
    assert sorted(path.name for path in names[2].parent.iterdir()) == ["a.html", "b.html"]


def test_a_file_cannot_be_changed_by_its_name(tmp_path: Path) -> None:
    run(tmp_path, "r", ["a"])
    assert page(tmp_path, "r", "a").stat().st_mode & 0o222 == 0


def test_a_file_is_read_by_what_it_holds_when_its_name_is_gone_or_holds_another(
    tmp_path: Path,
) -> None:
    run(tmp_path, "r", ["a"])
    reference = AssetRef("pages/a.html", digest_of(PAGE), len(PAGE), "text/html")

    @nw.node(type="assets.Again", retry_safe=True)
    async def again(ctx: Context) -> str:
        return ctx.assets.read(reference).decode()

    with nw.workflow("again") as w:
        w.add(again, id="again")
    with open_store(tmp_path) as store:
        session = Session(w.build(), store=store, run_id="s", workdir=tmp_path)
        assert run_session(session).outputs == {"again": PAGE.decode()}


def test_a_file_goes_with_the_last_run_that_has_it(tmp_path: Path) -> None:
    run(tmp_path, "r1", ["a"])
    run(tmp_path, "r2", ["a"])
    with open_store(tmp_path) as store:
        store.delete("r1")
        assert page(tmp_path, "r2", "a").read_bytes() == PAGE
        assert len(blobs(tmp_path)) == 1
        store.delete("r2")
        assert blobs(tmp_path) == []
        assert not (tmp_path / "runs" / "r2").exists()


def test_an_exported_run_has_its_files_once_and_by_name_again_where_it_is_taken_in(
    tmp_path: Path,
) -> None:
    run(tmp_path / "here", "r", ["a", "b"])
    with open_store(tmp_path / "here") as store:
        store.export_run("r", tmp_path / "r.nwrun")
    with zipfile.ZipFile(tmp_path / "r.nwrun") as archive:
        names = [name for name in archive.namelist() if archive.read(name) == PAGE]
    assert names == [f"blobs/{digest_of(PAGE)}"]
    with open_store(tmp_path / "there") as store:
        store.import_run(tmp_path / "r.nwrun")
        assert store.verify("r").whole
    (kept,) = blobs(tmp_path / "there")
    assert kept.samefile(page(tmp_path / "there", "r", "a"))
    assert kept.samefile(page(tmp_path / "there", "r", "b"))


def test_a_damaged_blob_is_mended_by_the_next_file_that_holds_the_same(tmp_path: Path) -> None:
    run(tmp_path, "r1", ["a"])
    (kept,) = blobs(tmp_path)
    kept.chmod(0o600)
    kept.write_bytes(b"X" * len(PAGE))
    assert run(tmp_path, "r2", ["a"]) == [PAGE.decode()]
    assert kept.read_bytes() == PAGE


def test_a_file_that_is_gone_before_it_could_be_adopted_is_written_from_memory(
    tmp_path: Path,
) -> None:
    kept = FolderBlobs(tmp_path / "blobs")
    kept.put(digest_of(PAGE), PAGE, tmp_path / "gone")
    assert kept.get(digest_of(PAGE)) == PAGE
    (tmp_path / "other").write_bytes(b"written over in the meantime")
    kept.put(digest_of(b"x"), b"x", tmp_path / "other")
    assert kept.get(digest_of(b"x")) == b"x"
    assert (tmp_path / "other").read_bytes() == b"written over in the meantime"


def test_nothing_half_written_is_left_beside_a_file(tmp_path: Path) -> None:
    run(tmp_path, "r", ["a", "b", "c"])
    found = [name for _, _, names in os.walk(tmp_path) for name in names]
    assert [name for name in found if name.startswith((".new-", ".tmp-"))] == []


def test_a_secret_in_the_name_of_a_file_is_in_no_record(tmp_path: Path) -> None:
    """supervision.md §4. A file of the run is not called by it; one of the step's own may be."""
    secret = 'zk-live/7Qm2"Zt9aB'

    @nw.node(type="assets.Secret")
    async def named(ctx: Context) -> int:
        ctx.assets.record(ctx.workdir / f"{ctx.secret('KEY')}.csv")
        with pytest.raises(NodeError, match="a secret stands in its name"):
            ctx.assets.write(f"to/{secret}.txt", b"y")
        return 1

    with nw.workflow("secret") as w:
        w.add(named, id="named")
    with open_store(tmp_path) as store:
        session = Session(
            w.build(), store=store, run_id="r", workdir=tmp_path, secrets={"KEY": secret}
        )
        assert run_session(session).status == "completed"
        lines = b"".join(store.lines("r"))
    assert lines.count("••••(KEY)".encode()) >= 2
    assert b"zk-live/7Qm2" not in lines
    assert not (tmp_path / "runs" / "r" / "assets" / "to").exists()
