"""The mailbox of a Claude Code session and its drain (steering.md §7); scenarios of §23."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nightwarden.steering.claude import drain
from nightwarden.steering.claude.box import SessionBox
from nightwarden.steering.mailbox import OPERATOR, State, TooLate
from nightwarden.steering.ports import NotQueued, Words

SESSION = "5e550a11-0000-4000-8000-0000000000a1"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", raising=False)
    return tmp_path


def words(number: int, text: str = "look", author: str = "dog") -> Words:
    return Words(message_id=f"m{number}", run_id=SESSION, node_id="", author=author, text=text)


def hook(event: str = "PostToolUse", **fields: Any) -> dict[str, Any]:
    return {"session_id": SESSION, "hook_event_name": event, "cwd": "/somewhere/else", **fields}


def drained(given: object, now: float | None = None) -> Any:
    """What a hook would print, parsed; None for nothing. Everything printed counts as delivered."""
    answer, claims = drain.prepared(given, drain.time.time() if now is None else now)
    drain.settle(claims, printed=True)
    return json.loads(answer) if answer else None


def text_of(answer: Any) -> str:
    if "hookSpecificOutput" in answer:
        return str(answer["hookSpecificOutput"]["additionalContext"])
    return str(answer["reason"])


def states(box: SessionBox) -> dict[str, str]:
    return {m.message_id: str(m.state) for m in box.messages()}


# -- what is said, and where --


def test_nothing_waits_and_nothing_is_said() -> None:
    """Scenario 87."""
    assert drained(hook()) is None
    SessionBox(SESSION).enqueue(words(1))
    drained(hook())
    assert drained(hook()) is None


@pytest.mark.parametrize("event", ["PostToolUse", "PostToolUseFailure"])
def test_at_a_tool_the_text_is_context_for_the_agent(event: str) -> None:
    """Scenario 88."""
    box = SessionBox(SESSION)
    box.enqueue(words(1, "Read month_end()."))
    assert drained(hook(event)) == {
        "hookSpecificOutput": {"hookEventName": event, "additionalContext": "Read month_end()."}
    }
    assert states(box) == {"m1": "delivered"}


def test_at_a_stop_the_text_is_the_reason_to_go_on() -> None:
    """Scenario 89."""
    SessionBox(SESSION).enqueue(words(1, "One more."))
    assert drained(hook("Stop")) == {"decision": "block", "reason": "One more."}


def test_a_stop_that_follows_one_is_let_through_when_nothing_waits() -> None:
    """Scenario 90."""
    SessionBox(SESSION).enqueue(words(1))
    assert drained(hook("Stop")) is not None
    assert drained(hook("Stop", stop_hook_active=True)) is None


def test_a_continuation_that_would_be_cut_off_keeps_the_message() -> None:
    """Scenario 91: after eight in a row the turn ends whatever the hook says."""
    box = SessionBox(SESSION)
    box.enqueue(words(0, author=OPERATOR))
    assert drained(hook("Stop"))
    for i in range(1, 8):
        box.enqueue(words(i, author=OPERATOR))
        assert drained(hook("Stop", stop_hook_active=True)), i
    box.enqueue(words(9, "still there", author=OPERATOR))
    assert drained(hook("Stop", stop_hook_active=True)) is None
    assert states(box)["m9"] == "queued"
    assert text_of(drained(hook())) == "still there"


def test_a_tool_between_continuations_starts_the_count_anew() -> None:
    box = SessionBox(SESSION)
    for i in range(20):
        box.enqueue(words(i, author=OPERATOR))
        assert drained(hook("Stop", stop_hook_active=True)), i
        if i % 5 == 4:
            drained(hook())


def test_the_cap_of_continuations_is_claude_codes_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "1")
    box = SessionBox(SESSION)
    box.enqueue(words(1, author=OPERATOR))
    assert drained(hook("Stop"))
    box.enqueue(words(2, author=OPERATOR))
    assert drained(hook("Stop", stop_hook_active=True)) is None
    monkeypatch.setenv("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "0")
    assert drained(hook("Stop", stop_hook_active=True))


@pytest.mark.parametrize(
    "given",
    [
        hook(agent_id="sub-1"),
        hook("SubagentStop"),
        hook("UserPromptSubmit"),
        {"hook_event_name": "Stop"},
        hook(session_id="../../etc"),
        hook(session_id=7),
        [],
        "text",
        None,
    ],
)
def test_whoever_it_is_not_for_gets_nothing(given: object) -> None:
    """Scenarios 92 and 95."""
    box = SessionBox(SESSION)
    box.enqueue(words(1))
    assert drained(given) is None
    assert states(box) == {"m1": "queued"}


def test_the_box_is_found_by_session_wherever_the_session_has_gone() -> None:
    """Scenario 93."""
    SessionBox(SESSION).enqueue(words(1))
    assert drained(hook(cwd="/a/sub/folder"))


# -- what is too long --


def test_what_does_not_fit_is_handed_over_in_parts() -> None:
    """Scenario 94."""
    box = SessionBox(SESSION)
    text = " ".join(f"word{i}" for i in range(3_000))
    box.enqueue(words(1, text, author=OPERATOR))
    parts = []
    while (answer := drained(hook())) is not None:
        parts.append(text_of(answer))
        assert drain.length(parts[-1]) <= 9_900
        assert states(box)["m1"] in ("queued", "delivered")
    assert " ".join(parts).split() == text.split()
    assert len(parts) == 3
    assert box.messages()[0].text == text


def test_messages_that_do_not_fit_together_wait_whole() -> None:
    box = SessionBox(SESSION)
    for i in range(3):
        box.enqueue(words(i, f"{i}" * 6_000, author=OPERATOR))
    assert [text_of(drained(hook()))[0] for _ in range(3)] == ["0", "1", "2"]
    assert drained(hook()) is None


def test_characters_are_counted_as_the_reader_counts_them() -> None:
    box = SessionBox(SESSION)
    box.enqueue(words(1, "🙂" * 9_000, author=OPERATOR))
    first = text_of(drained(hook()))
    assert len(first.encode("utf-16-le")) // 2 <= 9_900


# -- order, gate, replacement --


def test_a_person_goes_first_and_texts_are_joined() -> None:
    box = SessionBox(SESSION)
    box.enqueue(words(1, "from the dog"))
    box.enqueue(words(2, "from a person", author=OPERATOR))
    assert text_of(drained(hook())) == "from a person\n\n---\n\nfrom the dog"


def test_one_supervisor_speaks_at_a_boundary() -> None:
    """steering.md §4: one gate, so that advice does not stack up."""
    box = SessionBox(SESSION)
    box.enqueue(words(1, "dog"))
    box.enqueue(words(2, "cat", author="cat"))
    now = drain.time.time()
    assert text_of(drained(hook(), now)) == "dog"
    assert drained(hook(), now + 1) is None
    assert text_of(drained(hook(), now + 10)) == "cat"


def test_a_newer_word_replaces_one_that_waits() -> None:
    box = SessionBox(SESSION)
    box.enqueue(words(1, "old"))
    box.enqueue(words(2, "new"))
    assert states(box) == {"m1": "cancelled", "m2": "queued"}
    assert text_of(drained(hook())) == "new"


def test_an_id_is_queued_once_whatever_became_of_it() -> None:
    """Scenarios 64 and 65."""
    box = SessionBox(SESSION)
    assert box.enqueue(words(1)) is not None
    assert SessionBox(SESSION).enqueue(words(1, "again")) is None
    drained(hook())
    box.stepped()
    assert box.enqueue(words(1, "again")) is None
    assert states(box) == {"m1": "consumed"}


def test_a_message_is_taken_back_only_while_it_waits() -> None:
    """Scenario 62."""
    box = SessionBox(SESSION)
    box.enqueue(words(1))
    assert box.cancel("m1").state is State.CANCELLED
    with pytest.raises(TooLate):
        box.cancel("m1")
    with pytest.raises(TooLate):
        box.cancel("m9")


def test_what_waited_too_long_is_not_said() -> None:
    box = SessionBox(SESSION)
    box.enqueue(words(1), ttl_s=-1)
    assert drained(hook()) is None
    assert states(box) == {"m1": "expired"}


def test_the_end_of_the_session_ends_what_waits() -> None:
    told: list[tuple[str, str]] = []
    box = SessionBox(SESSION, told=lambda m: told.append((m.message_id, str(m.state))))
    box.enqueue(words(1))
    assert [m.reason for m in box.session_ended()] == ["the session ended"]
    assert told == [("m1", "queued"), ("m1", "expired")]


# -- crashes, parallel hooks, broken boxes --


def test_what_was_claimed_and_not_printed_waits_again() -> None:
    """Two-phase delivery: delivered is written after the agent has it."""
    box = SessionBox(SESSION)
    box.enqueue(words(1))
    now = drain.time.time()
    answer, _claims = drain.prepared(hook(), now)  # and the process dies here
    assert answer
    assert states(box) == {"m1": "queued"}
    assert drained(hook(), now + 1) is None
    assert drained(hook(), now + 60) is not None
    assert states(box) == {"m1": "delivered"}


def test_an_answer_nobody_reads_goes_back() -> None:
    box = SessionBox(SESSION)
    box.enqueue(words(1))
    _, claims = drain.prepared(hook(), drain.time.time())
    drain.settle(claims, printed=False)
    assert drained(hook()) is not None


def test_parallel_hooks_show_a_message_once() -> None:
    """Scenario 69."""
    box = SessionBox(SESSION)
    for i in range(30):
        box.enqueue(words(i, f"<{i}>", author=OPERATOR))
    said: list[str] = []
    gate = threading.Barrier(8)

    def one() -> None:
        gate.wait()
        for _ in range(10):
            answer = drained(hook())
            if answer is not None:
                said.extend(text_of(answer).split(drain.RULE))

    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(said) == sorted(f"<{i}>" for i in range(30))


def test_a_file_that_is_no_message_is_put_aside() -> None:
    """Scenario 66."""
    box = SessionBox(SESSION)
    box.enqueue(words(1))
    (box.path / "queued" / "0-torn.json").write_text('{"text": "to')
    assert text_of(drained(hook())) == "look"
    assert [p.name for p in (box.path / "broken").iterdir()] == ["0-torn.json"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_mailbox_says_so_and_disturbs_nobody(home: Path) -> None:
    box = SessionBox(SESSION)
    box.enqueue(words(1))
    for folder in box.path.iterdir():
        folder.chmod(0o500)
    assert drained(hook()) is None
    with pytest.raises(NotQueued, match="cannot be written"):
        box.enqueue(words(2))
    for folder in box.path.iterdir():
        folder.chmod(0o700)


def test_a_mailbox_that_cannot_be_made_says_so(home: Path) -> None:
    (home / ".nightwarden").write_text("a file")
    with pytest.raises(NotQueued, match="cannot be written"):
        SessionBox(SESSION).enqueue(words(1))
    assert drained(hook()) is None


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "x" * 300])
def test_what_is_no_session_id_names_no_mailbox(name: str) -> None:
    with pytest.raises(NotQueued, match="no session id"):
        SessionBox(name)


# -- the command itself --


def run_drain(stdin: bytes, home: Path) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-I", "-S", drain.__file__]
    env = {"HOME": str(home), "PATH": os.environ["PATH"]}
    return subprocess.run(command, input=stdin, capture_output=True, env=env, check=False)


def test_the_command_prints_the_answer_and_notes_the_delivery(home: Path) -> None:
    box = SessionBox(SESSION)
    box.enqueue(words(1, "Naïve 🙂 café"))
    done = run_drain(json.dumps(hook("Stop")).encode(), home)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout) == {"decision": "block", "reason": "Naïve 🙂 café"}
    assert states(box) == {"m1": "delivered"}


@pytest.mark.parametrize("stdin", [b"", b"{", b"\xff\xfe", b"[]", b"null", b'{"session_id": 1}'])
def test_the_command_is_silent_about_what_it_cannot_read(stdin: bytes, home: Path) -> None:
    """Scenario 95."""
    done = run_drain(stdin, home)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_command_puts_back_what_nobody_reads(home: Path) -> None:
    box = SessionBox(SESSION)
    box.enqueue(words(1, "x" * 9_000, author=OPERATOR))
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-I", "-S", drain.__file__],
        input=json.dumps(hook()).encode(),
        stdout=writer,
        stderr=subprocess.PIPE,
        env={"HOME": str(home)},
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
    assert states(box) == {"m1": "queued"}


def test_the_command_needs_nothing_but_a_few_standard_modules(home: Path) -> None:
    """steering.md §7: the drain imports the standard library only."""
    probe = "import sys; sys.stdin = open('/dev/null')\n"
    probe += "names = {'__name__': '__main__', '__file__': 'drain.py'}\n"
    probe += f"try: exec(open({drain.__file__!r}).read(), names)\n"
    probe += "except SystemExit: pass\nprint(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", probe], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "nightwarden" not in loaded
    assert not loaded & {"asyncio", "pathlib", "typing", "subprocess", "msgspec", "dataclasses"}
