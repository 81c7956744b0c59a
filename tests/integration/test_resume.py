"""What a resumed run does with each thing that was cut off. (kernel.md §3, Resume)

The process of a run dies where a test says; who resumes it finds the record, and nothing else.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from case_runs import Asked
from crashing import FragileStore, Killed, mortal, mortally

import nightwarden as nw
from nightwarden import ABSENT, Absent, Collect, Context, RecoverableError, RunResult, Stream
from nightwarden.errors import NodeError, RunError
from nightwarden.resuming import Changed, NothingLeft, resume_session
from nightwarden.runtime.supervision import Bounds
from nightwarden.runtime.supervisors import Rule, ScriptedAnswer
from nightwarden.session import Session
from nightwarden.spec.workflow import SecretRef, Workflow
from nightwarden.testing import InlineExecutor
from nightwarden.verdict import ApplyTo, EndStream, Fail, Retry, Skip, Substitute, Verdict

Step = Callable[..., Any]


class Lab:
    """Workflows that die and are resumed, and what their steps did meanwhile."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = FragileStore(folder)
        self.did: Counter[str] = Counter()
        self.workflow: Workflow | None = None
        self.fatal: set[str] = set()

    def does(self, what: str) -> None:
        """A step does something; the process dies in the midst of what is fatal."""
        self.did[what] += 1
        if what in self.fatal:
            self.fatal.discard(what)
            self.store.die()

    def step(self, code: Step, **promises: Any) -> Step:
        name = promises.pop("type", f"lab.{code.__name__.capitalize()}")
        return nw.node(type=name, **promises)(code)

    def begin(
        self, workflow: Workflow, inputs: dict[str, Any] | None = None, **options: Any
    ) -> Any:
        """Run it until it ends or dies."""
        self.workflow = workflow
        session = Session(
            workflow,
            inputs,
            store=self.store,  # type: ignore[arg-type]
            executor=InlineExecutor(),
            workdir=self.folder,
            run_id="r",
            **options,
        )
        return self._to_the_end(session)

    def resume_and_die(self, **options: Any) -> None:
        """Resume it, and die once more."""
        assert self._resumed(options) is None, "it came to an end"

    def resume(self, **options: Any) -> RunResult:
        """Resume it, and come to an end."""
        result = self._resumed(options)
        assert result is not None, "it died once more"
        return result

    def _resumed(self, options: dict[str, Any]) -> RunResult | None:
        self.did.clear()
        given = {"workflow": self.workflow, "executor": InlineExecutor(), "workdir": self.folder}
        session = resume_session(self.store, **{**given, **options})  # type: ignore[arg-type]
        self.at_risk = [f"{risk} {risk.why}" for risk in session.at_risk]
        return self._to_the_end(session)

    def _to_the_end(self, session: Session) -> RunResult | None:
        try:
            return mortal(session, self.store)
        except Killed:
            return None

    def types(self) -> list[str]:
        return [str(event["type"]) for event in self.store.read("r")]


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def always(verdict: Verdict) -> Asked:
    return Asked([Rule(answers=(ScriptedAnswer(verdict, "as written"),))])


def line_of(lab: Lab, code: Step, **promises: Any) -> Workflow:
    """Five items through one step, which put out what they did, and a list of it."""

    async def gather(values: Collect[Any]) -> list[Any]:
        return list(values)

    with nw.workflow("line") as w:
        items = w.input("items", list[int], default=[0, 1, 2, 3, 4])
        made = w.add(lab.step(code, **promises), id="step", value=items.each())
        w.add(lab.step(gather, retry_safe=True), id="all", values=made.collect())
    return w.build()


