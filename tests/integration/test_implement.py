"""The example in which an agent mends a repository, without a key (issue 6)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from example_runs import Desk, counts, desk_in
from model_server import Call, ModelServer, Say

from nightwarden.events import Event
from nightwarden.events.render import render
from nightwarden.result import RunResult
from nightwarden.session import run_session
from nightwarden.testing.scripted import Script, main, read_script

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-to" / "let-an-agent-work.md"
SCRIPT = ROOT / "examples" / "implement" / "model.yaml"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A folder with a copy of the examples."""
    return desk_in(tmp_path)


def implement(
    desk: Desk, script: Script, monkeypatch: pytest.MonkeyPatch
) -> tuple[RunResult, list[str]]:
    """Run the example on a scripted model: what came of it, and every line it said."""
    monkeypatch.chdir(desk.folder)
    events: list[Event] = []
    with ModelServer([script]) as server:
        monkeypatch.setenv("OLLAMA_BASE_URL", f"{server.base_url}/v1")
        session = desk.session("implement", {"model": "ollama:scripted"}, supervisors="on")
        session.subscribe(events.append)
        result = run_session(session)
    return result, [render(event, 20_000) for event in events]


def judged(passed: bool, reason: str = "seen") -> Call:
    """The judge's answer."""
    return Call("answer", {"passed": passed, "reason": reason, "failing": []})


QUIET = [Call("advise", {"intervene": False, "message": "", "reason": "fine", "watch": [], "done": True})]  # fmt: skip  # noqa: E501


def lists(**by_tool: Sequence[Any]) -> Script:
    """A script that has nothing to say for supervisors."""
    script: Mapping[str, Sequence[Any]] = {"advise": QUIET, **by_tool}
    return Script(script)


def test_an_agent_mends_the_repository_in_two_rounds(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 6: implement → test → fix with `flow.Loop` and a judge, watched by two supervisors."""
    result, lines = implement(desk, read_script(SCRIPT), monkeypatch)
    assert result.status == "completed", result.reason
    assert result.outputs["mended"]["passed"] is True
    assert result.outputs["mended"]["checks"] == "0 of 10 wrong"
    assert counts(result, "implement")["succeeded"] == 2
    assert "◇ coach watches implement, 13 monitors" in lines
    assert any(line.startswith("◇ guard woke, evaluation 1: ") for line in lines)
    told = [line for line in lines if line.startswith("implement is told: ")]
    assert ["February has 28 days in leap years too" in line for line in told] == [False, True]


def test_the_judge_cannot_overrule_the_checks(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = implement(desk, lists(answer=[judged(True)], shell=[Say("Done.")]), monkeypatch)
    assert result.status == "failed"
    assert "the repository is not mended after three rounds" in result.reason
    assert counts(result, "implement")["succeeded"] == 3


def test_mending_the_checks_is_no_way_out(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    cheat = Call("write", {"path": "check.py", "text": "print('0 of 10 wrong')\n"})
    script = lists(answer=[judged(True)], shell=[cheat, Say("All checks pass.")])
    result, _ = implement(desk, script, monkeypatch)
    assert result.status == "failed"
    assert "sys.exit" in (desk.folder / "implement-work" / "check.py").read_text()


def test_what_the_checks_pass_the_judge_may_still_send_back(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = (
        "import calendar\ndef month_end(year, month):\n"
        "    return calendar.monthrange(year, month)[1]\n"
    )
    script = lists(
        answer=[judged(False, "no docstring"), judged(True)],
        shell=[Call("write", {"path": "dates.py", "text": right}), Say("Done.")],
    )
    result, lines = implement(desk, script, monkeypatch)
    assert result.status == "completed"
    assert counts(result, "implement")["succeeded"] == 2
    assert any("no docstring" in line for line in lines if line.startswith("implement is told: "))


def test_a_model_that_cannot_be_asked_stops_the_run_with_one_line(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, _ = implement(desk, Script({}), monkeypatch)
    assert result.status == "failed"
    assert "ollama:scripted: the provider answered with status 400" in result.reason


@pytest.mark.slow
def test_the_commands_of_the_page_do_what_it_shows(desk: Desk) -> None:
    """Each line that is shown is in what the command prints, in order; `…` is anything."""
    text = PAGE.read_text(encoding="utf-8")
    ran = 0
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.replace("\\\n", " ").partition("\n")
            printed = shell(desk, command)
            ran += 1
            for line in filter(None, map(str.strip, shown.splitlines())):
                at = re.search(".*".join(map(re.escape, line.split("…"))), printed)
                assert at is not None, f"{command}\nshould print\n{line}\nnot\n{printed}"
                printed = printed[at.end() :]
    assert ran == 3


def shell(desk: Desk, command: str) -> str:
    """What a command prints, both streams."""
    path = f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=desk.folder,
        env={**os.environ, "PATH": path, "PYTHONIOENCODING": "utf-8", "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60,
        check=False,
    )
    return done.stdout.decode()


# -- the scripted model as a command --


def test_the_command_ends_as_what_it_runs_does() -> None:
    code = "import os, sys; sys.exit(7 if os.environ['OLLAMA_BASE_URL'].endswith('/v1') else 1)"
    assert main([str(SCRIPT), "--", sys.executable, "-c", code]) == 7


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- a", "Expected `object`"),
        ("shell: {say: x}", "Expected `array`"),
        ("shell:\n  - {tell: x}", "unknown field `tell`"),
        ("shell: [", "no script of a model"),
    ],
)
def test_a_script_that_is_none_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    (tmp_path / "s.yaml").write_text(text)
    assert main([str(tmp_path / "s.yaml"), "--", "true"]) == 2
    assert says in capsys.readouterr().err


def test_without_a_script_or_a_command_the_usage_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert [main([]), main(["s.yaml"]), main(["s.yaml", "--"]), main(["s", "x", "y"])] == [2] * 4
    assert capsys.readouterr().err.count("usage: ") == 4
    assert main(["none.yaml", "--", "true"]) == 2
