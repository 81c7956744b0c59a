"""File tools stay inside the workspace, whatever a path is made of (steering.md §5).

row: T5-NATIVE
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from nightwarden.agents.workspace import MOST_BYTES, ToolProblem, Workspace


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    """A workspace beside a file that is none of its business."""
    (tmp_path / "ws" / "src").mkdir(parents=True)
    (tmp_path / "ws" / "src" / "a.txt").write_text("inside\n")
    (tmp_path / "secret.txt").write_text("outside\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "b.txt").write_text("outside\n")
    return Workspace(tmp_path / "ws")


ESCAPES: dict[str, Callable[[Path], str]] = {
    "up": lambda ws: "../secret.txt",
    "up from below": lambda ws: "src/../../secret.txt",
    "far up": lambda ws: "../" * 40 + "etc/passwd",
    "absolute": lambda ws: "/etc/passwd",
    "absolute beside": lambda ws: str(ws.parent / "secret.txt"),
    "absolute with the same beginning": lambda ws: str(ws) + "-not/x.txt",
    "absolute and up": lambda ws: f"{ws}/../secret.txt",
    "a link to a file": lambda ws: link(ws / "l", "../secret.txt"),
    "an absolute link": lambda ws: link(ws / "l", str(ws.parent / "secret.txt")),
    "a link to a folder": lambda ws: link(ws / "l", "../other") + "/b.txt",
    "a link below, up": lambda ws: link(ws / "src" / "l", "../../other", "src/l") + "/b.txt",
    "links over links": lambda ws: link(ws / "m", link(ws / "l", "..")) + "/secret.txt",
    "a link into a link": lambda ws: (
        link(ws / "m", "src/l") and link(ws / "src" / "l", "../..", "m")
    ),
}


def link(path: Path, target: str, name: str = "") -> str:
    path.symlink_to(target)
    return name or path.name


@pytest.mark.parametrize("escape", ESCAPES)
def test_no_path_leads_out_for_reading(space: Workspace, escape: str) -> None:
    path = ESCAPES[escape](space.root)
    with pytest.raises(ToolProblem):
        space.read(path)


@pytest.mark.parametrize("escape", ESCAPES)
def test_no_path_leads_out_for_writing(space: Workspace, escape: str) -> None:
    path = ESCAPES[escape](space.root)
    before = sorted(p for p in space.root.parent.rglob("*") if space.root not in p.parents)
    with pytest.raises(ToolProblem):
        space.write(path, "mine")
    after = sorted(p for p in space.root.parent.rglob("*") if space.root not in p.parents)
    assert after == before
    assert (space.root.parent / "secret.txt").read_text() == "outside\n"
    assert (space.root.parent / "other" / "b.txt").read_text() == "outside\n"


def test_a_link_that_leads_out_cannot_be_listed(space: Workspace) -> None:
    (space.root / "l").symlink_to("../other")
    with pytest.raises(ToolProblem, match="outside"):
        space.entries("l")


def test_listing_does_not_follow_links(space: Workspace) -> None:
    (space.root / "l").symlink_to("../other")
    assert space.entries(recursive=True) == ["l@", "src/", "src/a.txt"]


def test_a_link_that_stays_inside_is_followed(space: Workspace) -> None:
    (space.root / "l").symlink_to("src")
    (space.root / "m").symlink_to(space.root / "l" / "a.txt")
    assert space.read("l/a.txt") == "inside\n"
    assert space.read("m") == "inside\n"
    space.write("m", "changed")
    assert (space.root / "src" / "a.txt").read_text() == "changed"
    assert (space.root / "m").is_symlink()


def test_the_way_through_the_workspace_itself_is_open(space: Workspace) -> None:
    assert space.read("src/../src/./a.txt") == "inside\n"
    assert space.read(str(space.root / "src" / "a.txt")) == "inside\n"


def test_links_without_an_end_are_refused(space: Workspace) -> None:
    (space.root / "a").symlink_to("b")
    (space.root / "b").symlink_to("a")
    with pytest.raises(ToolProblem, match="without an end"):
        space.read("a")


def test_a_folder_swapped_for_a_link_meanwhile_leads_nowhere(space: Workspace) -> None:
    """What is used is what was opened: swapping a part of the path never lets a read out."""
    stop = threading.Event()
    (space.root / "d").mkdir()
    (space.root / "d" / "b.txt").write_text("inside\n")

    def swap() -> None:
        aside, here = space.root / "d-aside", space.root / "d"
        while not stop.is_set():
            here.rename(aside)
            here.symlink_to("../other")
            here.unlink()
            aside.rename(here)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(2_000):
            try:
                assert space.read("d/b.txt") == "inside\n"
            except ToolProblem:
                continue
    finally:
        stop.set()
        thread.join()


def test_writing_over_a_second_name_leaves_the_other_content(space: Workspace) -> None:
    os.link(space.root.parent / "secret.txt", space.root / "twin.txt")
    space.write("twin.txt", "mine")
    assert (space.root.parent / "secret.txt").read_text() == "outside\n"


def test_writing_makes_folders_and_keeps_the_mode(space: Workspace) -> None:
    assert space.write("new/deep/x.sh", "echo\n") == 5
    (space.root / "new/deep/x.sh").chmod(0o755)
    space.write("new/deep/x.sh", "echo 2\n")
    assert (space.root / "new/deep/x.sh").stat().st_mode & 0o777 == 0o755
    assert sorted(p.name for p in (space.root / "new/deep").iterdir()) == ["x.sh"]


def test_a_pipe_is_no_file_and_does_not_block(space: Workspace) -> None:
    os.mkfifo(space.root / "pipe")
    with pytest.raises(ToolProblem, match="no ordinary file"):
        space.read("pipe")
    with pytest.raises(ToolProblem, match="no ordinary file"):
        space.write("pipe", "x")


@pytest.mark.parametrize("path", ["", " ", "a\0b"])
def test_what_is_no_path_is_refused(space: Workspace, path: str) -> None:
    with pytest.raises(ToolProblem, match="no path"):
        space.read(path)


def test_what_is_not_there_is_said(space: Workspace) -> None:
    with pytest.raises(ToolProblem, match="there is no such file"):
        space.read("src/none.txt")
    with pytest.raises(ToolProblem, match="a part of it is no folder"):
        space.read("src/a.txt/b")
    with pytest.raises(ToolProblem, match="is a folder"):
        space.read("src")
    with pytest.raises(ToolProblem, match="is a folder"):
        space.write(".", "x")


def test_what_is_no_text_or_too_long_is_refused(space: Workspace) -> None:
    (space.root / "x.bin").write_bytes(b"\x7fELF\0\0")
    with pytest.raises(ToolProblem, match="no text file"):
        space.read("x.bin")
    with pytest.raises(ToolProblem, match="too many"):
        space.write("x.txt", "x" * (MOST_BYTES + 1))
    assert not (space.root / "x.txt").exists()


def test_an_edit_needs_its_text_to_be_there_just_once(space: Workspace) -> None:
    space.write("e.txt", "one two one\n")
    with pytest.raises(ToolProblem, match="2 times"):
        space.edit("e.txt", "one", "1")
    with pytest.raises(ToolProblem, match="does not contain"):
        space.edit("e.txt", "three", "3")
    with pytest.raises(ToolProblem, match="does not contain"):
        space.edit("e.txt", "", "3")
    assert space.edit("e.txt", "two", "2") == 1
    assert space.edit("e.txt", "one", "1", replace_all=True) == 2
    assert space.read("e.txt") == "1 2 1\n"


def test_an_edit_does_not_spoil_what_it_cannot_read(space: Workspace) -> None:
    (space.root / "latin.txt").write_bytes(b"caf\xe9 one\n")
    with pytest.raises(ToolProblem, match="not UTF-8"):
        space.edit("latin.txt", "one", "1")
    assert (space.root / "latin.txt").read_bytes() == b"caf\xe9 one\n"