def test_a_safe_step_that_was_cut_off_runs_again_and_nothing_else_does(lab: Lab) -> None:
    """row: K3-RESUME-SAFE"""

    async def double(value: int) -> int:
        lab.does(f"{value}")
        return 2 * value

    lab.fatal = {"2"}
    assert lab.begin(line_of(lab, double, retry_safe=True, concurrency=1)) is None
    result = lab.resume()
    assert (result.status, result.outputs) == ("completed", {"all": [0, 2, 4, 6, 8]})
    # 0 and 1 were done; how much of it was durable is the record's own affair.
    assert set(lab.did) >= {"2", "3", "4"}
    assert max(lab.did.values()) == 1
    assert lab.did["0"] + lab.did["1"] == 0
    assert result.interventions == ()
    (step,) = [n for n in result.ledger["nodes"] if n["node_id"] == "step"]
    assert (step["started"], step["retries_decided"]) == (5, 0)


def test_an_unsafe_step_that_was_cut_off_is_named_and_not_run_again(lab: Lab) -> None:
    """row: K3-RESUME-UNKNOWN"""

    async def publish(value: int) -> int:
        lab.does(f"{value}")
        return value

    lab.fatal = {"2"}
    lab.begin(line_of(lab, publish))
    result = lab.resume()
    assert lab.at_risk == ["step[3] was cut off; whether it took effect is not known"]
    # Everything that does not depend on it was done first.
    assert sorted(lab.did) == ["3", "4"]
    assert result.status == "failed"
    assert "step [3" in result.reason
    assert "whether it took effect is not known" in result.reason


def test_an_unsafe_step_that_was_cut_off_is_decided_on(lab: Lab) -> None:
    """row: S1-CRASH"""

    async def publish(value: int) -> int:
        lab.does(f"{value}")
        return value

    lab.fatal = {"2"}
    lab.begin(line_of(lab, publish))
    asked = always(Skip())
    result = lab.resume(supervise=asked)
    (escalation,) = asked.escalations
    assert [str(action) for action in escalation.allowed_actions] == ["skip", "fail"]
    assert escalation.signature == "node:interrupted"
    assert result.status == "completed"
    assert result.outputs == {"all": [0, 1, 3, 4]}
    assert result.headline.startswith("completed (supervised): 4/5 items, 1 skipped")
    assert sorted(lab.did) == ["3", "4"]


def test_a_step_with_an_idempotency_key_may_be_retried_after_a_crash(lab: Lab) -> None:
    """row: S1-CRASH"""

    async def publish(value: int) -> int:
        lab.does(f"{value}")
        return value

    lab.fatal = {"2"}
    lab.begin(line_of(lab, publish, idempotent_by="value"))
    asked = always(Retry())
    result = lab.resume(supervise=asked)
    assert [str(a) for a in asked.escalations[0].allowed_actions] == ["retry", "skip", "fail"]
    assert lab.did["2"] == 1
    assert result.outputs == {"all": [0, 1, 2, 3, 4]}


def test_what_spent_money_before_it_was_cut_off_is_not_run_again_by_itself(lab: Lab) -> None:
    """row: K3-RESUME-UNKNOWN"""

    async def paint(value: int, ctx: Context) -> int:
        ctx.spend(0.25)
        lab.does(f"{value}")
        return value

    lab.fatal = {"2"}
    lab.begin(line_of(lab, paint, retry_safe=True, concurrency=1))
    result = lab.resume()
    assert lab.at_risk == [
        "step[3] was cut off; whether it took effect is not known; it spent money"
    ]
    assert sorted(lab.did) == ["3", "4"]
    assert result.costs["total_micro_usd"] == 5 * 250_000
    assert result.status == "failed"


def test_its_user_may_risk_it(lab: Lab) -> None:
    async def publish(value: int) -> int:
        lab.does(f"{value}")
        return value

    lab.fatal = {"2"}
    lab.begin(line_of(lab, publish))
    with pytest.raises(
        RunError, match=r"step\[2\] does not have to be retried; at risk is step\[3\]"
    ):
        lab.resume(retry=["step[2]"])
    result = lab.resume(retry=["step[3]"])
    assert result.outputs == {"all": [0, 1, 2, 3, 4]}
    assert sorted(lab.did) == ["2", "3", "4"]
    resumed = [event for event in lab.store.read("r") if event["type"] == "run_resumed"]
    assert resumed[-1]["retry"] == [["step", [2]]]


