"""A supervisor over the record of a run, while another process writes it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from steering_kit import SILENCE, Judge, spec

from nightwarden.events import Event
from nightwarden.spec.supervisors import SupervisorSpec
from nightwarden.steering.attached import AlreadyAttached, Attached, StoreInjector
from nightwarden.steering.observed import Observed
from nightwarden.steering.ports import Advice, NotQueued, Words
from nightwarden.steering.recalling import lasting
from nightwarden.steering.relayed import relayed, told_elsewhere
from nightwarden.steering.wakes import TriggerState
from nightwarden.store import open_store
from nightwarden.store.contract import Command, OpenRun

RED = spec("event_type=log,text_contains=red", watches=("fix",), boundaries=False, cooldown_s=60.0)
WORD = Advice(intervene=True, message="Look.")


class Writer:
    """Whoever drives the run: writes events, and puts on record what it is told."""

    def __init__(self, run: OpenRun | None = None) -> None:
        self.run = run
        self.seq = 0
        self.words: list[Command] = []

    def say(self, kind: str, **fields: Any) -> None:
        assert self.run is not None
        self.seq += 1
        event = {"v": 1, "type": kind, "seq": self.seq, "at": "", **fields}
        self.run.append(msgspec.json.encode(event))
        self.run.barrier()

    def heard(self, command: Command) -> None:
        self.words.append(command)

    def relay(self) -> None:
        """Put what an attached supervisor did on record."""
        for command in self.words:
            if command.kind == "steering":
                self.say(**{"kind": str(command.body["type"]), **_fields(command)})
        self.words.clear()


def _fields(command: Command) -> dict[str, Any]:
    return {k: v for k, v in command.body.items() if k not in ("type", "v")}


async def until(found: Callable[[], object]) -> None:
    async with asyncio.timeout(8):
        while not found():  # noqa: ASYNC110  (it comes from another thread)
            await asyncio.sleep(0.01)


def attached(
    folder: Path,
    writer: Writer,
    script: Callable[[Attached, Writer], Awaitable[None]],
    *,
    judge: Judge,
    given: SupervisorSpec = RED,
) -> tuple[list[Event], TriggerState]:
    """A supervisor over a run that is being written; the script says what happens."""
    told: list[Event] = []

    async def main(watch: Callable[[], Attached]) -> TriggerState:
        found = watch()
        found.start()
        try:
            await script(found, writer)
        finally:
            await found.close()
        return found.state

    with open_store(folder) as elsewhere:
        state = asyncio.run(main(lambda: Attached(elsewhere, "r1", given, judge, told=told.append)))
    return told, state


@pytest.fixture
def writer(tmp_path: Path) -> Any:
    made = Writer()
    with open_store(tmp_path) as store:
        made.run = store.create("r1", on_command=made.heard)
        made.say("run_started", run_id="r1")
        made.say("node_started", node_id="fix")
        made.say("log", node_id="fix", message="red, long ago")
        yield made
        made.run.close()


def test_what_is_on_record_at_attach_is_history_and_what_comes_is_not(
    tmp_path: Path, writer: Writer
) -> None:
    """steering.md §2: the cut is the sequence number at attach; scenarios 30 and 67."""
    judge = Judge(WORD)

    async def script(found: Attached, writer: Writer) -> None:
        await until(lambda: found.state.cut == 3)
        writer.say("log", node_id="fix", message="red, now")
        await until(lambda: [w for w in writer.words if w.kind == "message"])
        await until(lambda: len(writer.words) == 4)

    told, state = attached(tmp_path, writer, script, judge=judge)
    ((_, look),) = judge.asked
    (reason,) = look.reasons
    assert reason.startswith("event_type=log,text_contains=red held: #4 ")
    assert reason.endswith("red, now")
    assert "red, long ago" in "\n".join(look.recent)
    assert state.completed == 1
    bodies = [w.body for w in writer.words]
    (message,) = [b for b in bodies if "text" in b]
    assert (message["author"], message["node"], message["text"]) == (
        "dog",
        "fix",
        "[supervisor dog] Look.",
    )
    kinds = [b["type"] for b in bodies if "type" in b]
    assert kinds == ["steering_armed", "steering_woken", "steering_evaluated"]
    assert kinds == [str(e.__struct_config__.tag) for e in told]


def test_one_that_is_attached_again_knows_where_it_stood(tmp_path: Path, writer: Writer) -> None:
    """steering.md §2: all of it survives a restart; scenario 54."""
    judge = Judge(SILENCE)

    async def first(found: Attached, writer: Writer) -> None:
        await until(lambda: found.state.cut == 3)
        writer.say("log", node_id="fix", message="red, now")
        await until(lambda: len(writer.words) == 3)

    attached(tmp_path, writer, first, judge=judge)
    writer.relay()

    async def second(found: Attached, writer: Writer) -> None:
        await until(lambda: found.state.cut == 7)
        writer.say("log", node_id="fix", message="red again")
        await until(lambda: [w for w in writer.words if "deferred" in w.body["type"]])

    _, state = attached(tmp_path, writer, second, judge=judge)
    assert (state.completed, len(judge.asked)) == (1, 1)  # the cooldown still runs
    assert state.spent_micro_usd == 500


def test_it_ends_with_the_run(tmp_path: Path, writer: Writer) -> None:
    async def script(found: Attached, writer: Writer) -> None:
        await until(lambda: found.state.cut == 3)
        writer.say("run_completed")
        await found.wait()

    told, _ = attached(tmp_path, writer, script, judge=Judge())
    assert [str(e.__struct_config__.tag) for e in told] == ["steering_armed"]


def test_an_end_after_which_the_run_went_on_is_none(tmp_path: Path, writer: Writer) -> None:
    """A run that was resumed may be attached to like any other."""
    writer.say("run_failed")
    writer.say("run_resumed")
    judge = Judge(WORD)

    async def script(found: Attached, writer: Writer) -> None:
        await until(lambda: found.state.cut == 5)
        writer.say("log", node_id="fix", message="red, now")
        await until(lambda: judge.asked)

    attached(tmp_path, writer, script, judge=judge)
    assert len(judge.asked) == 1


def test_only_the_last_end_of_a_history_counts() -> None:
    kinds = ["run_started", "run_failed", "run_resumed", "log", "run_completed"]
    history = [{"type": kind, "seq": n} for n, kind in enumerate(kinds, start=1)]
    assert [Observed(fact).type for fact in lasting(history)] == [
        "run_started",
        "run_resumed",
        "log",
        "run_completed",
    ]
    assert list(lasting([])) == []


def test_two_of_one_name_do_not_watch_one_run(tmp_path: Path, writer: Writer) -> None:
    """Issue 6, bad input: two supervisors of one name."""

    async def script(found: Attached, writer: Writer) -> None:
        with open_store(tmp_path) as store:
            twice = Attached(store, "r1", RED, Judge())
            with pytest.raises(AlreadyAttached, match="'dog' watches this run already"):
                twice.start()
            other = Attached(store, "r1", spec(name="cat"), Judge())
            other.start()
            await other.close()

    attached(tmp_path, writer, script, judge=Judge())


def test_a_word_for_a_run_nobody_drives_is_withdrawn_and_not_queued(tmp_path: Path) -> None:
    """steering.md §4: enqueueing to a finished run is refused."""
    words = Words(message_id="m", run_id="r1", node_id="", author="dog", text="x")
    with open_store(tmp_path) as store:
        run = store.create("r1")
        run.append(b'{"v":1,"type":"run_started","seq":1,"at":"","run_id":"r1"}')
        run.append(b'{"v":1,"type":"run_completed","seq":2,"at":""}')
        run.close()
        with pytest.raises(NotQueued, match="is not driven any more: nobody is left"):
            asyncio.run(StoreInjector(store).inject(words))
        assert store.withdraw("r1", 1) is False


def test_only_events_of_steering_are_relayed() -> None:
    assert told_elsewhere({"type": "run_completed"}) is None
    assert told_elsewhere({"type": "steering_done", "supervisor": 3}) is None
    event = told_elsewhere({"type": "steering_done", "supervisor": "cat", "seq": 9, "at": "x"})
    assert event is not None
    assert (event.seq, event.at) == (0, "")
    body = relayed(event)
    assert body is not None
    assert told_elsewhere(body) == event
