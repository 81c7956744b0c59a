"""What users of a comparable engine ran into: control events, loops, pairing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from scenarios import add, caller, count, gather, inc, pair, played, run

import nightwarden as nw
from nightwarden import ABSENT, Absent, Collect, Context, Many
from nightwarden.verdict import Skip

SEEDS = [1, 2, 3]


def wired(build: Any) -> Any:
    with nw.workflow("scenario") as w:
        build(w)
    return w.build()


class Skipping:
    """Skips whatever it is asked."""

    async def decide(self, escalation: Any) -> nw.Decision:
        return nw.Decision(verdict=Skip(), rationale="dispensable")

    def attach(self, reader: Any) -> None: ...

    async def aclose(self) -> None: ...


# -- control --


@pytest.mark.parametrize("seed", SEEDS)
def test_an_event_waits_for_the_data_and_is_processed_once(seed: int) -> None:
    """scenario: 64, 70, 76. defect: D1"""

    @nw.node(type="s.Late")
    async def late() -> int:
        await asyncio.sleep(5)
        return 10

    def build(w: Any) -> None:
        target = w.add(add, id="add", a=w.add(late, id="late"))
        w.add(caller(lambda c: c.call("add", b=5)), id="boss", controls=[target])

    result = run(wired(build), seed=seed)
    assert result.outputs == {"add": [15], "boss": [{"output": 15}]}


@pytest.mark.parametrize("seed", SEEDS)
def test_two_callers_at_once_each_get_their_own_answer_in_order(seed: int) -> None:
    """scenario: 65, 67, 78. defect: D2, D22"""

    def build(w: Any) -> None:
        target = w.add(add, id="add", a=1)
        w.add(
            caller(lambda c: c.call("add", b=10), lambda c: c.call("add", b=20)),
            id="one",
            controls=[target],
        )
        w.add(caller(lambda c: c.call("add", b=100)), id="two", controls=[target])

    outputs = run(wired(build), seed=seed).outputs
    assert outputs["one"] == [{"output": 11}, {"output": 21}]
    assert outputs["two"] == [{"output": 101}]
    assert sorted(outputs["add"]) == [11, 21, 101]


def test_events_that_nobody_awaits_and_calls_can_be_mixed() -> None:
    """scenario: 65, 72. defect: D22"""

    @nw.node(type="s.Mixes")
    async def mixes(ctx: Context) -> dict[str, object]:
        ctx.control("add", b=2)
        answer = await ctx.call("add", b=3)
        ctx.control("add")
        return dict(answer)

    def build(w: Any) -> None:
        target = w.add(add, id="add", a=1, b=50)
        w.add(mixes, id="boss", controls=[target])

    outputs = run(wired(build)).outputs
    assert list(outputs["add"]) == [3, 4, 51]
    assert outputs["boss"] == {"output": 4}


def test_one_controller_drives_several_and_a_chain_is_ordered() -> None:
    """scenario: 66, 74"""

    @nw.node(type="s.Top")
    async def top(ctx: Context) -> dict[str, object]:
        return dict(await ctx.call("middle", n=3))

    @nw.node(type="s.Middle")
    async def middle(ctx: Context, n: int = 0) -> list[Any]:
        return [dict(await ctx.call("low", a=i)) for i in range(n)]

    @nw.node(type="s.Both")
    async def boss(ctx: Context) -> list[Any]:
        return [dict(await ctx.call("low", a=1)), dict(await ctx.call("other", x=1))]

    def chain(w: Any) -> None:
        low = w.add(add, id="low", a=0)
        mid = w.add(middle, id="middle", controls=[low])
        w.add(top, id="top", controls=[mid])

    def both(w: Any) -> None:
        low, other = w.add(add, id="low", a=0), w.add(inc, id="other", x=0)
        w.add(boss, id="boss", controls=[low, other])

    assert run(wired(both)).outputs["boss"] == [{"output": 2}, {"output": 2}]
    assert run(wired(chain)).outputs["top"] == {"output": [{"output": i + 1} for i in range(3)]}


def both_levels(w: Any) -> None:
    """One node controlled from two levels: refused, nothing says which items belong together."""
    low = w.add(add, id="low", a=0)
    items = w.input("xs", list[int]).each()

    @nw.node(type="s.PerItem")
    async def per_item(x: int, ctx: Context) -> None:
        ctx.control("low")

    @nw.node(type="s.Once")
    async def once(ctx: Context) -> None:
        ctx.control("low")

    w.add(per_item, id="each", x=items, controls=[low])
    w.add(once, id="once", controls=[low])


def test_controllers_of_unequal_scope_are_refused_with_both_named() -> None:
    """scenario: 85"""
    with pytest.raises(nw.SpecError) as error:
        wired(both_levels)
    assert "each" in str(error.value)
    assert "once" in str(error.value)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_controller_that_ends_counts_once_and_the_other_goes_on(seed: int) -> None:
    """scenario: 67, 68, 75. defect: D3"""

    @nw.node(type="s.Ends")
    async def ends(ctx: Context) -> str:
        ctx.end_control("add")
        ctx.end_control("add")
        ctx.control("add", b=9)
        return "ended"

    @nw.node(type="s.LaterOn")
    async def later(ctx: Context) -> dict[str, object]:
        await asyncio.sleep(3)
        return dict(await ctx.call("add", b=4))

    def build(w: Any) -> None:
        target = w.add(add, id="add", a=1)
        w.add(ends, id="ends", controls=[target, target])
        w.add(later, id="later", controls=[target])

    outputs = run(wired(build), seed=seed).outputs
    assert list(outputs["add"]) == [5]
    assert outputs["later"] == {"output": 5}


def test_no_event_at_all_completes_with_no_outputs() -> None:
    """scenario: 68. defect: D25"""

    @nw.node(type="s.Silent")
    async def silent(ctx: Context) -> None:
        ctx.end_control("add")

    def build(w: Any) -> None:
        w.add(silent, id="boss", controls=[w.add(add, id="add", a=1)])

    result = run(wired(build))
    assert result.status == "completed"
    assert list(result.outputs["add"]) == []


def test_an_upstream_that_ends_without_a_value_leaves_the_default() -> None:
    """scenario: 71. defect: D20"""

    def build(w: Any) -> None:
        sides = w.add("flow.If", id="if", value=5, condition=False)
        target = w.add(add, id="add", a=1, b=sides.slot("then"))
        w.add(caller(lambda c: c.call("add")), id="boss", controls=[target])

    assert run(wired(build)).outputs["boss"] == [{"output": 2}]


def test_a_caller_that_would_wait_for_itself_is_told_so() -> None:
    """defect: D21"""

    def build(w: Any) -> None:
        boss = w.add(caller(lambda c: c.call("pair", b=1)), id="boss", controls=["pair"])
        w.add(pair, id="pair", a=boss)
        w.add(pair, id="seen", a=boss, b=0)

    answer = run(wired(build)).outputs["seen"]
    assert "depends on boss itself" in answer[0][0]


@pytest.mark.parametrize("verdict", ["skip", "fail"])
def test_a_caller_is_released_when_its_event_fails_or_is_skipped(verdict: str) -> None:
    """scenario: 69, 79, 147. defect: D37"""

    @nw.node(type="s.Refuses")
    async def refuses(x: int = 0) -> int:
        raise ValueError("no")

    def build(w: Any) -> None:
        w.add(
            caller(lambda c: c.call("refuses", x=1)),
            id="boss",
            controls=[w.add(refuses, id="refuses")],
        )

    supervised = verdict == "skip"
    result = run(wired(build), supervise=Skipping() if supervised else None)
    if supervised:
        assert result.status == "completed"
        said = "no answer from refuses: it, or what it needs, was given up"
        assert said in result.outputs["boss"][0]
    else:
        assert result.status == "failed"


@pytest.mark.parametrize(
    ("overrides", "said"),
    [({"nope": 1}, "nope, which is no property of add"), ({"b": "two"}, "expected a whole number")],
)
def test_a_property_that_is_unknown_or_of_the_wrong_type_is_not_executed(
    overrides: dict[str, object], said: str
) -> None:
    """scenario: 73"""

    def build(w: Any) -> None:
        target = w.add(add, id="add", a=1)
        w.add(caller(lambda c: c.call("add", **overrides)), id="boss", controls=[target])

    result = run(wired(build), supervise=Skipping())
    assert said in result.interventions[0].escalation.detail
    assert [str(a) for a in result.interventions[0].escalation.allowed_actions] == ["skip", "fail"]


def test_cancel_while_a_controlled_node_waits_for_data_ends_at_once() -> None:
    """scenario: 38, 77. defect: D38"""

    @nw.node(type="s.Never")
    async def never() -> int:
        await asyncio.sleep(10_000)
        return 1

    def build(w: Any) -> None:
        target = w.add(add, id="add", a=w.add(never, id="never"))
        w.add(caller(lambda c: c.call("add")), id="boss", controls=[target])

    done = played(wired(build), at=[(2.0, lambda s: s.cancel())])
    assert done.result.status == "cancelled"
    assert done.ended_s == pytest.approx(2)
    assert done.left_open == ()


def test_what_a_step_may_control_is_told_by_type_never_by_value() -> None:
    """scenario: 80. defect: D32"""

    @nw.node(type="s.Keyed")
    async def keyed(api_key: str, text: str = "hello") -> str:
        return text

    @nw.node(type="s.Looks")
    async def looks(ctx: Context) -> list[str]:
        return [f"{name}: {t.name} {sorted(t.inputs)}" for name, t in ctx.controls.items()]

    def build(w: Any) -> None:
        target = w.add(keyed, id="keyed", api_key="sk-very-secret-value")
        w.add(looks, id="looks", controls=[target])

    done = played(wired(build))
    assert done.result.outputs["looks"] == ["keyed: s.Keyed ['api_key', 'text']"]
    assert "sk-very-secret-value" not in str(done.events)


def test_a_controlled_node_with_a_list_over_several_edges_gets_the_whole_list() -> None:
    """defect: D65"""

    @nw.node(type="s.Sums")
    async def sums(xs: Many[int], plus: int = 0) -> int:
        return sum(xs) + plus

    def build(w: Any) -> None:
        one, two = w.add(inc, id="one", x=1), w.add(inc, id="two", x=2)
        target = w.add(sums, id="sums", xs=[one, two])
        w.add(caller(lambda c: c.call("sums", plus=100)), id="boss", controls=[target])

    assert run(wired(build)).outputs["boss"] == [{"output": 105}]


def test_only_what_it_controls_may_be_called() -> None:
    """scenario: 79, 80"""

    def build(w: Any) -> None:
        w.add(add, id="other", a=1)
        w.add(caller(lambda c: c.call("other")), id="boss")

    assert "does not control 'other'" in run(wired(build)).outputs["boss"][0]


# -- loops --


def looped(
    *, body: Any = inc, below: int | None = 5, start: int = 0, **options: Any
) -> tuple[Any, dict[str, object]]:
    @nw.node(type="s.Below", retry_safe=True)
    async def is_below(x: int, limit: int) -> bool:
        return x < limit

    def build(w: Any) -> None:
        loop = w.add("flow.Loop", id="loop", initial=w.input("x", int), **options)
        end = w.add(body, id="body", x=loop.slot("value"))
        more = {} if below is None else {"condition": w.add(is_below, id="c", x=end, limit=below)}
        w.feed(loop, next=end, **more)
        w.add(inc, id="after", x=loop.slot("done"))

    return wired(build), {"x": start}


def test_a_loop_runs_its_body_until_the_condition_is_false() -> None:
    """scenario: 118, 119, 120"""
    workflow, inputs = looped()
    done = played(workflow, inputs)
    assert done.result.outputs["after"] == 6
    assert list(done.result.outputs["loop"]) == [0, 1, 2, 3, 4]
    limited, start = looped(below=1_000, start=10, max_iterations=3)
    done = played(limited, start)
    assert done.result.outputs["after"] == 14
    warnings = [e.message for e in done.events if getattr(e, "level", "") == "warning"]
    assert any("limit of 3 iterations" in line for line in warnings)
    endless, start = looped(below=None, max_iterations=4)
    assert run(endless, start).outputs["after"] == 5


def test_a_body_that_leads_out_ends_the_loop_without_done() -> None:
    """scenario: 121. defect: D48"""

    @nw.node(type="s.Leaves", retry_safe=True)
    async def leaves(x: int) -> int | Absent:
        return x + 1 if x < 3 else ABSENT

    workflow, inputs = looped(body=leaves, below=None)
    result = run(workflow, inputs)
    assert result.status == "completed"
    assert result.outputs["after"]["absent"] == "not_taken"
    assert list(result.outputs["loop"]) == [0, 1, 2, 3]


@pytest.mark.parametrize("verdict", ["skip", "fail"])
def test_a_body_that_raises_in_its_third_round_never_hangs(verdict: str) -> None:
    """scenario: 122, 123. defect: D49, D50"""

    @nw.node(type="s.Third", retry_safe=True)
    async def third(x: int) -> int:
        if x == 2:
            raise ValueError("third round")
        return x + 1

    workflow, inputs = looped(body=third)
    result = run(workflow, inputs, supervise=Skipping() if verdict == "skip" else None)
    if verdict == "skip":
        assert result.status == "completed"
        assert result.outputs["after"]["absent"] == "lost"
        assert list(result.outputs["loop"]) == [0, 1, 2]
    else:
        assert result.status == "failed"
        assert "body [3" in result.reason


def test_loops_inside_fan_outs_and_inside_loops() -> None:
    """scenario: 124, 125, 128"""

    @nw.node(type="s.Times", retry_safe=True)
    async def times(x: int, y: int) -> int:
        return x * y

    @nw.node(type="s.Less", retry_safe=True)
    async def less(x: int, than: int) -> bool:
        return x < than

    def build(w: Any) -> None:
        factor = w.input("factor", int)
        outer = w.add(
            "flow.Loop", id="outer", initial=w.input("xs", list[int]).each(), max_iterations=2
        )
        inner = w.add("flow.Loop", id="inner", initial=outer.slot("value"))
        product = w.add(times, id="times", x=inner.slot("value"), y=factor)
        w.feed(inner, next=product, condition=w.add(less, id="less", x=product, than=50))
        w.feed(outer, next=inner.slot("done"))
        w.add(gather, id="all", xs=outer.slot("done").collect())

    result = run(wired(build), {"xs": [1, 2], "factor": 3})
    assert result.outputs["all"] == [243, 162]


@pytest.mark.parametrize(
    ("text", "rule", "said"),
    [
        ("initial: 1\n    next: $lp.done\n", "loop-feedback", "next"),
        ("initial: 1\n", "missing-slot", "next needs a value"),
        ("initial: 1\n    next: $outside\n", "loop-feedback", "own body"),
        ("initial: 1\n    next: $b\n    max_iterations: 0\n", "", "max_iterations"),
        ("initial: 1\n    next: $b\n    max_iterations: many\n", "", "max_iterations"),
        ("initial: $b\n    next: $b\n", "cycle", "lp.next"),
        ("initial: 1\n    next: $c\n", "loop-exit-into-body", "lp"),
    ],
)
def test_what_is_wrong_with_a_loop_is_said_in_words(text: str, rule: str, said: str) -> None:
    """scenario: 126, 127, 128. defect: D51"""
    from nightwarden.nodes.registry import Registry
    from nightwarden.spec.load import examine

    registry = Registry()
    registry.add(inc)
    registry.add(gather)
    source = f"""version: 1
