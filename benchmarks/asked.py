"""The measured side of `supervisor.py`: one run, or one import, in a fresh process.

    python benchmarks/asked.py import MODEL           seconds to load the model side, and a client
    python benchmarks/asked.py run MODEL URL COUNT    when each step failed, and when it went on
    python benchmarks/asked.py run scripted - COUNT

Every step fails once and is retried. Times are those of a clock that the asking process reads
as well.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from typing import Any

import nightwarden as nw
from nightwarden.agents.adjudicator import Adjudicator
from nightwarden.agents.models import Model, resolve
from nightwarden.nodes.context import Context
from nightwarden.runtime.supervision import Bounds, Supervisor
from nightwarden.runtime.supervisors import Rule, ScriptedAnswer
from nightwarden.runtime.supervisors.scripted import Scripted
from nightwarden.session import Session, run_session
from nightwarden.settings import ModelEntry, Settings
from nightwarden.spec.workflow import Workflow
from nightwarden.verdict import Retry

KEYS = dict.fromkeys(("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY"), "sk-bench-01234567")
RICH = 10**9


class Slow(TimeoutError):
    """A time-out after which one need not wait."""

    retry_after_s = 0.0


class Times:
    """When each step failed, and when it was tried again; in their order."""

    def __init__(self) -> None:
        self.failed: list[float] = []
        self.went_on: list[float] = []

    def workflow(self, failures: int) -> Workflow:
        """So many steps in a row, each of which fails once: one failure after the other."""
        failed, went_on = self.failed, self.went_on

        async def step(value: int, ctx: Context) -> int:
            if ctx.attempt == 1:
                failed.append(time.perf_counter())
                raise Slow("no answer within 10 s")
            went_on.append(time.perf_counter())
            return value

        with nw.workflow("bench", registry=nw.Registry()) as w:
            made = nw.node(type="bench.Step", retry_safe=True)(step)
            last: object = 0
            for number in range(failures):
                last = w.add(made, id=f"step{number}", value=last)
        return w.build()


def run(name: str, base_url: str, failures: int) -> dict[str, Any]:
    """One run that asks so many times."""
    times = Times()
    bounds = Bounds(max_decisions=failures, cost_cap_micro_usd=RICH)
    session = Session(times.workflow(failures), supervise=supervisor(name, base_url), bounds=bounds)
    result = run_session(session)
    if not result.ok:
        raise RuntimeError(result.reason)
    return {"failed": times.failed, "went_on": times.went_on}


def supervisor(name: str, base_url: str) -> Supervisor:
    """The model of that name at this address, or answers that are written down."""
    if name == "scripted":
        return Scripted([Rule(answers=(ScriptedAnswer(Retry(), "it may pass"),))])
    return Adjudicator(model(name, base_url), cap_micro_usd=RICH)


def model(name: str, base_url: str) -> Model:
    """The model, for $3 and $15 a million tokens."""
    entry = ModelEntry(base_url=base_url, price_in=3, price_out=15)
    return resolve(name, Settings(models={name: entry}), environ=KEYS)


def imported(name: str) -> dict[str, Any]:
    """How long it takes to load what the first decision needs."""
    chosen = model(name, "http://127.0.0.1:9")
    began = time.perf_counter()
    importlib.import_module("nightwarden.agents.conversation")
    building = importlib.import_module("nightwarden.agents.building")
    loaded = time.perf_counter()
    building.build(chosen)
    return {"library": loaded - began, "client": time.perf_counter() - loaded}


def main(what: str, name: str, *more: str) -> None:
    """Measure one thing, and print it as JSON."""
    found = imported(name) if what == "import" else run(name, more[0], int(more[1]))
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