@pytest.mark.parametrize("safe", [True, False])
def test_a_step_that_ended_the_run_is_tried_again_or_decided_on_afresh(
    lab: Lab, safe: bool
) -> None:
    """row: K3-RESUME-FAILED"""
    broken = {3}

    async def check(value: int) -> int:
        lab.does(f"{value}")
        if value in broken:
            raise NodeError("no", code="no")
        return value

    first = lab.begin(line_of(lab, check, retry_safe=safe, concurrency=1))
    assert first.status == "failed"
    broken.clear()
    asked = always(Skip())
    result = lab.resume(supervise=asked)
    assert result.status == "completed"
    assert len(asked.escalations) == (0 if safe else 1)
    assert sorted(lab.did) == (["3", "4"] if safe else ["4"])
    assert result.outputs == {"all": [0, 1, 2, 3, 4] if safe else [0, 1, 2, 4]}


def test_a_decision_to_stop_does_not_outlive_its_run_and_a_skip_does(lab: Lab) -> None:
    """row: S5-RESUME"""

    async def check(value: int) -> int:
        lab.does(f"{value}")
        raise NodeError("no", code=f"no-{value % 2}")

    sticky = {"node:no-1": Skip(apply_to=ApplyTo.SIGNATURE)}
    stop: dict[str, Verdict] = {"node:no-0": Fail("not like this", apply_to=ApplyTo.SIGNATURE)}
    rules = [
        Rule(signature=s, answers=(ScriptedAnswer(v, "as written"),))
        for s, v in {**sticky, **stop}.items()
    ]
    workflow = line_of(lab, check, retry_safe=True, concurrency=1)
    first = lab.begin(
        workflow, {"items": [1, 3, 0, 5, 7]}, supervise=Asked(rules), bounds=Bounds(max_decisions=2)
    )
    assert first.status == "failed"
    assert first.reason == "not like this"
    later = Asked([Rule(signature="node:no-0", answers=(ScriptedAnswer(Skip(), "it is gone"),))])
    result = lab.resume(supervise=later, bounds=Bounds(max_decisions=3))
    # 5 and 7 are skipped as the first of their kind was; 0 is asked about anew, the third decision.
    assert [e.signature for e in later.escalations] == ["node:no-0"]
    assert result.status == "completed"
    by = Counter(str(i.decision.decided_by) for i in result.interventions if i.decision)
    assert (by["agent"], by["sticky"]) == (3, 3)


def test_decisions_used_up_stay_used_up(lab: Lab) -> None:
    """row: S5-RESUME"""

    async def check(value: int) -> int:
        lab.does(f"{value}")
        if value:
            raise NodeError("no", code=f"no-{value}")
        return value

    workflow = line_of(lab, check, retry_safe=True, concurrency=1)
    first = lab.begin(workflow, supervise=always(Skip()), bounds=Bounds(max_decisions=2))
    assert first.status == "failed"
    asked = always(Skip())
    result = lab.resume(supervise=asked)
    assert asked.escalations == []
    assert "2 decisions used up" in result.reason
    result = lab.resume(supervise=asked, bounds=Bounds(max_decisions=4))
    assert len(asked.escalations) == 2
    assert result.status == "completed"