nodes:
  outside:
    type: s.Inc
    x: 1
  lp:
    type: flow.Loop
    {text}
  b:
    type: s.Inc
    x: $lp.value
  g:
    type: s.Gather
    xs: $b[]
  c:
    type: data.Map
    item: $b
    all: $g
    expression: item
"""
    _, problems = examine(source, file="loop.yaml", catalog=registry)
    errors = [p for p in problems if p.severity == "error"]
    assert any(said in str(p) and (not rule or p.rule == rule) for p in errors), errors


def test_a_collector_that_only_looks_on_is_fine() -> None:
    """scenario: 127"""
    workflow, inputs = looped()

    def build(w: Any) -> None:
        loop = w.add("flow.Loop", id="loop", initial=0, max_iterations=3)
        w.feed(loop, next=w.add(inc, id="body", x=loop.slot("value")))
        w.add(gather, id="history", xs=loop.slot("value").collect())

    assert run(wired(build)).outputs["history"] == [0, 1, 2]
    assert run(workflow, inputs).status == "completed"


# -- pairing --


@pytest.mark.parametrize("seed", SEEDS)
def test_zip_pairs_by_number_also_when_one_side_comes_the_other_way_round(seed: int) -> None:
    """scenario: 93, 102, 110"""

    @nw.node(type="s.Backwards", retry_safe=True, concurrency=10)
    async def backwards(x: int) -> int:
        await asyncio.sleep(10 - x)
        return x

    def build(w: Any) -> None:
        left = w.add(backwards, id="left", x=w.input("xs", list[int]).each())
        pairs = w.add("flow.Zip", id="zip", left=left, right=w.add(count, id="right", n=4))
        both = w.add(pair, id="both", a=pairs.slot("left"), b=pairs.slot("right"))
        w.add(gather, id="all", xs=both.collect())

    outputs = run(wired(build), {"xs": [0, 1, 2, 3]}, seed=seed).outputs
    assert outputs["all"] == [[i, i] for i in range(4)]


def test_zip_names_what_is_lost_and_refuses_unequal_ends() -> None:
    """scenario: 110"""

    @nw.node(type="s.NotOne", retry_safe=True)
    async def not_one(x: int) -> int:
        if x == 1:
            raise ValueError("one")
        return x

    def build(w: Any) -> None:
        left = w.add(not_one, id="left", x=w.input("xs", list[int]).each())
        pairs = w.add("flow.Zip", id="zip", left=left, right=w.add(count, id="right", n=3))
        both = w.add(pair, id="both", a=pairs.slot("left"), b=pairs.slot("right"))
        w.add(gather, id="all", xs=both.collect())

    result = run(wired(build), {"xs": [0, 1, 2]}, supervise=Skipping())
    assert result.outputs["all"] == [[0, 0], [2, 2]]
    unequal = run(wired(build), {"xs": [0, 2]})
    assert unequal.status == "failed"
    assert "right has more" in unequal.reason


def test_cross_makes_every_pair_and_names_its_limit() -> None:
    """scenario: 111"""

    def build(w: Any, **options: Any) -> None:
        pairs = w.add(
            "flow.Cross",
            id="cross",
            left=w.add(count, id="a", n=2),
            right=w.add(count, id="b", n=3),
            **options,
        )
        both = w.add(pair, id="both", a=pairs.slot("left"), b=pairs.slot("right"))
        w.add(gather, id="all", xs=both.collect())

    assert run(wired(build)).outputs["all"] == [[a, b] for a in range(2) for b in range(3)]
    limited = run(wired(lambda w: build(w, limit=2)))
    assert limited.status == "failed"
    assert "more than 2 pairs" in limited.reason


def test_unrelated_items_into_a_plain_node_are_refused_and_both_joins_named() -> None:
    """scenario: 85, 91, 94"""

    def build(w: Any) -> None:
        w.add(pair, id="pair", a=w.add(count, id="a", n=2), b=w.add(count, id="b", n=2))

    with pytest.raises(nw.SpecError) as error:
        wired(build)
    assert "flow.Zip or flow.Cross" in str(error.value)


def test_two_collects_and_a_loop_agree_with_plain_python() -> None:
    """scenario: 144"""

    @nw.node(type="s.Total")
    async def total(xs: Collect[int]) -> int:
        return sum(xs)

    def build(w: Any) -> None:
        items = w.add(count, id="items", n=w.input("n", int))
        w.add(total, id="total", xs=items.collect())

    assert run(wired(build), {"n": 10}).outputs["total"] == 45
