"""Drawn cases, and what holds of every meaning: the reference is checked against itself."""

from __future__ import annotations

from collections import Counter

from hypothesis import event, given, settings
from reference.accounts import accounts
from reference.acting import Case, codes, judge
from reference.graphs import cases
from reference.interpreter import interpret
from reference.words import Meaning, Value

from nightwarden.spec.scopes import analyse, controllers, edge_scope


def meaning_of(case: Case, *, keep_going: bool = False) -> Meaning:
    return interpret(
        case.workflow,
        case.inputs,
        codes(case),
        judge(case),
        keep_going=keep_going,
        max_retries=case.max_retries,
    )


@settings(max_examples=50)
@given(cases())
def test_every_edge_settles_once_for_every_item_of_its_scope(case: Case) -> None:
    """kernel.md §1, ledger equations (2) and (4)."""
    meaning = meaning_of(case)
    analysis = analyse(case.workflow)
    due: dict[tuple[str, ...], set[tuple[int, ...]]] = {(): {()}}
    scopes = [(*s, n) for n, s in analysis.scopes.items() if case.workflow.types[n].fans_out]
    scopes += [s for n, s in analysis.scopes.items() if controllers(case.workflow, n)]
    for scope in scopes:
        due[scope] = {
            (*p, i) for (n, p), c in meaning.closings.items() if n == scope[-1] for i in range(c.n)
        }
    for edge in case.workflow.edges:
        if edge.kind == "control":
            continue
        scope = edge_scope(edge, case.workflow, analysis.scopes)
        assert set(meaning.slots.get((edge.source, edge.source_slot), {})) == due[scope]
    for node_id, scope in analysis.scopes.items():
        assert {lineage for n, lineage in meaning.endings if n == node_id} == due[scope]
        assert meaning.counts(node_id).total() == len(due[scope])
    for word in {end.word for end in meaning.endings.values()}:
        event(word)
    event(f"depth {max(map(len, analysis.scopes.values()))}")


@settings(max_examples=50)
@given(cases())
def test_every_item_is_counted_once_at_every_exit(case: Case) -> None:
    """kernel.md §1, ledger equation (1), and the charge of every lost item."""
    meaning = meaning_of(case)
    ledger = accounts(case.workflow, meaning)
    for (root, way_out), parents in ledger.exits.items():
        for parent, counted in parents.items():
            n = 1 if root == "run" else meaning.closings[root, parent].n
            assert counted.total() == n
        lost = sum(c["lost"] for c in parents.values())
        assert ledger.charged[root, way_out].total() == lost
    for words in ledger.exits.values():
        for word in sum(words.values(), Counter()):
            event(word)


@settings(max_examples=50)
@given(cases(failing=True))
def test_values_carry_interventions_only(case: Case) -> None:
    """kernel.md §1, Cause."""
    meaning = meaning_of(case, keep_going=True)
    for slot in meaning.slots.values():
        for settled in slot.values():
            if isinstance(settled, Value):
                assert all(not cause.slot for cause in settled.causes)
            else:
                assert settled.causes
    assert meaning.stopped is None