def test_repairs_and_branches_are_never_asked_or_computed_again(lab: Lab) -> None:
    """row: K3-RESUME-CHOICES"""

    async def even(value: int) -> int | Absent:
        lab.does(f"even {value}")
        if value == 4:
            raise RecoverableError("nearly", candidate_output="4")
        return value if value % 2 == 0 else ABSENT

    async def last(values: Collect[int]) -> int:
        lab.does("last")
        return sum(values)

    with nw.workflow("choices") as w:
        items = w.input("items", list[int], default=[0, 1, 2, 3, 4])
        kept = w.add(lab.step(even, retry_safe=True), id="even", value=items.each())
        w.add(lab.step(last, retry_safe=True), id="last", values=kept.collect())
    lab.fatal = {"last"}
    lab.begin(w.build(), supervise=always(Substitute({"output": 40})))
    asked = always(Fail("nobody should ask"))
    result = lab.resume(supervise=asked)
    assert asked.escalations == []
    assert lab.did == {"last": 1}
    assert result.outputs == {"last": 42}
    assert [i.outcome.kind for i in result.interventions if i.outcome] == ["repair_accepted"]


def reading(lab: Lab, frames: Callable[[], Iterable[int]], **promises: Any) -> Workflow:
    async def tell() -> AsyncIterator[int]:
        for number in frames():
            lab.does(f"tell {number}")
            yield number

    async def take(value: int) -> int:
        lab.does(f"take {value}")
        return value

    async def gather(values: Collect[int]) -> list[int]:
        return list(values)

    with nw.workflow("told") as w:
        told = w.add(lab.step(tell, **promises), id="tell")
        taken = w.add(lab.step(take), id="take", value=told)
        w.add(lab.step(gather, retry_safe=True), id="all", values=taken.collect())
    return w.build()


def test_a_safe_fan_out_runs_again_and_what_it_had_put_out_is_swallowed(lab: Lab) -> None:
    """row: K3-RESUME-STREAM-SAFE"""
    lab.fatal = {"tell 3"}
    lab.begin(reading(lab, lambda: range(5), retry_safe=True))
    result = lab.resume()
    assert result.outputs == {"all": [0, 1, 2, 3, 4]}
    told = [event for event in lab.store.read("r") if event["type"] == "item_emitted"]
    assert [event["outputs"]["output"] for event in told] == [0, 1, 2, 3, 4]


def test_a_fan_out_that_says_something_else_than_before_has_failed(lab: Lab) -> None:
    """row: K3-RESUME-STREAM-SAFE"""
    said = [0, 1, 2, 3, 4]
    lab.fatal = {"tell 3"}
    lab.begin(reading(lab, lambda: said, retry_safe=True))
    said[1] = 11
    asked = always(EndStream())
    result = lab.resume(supervise=asked)
    (escalation,) = asked.escalations
    assert [str(a) for a in escalation.allowed_actions] == ["end_stream", "fail"]
    assert escalation.detail.startswith("it put out another item than before the run was resumed")
    # What others had of it stands: nothing is lost, nothing is done twice.
    assert result.outputs == {"all": [0, 1, 2]}


def test_a_fan_out_that_says_less_than_before_has_failed(lab: Lab) -> None:
    """row: K3-RESUME-STREAM-SAFE"""
    said = [0, 1, 2, 3, 4]
    lab.fatal = {"tell 3"}
    lab.begin(reading(lab, lambda: said, retry_safe=True))
    del said[1:]
    result = lab.resume(supervise=always(EndStream()))
    assert result.outputs == {"all": [0, 1, 2]}


def test_an_unsafe_fan_out_keeps_what_it_had_put_out(lab: Lab) -> None:
    """row: K3-RESUME-FANOUT"""
    lab.fatal = {"tell 3"}
    lab.begin(reading(lab, lambda: range(5)))
    asked = always(EndStream())
    result = lab.resume(supervise=asked)
    assert [str(a) for a in asked.escalations[0].allowed_actions] == ["end_stream", "fail"]
    assert not any(what.startswith("tell") for what in lab.did)
    assert result.outputs == {"all": [0, 1, 2]}
    assert "ended early" in result.headline


def test_an_unsafe_fan_out_that_had_put_out_nothing_may_be_skipped(lab: Lab) -> None:
    """row: K3-RESUME-FANOUT"""
    lab.fatal = {"tell 0"}
    lab.begin(reading(lab, lambda: range(5)))
    asked = always(Skip())
    result = lab.resume(supervise=asked)
    assert [str(a) for a in asked.escalations[0].allowed_actions] == ["skip", "fail"]
    assert result.status == "completed"
    assert "tell was skipped" in result.headline


