"""Where a run of the kernel and the meaning of its workflow differ, line by line.

    run, meaning ──▶ invocations, settlements per edge, closings, escalations, ledger ──▶ []

Read next: `tests/unit/test_kernel_meaning.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import TypeVar

from nightwarden.kernel.ledger import ExitCounts, RootAccount
from nightwarden.kernel.plan import EdgeKind
from nightwarden.lineage import Lineage
from nightwarden.spec.catalog import Role
from reference.accounts import RUN, Accounts, Exit, accounts, edge_number
from reference.acting import Case
from reference.translate import Run, edge_names
from reference.words import NONE, Absent, Causes, Escalated, Kind, Meaning, Settlement, Slot

WORDS = ("delivered", "not_taken", "lost", "left", "failed")
ENDINGS = ("succeeded", "repaired", "skipped", "ended_early", "pruned", "failed", "cancelled")

K = TypeVar("K")
V = TypeVar("V")


def differences(case: Case, run: Run, meaning: Meaning) -> list[str]:
    """What a run that was not stopped did otherwise than the reference says."""
    return [*_events(case, run, meaning), *_ledger(case, run, meaning), *_outcomes(run)]


def excess(case: Case, run: Run, meaning: Meaning) -> list[str]:
    """What a stopped run did that is no part of the meaning; and sums that do not come out."""
    found = [f"{i}: not in the meaning" for i in run.invocations if i not in meaning.invocations]
    for what, kernel, reference in _settlements(case, run, meaning):
        found += [
            f"{what} {at}: kernel {kernel[at]}, reference {reference.get(at)}"
            for at in kernel
            if at not in reference or not _same(kernel[at], reference[at])
        ]
    found += [
        f"closing {at}: kernel {closing}, reference {meaning.closings.get(at)}"
        for at, closing in run.closings.items()
        if meaning.closings.get(at) != closing
    ]
    return [*found, *_sums(run), *_outcomes(run)]


def _events(case: Case, run: Run, meaning: Meaning) -> Iterator[str]:
    yield from _counted("invocation", run.invocations, meaning.invocations)
    for what, kernel, reference in _settlements(case, run, meaning):
        yield from _mapped(what, kernel, reference)
    yield from _mapped("closing", run.closings, meaning.closings)
    late = _late(case, run, meaning)
    yield from _counted("escalation", run.escalations, _as_known(run, meaning, late))
    yield from (f"pending: {p}" for p in run.pending)
    yield from (f"{node}: no Finish" for node in run.unfinished)


def _settlements(
    case: Case, run: Run, meaning: Meaning
) -> Iterator[tuple[str, Mapping[Lineage, Settlement], Mapping[Lineage, Settlement]]]:
    for number, edge in enumerate(case.workflow.edges):
        if edge.kind != "data":
            continue
        name = f"{edge.source}.{edge.source_slot} → {edge.target}.{edge.target_slot}"
        slot = meaning.slots.get((edge.source, edge.source_slot), {})
        yield name, run.edges.get(number, {}), slot
    for node, name in _captured(run):
        yield (
            f"capture {node}.{name}",
            run.captures.get((node, name), {}),
            meaning.slots.get((node, name), {}),
        )


def _captured(run: Run) -> list[Slot]:
    return [name for name in edge_names(run.plan).values() if not isinstance(name, int)]


def _same(one: object, other: object) -> bool:
    """Equal; of several failures, the kernel may know only those that came in time."""
    if isinstance(one, Absent) and isinstance(other, Absent) and one.kind is Kind.FAILED:
        return other.kind is Kind.FAILED and bool(one.causes) and one.causes <= other.causes
    return one == other


def _late(case: Case, run: Run, meaning: Meaning) -> Causes:
    """What is behind failures that came when their reader had been told to end already."""
    found = NONE
    for _, kernel, reference in _settlements(case, run, meaning):
        for at, one in kernel.items():
            other = reference.get(at)
            if isinstance(one, Absent) and isinstance(other, Absent) and _same(one, other):
                found |= other.causes - one.causes
    return found


def _as_known(run: Run, meaning: Meaning, late: Causes) -> Iterator[Escalated]:
    """The escalations of the reference, less those of their causes that came too late."""
    ours = set(run.escalations)
    for each in meaning.escalations:
        caused = [each.caused_by - some for some in _parts(each.caused_by & late)]
        known = (each._replace(caused_by=causes) for causes in caused)
        yield next((one for one in known if one in ours), each)


def _parts(causes: Causes) -> Iterator[Causes]:
    """Every part of these causes, the smallest first."""
    for size in range(len(causes) + 1):
        yield from map(frozenset, combinations(causes, size))


def _counted(what: str, kernel: Iterable[V], reference: Iterable[V]) -> Iterator[str]:
    ours, theirs = Counter(kernel), Counter(reference)
    yield from (f"{what} only in the kernel: {v}" for v in ours - theirs)
    yield from (f"{what} only in the reference: {v}" for v in theirs - ours)


def _mapped(what: str, kernel: Mapping[K, V], reference: Mapping[K, V]) -> Iterator[str]:
    for at in {**reference, **kernel}:
        one, other = kernel.get(at), reference.get(at)
        same = _same(one, other)
        if what == "closing" and one is not None and other is not None:
            same = one.n == other.n and _same(one.cause, other.cause)  # type: ignore[attr-defined]
        if not same:
            yield f"{what} {at}: kernel {one}, reference {other}"


# ── the ledger ───────────────────────────────────────────────────────────────────────────


def _ledger(case: Case, run: Run, meaning: Meaning) -> Iterator[str]:
    assert run.report is not None
    ledger = accounts(case.workflow, meaning)
    for root in (run.report.run, *run.report.roots):
        yield from _root(run, root, ledger, meaning)
    for node in run.report.nodes:
        counts = meaning.counts(node.node_id)
        for word in ENDINGS:
            if getattr(node, word) != counts[word.replace("_", " ")]:
                yield f"{node.node_id} {word}: kernel {node}, reference {counts}"
        tries = Counter(i.attempt > 1 for i in meaning.invocations if i.node == node.node_id)
        if case.workflow.types[node.node_id].role is not Role.NONE:
            tries[False] = counts.total() - counts["pruned"]
        if (node.attempts, node.retries_run) != (tries.total(), tries[True]):
            yield f"{node.node_id} attempts: kernel {node}, reference {tries}"
    yield from _sums(run)


def _root(run: Run, root: RootAccount, ledger: Accounts, meaning: Meaning) -> Iterator[str]:
    items = (
        1
        if root.node_id == RUN
        else sum(c.n for (n, _), c in meaning.closings.items() if n == root.node_id)
    )
    if root.items != items:
        yield f"{root.node_id}: kernel {root.items} items, reference {items}"
    for name, exit_ in zip(_exit_names(run, root.node_id), root.exits, strict=True):
        counts: Counter[str] = sum(ledger.exits[root.node_id, name].values(), Counter())
        if _counts(exit_) != {w: counts[w] for w in WORDS}:
            yield f"{root.node_id} exit {name}: kernel {exit_}, reference {counts}"
    failed = ledger.failed[root.node_id]
    kernel = {m.lineage: run.causes[m.cause] for m in root.missing if m.lineage not in failed}
    lost = {at: c for at, c in ledger.lost[root.node_id].items() if at not in failed}
    yield from _mapped(f"{root.node_id} charged", kernel, lost)
    missing = len(kernel) + len(failed)
    if root.kept != items - missing:
        yield f"{root.node_id}: kernel kept {root.kept} of {items}, reference misses {missing}"


def _exit_names(run: Run, root: str) -> list[Exit]:
    """The exits of a root in plan order, as the reference names them."""
    plan, names = run.plan, edge_names(run.plan)
    number = next(r.index for r in plan.roots if r.name == root)
    found: dict[int, Exit] = {}
    for node in plan.nodes:
        if node.exit >= 0 and node.root == number:
            found[node.exit] = ("node", node.id)
        for out in (*node.outs, *node.ends):
            under = node.own_root if out.stream else node.root
            if out.exit >= 0 and under == number:
                found[out.exit] = ("slot", node.id, out.name)
            for edge in out.edges if under == number else ():
                if edge.exit >= 0 and edge.kind is not EdgeKind.CAPTURE:
                    found[edge.exit] = edge_number(int(str(names[edge.index])))
    for out in plan.inputs.values() if root == RUN else ():
        found |= {e.exit: edge_number(int(str(names[e.index]))) for e in out.edges if e.exit >= 0}
    return [found[i] for i in range(len(found))]


def _counts(exit_: ExitCounts) -> dict[str, int]:
    return {word: getattr(exit_, word) for word in WORDS}


def _sums(run: Run) -> Iterator[str]:
    """Equations (1), (4) and (5), whatever the numbers."""
    assert run.report is not None
    for root in (run.report.run, *run.report.roots):
        for exit_ in root.exits:
            total = sum(_counts(exit_).values()) + exit_.unrun + exit_.suspended
            if total != root.items or exit_.unrun < 0:
                yield f"(1) {root.node_id}: {root.items} items, {exit_}"
        told = root.kept + len(root.missing) + root.unfinished
        if told != root.items or min(root.kept, root.unfinished) < 0:
            yield f"{root.node_id}: {root.items} items, {root}"
    for node in run.report.nodes:
        total = sum(getattr(node, w) for w in ENDINGS) + node.suspended + node.unrun
        if total != node.due or node.unrun < 0:
            yield f"(4) {node}"
        if node.attempts != node.started + node.retries_run:
            yield f"(5) {node}"


def _outcomes(run: Run) -> Iterator[str]:
    """Every escalation is decided once and comes to something once."""
    for number in range(1, len(run.escalations) + 1):
        if (run.outcomes[-number], run.outcomes[number]) != (1, 1):
            yield (
                f"escalation {number}: {run.outcomes[-number]} decisions, "
                f"{run.outcomes[number]} outcomes"
            )
