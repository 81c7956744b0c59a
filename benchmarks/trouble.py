"""What supervision costs: when nothing fails, when some items do, and for one decision.

    python trouble.py clean|skipped|decided ITEMS [--times N]  ─▶  one JSON line

The two things compared take turns inside one process here: differences of a few per cent drown
in what sets one process apart from the next.

Read next: `goals.py`.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Awaitable, Callable, Mapping

from gauge import Task, peak_mb, read_task, serve
from steps import FAILING, add_one, total
from subject import DECLARED, fanout

import nightwarden as nw
from nightwarden.runtime.supervisors import Rule, Scripted, ScriptedAnswer
from nightwarden.spec.workflow import Workflow
from nightwarden.verdict import Decision, Escalation, Skip, Substitute, Verdict

pure = nw.node(**DECLARED["pure"])
raised_at: list[float] = []
went_on_after_s: list[float] = []


class Broken(ValueError):
    """What a failing step raises."""


@pure
async def sometimes(x: int) -> int:
    """Fails for seven of two hundred items."""
    if x - 1 in FAILING:
        raise Broken(f"item {x - 1} is broken")
    return x + 1


@pure
async def always(x: int) -> int:
    """Fails, and notes when."""
    raised_at.append(time.perf_counter())
    raise nw.RecoverableError(f"item {x} is broken", candidate_output=-1)


@pure
async def after(x: int) -> int:
    """Notes how long it took from the failure to here."""
    went_on_after_s.append(time.perf_counter() - raised_at[-1])
    return x


class Counting(Scripted):
    """A scripted supervisor that counts how often it is asked."""

    def __init__(self, *answers: Verdict) -> None:
        super().__init__([Rule(answers=tuple(ScriptedAnswer(a) for a in answers))])
        self.asked = 0

    async def decide(self, escalation: Escalation) -> Decision:
        """The scripted answer."""
        self.asked += 1
        return await super().decide(escalation)


async def timed(
    workflow: Workflow, items: int, supervise: Counting | None, *, window: int = 1024
) -> tuple[float, nw.RunResult]:
    """One run, and its seconds; `window` items are on their way at most."""
    inputs = {"items": list(range(items))}
    gc.collect()
    began = time.perf_counter()
    bounds = nw.Bounds(max_decisions=items)
    result = await nw.arun(workflow, inputs, supervise=supervise, bounds=bounds, window=window)
    return time.perf_counter() - began, result


async def clean(task: Task) -> dict[str, object]:
    """A run in which nothing fails, with a supervisor and without."""
    workflow = fanout(pure)
    supervisor = Counting()
    alone: list[float] = []
    supervised: list[float] = []
    sums = []
    for turn in range(task.times + 1):
        for supervise, seconds in ((None, alone), (supervisor, supervised)):
            spent, result = await timed(workflow, task.items, supervise)
            sums.append(sum(result.outputs["kept"]))
            if turn:  # the first turn is the warm-up
                seconds.append(spent)
    right = set(sums) == {total(task.items)} and supervisor.asked == 0
    return {"alone": alone, "supervised": supervised, "asked": supervisor.asked, "right": right}


async def skipped(task: Task) -> dict[str, object]:
    """A run of which seven items fail and are skipped, and the same run without failures."""
    whole = fanout(pure)
    with nw.workflow("skipped") as w:
        item = w.add(add_one, id="fetch", x=w.input("items", list[int]).each())
        item = w.add(add_one, id="row", x=w.add(sometimes, id="extract", x=item))
        w.output("kept", item.collect())
    failing = w.build()
    good, bad = [], []
    supervisor = Counting(Skip())
    for turn in range(task.times + 1):
        whole_s, _ = await timed(whole, task.items, supervisor)
        failing_s, result = await timed(failing, task.items, supervisor)
        if turn:
            good.append(whole_s)
            bad.append(failing_s)
    found = result.outputs["kept"]
    named = [missing["lineage"][0] for missing in result.ledger["roots"][0]["missing"]]
    due = sorted(key for key in FAILING if key < task.items)
    expected = [key + 3 for key in range(task.items) if key not in FAILING]
    return {
        "whole": good,
        "failing": bad,
        "kept": len(found),
        "itemised": len(named),
        "right": sorted(named) == due and list(found) == expected and result.ok,
    }


async def decided(task: Task) -> dict[str, object]:
    """From the failure of a step to the step after it, which goes on with the repair."""
    with nw.workflow("decided") as w:
        item = w.add(always, id="broken", x=w.input("items", list[int]).each())
        w.output("kept", w.add(after, id="after", x=item).collect())
    supervisor = Counting(Substitute({"output": 7}))
    _, result = await timed(w.build(), task.items, supervisor, window=1)
    right = result.outputs["kept"] == [7] * task.items and supervisor.asked == task.items
    return {"seconds": went_on_after_s, "right": right, "peak_mb": peak_mb()}


WORKLOADS: dict[str, Callable[[Task], Awaitable[Mapping[str, object]]]] = {
    "clean": clean,
    "skipped": skipped,
    "decided": decided,
}

if __name__ == "__main__":
    task = read_task()
    serve(WORKLOADS[task.workload](task))