@pytest.mark.parametrize("safe", [True, False])
def test_a_reader_gets_its_items_again_or_ends_where_it_was(lab: Lab, safe: bool) -> None:
    """row: K3-RESUME-READER"""

    async def add_up(values: Stream[int]) -> int:
        total = 0
        async for value in values:
            lab.does(f"read {value}")
            total += value
        return total

    with nw.workflow("read") as w:
        items = w.input("items", list[int], default=[1, 2, 3])
        w.add(lab.step(add_up, retry_safe=safe), id="sum", values=items.each())
    lab.fatal = {"read 2"}
    lab.begin(w.build())
    asked = always(EndStream())
    result = lab.resume(supervise=asked)
    if safe:
        assert asked.escalations == []
        assert lab.did == {"read 1": 1, "read 2": 1, "read 3": 1}
        assert result.outputs == {"sum": 6}
    else:
        assert [str(a) for a in asked.escalations[0].allowed_actions] == ["end_stream", "fail"]
        assert lab.did == {}
        assert result.status == "completed"


def test_a_value_that_held_a_secret_is_worked_out_again(lab: Lab) -> None:
    """row: S4-SEALED-RESUME"""

    async def sign(ctx: Context) -> str:
        lab.does("sign")
        return f"token={ctx.secret('KEY')}"

    async def use(value: str) -> int:
        lab.does("use")
        return len(value)

    with nw.workflow("sealed") as w:
        signed = w.add(lab.step(sign, retry_safe=True), id="sign")
        w.add(lab.step(use, retry_safe=True), id="use", value=signed)
    lab.fatal = {"use"}
    secret = {"KEY": "zk-live/7Qm2+Zt9aB"}
    lab.begin(w.build(), secrets=secret)
    result = lab.resume(secrets=secret)
    assert lab.did == {"sign": 1, "use": 1}
    assert result.outputs == {"use": len("token=zk-live/7Qm2+Zt9aB")}
    assert not any(b"7Qm2" in line for line in lab.store.lines("r"))


def test_a_value_that_held_a_secret_and_may_not_be_made_again_is_missed_where_it_is_needed(
    lab: Lab,
) -> None:
    """row: S4-SEALED-RESUME"""

    async def sign(ctx: Context) -> str:
        lab.does("sign")
        return f"token={ctx.secret('KEY')}"

    async def use(value: str) -> int:
        lab.does("use")
        return len(value)

    with nw.workflow("sealed") as w:
        signed = w.add(lab.step(sign), id="sign")
        w.add(lab.step(use, retry_safe=True), id="use", value=signed)
    lab.fatal = {"use"}
    secret = {"KEY": "zk-live/7Qm2+Zt9aB"}
    lab.begin(w.build(), secrets=secret)
    result = lab.resume(secrets=secret)
    assert lab.did == {}
    assert result.status == "failed"
    assert "sign.output is not on record" in result.reason


def repaired_with_a_secret(lab: Lab, **promises: Any) -> Workflow:
    """A step that is repaired with what holds a secret, and one that uses it, which is fatal."""

    async def sign(ctx: Context) -> str:
        lab.does("sign")
        ctx.secret("KEY")
        raise RecoverableError("nearly", candidate_output="token")

    async def use(value: str) -> int:
        lab.does("use")
        return len(value)

    async def after(value: int) -> int:
        lab.does("after")
        return value

    with nw.workflow("sealed") as w:
        signed = w.add(lab.step(sign, **promises), id="sign")
        used = w.add(lab.step(use, retry_safe=True), id="use", value=signed)
        w.add(lab.step(after, retry_safe=True), id="after", value=used)
    return w.build()


SECRET = {"KEY": "zk-live/7Qm2+Zt9aB"}
REPAIR = Substitute({"output": f"token={SECRET['KEY']}"})


