"""How fast steering is: events through observe, match and trigger, and a hook's drain.

    python benchmarks/steering.py               a table
    python benchmarks/steering.py --quick       small sizes: does it work at all?
    python benchmarks/steering.py --json        for programs

    G13   10 supervisors with 10 monitors each over one run: events a second of processor time,
          also with nothing of interest, and with the queues of the coordinators in between
    attach a supervisor to a run of 100,000 events: until it is armed, in processor time from
          memory, and on the clock from the SQLite store of a run that goes on
    watched a run watched by ten supervisors and by none: of steps that do nothing, and of steps
          that compute for a tenth of a millisecond
    drain the hook's command from start to exit, empty and with a message, beside the bare
          interpreter

Read next: `engine.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import nightwarden as nw
from nightwarden.spec.monitors import parse_monitor
from nightwarden.spec.supervisors import SupervisorSpec
from nightwarden.steering.attached import Attached
from nightwarden.steering.claude import drain
from nightwarden.steering.claude.box import SessionBox
from nightwarden.steering.coordinator import Coordinator
from nightwarden.steering.inbox import Inbox
from nightwarden.steering.lookout import Lookout
from nightwarden.steering.observed import Observed
from nightwarden.steering.ports import Answer, Sink, Snapshot, Words
from nightwarden.steering.team import LiveRun, Team
from nightwarden.steering.trigger import Trigger
from nightwarden.steering.wakes import Wake
from nightwarden.store.opening import open_store
from nightwarden.store.sqlstore import SqlStore

VERSION = 1
SUPERVISORS = 10
MONITORS = (
    "event_type=tool_error,tool_name=Bash",
    "event_type=tool_error,count=5,within=2m",
    "event_type=assistant_text,text_contains=impossible",
    "event_type=assistant_text,text_contains=give up",
    "event_type=assistant_text,text_contains=workaround",
    "event_type=assistant_text,matches=not\\s+feasible",
    "event_type=tool_called,tool_name=Edit,text_contains=setup.cfg",
    "event_type=tool_error,repeat=3",
    "event_type=usage_progress,cost_gt=8",
    "event_type=budget_warning",
)
WORDS = "I look at the code that rounds prices, then I run the tests of that part once more. "


@dataclass(frozen=True, slots=True)
class Row:
    """One number. `goal` is what performance.md asks for, 0 where it asks for nothing."""

    name: str
    value: float
    unit: str
    goal: float = 0.0


def turns(count: int) -> list[dict[str, Any]]:
    """The events of an agent at work: nine a turn, a failure every tenth turn."""
    found: list[dict[str, Any]] = [{"type": "node_started", "node_id": "fix"}]
    for i in range(count):
        use = {"tool": "Bash", "tool_use_id": f"t{i}", "input": {"command": f"pytest -k {i}"}}
        failed = {"type": "tool_error", **use, "error": f"{i} failed"}
        worked = {"type": "tool_called", **use, "output": f"{i} passed in 0.{i % 90 + 10}s"}
        read = {"tool": "Read", "tool_use_id": f"r{i}", "input": {"file_path": f"src/{i % 40}.py"}}
        found += [
            {"type": "assistant_text", "text": WORDS + str(i)},
            {"type": "tool_started", **read},
            {"type": "tool_called", **read, "output": WORDS * 5},
            {"type": "tool_started", **use},
            failed if i % 10 == 9 else worked,
            {"type": "usage_progress", "tokens": 1000 * i, "used": i / 10_000},
            {"type": "node_progress", "done": i},
            {"type": "log", "level": "info", "message": "a line"},
            {"type": "llm_step_finished", "input_tokens": 900, "output_tokens": 90},
        ]
    return [{"seq": n, "node_id": "fix", "at": "", **e} for n, e in enumerate(found, start=1)]


def quiet(count: int) -> list[dict[str, Any]]:
    """Events no monitor asks about."""
    return [
        {"type": "item_emitted", "seq": n, "node_id": "page", "lineage": [n], "outputs": {}}
        for n in range(1, count + 1)
    ]


def supervisors() -> list[Trigger]:
    """Ten of them, each with its own ten monitors, over one agent."""
    monitors = tuple(map(parse_monitor, MONITORS))
    specs = [
        SupervisorSpec(name=f"s{i}", watches=("fix",), monitors=monitors, max_evals=10**9)
        for i in range(SUPERVISORS)
    ]
    return [Trigger(spec, recent=deque()) for spec in specs]


def through_triggers(events: Sequence[Mapping[str, Any]]) -> float:
    """Events a second through observe, match and trigger; a look is over at once."""
    return _through(events, [(trigger, _straight(trigger)) for trigger in supervisors()])


def through_inboxes(events: Sequence[Mapping[str, Any]]) -> float:
    """The same with a coordinator's queue before each trigger, emptied every hundred events."""
    return _through(events, [(trigger, Inbox(lambda: None)) for trigger in supervisors()])


