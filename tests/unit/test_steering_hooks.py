"""Hooks put into somebody else's settings (steering.md §7); scenarios 96 and 97 of §23."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwarden.steering.claude import doctor, hooks
from nightwarden.steering.claude.hooks import BadSettingsFile, install, installed, uninstall


def settings(project: Path) -> Any:
    return json.loads((project / ".claude" / "settings.local.json").read_text(encoding="utf-8"))


def given_settings(project: Path, text: str, name: str = "settings.local.json") -> Path:
    path = project / ".claude" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode())
    return path


OTHERS = {
    "permissions": {"allow": ["Bash(ls:*)"]},
    "hooks": {
        "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}],
        "PostToolUse": [
            {"matcher": "Edit", "hooks": [{"type": "command", "command": "fmt", "timeout": 5}]}
        ],
        "PreToolUse": [{"matcher": "Bash", "hooks": []}],
    },
    "model": "opus",
}


def test_hooks_are_put_at_the_three_events(tmp_path: Path) -> None:
    change = install(tmp_path)
    assert change.events == ("Stop", "PostToolUse", "PostToolUseFailure")
    found = settings(tmp_path)["hooks"]
    assert "matcher" not in found["Stop"][0]
    assert found["PostToolUse"][0]["matcher"] == "*"
    handler = found["PostToolUseFailure"][0]["hooks"][0]
    assert handler == {"type": "command", "command": hooks.command(), "timeout": 10}
    assert "drain.py" in handler["command"]
    assert installed(tmp_path) == hooks.EVENTS


def test_twice_is_once(tmp_path: Path) -> None:
    install(tmp_path)
    before = settings(tmp_path)
    assert install(tmp_path).events == ()
    assert settings(tmp_path) == before


def test_what_others_put_there_stays(tmp_path: Path) -> None:
    given_settings(tmp_path, json.dumps(OTHERS))
    install(tmp_path)
    found = settings(tmp_path)
    assert found["hooks"]["Stop"][0] == OTHERS["hooks"]["Stop"][0]  # type: ignore[index]
    assert list(found) == list(OTHERS)
    assert found["permissions"] == OTHERS["permissions"]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(OTHERS),
        json.dumps(OTHERS, indent=4) + "\n",
        json.dumps(OTHERS, indent="\t"),
        '{"hooks": {"Stop": []},\n "größe": 1e3}\n',
        "{}",
        "",
        "\ufeff{}",
        "  \n",
    ],
)
def test_put_in_twice_and_taken_out_not_a_byte_has_changed(text: str, tmp_path: Path) -> None:
    """Scenario 96."""
    path = given_settings(tmp_path, text)
    install(tmp_path)
    install(tmp_path)
    assert set(uninstall(tmp_path).events) == set(hooks.EVENTS)
    assert path.read_bytes() == text.encode()
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_file_that_was_not_there_goes_again(tmp_path: Path) -> None:
    install(tmp_path)
    uninstall(tmp_path)
    assert list((tmp_path / ".claude").iterdir()) == []


def test_what_was_changed_meanwhile_stays_when_they_are_taken_out(tmp_path: Path) -> None:
    path = given_settings(tmp_path, json.dumps(OTHERS, indent=2))
    install(tmp_path)
    changed = settings(tmp_path) | {"model": "haiku"}
    path.write_text(json.dumps(changed, indent=2))
    uninstall(tmp_path)
    assert settings(tmp_path) == OTHERS | {"model": "haiku"}


def test_there_is_a_copy_of_what_was_there(tmp_path: Path) -> None:
    given_settings(tmp_path, json.dumps(OTHERS))
    change = install(tmp_path)
    assert change.backup is not None
    assert json.loads(change.backup.read_text()) == OTHERS


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "{} x",
        "// note\n{}",
        '{"a": 1, "a": 2}',
        '{"hooks": []}',
        '{"hooks": {"Stop": {}}}',
        '"x"',
    ],
)
def test_a_file_that_cannot_be_edited_stays_as_it_is(text: str, tmp_path: Path) -> None:
    """Scenario 97."""
    path = given_settings(tmp_path, text)
    with pytest.raises(BadSettingsFile, match="nothing was changed"):
        install(tmp_path)
    assert path.read_text() == text
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_bytes_that_are_no_text_stay_as_they_are(tmp_path: Path) -> None:
    path = given_settings(tmp_path, "")
    path.write_bytes(b"\xff\xfe{}")
    with pytest.raises(BadSettingsFile, match="not UTF-8"):
        install(tmp_path)
    assert path.read_bytes() == b"\xff\xfe{}"


def test_the_form_of_the_file_is_kept(tmp_path: Path) -> None:
    path = given_settings(tmp_path, '{\n    "größe": "ü"\n}')
    install(tmp_path)
    text = path.read_text(encoding="utf-8")
    assert text.startswith('{\n    "größe": "ü"')
    assert not text.endswith("\n")


def test_the_shared_settings_are_another_file(tmp_path: Path) -> None:
    assert install(tmp_path, shared=True).path.name == "settings.json"
    assert installed(tmp_path) == ()
    assert installed(tmp_path, shared=True) == hooks.EVENTS


def test_hooks_of_an_older_place_are_replaced(tmp_path: Path) -> None:
    old = "/old/python /old/nightwarden/steering/claude/drain.py"
    group = {"hooks": [{"type": "command", "command": old}, {"type": "command", "command": "mine"}]}
    given_settings(tmp_path, json.dumps({"hooks": {"Stop": [group]}}))
    install(tmp_path)
    commands = [h["command"] for g in settings(tmp_path)["hooks"]["Stop"] for h in g["hooks"]]
    assert commands == ["mine", hooks.command()]


def test_a_link_stays_a_link_and_the_mode_what_it_was(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    real.chmod(0o600)
    (tmp_path / ".claude").mkdir()
    link = tmp_path / ".claude" / "settings.local.json"
    link.symlink_to(real)
    install(tmp_path)
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o600
    assert "hooks" in json.loads(real.read_text())


def test_a_project_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadSettingsFile, match="no directory"):
        install(tmp_path / "nope")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    given_settings(tmp_path, "{}")
    (tmp_path / ".claude").chmod(0o500)
    with pytest.raises(BadSettingsFile, match="cannot be written"):
        install(tmp_path)
    (tmp_path / ".claude").chmod(0o700)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
_GROUPS = st.lists(
    st.fixed_dictionaries(
        {
            "hooks": st.lists(
                st.fixed_dictionaries({"command": st.sampled_from(["a", "b"])}), max_size=2
            )
        }
    ),
    max_size=2,
)
_SETTINGS = st.dictionaries(st.text(max_size=5), _JSON, max_size=3).flatmap(
    lambda rest: st.dictionaries(
        st.sampled_from(["Stop", "PostToolUse", "PreToolUse"]), _GROUPS, max_size=3
    ).map(lambda found: {**rest, "hooks": found})
)


@given(_SETTINGS, st.booleans())
def test_whatever_stands_there_comes_through(found: dict[str, Any], compact: bool) -> None:
    text = json.dumps(found, indent=None if compact else 2)
    edited = hooks.parsed(Path("x"), text)
    hooks._add(edited, Path("x"))
    again = hooks.parsed(Path("x"), hooks.dumped(edited, like=text))
    hooks._remove(again)
    wanted = {e: g for e, g in found["hooks"].items() if g or e not in hooks.EVENTS}
    rest = {k: v for k, v in found.items() if k != "hooks"}
    assert again == ({**found, "hooks": wanted} if wanted else rest)


@pytest.mark.parametrize("gone", ["drain.py", "python"])
def test_what_the_hooks_run_ends_well_though_it_is_gone(
    gone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 2 would keep a session from stopping, and any other be shown to the user."""
    if gone == "python":
        monkeypatch.setattr("sys.executable", str(tmp_path / "no python"))
    else:
        monkeypatch.setattr(hooks.drain, "__file__", str(tmp_path / "it's gone" / "drain.py"))
    done = subprocess.run(
        hooks.command(), shell=True, input=b"{}", capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"")


