"""A supervisor over a Claude Code session, from transcript to hook (steering.md §7)."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from steering_kit import Judge, kinds, spec

from nightwarden.events import Event
from nightwarden.spec.supervisors import SupervisorSpec
from nightwarden.steering.claude import drain, hooks
from nightwarden.steering.claude.sessions import NoSession, project_key
from nightwarden.steering.claude.watching import (
    AlreadyWatched,
    SessionWatch,
    without_hooks,
)
from nightwarden.steering.files import safe_name
from nightwarden.steering.ports import Advice
from nightwarden.testing import run as run_virtually

STUCK = "event_type=assistant_text,text_contains=stuck"
SPEAK = Advice(intervene=True, message="Read month_end() first.")


class Place:
    """A home with one session in it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.project = home / "project"
        self.project.mkdir()
        folder = home / "claude" / "projects" / project_key(str(self.project))
        folder.mkdir(parents=True)
        self.path = folder / "s1.jsonl"
        self.env = {"CLAUDE_CONFIG_DIR": str(home / "claude")}
        self.events: list[Event] = []
        self.remarks: list[str] = []
        self._count = 0
        self.write("user", content="Fix it")

    def write(self, kind: str, *blocks: dict[str, Any], content: str = "") -> None:
        self._count += 1
        message = {"id": f"m{self._count}", "content": list(blocks) or content, "model": "x"}
        record = {
            "type": kind,
            "uuid": f"u{self._count}",
            "cwd": str(self.project),
            "requestId": f"r{self._count}",
            "message": message,
        }
        with self.path.open("a") as file:
            file.write(json.dumps(record) + "\n")

    def say(self, text: str) -> None:
        self.write("assistant", {"type": "text", "text": text})

    def alive(self, pid: int) -> None:
        folder = self.home / "claude" / "sessions"
        folder.mkdir(exist_ok=True)
        (folder / "1.json").write_text(json.dumps({"sessionId": "s1", "pid": pid}))

    def watch(self, judge: Judge, given: SupervisorSpec | None = None) -> SessionWatch:
        return SessionWatch(
            str(self.project),
            given or spec(STUCK, boundaries=False, watches=("ignored",)),
            judge,
            remark=self.remarks.append,
            told=self.events.append,
            root=Path(drain.mailbox_root()),
            env=self.env,
        )


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("HOME", str(tmp_path))
    return Place(tmp_path)


def drained(event: str = "PostToolUse") -> Any:
    hook = {"hook_event_name": event, "session_id": "s1"}
    answer, claims = drain.prepared(hook, drain.time.time())
    drain.settle(claims, printed=True)
    return json.loads(answer) if answer else None


def test_a_word_goes_from_the_transcript_to_the_next_boundary(place: Place) -> None:
    """Scenarios 88 and 98; H11: the first message lands at the next boundary."""

    async def main() -> Any:
        watch = place.watch(Judge(SPEAK))
        watch.start()
        await asyncio.sleep(1)
        place.say("I am stuck")
        await asyncio.sleep(1)
        answer = drained()
        place.say("I read it")
        await asyncio.sleep(1)
        states = [str(m.state) for m in watch.box.messages()]
        await watch.close()
        return answer, states

    answer, states = run_virtually(main())
    text = answer["hookSpecificOutput"]["additionalContext"]
    assert text == "[supervisor dog] Read month_end() first."
    assert states == ["consumed"]
    assert kinds(place.events) == [
        "steering_armed",
        "steering_woken",
        "user_message_queued",
        "steering_evaluated",
        "user_message_consumed",
    ]
    record = (Path(drain.mailbox_root()) / "s1" / "steering.jsonl").read_text().splitlines()
    assert [json.loads(line)["type"] for line in record] == kinds(place.events)
    assert all(json.loads(line)["at"].endswith("Z") for line in record)


def test_the_end_of_the_session_ends_the_watch_and_what_waits(place: Place) -> None:
    """Scenario 99; a run that ends while a message is on its way."""
    place.alive(os.getpid())

    async def main() -> list[str]:
        watch = place.watch(Judge(SPEAK))
        watch.start()
        await asyncio.sleep(6)
        place.say("I am stuck")
        await asyncio.sleep(1)
        place.alive(2**22 + 1)
        await watch.wait()
        return [m.reason or str(m.state) for m in watch.box.messages()]

    assert run_virtually(main()) == ["expired"]
    assert kinds(place.events)[-1] == "user_message_expired"


