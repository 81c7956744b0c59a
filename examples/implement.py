"""The workflow of `implement.yaml`, built in Python: the same graph, the same checks.

    nightwarden.run(build(), inputs={"workspace": "work"})

Run as a script it writes the canonical form, which is `implement.json`.
"""

from __future__ import annotations

import json

import nightwarden as nw
from nightwarden.spec.workflow import Workflow

TASK = (
    "python3 check.py fails in this repository. Mend dates.py until it passes. "
    "Do not touch check.py."
)
ASKED = (
    "An agent was asked to mend dates.py so that check.py passes. The checks were run for you. "
    "Say whether it is mended, and whether it was mended properly: not for these very dates alone."
)
NOTE = "{'passed': judge.passed and check.passed, 'reason': judge.reason, 'checks': check.said}"
FAILING = {
    "type": "array",
    "items": {"type": "string"},
    "description": "Calls that are still wrong",
}
WATCHED = {"watches": ["implement"], "model": "$inputs.model"}


def build() -> Workflow:
    """Have an agent mend a repository until its checks pass and a judge agrees."""
    with nw.workflow(
        "implement",
        description="Has an agent mend a repository until its checks pass and a judge agrees.",
        python=["implement_nodes.py"],
        supervisors={
            "coach": {**WATCHED, "policy": "perseverance"},
            "guard": {**WATCHED, "policy": "scope-guard", "max_evals": 5},
        },
    ) as w:
        model = w.input(
            "model",
            "str",
            default="anthropic:claude-sonnet-5",
            description="Who works and judges",
        )
        workspace = w.input(
            "workspace",
            "path",
            default="implement-work",
            description="Where the repository is copied to",
        )
        task = w.input("task", "str", default=TASK, description="What the agent is asked for")

        prepare = w.add("implement_nodes.Prepare", id="prepare", workspace=workspace)
        start = {"passed": False, "reason": "nothing was tried yet", "checks": ""}
        rounds = w.add("flow.Loop", id="round", initial=start, max_iterations=3)
        implement = w.add(
            "agent.Agent",
            id="implement",
            prompt=task,
            context=rounds.slot("value"),
            model=model,
            workspace=prepare,
            max_turns=25,
            max_cost_usd=1.0,
            timeout_s=1800,
        )
        check = w.add(
            "implement_nodes.Check",
            id="check",
            workspace=prepare,
            report=implement.slot("text"),
        )
        judge = w.add(
            "agent.Judge",
            id="judge",
            prompt=ASKED,
            context=check,
            model=model,
            workspace=prepare,
            schema={"properties": {"failing": FAILING}},
            max_turns=10,
            max_cost_usd=0.5,
        )
        note = w.add(
            "data.Map", id="note", expression=NOTE, judge=judge.slot("answer"), check=check
        )
        more = w.add("data.Map", id="more", expression="not item.passed", item=note)
        w.feed(rounds, next=note, condition=more)

        done = rounds.slot("done")
        passed = w.add("data.Map", id="passed", expression="item.passed", item=done)
        mended = w.add(
            "flow.Assert",
            id="mended",
            value=done,
            condition=passed,
            message="the repository is not mended after three rounds",
        )
        w.output("mended", mended)
    return w.build()


if __name__ == "__main__":
    print(json.dumps(build().canonical(), indent=2, ensure_ascii=False))
