"""Workflows built and run from Python, and a session with somebody who listens."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import assert_type

import nightwarden as nw
from nightwarden.events import Event, InvocationFailed
from nightwarden.events.seen import Seen
from nightwarden.spec.workflow import Workflow


@nw.node(retry_safe=True)
def shout(word: str, mark: str = "!") -> str:
    return word.upper() + mark


@nw.node
def join(words: nw.Collect[str]) -> str:
    return " ".join(words)


def built() -> Workflow:
    with nw.workflow("loud", description="Says it louder") as w:
        words = w.input("words", "list[str]", default=["a"])
        mark = w.input("mark", str)
        loud = w.add(shout, word=words.each(), mark=mark, timeout=2, concurrency=3)
        line = w.add(join, words=loud.collect(), id="line")
        w.add("file.WriteText", text=line, path=w.secret("PATH"))
        w.output("line", line)
    return w.build()


def short() -> nw.RunResult:
    workflow = nw.load("loud.yaml", nodes=[shout, Path("steps.py")], trust=True)
    try:
        result = nw.run(workflow, {"words": ["a"]}, supervise="scripted:answers.yaml")
    except nw.SpecError as error:
        raise SystemExit("\n".join(str(problem) for problem in error.problems)) from error
    except (nw.RunError, nw.NightwardenError) as error:
        raise SystemExit(str(error)) from error
    assert_type(result, nw.RunResult)
    return result


def again() -> nw.RunResult:
    result = nw.resume("last", store=".nightwarden", retry=["publish[3]"], supervise="operator")
    assert_type(result, nw.RunResult)
    return result


async def as_an_agent() -> nw.RunResult | None:
    agent = nw.WorkflowAgent(built())
    async for event in agent.execute({"mark": "!"}):
        assert_type(event, Event)
    return agent.result


async def long() -> Mapping[str, object]:
    def heard(event: Event) -> None:
        if isinstance(event, InvocationFailed):
            print(event.node_id, event.lineage, event.detail)

    def watched(seen: Seen) -> None:
        print(seen.moment, seen.node_id, seen.values)

    session = nw.Session(
        built(),
        {"mark": "?"},
        registry=nw.Registry(),
        bounds=nw.Bounds(max_decisions=3, cost_cap_micro_usd=0),
        store=Path(".nightwarden"),
        secrets={"PATH": "out.txt"},
        keep_going=True,
        open_inputs=["words"],
        watch=watched,
    )
    session.subscribe(heard)
    await session.push("words", "b")
    session.close("words")
    result = await session.run()
    for found in result.interventions:
        print(found.escalation.node_id, found.decision, found.outcome)
    assert_type(result.supervised, bool)
    return result.outputs