class _Straight:
    def __init__(self, trigger: Trigger) -> None:
        self.trigger = trigger

    def offer(self, seen: Observed) -> None:
        follow(self.trigger, seen)


def _straight(trigger: Trigger) -> _Straight:
    return _Straight(trigger)


def follow(trigger: Trigger, seen: Observed) -> None:
    """Show a supervisor an event, twenty a second; answer at once when it looks."""
    now = seen.seq * 0.05
    for act in trigger.see(seen, now):
        if isinstance(act, Wake):
            trigger.returned(now)


def _through(
    events: Sequence[Mapping[str, Any]], pairs: Sequence[tuple[Trigger, Inbox | _Straight]]
) -> float:
    lookout = Lookout()
    for trigger, end in pairs:
        lookout.join(end.offer, trigger.wants, lambda: None, trigger.watchlist.amounts)
    start = time.process_time()
    for at in range(0, len(events), 100):
        for event in events[at : at + 100]:
            lookout(event)
        for trigger, end in pairs:
            while isinstance(end, Inbox) and len(end):
                follow(trigger, end.take())
    return len(events) / (time.process_time() - start)


class History:
    """A run of the past, as an observer: all of it is history."""

    def __init__(self, events: Sequence[Mapping[str, Any]]) -> None:
        self._events = events
        self.cut = len(events)

    def observe(self, run_id: str, sink: Sink) -> History:
        return self

    def history(self) -> Sequence[Mapping[str, Any]]:
        return self._events

    def release(self) -> None:
        return


class Mute:
    """An evaluator and an injector nobody ever asks."""

    async def evaluate(self, snapshot: Snapshot) -> Answer:
        raise NotImplementedError

    async def inject(self, words: Words) -> None:
        raise NotImplementedError


def attached(events: Sequence[Mapping[str, Any]]) -> float:
    """Seconds until a supervisor that is attached late is armed."""

    async def main() -> float:
        armed = asyncio.Event()
        coordinator = Coordinator(
            supervisors()[0].spec,
            run_id="r",
            observer=History(events),
            evaluator=Mute(),
            injector=Mute(),
            emit=lambda _event: armed.set(),
        )
        start = time.process_time()
        coordinator.start()
        await armed.wait()
        took = time.process_time() - start
        await coordinator.close()
        return took

    return asyncio.run(main())


def attached_to_store(events: Sequence[Mapping[str, Any]]) -> float:
    """Seconds on the clock until a supervisor is armed over a run that is being recorded."""

    async def main(store: SqlStore) -> float:
        armed = asyncio.Event()
        mute = Mute()
        start = time.perf_counter()
        watch = Attached(store, "r", supervisors()[0].spec, mute, told=lambda _event: armed.set())
        watch.start()
        await armed.wait()
        took = time.perf_counter() - start
        await watch.close()
        return took

    with tempfile.TemporaryDirectory() as folder, open_store(folder) as store:
        run = store.create("r")
        for event in events:
            run.append(json.dumps(event).encode())
        run.barrier()
        with open_store(folder) as elsewhere:
            took = asyncio.run(main(elsewhere))
        run.close()
    return took


WORKFLOW = """
version: 1
name: watched
inputs: {items: {type: "list[int]"}}
nodes:
  each: {type: flow.ForEach, items: $inputs.items}
  one: {type: STEP, value: $each}
  two: {type: STEP, value: $one}
  all: {type: flow.Collect, items: "$two[]"}
"""


@nw.node(type="bench.Compute", retry_safe=True, inline=True)
def compute(value: int) -> int:
    """A step that computes for a tenth of a millisecond."""
    until = time.perf_counter() + 0.0001
    while time.perf_counter() < until:
        pass
    return value