def test_a_repair_that_held_a_secret_is_asked_for_again(lab: Lab) -> None:
    """row: S4-SEALED-RESUME. The record has it masked, so the step that may run again does."""
    lab.fatal = {"use"}
    lab.begin(
        repaired_with_a_secret(lab, retry_safe=True), secrets=SECRET, supervise=always(REPAIR)
    )
    asked = always(REPAIR)
    result = lab.resume(secrets=SECRET, supervise=asked)
    assert lab.did == {"sign": 1, "use": 1, "after": 1}
    assert len(asked.escalations) == 1
    assert result.status == "completed"
    assert result.outputs == {"after": len(f"token={SECRET['KEY']}")}
    assert SECRET["KEY"].encode() not in b"".join(lab.store.lines("r"))


@pytest.mark.parametrize("fatal", ["use", "after"])
def test_a_repair_that_held_a_secret_and_may_not_be_made_again_is_missed_where_it_is_needed(
    lab: Lab, fatal: str
) -> None:
    """row: S4-SEALED-RESUME"""
    lab.fatal = {fatal}
    lab.begin(repaired_with_a_secret(lab), secrets=SECRET, supervise=always(REPAIR))
    asked = always(Fail("not now"))
    result = lab.resume(secrets=SECRET, supervise=asked)
    if fatal == "after":  # nobody needs it any more
        assert result.status == "completed"
        assert asked.escalations == []
        assert lab.did == {"after": 1}
    else:
        assert result.status == "failed"
        assert [e.node_id for e in asked.escalations] == ["use"]
        assert "sign.output is not on record" in asked.escalations[0].detail
        assert lab.did == {}


@pytest.mark.parametrize("indexed", [False, True])
def test_a_reader_is_never_handed_what_the_record_does_not_have(lab: Lab, indexed: bool) -> None:
    """row: S4-SEALED-RESUME"""

    async def sign(value: int, ctx: Context) -> str:
        lab.does(f"sign {value}")
        return f"{value} {ctx.secret('KEY')}"

    async def add_up(values: Stream[str]) -> int:
        total = 0
        async for value in values.indexed() if indexed else values:
            lab.does(f"read {type(value).__name__}")
            total += 1
        lab.does("read all")
        return total

    with nw.workflow("sealed") as w:
        items = w.input("items", list[int], default=[1, 2, 3])
        signed = w.add(lab.step(sign), id="sign", value=items.each())
        w.add(lab.step(add_up, retry_safe=True), id="sum", values=signed)
    lab.fatal = {"read all"}
    secret = {"KEY": "zk-live/7Qm2+Zt9aB"}
    lab.begin(w.build(), secrets=secret)
    result = lab.resume(secrets=secret)
    assert lab.did == {}
    assert result.status == "failed"
    assert "sign.output is not on record" in result.reason


def test_an_output_that_is_not_on_record_is_given_as_the_record_shows_it(lab: Lab) -> None:
    """row: S4-SEALED-RESUME"""

    async def sign(value: int, ctx: Context) -> str:
        lab.does(f"sign {value}")
        return f"{value} {ctx.secret('KEY')}" if value else "plain"

    with nw.workflow("sealed") as w:
        items = w.input("items", list[int], default=[0, 1, 2])
        w.add(lab.step(sign), id="sign", value=items.each())
    lab.fatal = {"sign 2"}
    secret = {"KEY": "zk-live/7Qm2+Zt9aB"}
    lab.begin(w.build(), secrets=secret)
    result = lab.resume(secrets=secret, supervise=always(Skip()))
    assert list(result.outputs["sign"]) == ["plain", "1 ••••(KEY)"]
    assert list(result.outputs["sign"].indices) == [0, 1]


