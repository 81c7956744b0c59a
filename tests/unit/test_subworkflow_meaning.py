"""A subworkflow means, for each item, what its workflow means alone (kernel.md §1).

Inner workflows are drawn; each is inlined below a fan-out some of whose items never come, with
one input that comes once an item and one that comes once. What the reference says of the whole
is then compared with what it says of the inner workflow alone, and the kernel with both.

row: K1-FAN-SUBWORKFLOW
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st
from reference.acting import Act, Case, Fault, Frame, Hush, Step, Tell, codes, judge
from reference.comparing import ENDINGS
from reference.drive import Pace, drive
from reference.graphs import cases
from reference.interpreter import interpret
from reference.small import fan, step, wire, workflow
from reference.words import Absent, Choices, Meaning, Value

from nightwarden.kernel.effects import Status
from nightwarden.lineage import Lineage
from nightwarden.nodes.registry import Registry
from nightwarden.spec.catalog import MISSING, TIES, NodeType, SlotKind
from nightwarden.spec.check import assemble
from nightwarden.spec.draft import Draft, DraftNode
from nightwarden.spec.findings import Findings
from nightwarden.spec.generics import VALUE
from nightwarden.spec.refs import Reference
from nightwarden.spec.workflow import INPUTS, EdgeSpec, InputSpec, Workflow

SUB = "sub/"
OUTER = workflow(fan("src"), step("pre", value="src"), step("cfg"), step("post"))


class Types:
    """A catalog of the types of some workflows, and of what inlining makes."""

    def __init__(self, *workflows: Workflow) -> None:
        made = [t for w in workflows for t in w.types.values()]
        value = Registry().find(VALUE)
        assert value is not None
        self._known = {t.name: t for t in (*made, value)}

    def find(self, name: str) -> NodeType | None:
        return self._known.get(name)

    def names(self) -> Sequence[str]:
        return sorted(self._known)


@dataclass(frozen=True, slots=True)
class Within(Case):
    """A case whose nodes under `sub/` act as those of an inner case do, for the rest of a lineage.

    `depth` is how much of the lineage is the outer workflow's.
    """

    inner: Case | None = None
    depth: int = 1

    def act(self, node: str, lineage: Lineage) -> Act:
        if not node.startswith(SUB):
            acts = self.acts[node]
            return acts[(lineage[-1] if lineage else 0) % len(acts)]
        if node.startswith(f"{SUB}{INPUTS}."):
            return Act()
        assert self.inner is not None
        act = self.inner.act(node.removeprefix(SUB), lineage[self.depth :])
        return replace(act, script=tuple(map(_inside, act.script)))


def _inside(made: Step) -> Step:
    """The same step, of a node under `sub/`."""
    return replace(made, target=SUB + made.target) if isinstance(made, Tell | Hush) else made


def with_two_inputs(inner: Workflow) -> Workflow:
    """The same workflow, every other edge from its input led from a second one."""
    edges: list[EdgeSpec] = []
    turn = 0
    for edge in inner.edges:
        if edge.source == INPUTS:
            turn += 1
            edge = replace(edge, source_slot="xy"[turn % 2])  # noqa: PLW2901
        edges.append(edge)
    return replace(inner, edges=tuple(edges), inputs=(InputSpec(name="x"), InputSpec(name="y")))


def inlined(inner: Workflow, nodes: Mapping[str, Mapping[str, str]], **wires: str) -> Workflow:
    """An outer workflow of these nodes and their wires, with `inner` as its node `sub`."""
    drafted = [
        DraftNode(
            name, f"test.{name}", {slot: (Reference(source, ""),) for slot, source in w.items()}
        )
        for name, w in nodes.items()
    ]
    given = {slot: (Reference(source, ""),) for slot, source in wires.items()}
    drafted.append(DraftNode("sub", "flow.Subworkflow", dict(given), inner=inner))
    findings = Findings()
    made = assemble(Draft(name="outer", nodes=drafted), Types(OUTER, inner), findings)
    assert not [p for p in findings.report() if p.severity == "error"]
    return made


def below(item: Lineage, meaning: Meaning) -> Mapping[str, Any]:
    """What a meaning says of the nodes of `sub` for one item, as if they ran alone."""

    def own(node: str, lineage: Lineage) -> tuple[str, Lineage] | None:
        made = node.startswith(f"{SUB}{INPUTS}.")
        if node.startswith(SUB) and not made and lineage[: len(item)] == item:
            return node.removeprefix(SUB), lineage[len(item) :]
        return None

    ends = {own(*at): end.word for at, end in meaning.endings.items() if own(*at)}
    closings = {own(*at): c.n for at, c in meaning.closings.items() if own(*at)}
    kinds = {
        (own(node, lineage[: len(item)]), slot, lineage[len(item) :]): _kind(settled)
        for (node, slot), found in meaning.slots.items()
        for lineage, settled in found.items()
        if own(node, lineage[: len(item)])
    }
    return {"endings": ends, "closings": closings, "settlements": kinds}


def alone(meaning: Meaning) -> Mapping[str, Any]:
    """What a meaning says of all nodes."""
    return {
        "endings": {at: end.word for at, end in meaning.endings.items()},
        "closings": {at: c.n for at, c in meaning.closings.items()},
        "settlements": {
            ((node, ()), slot, lineage): _kind(settled)
            for (node, slot), found in meaning.slots.items()
            for lineage, settled in found.items()
            if node != INPUTS
        },
    }


def _kind(settled: object) -> object:
    return settled.kind if isinstance(settled, Absent) else Value


def means(case: Case, choices: Choices | None = None) -> Meaning:
    return interpret(
        case.workflow,
        case.inputs,
        codes(case),
        judge(case),
        max_retries=case.max_retries,
        choices=choices,
    )


PACES = st.builds(
    Pace,
    order=st.sampled_from(("first", "last", "by node", "any")),
    seed=st.integers(0, 2**16),
    window=st.sampled_from((1024, 1, 2)),
)
PRE = st.lists(st.sampled_from(("value", "not taken", "lost")), min_size=1, max_size=3)
HOW = {
    "value": Act(),
    "not taken": Act(absent=frozenset({"output"})),
    "lost": Act(fault=Fault()),
}


def outer_case(inner: Case, pre: Sequence[str]) -> Within:
    """The inner case below a fan-out: `x` comes once an item as `pre` says, `y` once."""
    made = inlined(
        inner.workflow, {"src": {}, "cfg": {}, "pre": {"value": "src"}}, x="pre", y="cfg"
    )
    acts = {
        "src": (Act(tuple(Frame() for _ in pre)),),
        "cfg": (Act(),),
        "pre": tuple(HOW[word] for word in pre),
    }
    return Within(made, acts, {}, inner.max_retries, inner=inner)


@settings(max_examples=45)
@given(cases(), PRE)
def test_below_a_fan_out_each_item_means_what_the_workflow_means_alone(
    case: Case, pre: list[str]
) -> None:
    inner = replace(case, workflow=with_two_inputs(case.workflow), inputs={"x": "x", "y": "y"})
    outer = outer_case(inner, pre)
    whole, single = means(outer), alone(means(inner))
    for index, word in enumerate(pre):
        if word == "value":
            assert below((index,), whole) == single
    event(f"ties {any(e.target_slot in TIES for e in outer.workflow.edges)}")


@settings(max_examples=45)
@given(cases(), PRE)
def test_an_item_that_never_comes_runs_nothing_inside(case: Case, pre: list[str]) -> None:
    """Nor a step that follows nothing: a branch not taken never runs, and neither does a loss."""
    inner = replace(case, workflow=one_edge_a_list(strict(with_two_inputs(case.workflow))))
    whole = means(outer_case(inner, pre))
    for index, word in enumerate(pre):
        ran = {
            i.node for i in whole.invocations if i.node.startswith(SUB) and i.lineage[0] == index
        }
        assert word == "value" or ran == set()


def strict(inner: Workflow) -> Workflow:
    """The same workflow, whose nodes need all that is wired to them, of a merge the first edge."""
    first = {(e.target, e.target_slot): e for e in reversed(inner.edges)}
    edges = [e for e in inner.edges if inner.types[e.target].join == "all" or e in first.values()]
    types = {
        node_id: node_type
        if node_type.role
        else replace(
            node_type,
            join="all",
            inputs={
                name: replace(slot, accepts_absent=False, default=MISSING)
                for name, slot in node_type.inputs.items()
            },
        )
        for node_id, node_type in inner.types.items()
    }
    return replace(inner, types=types, edges=tuple(edges))


@settings(max_examples=45)
@given(cases(), PRE, PACES)
def test_the_kernel_does_what_the_inlined_workflow_means(
    case: Case, pre: list[str], pace: Pace
) -> None:
    inner = replace(case, workflow=one_edge_a_list(with_two_inputs(case.workflow)))
    outer = outer_case(inner, pre)
    run = drive(outer, pace)
    meaning = means(outer, run.choices)
    assert Counter(i[:3] for i in run.invocations) == Counter(i[:3] for i in meaning.invocations)
    assert {at: c.n for at, c in run.closings.items()} == {
        at: c.n for at, c in meaning.closings.items()
    }
    assert run.report is not None
    for node in run.report.nodes:
        counts = meaning.counts(node.node_id)
        assert {w: getattr(node, w) for w in ENDINGS} == {
            w: counts[w.replace("_", " ")] for w in ENDINGS
        }
    assert (run.status, run.pending, run.unfinished) == (Status.COMPLETED, [], [])


def one_edge_a_list(inner: Workflow) -> Workflow:
    """The same workflow, with the first edge into each slot that takes a list of them."""
    first = {(e.target, e.target_slot): e for e in reversed(inner.edges)}
    lists = {
        (node_id, name)
        for node_id, node_type in inner.types.items()
        for name, slot in node_type.inputs.items()
        if slot.kind is SlotKind.MANY
    }
    edges = [
        e
        for e in inner.edges
        if (e.target, e.target_slot) not in lists or e is first[e.target, e.target_slot]
    ]
    return replace(inner, edges=tuple(edges))


@settings(max_examples=45)
@given(cases())
def test_where_nothing_has_to_be_tied_the_graph_is_the_one_drawn_by_hand(case: Case) -> None:
    made = inlined(case.workflow, {"cfg": {}}, x="cfg")
    by_hand = [
        (
            *(("cfg", "output") if e.source == INPUTS else (SUB + e.source, e.source_slot)),
            SUB + e.target,
            e.target_slot,
        )
        for e in case.workflow.edges
    ]
    if any(n.type == VALUE for n in made.nodes):
        return  # an input of merge nodes only is led through a node of its own
    edges = [(e.source, e.source_slot, e.target, e.target_slot) for e in made.edges]
    assert sorted(e for e in edges if e[3] not in TIES) == sorted(by_hand)
    assert [n.id for n in made.nodes] == ["cfg", *(SUB + n.id for n in case.workflow.nodes)]
    sources = {n.id for n in case.workflow.nodes} - {e.target for e in case.workflow.edges}
    assert {e[2] for e in edges if e[3] in TIES} == {SUB + node_id for node_id in sources}


def test_a_tie_says_that_a_broadcast_counts_where_a_default_needs_it() -> None:
    """kernel.md §1: a default needs a value of the node's full scope; inside, `y` is one."""
    inner = workflow(
        step("a", value="inputs.x"),
        step("b", maybe=wire("a", default="the default"), y="inputs.x"),
        inputs=["x"],
    )
    edges = [replace(e, source_slot="y") if e.target_slot == "y" else e for e in inner.edges]
    both = (InputSpec(name="x"), InputSpec(name="y"))
    acts = {"a": (Act(absent=frozenset({"output"})),), "b": (Act(),)}
    case = Case(replace(inner, edges=tuple(edges), inputs=both), acts, {"x": "x", "y": "y"})
    outer = outer_case(case, ["value"])
    assert below((0,), means(outer)) == alone(means(case))
    assert means(outer).endings["sub/b", (0,)].word == "succeeded"