def run_time(items: int, step: str, *, watched: bool) -> float:
    """Seconds of processor time a run takes; its events go to one listener in any case."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "watched.yaml"
        path.write_text(WORKFLOW.replace("STEP", step), encoding="utf-8")
        workflow = nw.load(path, nodes=[compute])

    async def main() -> float:
        session = nw.Session(workflow, {"items": list(range(items))})
        session.subscribe(lambda _event: None)
        mute = Mute()
        team = Team(
            [trigger.spec for trigger in supervisors()] if watched else [],
            run_id="r",
            run=LiveRun(session.subscribe),
            evaluator=lambda _spec: mute,
            injector=mute,
            emit=lambda _event: None,
        )
        start = time.process_time()
        team.start()
        result = await session.run()
        took = time.process_time() - start
        await team.close()
        if result.status != "completed":
            raise RuntimeError(result.reason)
        return took

    return asyncio.run(main())


def slowdown(items: int, step: str, rounds: int) -> float:
    """How much longer a watched run takes, in percent; the two take turns at being first."""
    ratios = []
    for turn in range(rounds):
        took = {way: run_time(items, step, watched=way) for way in (turn % 2 == 0, turn % 2 == 1)}
        ratios.append(took[True] / took[False])
    return (statistics.median(ratios) - 1) * 100


def best(measure: Callable[[], float], rounds: int) -> float:
    """The best of some rounds: other programs only ever take something away."""
    return max(measure() for _ in range(rounds))


def started(command: Sequence[str], stdin: bytes, env: Mapping[str, str]) -> float:
    """Milliseconds from start to exit."""
    begin = time.perf_counter()
    subprocess.run(command, input=stdin, env=dict(env), capture_output=True, check=True)
    return (time.perf_counter() - begin) * 1000


def drains(count: int) -> Iterable[Row]:
    """The drain beside the bare interpreter, in turns."""
    python = [sys.executable, "-I", "-S"]
    with tempfile.TemporaryDirectory() as home:
        env = {"HOME": home, "PATH": os.environ["PATH"]}
        box = SessionBox("s1", root=Path(home) / ".nightwarden" / "claude")
        hook = json.dumps({"hook_event_name": "Stop", "session_id": "s1"}).encode()
        bare, empty, full = [], [], []
        for i in range(count):
            bare.append(started([*python, "-c", "pass"], b"", env))
            empty.append(started([*python, drain.__file__], hook, env))
            words = Words(message_id=f"m{i}", run_id="s1", node_id="", author="", text="look")
            box.enqueue(words)
            full.append(started([*python, drain.__file__], hook, env))
        delivered = sum(m.state == "delivered" for m in box.messages())
    if delivered != count:
        raise RuntimeError(f"{delivered} of {count} messages were delivered")
    yield Row("bare interpreter, median", round(statistics.median(bare), 1), "ms")
    yield Row("drain of an empty mailbox, median", round(statistics.median(empty), 1), "ms", 100)
    yield Row("drain with a message, median", round(statistics.median(full), 1), "ms", 100)
    yield Row("drain with a message, slowest", round(max(full), 1), "ms")


def measure(*, quick: bool) -> list[Row]:
    """Every number."""
    size, rounds = (50, 1) if quick else (3_000, 5)
    work, idle = turns(size), quiet(size * 9)
    rows = [
        Row("G13 an agent at work", best(lambda: through_triggers(work), rounds), "events/s", 1e5),
        Row("G13 with queues", best(lambda: through_inboxes(work), rounds), "events/s", 1e5),
        Row("nothing of interest", best(lambda: through_triggers(idle), rounds), "events/s"),
    ]
    late = turns(20 if quick else 100_000 // 9)
    items = 50 if quick else 10_000
    nothing = slowdown(items * 2, "flow.Value", rounds * 2)
    little = slowdown(items, "bench.Compute", rounds * 2)
    rows += [
        Row(f"attach to {len(late):,} events", round(attached(late), 3), "s"),
        Row(f"attach to a store of {len(late):,}", round(attached_to_store(late), 3), "s"),
        Row("watched, steps do nothing: longer by", round(nothing, 1), "%"),
        Row("watched, steps of 0.1 ms: longer by", round(little, 1), "%", 1),
    ]
    return [*rows, *drains(2 if quick else 30)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure steering.")
    parser.add_argument("--quick", action="store_true", help="small sizes, one round")
    parser.add_argument("--json", action="store_true", help="for programs")
    options = parser.parse_args(arguments)
    rows = measure(quick=options.quick)
    if options.json:
        print(json.dumps({"version": VERSION, "rows": [asdict(row) for row in rows]}, indent=1))
        return 0
    for row in rows:
        goal = f"   goal {row.goal:,.0f}" if row.goal else ""
        print(f"{row.name:<36}{row.value:>14,.1f} {row.unit}{goal}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