_SHAPES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", "x", "\ud83d", "*"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["hooks", "Stop", "PostToolUse", "matcher", "command"]), inner
        )
    ),
    max_leaves=8,
)


@given(st.one_of(st.fixed_dictionaries({"hooks": _SHAPES}), _SHAPES))
def test_settings_of_any_shape_are_edited_or_refused_and_left_alone(shape: object) -> None:
    """Issue 6, bad input: whatever stands there is no fault of ours."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        text = json.dumps(shape)
        path = given_settings(project, text)
        list(doctor._hooks(project))
        try:
            install(project)
        except BadSettingsFile:
            assert path.read_text() == text
            return
        assert installed(project) == hooks.EVENTS
        assert set(uninstall(project).events) == set(hooks.EVENTS)
        assert path.read_text() == text


@pytest.mark.parametrize(
    "text", ['{"a": 1e999}', '{"a": NaN}', '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}"]
)
def test_what_could_not_be_written_back_is_refused(tmp_path: Path, text: str) -> None:
    path = given_settings(tmp_path, text)
    with pytest.raises(BadSettingsFile, match="nothing was changed"):
        install(tmp_path)
    assert path.read_text() == text


# -- doctor --


@pytest.fixture
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    (tmp_path / "home").mkdir()
    project = tmp_path / "project"
    project.mkdir()
    return project


def ailments(project: Path) -> list[str]:
    busy = "the drain answers in"  # how fast is for the benchmark to say
    return [f.what for f in doctor.examine(project) if not f.well and not f.what.startswith(busy)]


def test_the_doctor_finds_hooks_that_are_not_there(at_home: Path) -> None:
    assert "no hook at Stop, PostToolUse, PostToolUseFailure" in ailments(at_home)[0]
    install(at_home)
    assert [a for a in ailments(at_home) if "no hook" in a] == []


def test_the_doctor_finds_hooks_that_are_switched_off_or_stale_or_corrupt(at_home: Path) -> None:
    install(at_home)
    path = at_home / ".claude" / "settings.local.json"
    path.write_text(path.read_text().replace("-I -S", "-I"))
    assert "which is not this one" in ailments(at_home)[0]
    given_settings(at_home, '{"disableAllHooks": true}', "settings.json")
    assert any("switches all hooks off" in a for a in ailments(at_home))
    path.write_text("{")
    assert "cannot be edited" in ailments(at_home)[0]


def test_the_doctor_finds_a_mailbox_that_cannot_be_made_and_no_session(at_home: Path) -> None:
    found = [f for f in doctor.examine(at_home) if "session" in f.what]
    assert [f.well for f in found] == [False]
    assert any(f.well and "mailboxes in" in f.what for f in doctor.examine(at_home))