def test_what_it_knew_is_there_when_it_is_attached_again(place: Place) -> None:
    """Scenario 54: the cooldown, the count, what it registered and that it was done."""
    first = Judge(Advice(intervene=False, watch=("event_type=user_prompt",), done=True))

    async def main() -> Any:
        watch = place.watch(first)
        watch.start()
        place.say("long ago")
        await asyncio.sleep(1)
        place.say("I am stuck")
        await asyncio.sleep(1)
        await watch.close()
        again = place.watch(second := Judge())
        again.start()
        await asyncio.sleep(1)
        place.say("stuck again: seeded, so it stays at rest")
        await asyncio.sleep(1)
        rested = len(second.asked)
        place.write("user", content="a prompt: registered")
        await asyncio.sleep(1)
        await again.close()
        return rested, second.asked[0][1].number

    assert run_virtually(main()) == (0, 2)
    assert (Path(drain.mailbox_root()) / "s1" / "supervisors" / "dog.json").exists()


def test_a_state_that_cannot_be_read_is_none(place: Place) -> None:
    path = Path(drain.mailbox_root()) / "s1" / "supervisors" / "dog.json"
    path.parent.mkdir(parents=True)
    path.write_text("{")

    async def main() -> int:
        watch = place.watch(judge := Judge())
        watch.start()
        await asyncio.sleep(1)
        place.say("stuck")
        await asyncio.sleep(1)
        await watch.close()
        return len(judge.asked)

    assert run_virtually(main()) == 1


def test_a_mailbox_that_cannot_be_made_refuses_and_the_watch_goes_on(place: Place) -> None:
    """Issue 6, bad input: a read-only mailbox."""
    (place.home / ".nightwarden").write_text("in the way")

    async def main() -> int:
        watch = place.watch(judge := Judge(SPEAK))
        watch.start()
        await asyncio.sleep(1)
        place.say("stuck")
        await asyncio.sleep(1)
        await watch.close()
        return len(judge.asked)

    assert run_virtually(main()) == 1
    evaluated = next(e for e in place.events if type(e).__name__ == "SteeringEvaluated")
    assert evaluated.outcome == "refused"  # type: ignore[attr-defined]
    assert "cannot be written" in evaluated.detail  # type: ignore[attr-defined]
    assert "cannot be written" in place.remarks[0]


def test_a_transcript_that_is_no_json_is_said_and_passed_over(place: Place) -> None:
    """Issue 6, bad input."""

    async def main() -> int:
        watch = place.watch(judge := Judge())
        watch.start()
        await asyncio.sleep(1)
        with place.path.open("a") as file:
            file.write("no json at all\n")
        place.say("stuck")
        await asyncio.sleep(1)
        await watch.close()
        return len(judge.asked)

    assert run_virtually(main()) == 1
    assert [r.partition(": ")[2] for r in place.remarks] == [
        "line 2 is no JSON object and was left out"
    ]


def test_two_supervisors_of_one_name_do_not_watch_one_session(place: Place) -> None:
    """Issue 6, bad input: two supervisors of one name."""

    async def main() -> None:
        first = place.watch(Judge())
        first.start()
        with pytest.raises(AlreadyWatched, match="'dog' watches session s1 already"):
            place.watch(Judge()).start()
        other = place.watch(Judge(), spec(STUCK, name="cat"))
        other.start()
        await other.close()
        await first.close()
        again = place.watch(Judge())
        again.start()
        await again.close()

    run_virtually(main())


def test_a_session_that_is_not_there(place: Place) -> None:
    with pytest.raises(NoSession, match="no session"):
        SessionWatch("s9", spec(), Judge(), env=place.env)


def test_each_supervisor_has_a_file_name_of_its_own() -> None:
    """Scenario 58."""
    assert safe_name("dog") == "dog"
    names = {safe_name(name) for name in ("a.b", "a$b", "a_b", "", "../x")}
    assert len(names) == 5
    assert not any(set(name) & set("./$") for name in names)


def test_hooks_that_are_missing_are_said(place: Place) -> None:
    assert "hook install" in without_hooks(place.project)
    hooks.install(place.project)
    assert without_hooks(place.project) == ""
