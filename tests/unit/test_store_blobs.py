"""Blobs: content-addressed, whole or not there, in a folder and in object storage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nightwarden.errors import StoreError
from nightwarden.store.blobs import FolderBlobs, ObjectBlobs, digest_of, open_blobs
from nightwarden.store.contract import Blobs

DATA = b"\x00 some bytes \xff" * 3000
NAME = digest_of(DATA)


@pytest.fixture(params=["folder", "file://", "memory://"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Blobs]:
    """Each place in turn; what speaks to a cloud speaks to memory and folders as well."""
    if request.param == "folder":
        yield open_blobs(tmp_path / "blobs")
        return
    pytest.importorskip("obstore")
    (tmp_path / "objects").mkdir()
    yield open_blobs(f"file://{tmp_path}/objects" if request.param == "file://" else "memory:///")


def test_what_is_put_can_be_had_by_its_hash(blobs: Blobs) -> None:
    assert not blobs.has(NAME)
    blobs.put(NAME, DATA)
    blobs.put(NAME, DATA)
    assert blobs.has(NAME)
    assert blobs.get(NAME) == DATA


def test_nothing_is_a_blob_too(blobs: Blobs) -> None:
    blobs.put(digest_of(b""), b"")
    assert blobs.get(digest_of(b"")) == b""


def test_a_removed_blob_is_gone_and_removing_it_again_is_no_error(blobs: Blobs) -> None:
    blobs.put(NAME, DATA)
    blobs.remove(NAME)
    blobs.remove(NAME)
    assert not blobs.has(NAME)


def test_a_missing_blob_is_named_with_its_place(blobs: Blobs) -> None:
    with pytest.raises(StoreError, match=f"blob {NAME} is not in ") as caught:
        blobs.get(NAME)
    assert blobs.place in str(caught.value)


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "A" * 64, "a" * 63, NAME + "\n"])
def test_what_is_no_hash_names_no_file(blobs: Blobs, name: str) -> None:
    with pytest.raises(StoreError, match="names no blob"):
        blobs.get(name)
    with pytest.raises(StoreError, match="names no blob"):
        blobs.put(name, b"")


def test_a_damaged_blob_is_an_error_and_never_a_value(tmp_path: Path) -> None:
    blobs = FolderBlobs(tmp_path)
    blobs.put(NAME, DATA)
    (tmp_path / NAME[:2] / NAME[2:]).write_bytes(DATA[:-1] + b"!")
    with pytest.raises(StoreError, match="is damaged"):
        blobs.get(NAME)


def test_a_blob_that_was_cut_short_is_mended_when_it_is_put_again(tmp_path: Path) -> None:
    blobs = FolderBlobs(tmp_path)
    blobs.put(NAME, DATA)
    (tmp_path / NAME[:2] / NAME[2:]).write_bytes(DATA[:100])
    blobs.put(NAME, DATA)
    assert blobs.get(NAME) == DATA


def test_nothing_lies_about_when_a_blob_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / NAME[:2]).write_text("in the way")
    with pytest.raises(StoreError, match=r"cannot be written: .*free space"):
        FolderBlobs(tmp_path).put(NAME, DATA)
    assert [path.name for path in tmp_path.iterdir()] == [NAME[:2]]


def test_a_url_that_is_none_says_so() -> None:
    pytest.importorskip("obstore")
    with pytest.raises(StoreError, match="nonsense://x cannot be used"):
        open_blobs("nonsense://x")


def test_a_place_is_shown_without_its_secrets() -> None:
    pytest.importorskip("obstore")
    blobs = ObjectBlobs("s3://key:s3cret@bucket/runs?token=t0ken", region="eu-west-1")
    assert blobs.place == "s3://bucket/runs"