def test_an_input_that_held_a_secret_is_asked_for_again(lab: Lab) -> None:
    """row: S4-SEALED-RESUME"""

    async def use(value: str, key: str) -> str:
        lab.does("use")
        return value[:3]

    with nw.workflow("asks") as w:
        given = w.input("given", str)
        safe = lab.step(use, retry_safe=True)
        w.add(safe, id="use", value=given, key=SecretRef("KEY"))
    key = "zk-live/7Qm2+Zt9aB"
    lab.fatal = {"use"}
    lab.begin(w.build(), {"given": f"url?{key}"}, secrets={"KEY": key})
    assert not any(b"7Qm2" in line for line in lab.store.lines("r"))
    with pytest.raises(RunError, match=r"input given held a secret.*give it again"):
        lab.resume(secrets={"KEY": key})
    result = lab.resume(secrets={"KEY": key}, inputs={"given": f"url?{key}"})
    assert result.outputs == {"use": "url"}


def test_a_step_that_asked_for_a_pause_gets_back_what_it_gave(lab: Lab) -> None:
    async def approve(ctx: Context) -> str:
        lab.does("approve")
        if ctx.suspended_state is None:
            ctx.suspend("until somebody has looked", {"asked": 1})
        return f"approved {ctx.suspended_state}"

    with nw.workflow("pause") as w:
        w.add(lab.step(approve), id="approve")
    first = lab.begin(w.build())
    assert first.status == "suspended"
    result = lab.resume()
    assert result.outputs == {"approve": "approved {'asked': 1}"}
    assert lab.did == {"approve": 1}


def test_a_cancelled_run_goes_on_where_it_was(lab: Lab) -> None:
    async def wait(value: int) -> int:
        lab.does(f"{value}")
        if value == 2 and lab.did["2"] == 1 and not gone:
            gone.append(1)
            await asyncio.sleep(3600)
        return value

    gone: list[int] = []
    workflow = line_of(lab, wait, retry_safe=True, concurrency=1)
    lab.workflow = workflow
    session = Session(
        workflow,
        store=lab.store,  # type: ignore[arg-type]
        executor=InlineExecutor(),
        workdir=lab.folder,
        run_id="r",
    )

    async def both() -> RunResult:
        asyncio.get_running_loop().call_later(10, session.cancel)
        return await session.run()

    assert mortally(both(), lab.store).status == "cancelled"
    result = lab.resume()
    assert result.outputs == {"all": [0, 1, 2, 3, 4]}
    assert sorted(lab.did) == ["2", "3", "4"]


def test_a_complete_run_has_nothing_left(lab: Lab) -> None:
    async def one(value: int) -> int:
        return value

    lab.begin(line_of(lab, one, retry_safe=True))
    with pytest.raises(NothingLeft, match="run r is complete: nothing is left to do"):
        lab.resume()


def test_a_changed_workflow_is_refused_with_what_has_changed(lab: Lab) -> None:
    async def add(value: int, more: int = 1) -> int:
        lab.does(f"{value}")
        return value + more

    def made(more: int) -> Workflow:
        async def gather(values: Collect[Any]) -> list[Any]:
            lab.does("all")
            return list(values)

        with nw.workflow("line") as w:
            items = w.input("items", list[int], default=[0, 1])
            step = lab.step(add, retry_safe=True, type="lab.Add")
            summed = w.add(step, id="add", value=items.each(), more=more)
            w.add(lab.step(gather, retry_safe=True), id="all", values=summed.collect())
        return w.build()

    lab.fatal = {"all"}
    lab.begin(made(1))
    with pytest.raises(Changed, match=r"node add: more 1 is now 10\n.*--force"):
        lab.resume(workflow=made(10))
    result = lab.resume(workflow=made(10), force=True)
    assert result.outputs == {"all": [10, 11]}
    assert lab.did == {"0": 1, "1": 1, "all": 1}
    lab.workflow = made(10)
    with pytest.raises(NothingLeft):  # the new definition is on record
        lab.resume()


