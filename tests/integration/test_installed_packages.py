"""What an installed package adds by its entry points: node types, supervisors, recognisers.

design: surfaces.md, Library; supervision.md §3.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import Done, nightwarden

PACKAGE = '''
from nightwarden import Decision, node
from nightwarden.runtime.supervision import SupervisorBase
from nightwarden.verdict import Skip


class OurError(Exception):
    def __init__(self, number: str) -> None:
        super().__init__("it broke")
        self.number = number


@node(type="ours.Break")
async def break_it(number: str) -> str:
    """Break."""
    raise OurError(number)


def signature(error):
    return f"ours:{error.number}" if isinstance(error, OurError) else None


def confused(error):
    raise LookupError("no error it knows")


class Skipping(SupervisorBase):
    def __init__(self, why):
        self.why = why

    async def decide(self, escalation):
        return Decision(verdict=Skip(), rationale=self.why)


def refusing(argument):
    raise ValueError(f"{argument!r} is no such thing")
'''

SCRIPT = """
import sys
import nightwarden as nw

w = nw.workflow("broken")
w.add("ours.Break", id="step", number=sys.argv[1])
session = nw.Session(w.build())
session.subscribe(lambda e: print(e.signature) if hasattr(e, "signature") else None)
from nightwarden.session import run_session
print(run_session(session).status)
"""

NODES = "[nightwarden.nodes]\nours = ours:break_it\n"


def installed(folder: Path, entry_points: str) -> Path:
    """A folder with a package, as an installer leaves it."""
    (folder / "ours.py").write_text(PACKAGE)
    info = folder / "ours-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ours\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(NODES + entry_points)
    return folder


def broken(folder: Path, number: str) -> subprocess.CompletedProcess[str]:
    """A run whose only step breaks, with what lies in `folder` installed."""
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, number],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(folder)},
        cwd=folder,
        check=False,
    )


def test_an_installed_recogniser_gives_an_error_its_signature(tmp_path: Path) -> None:
    points = "[nightwarden.recognisers]\na = ours:confused\nb = ours:signature\n"
    done = broken(installed(tmp_path, points), "E42")
    assert done.stdout.splitlines() == ["ours:E42", "failed"], done.stderr


def test_without_one_such_an_error_has_no_signature(tmp_path: Path) -> None:
    done = broken(installed(tmp_path, ""), "E42")
    assert done.stdout.splitlines() == ["None", "failed"], done.stderr


def test_a_recogniser_that_cannot_be_loaded_is_warned_of_and_the_others_are_asked(
    tmp_path: Path,
) -> None:
    points = "[nightwarden.recognisers]\na = nowhere:signature\nb = ours:signature\n"
    done = broken(installed(tmp_path, points), "E42")
    assert done.stdout.splitlines() == ["ours:E42", "failed"], done.stderr
    assert "recogniser a (nowhere:signature) cannot be loaded" in done.stderr


def test_what_an_installed_recogniser_says_has_to_be_a_signature(tmp_path: Path) -> None:
    points = "[nightwarden.recognisers]\nb = ours:signature\n"
    done = broken(installed(tmp_path, points), "no code but a sentence")
    assert done.stdout.splitlines() == ["None", "failed"], done.stderr


# -- supervisors --

FLOW = (
    "nodes:\n  step: {type: ours.Break, number: E1}\n  after: {type: ours.Break, number: $step}\n"
)


def supervised(folder: Path, points: str, *arguments: str) -> Done:
    installed(folder, f"[nightwarden.supervisors]\n{points}\n")
    (folder / "flow.yaml").write_text(FLOW)
    return nightwarden(*arguments, cwd=folder, env={"PYTHONPATH": str(folder)})


def test_an_installed_supervisor_is_asked_by_its_name(tmp_path: Path) -> None:
    points = "ours = ours:Skipping"
    done = supervised(tmp_path, points, "run", "flow.yaml", "--supervise", "ours:as we do")
    assert done.code == 0, done.out + done.err
    assert "skip (as we do)" in done.out + done.err


def test_an_installed_supervisor_may_be_given_a_file_and_be_watched(tmp_path: Path) -> None:
    points = "ours = ours:Skipping"
    mode = "shadow:ours:rules.yaml"
    done = supervised(tmp_path, points, "run", "flow.yaml", "--supervise", mode)
    assert done.code == 1
    assert "rules.yaml" in done.out + done.err


@pytest.mark.parametrize(
    ("point", "says"),
    [
        ("nowhere:S", "supervisor ours (nowhere:S) cannot be had: ModuleNotFoundError: No module"),
        ("ours:refusing", "supervisor ours (ours:refusing) cannot be had: ValueError: '' is no"),
        ("ours:signature", "gives NoneType, which cannot be asked: a supervisor has decide,"),
    ],
)
def test_one_that_cannot_be_had_ends_the_run_before_it_starts(
    tmp_path: Path, point: str, says: str
) -> None:
    done = supervised(tmp_path, f"ours = {point}", "run", "flow.yaml", "--supervise", "ours")
    assert done.code == 2
    assert says in done.err
    assert not (tmp_path / ".nightwarden").exists()


def test_a_name_there_is_none_of_is_told_with_those_there_are(tmp_path: Path) -> None:
    points = "ours = ours:Skipping"
    done = supervised(tmp_path, points, "run", "flow.yaml", "--supervise", "theirs")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "unknown mode of supervision 'theirs'" in done.err
    assert "ours" in done.err.replace("theirs", "")