def test_one_item_is_done_again_with_what_follows_from_it(lab: Lab) -> None:
    async def one(value: int) -> int:
        lab.does(f"{value}")
        return value

    lab.begin(line_of(lab, one, retry_safe=True))
    lab.did.clear()
    result = lab.resume(redo=["step[2]"])
    assert lab.did == {"1": 1}
    assert result.outputs == {"all": [0, 1, 2, 3, 4]}
    with pytest.raises(RunError, match="there is no node 'stap'"):
        lab.resume(redo=["stap"])
    with pytest.raises(RunError, match="by a number at most"):
        lab.resume(redo=["step[1.2]"])


def test_items_pushed_while_a_run_went_on_are_not_lost_with_it(lab: Lab) -> None:
    async def take(value: int) -> int:
        lab.does(f"{value}")
        return value

    workflow = line_of(lab, take, retry_safe=True, concurrency=1)
    lab.workflow = workflow
    lab.fatal = {"12"}
    session = Session(
        workflow,
        {"items": [10]},
        store=lab.store,  # type: ignore[arg-type]
        executor=InlineExecutor(),
        workdir=lab.folder,
        run_id="r",
        open_inputs=["items"],
    )

    async def feed() -> RunResult:
        running = asyncio.ensure_future(session.run())
        for number in (11, 12, 13):
            await asyncio.sleep(1)
            await session.push("items", number)
        await asyncio.sleep(1)
        session.close("items")
        return await running

    with pytest.raises(Killed):
        mortally(feed(), lab.store)
    lab.did.clear()
    again = resume_session(
        lab.store,  # type: ignore[arg-type]
        workflow=workflow,
        executor=InlineExecutor(),
        workdir=lab.folder,
    )

    async def rest() -> RunResult:
        running = asyncio.ensure_future(again.run())
        await asyncio.sleep(1)
        await again.push("items", 13)
        again.close("items")
        return await running

    result = mortally(rest(), lab.store)
    assert result.outputs == {"all": [10, 11, 12, 13]}
    assert sorted(lab.did) == ["12", "13"]


def test_an_input_that_was_closed_before_the_run_began_is_closed_for_its_resume_too(
    lab: Lab,
) -> None:
    async def take(value: int) -> int:
        lab.does(f"{value}")
        return value

    workflow = line_of(lab, take, retry_safe=True, concurrency=1)
    lab.fatal = {"12"}
    session = Session(
        workflow,
        {"items": [10, 12]},
        store=lab.store,  # type: ignore[arg-type]
        executor=InlineExecutor(),
        workdir=lab.folder,
        run_id="r",
        open_inputs=["items"],
    )
    session.close("items")
    with pytest.raises(Killed):
        mortally(session.run(), lab.store)
    again = resume_session(
        lab.store,  # type: ignore[arg-type]
        workflow=workflow,
        executor=InlineExecutor(),
        workdir=lab.folder,
    )
    result = mortally(asyncio.wait_for(again.run(), 10), lab.store)
    assert result.outputs == {"all": [10, 12]}
    closed = [event["type"] for event in lab.store.read("r")].count("input_closed")
    assert closed == 1


def test_what_was_cut_off_fails_in_the_end_though_others_queue_behind_who_waits_for_it(
    lab: Lab,
) -> None:
    """row: K3-RESUME-UNKNOWN"""

    async def publish(value: int) -> int:
        lab.does(f"publish {value}")
        return value

    async def ask(value: int, ctx: Context) -> object:
        return (await ctx.call("publish", value=value))["output"]

    with nw.workflow("callers") as w:
        items = w.input("items", list[int], default=[0, 1, 2])
        target = w.add(lab.step(publish), id="publish", value=9)
        asks = lab.step(ask, retry_safe=True, concurrency=1)
        w.add(asks, id="ask", controls=[target], value=items.each())
    lab.fatal = {"publish 0"}
    assert lab.begin(w.build()) is None
    result = lab.resume()
    assert result.status == "failed"
    assert "whether it took effect is not known" in result.reason
    assert not lab.did
