"""Who answers: scripted, replayed, watched, and by which mode (supervision.md §6)."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pytest

from nightwarden.errors import RunError, SpecError
from nightwarden.ids import EscalationId, NodeId, RunId
from nightwarden.lineage import Lineage, show
from nightwarden.runtime.bounded import Bounded
from nightwarden.runtime.supervision import Bounds, Supervisor
from nightwarden.runtime.supervisors import (
    FailClosed,
    Replay,
    Rule,
    Scripted,
    ScriptedAnswer,
    Shadow,
    pairs_from_events,
)
from nightwarden.runtime.supervisors.modes import MODES, make_supervisor
from nightwarden.runtime.supervisors.operator import Operator
from nightwarden.runtime.supervisors.rulefile import read_rules
from nightwarden.testing import run
from nightwarden.verdict import (
    Action,
    ApplyTo,
    DecidedBy,
    Decision,
    EndStream,
    Escalation,
    Fail,
    Item,
    Retry,
    Skip,
    Substitute,
    Verdict,
    action_of,
)


def escalation(*, lineage: Lineage = (), label: str = "", **fields: Any) -> Escalation:
    given: dict[str, Any] = {
        "id": EscalationId("e1"),
        "run_id": RunId("r"),
        "node_id": NodeId("fetch"),
        "node_type": "http.Fetch",
        "lineage": lineage,
        "item": Item(number=show(lineage), label=label),
        "attempt": 1,
        "retries_left": 2,
        "allowed_actions": (Action.RETRY, Action.SKIP, Action.FAIL),
        "detail": "timed out",
        "error_type": "TimeoutError",
    }
    return Escalation(**(given | fields))


def ask(supervisor: Supervisor, *escalations: Escalation) -> list[Decision]:
    async def main() -> list[Decision]:
        return [await supervisor.decide(one) for one in escalations]

    return run(main())


def within(supervisor: Supervisor, **bounds: Any) -> Bounded:
    return Bounded(supervisor, Bounds(**bounds), stamp=lambda: "")


def scripted(text: str) -> Scripted:
    return Scripted(read_rules(text, file="answers.yaml"))


def answer(text: str, **fields: Any) -> Decision:
    (decision,) = ask(scripted(text), escalation(**fields))
    return decision


def matches(condition: str, one: Escalation) -> bool:
    (decision,) = ask(scripted(f"- when: {{{condition}}}\n  answer: retry"), one)
    return decision.verdict == Retry()


# ── FailClosed ─────────────────────────────────────────────────────────────


def test_without_a_supervisor_the_answer_is_fail_by_default() -> None:
    """supervision.md §1; row: S1-CREDIT-DEFAULT"""
    supervisor = FailClosed()
    (decision,) = ask(supervisor, escalation())
    assert (decision.verdict, decision.decided_by) == (Fail(), DecidedBy.DEFAULT)
    assert (decision.escalation_id, supervisor.asks) == ("e1", False)


# ── Scripted: which rule ───────────────────────────────────────────────────


def test_scripted_answers_count_as_agent() -> None:
    """supervision.md §1; row: S1-CREDIT-DEFAULT"""
    assert answer("- answer: retry").decided_by == DecidedBy.AGENT


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("", True),
        ("node: fetch", True),
        ("node: parse", False),
        ("signature: http:451", True),
        ("signature: 'http:500'", False),
        ("attempt: 2", True),
        ("attempt: 1", False),
        ("error_type: HTTPStatusError", True),
        ("error_type: ValueError", False),
        ("node: fetch, attempt: 1", False),
        ("node: fetch, attempt: 2, signature: http:451", True),
    ],
)
def test_a_rule_matches_when_all_its_conditions_hold(condition: str, holds: bool) -> None:
    one = escalation(signature="http:451", attempt=2, error_type="HTTPStatusError")
    assert matches(condition, one) is holds


@pytest.mark.parametrize(
    ("condition", "lineage", "label", "holds"),
    [
        ("item: 4", (3,), "item-03", True),
        ("item: 4", (4,), "", False),
        ("item: '4'", (3,), "item-03", True),
        ("item: 3.10", (2, 9), "", True),
        ("item: 3.1", (2, 9), "", False),
        ("item: '3.10'", (2, 9), "", True),
        ("item: item-03", (3,), "item-03", True),
        ("item: https://x.test/p?q=1", (3,), "https://x.test/p?q=1", True),
        ("item: item-04", (3,), "item-03", False),
        ("item: 1", (), "", False),
        ("item: ''", (), "", True),
        ("item: ''", (3,), "item-03", False),
    ],
)
def test_an_item_is_its_1_based_number_or_its_label(
    condition: str, lineage: Lineage, label: str, holds: bool
) -> None:
    """events.md: people always see 1-based numbers; a label may stand for a number in quotes."""
    assert matches(condition, escalation(lineage=lineage, label=label)) is holds


def test_where_labels_are_numbers_a_text_is_a_label_and_a_number_a_number() -> None:
    """Case H02: the pictures are called 0 … 7."""
    pictures = [escalation(lineage=(n,), label=str(n)) for n in range(8)]
    assert [p.lineage for p in pictures if matches("item: '3'", p)] == [(3,)]
    assert [p.lineage for p in pictures if matches("item: '0'", p)] == [(0,)]
    assert [p.lineage for p in pictures if matches("item: 3", p)] == [(2,)]


def test_rules_in_code_may_hold_a_lineage_as_records_do() -> None:
    rule = Rule(lineage=(3,), answers=(ScriptedAnswer(Skip(), "no caption"),))
    decisions = ask(Scripted([rule]), escalation(lineage=(3,)), escalation(lineage=(4,)))
    assert decisions[0].verdict == Skip()
    assert isinstance(decisions[1].verdict, Fail)


def test_the_first_rule_that_matches_answers() -> None:
    text = """
    - when: {node: fetch, item: 4}
      answer: skip
    - when: {node: fetch}
      answer: retry
    - answer: stop
    """
    decisions = ask(
        scripted(text),
        escalation(lineage=(3,)),
        escalation(lineage=(4,)),
        escalation(node_id=NodeId("parse")),
    )
    assert [action_of(d.verdict) for d in decisions] == ["skip", "retry", "fail"]


def test_where_no_rule_matches_the_answer_is_fail() -> None:
    decision = answer("- when: {node: parse}\n  answer: retry", lineage=(11,), label="p/12")
    assert decision.verdict == Fail(reason="stopped: no scripted answer; fetch [12] timed out")
    assert decision.rationale == "no scripted answer for fetch [12 p/12]: TimeoutError, attempt 1"
    assert decision.decided_by == DecidedBy.AGENT


def test_one_answer_holds_for_good() -> None:
    decisions = ask(scripted("- answer: retry"), *[escalation()] * 5)
    assert {d.verdict for d in decisions} == {Retry()}


def test_several_answers_are_used_up_one_by_one_then_later_rules_apply() -> None:
    text = """
    - when: {node: fetch}
      answers: [retry, {action: skip, reason: enough}]
    - when: {node: fetch}
      answer: end_stream
    """
    decisions = ask(scripted(text), *[escalation()] * 4)
    given = [str(action_of(d.verdict)) for d in decisions]
    assert given == ["retry", "skip", "end_stream", "end_stream"]
    assert decisions[1].rationale == "enough"


def test_a_file_may_be_one_sequence_of_answers() -> None:
    """Case H03: supervisor_answers."""
    decisions = ask(scripted('{"answers": ["retry", "retry"]}'), *[escalation()] * 3)
    assert [action_of(d.verdict) for d in decisions] == ["retry", "retry", "fail"]


def test_rules_that_were_not_needed_are_named() -> None:
    supervisor = scripted(
        """
- when: {node: fetch}
  answers: [retry, retry, skip]
- when: {node: prase, item: 3.1}
  answer: skip
- answer: retry
"""
    )
    ask(supervisor, escalation(), escalation(node_id=NodeId("parse")))
    assert supervisor.unused() == (
        "line 2 (node fetch): 2 of 3 answers left over",
        "line 4 (node prase, item 3.1): never needed",
    )


# ── Scripted: which answer ─────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("retry", Retry()),
        ("skip", Skip()),
        ("end_stream", EndStream()),
        ("{action: skip, apply_to: signature}", Skip(apply_to=ApplyTo.SIGNATURE)),
        ("{action: skip, apply_to: invocation}", Skip()),
        (
            "{action: fail, apply_to: signature, reason: down}",
            Fail(reason="down", apply_to=ApplyTo.SIGNATURE),
        ),
        ("{action: stop, reason: down}", Fail(reason="down")),
        ("{action: repair, outputs: {output: 1}}", Substitute({"output": 1})),
        (
            "{action: substitute, outputs: {a: [1.5, true, null], b: {c: '1', d: 2024-05-01}}}",
            Substitute({"a": [1.5, True, None], "b": {"c": "1", "d": "2024-05-01"}}),
        ),
    ],
)
def test_an_answer_is_a_verb_or_a_mapping(text: str, verdict: Verdict) -> None:
    assert answer(f"- answer: {text}").verdict == verdict


def test_the_reason_is_the_rationale() -> None:
    """supervision.md §2: the rationale is in every record."""
    decision = answer("- answer: {action: skip, reason: no main part}")
    assert decision.rationale == "no main part"
    assert answer("- answer: skip").rationale == "scripted answer"


def test_scripted_answers_are_usable_within_bounds() -> None:
    box = within(scripted("- answer: {action: skip, apply_to: signature}"))
    decisions = ask(box, *(escalation(lineage=(n,), signature="http:451") for n in range(5)))
    assert [d.decided_by for d in decisions] == ["agent"] + ["sticky"] * 4


def test_forty_items_that_fail_in_two_ways_cost_two_decisions() -> None:
    """Case H01: five refusals alike, and one ordinary exception that none of it covers."""
    box = within(
        scripted(
            """
            [{"when": {"node": "fetch", "signature": "http:451"},
              "answer": {"action": "skip", "apply_to": "signature", "reason": "refused"}},
             {"when": {"node": "extract"},
              "answer": {"action": "skip", "reason": "page has no main part"}}]
            """
        )
    )
    refused = [escalation(lineage=(n,), signature="http:451") for n in (6, 13, 21, 30, 38)]
    no_main = escalation(node_id=NodeId("extract"), lineage=(17,), error_type="ValueError")
    decisions = ask(box, *refused[:2], no_main, *refused[2:])
    assert [str(d.decided_by) for d in decisions] == [
        "agent",
        "sticky",
        "agent",
        "sticky",
        "sticky",
        "sticky",
    ]
    assert decisions[2].rationale == "page has no main part"
    assert box.decisions_used == 2


# ── Scripted: what is wrong with a file ────────────────────────────────────


def problems(text: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        read_rules(text, file="answers.yaml")
    assert all(problem.file == "answers.yaml" for problem in caught.value.problems)
    return [f"{p.line}: {p.message} — {p.remedy}" for p in caught.value.problems]


def test_every_mistake_of_a_file_is_reported_at_once_with_its_line() -> None:
    found = problems(
        """
- when: {nod: fetch, item: 0, attempt: x}
  answr: skip
- answer: skpi
- answer: {action: retry, apply_to: signature, outputs: {a: 1}}
- answer: {action: skip, apply_to: signatur}
- answer: {reason: x}
- answer: substitute
- answer:
    action: substitute
    outputs: {a: .nan, b: !!python/object x, a: 2}
- answer: skip
  answers: [skip]
- answers: []
- 3
- when:
  answer: [skip]
- answer: {action: repair, outputs: &x {a: *x}}
"""
    )
    expected = [
        (2, "unknown key 'nod'", "did you mean 'node'?"),
        (2, "0 is no item", "a label goes in quotes"),
        (2, "'x' is no attempt", ""),
        (2, "has neither", ""),
        (3, "unknown key 'answr'", "did you mean 'answer'?"),
        (4, "'skpi' is no verb", "did you mean 'skip'?"),
        (5, "`apply_to` goes with skip and stop, not with retry", ""),
        (5, "`outputs` goes with repair, not with retry", ""),
        (6, "'signatur' is no extent", "did you mean 'signature'?"),
        (7, "has no `action`", "one of: retry, repair, skip, end_stream, stop"),
        (8, "a repair needs `outputs`", "{action: substitute, outputs: {output: …}}"),
        (11, "a number must be finite", ""),
        (11, "python/object", ""),
        (11, "'a' is given twice", ""),
        (12, "has both", ""),
        (14, "at least one answer", ""),
        (15, "expected a rule", ""),
        (16, "expected conditions", ""),
        (17, "expected an answer", ""),
        (18, "cannot contain itself", ""),
    ]
    assert len(found) == len(expected)
    for line, message, remedy in expected:
        assert [f for f in found if f.startswith(f"{line}: ") and message in f and remedy in f]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", "None", "empty"),
        ("# nothing\n", "None", "empty"),
        ("skip", "1", "expected a list of rules"),
        ("- answer: [", "1", "expected the node content"),
        ("- answer: skip\n- answer: 'x", "2", "unexpected end"),
        ("- answer: *nobody", "1", "undefined alias"),
        ("- answer: skip\n---\n- answer: skip", "2", "another document"),
        ("\t- answer: skip", "1", "cannot start any token"),
        ("- answer: \x00", "None", "not allowed"),
        ("- a: " + "[" * 600, "None", "recursion"),
        ("- answer: {action: repair, outputs: {a: " + "9" * 5_000 + "}}", "1", "cannot be read"),
    ],
)
def test_what_is_no_list_of_rules_is_one_problem(text: str, line: str, words: str) -> None:
    (found,) = problems(text)
    assert found.startswith(f"{line}: ")
    assert words in found


def test_a_file_without_rules_is_written_as_an_empty_list() -> None:
    assert read_rules("[]") == ()


def test_aliases_do_not_make_a_file_grow() -> None:
    bomb = "- when: {}\n  answer:\n    action: repair\n    outputs:\n      a0: &a0 [x, x]\n"
    bomb += "".join(f"      a{n}: &a{n} [{f'*a{n - 1}, ' * 9}x]\n" for n in range(1, 40))
    (rule,) = read_rules(bomb)
    assert isinstance(rule.answers[0].verdict, Substitute)
    assert len(rule.answers[0].verdict.outputs) == 40


# ── Replay ─────────────────────────────────────────────────────────────────


def recorded(*pairs: tuple[Escalation, Decision]) -> list[Mapping[str, object]]:
    """The events of these interventions, read back from JSON."""
    events: list[Mapping[str, object]] = [{"type": "run_started", "seq": 1}]
    for number, (one, decision) in enumerate(pairs):
        old = msgspec.structs.replace(one, id=EscalationId(f"old-{number}"))
        given = msgspec.structs.replace(decision, escalation_id=old.id)
        events.append({"type": "supervisor_escalation", "escalation": old, "new_field": 1})
        events.append({"type": "supervisor_decision", "decision": given})
    return [msgspec.json.decode(msgspec.json.encode(event)) for event in events]


def replay(*pairs: tuple[Escalation, Decision]) -> Replay:
    return Replay(pairs_from_events(recorded(*pairs)))


@pytest.mark.parametrize(
    "verdict",
    [
        Retry(),
        Substitute({"output": {"title": "x"}}),
        Skip(apply_to=ApplyTo.SIGNATURE),
        EndStream(),
        Fail(reason="down"),
    ],
)
def test_a_recorded_run_answers_with_the_same_verdict(verdict: Verdict) -> None:
    """Scenario 100."""
    given = Decision(verdict=verdict, rationale="so", cost_micro_usd=700, model="m")
    (decision,) = ask(replay((escalation(lineage=(3,)), given)), escalation(lineage=(3,)))
    assert (decision.verdict, decision.rationale, decision.model) == (verdict, "so", "m")
    assert decision.decided_by == DecidedBy.REPLAY
    assert decision.escalation_id == "e1"
    assert decision.cost_micro_usd == 0


@pytest.mark.parametrize("other", [{"node_id": NodeId("parse")}, {"lineage": (4,)}, {"attempt": 2}])
def test_what_is_not_in_the_record_is_a_fail(other: Mapping[str, Any]) -> None:
    given = Decision(verdict=Retry(), rationale="so")
    supervisor = replay((escalation(lineage=(3,)), given))
    (decision,) = ask(supervisor, escalation(**{"lineage": (3,), **other}))
    assert (type(decision.verdict), decision.decided_by) == (Fail, DecidedBy.REPLAY)
    assert "the recorded run has no answer for" in decision.rationale


def test_what_was_sticky_in_the_record_is_sticky_again_and_uncounted() -> None:
    sticky = Decision(
        verdict=Skip(apply_to=ApplyTo.SIGNATURE), decided_by=DecidedBy.STICKY, rationale="refused"
    )
    box = within(replay((escalation(lineage=(7,)), sticky)), max_decisions=0)
    (decision,) = ask(box, escalation(lineage=(7,), signature="http:451"))
    assert (decision.decided_by, decision.verdict) == (DecidedBy.STICKY, sticky.verdict)
    assert box.decisions_used == 0


@pytest.mark.parametrize("credit", [DecidedBy.BOUNDS, DecidedBy.DEFAULT, DecidedBy.KERNEL])
def test_a_fail_that_nobody_chose_keeps_its_credit(credit: DecidedBy) -> None:
    """kernel.md §3: `--keep-going` covers these, and would stop at a fail by replay."""
    given = Decision(verdict=Fail(), decided_by=credit, rationale="so", asked_for=Retry())
    (decision,) = ask(replay((escalation(), given)), escalation())
    assert (decision.decided_by, decision.asked_for) == (credit, Retry())


def test_a_resumed_record_answers_with_its_last_word() -> None:
    first = Decision(verdict=Fail(), decided_by=DecidedBy.OPERATOR, rationale="later")
    second = Decision(verdict=Skip(), decided_by=DecidedBy.OPERATOR, rationale="give it up")
    (decision,) = ask(replay((escalation(), first), (escalation(), second)), escalation())
    assert decision.verdict == Skip()


def test_an_escalation_that_was_never_decided_is_passed_over() -> None:
    events = recorded((escalation(), Decision(verdict=Retry(), rationale="so")))
    assert pairs_from_events(events[:-1]) == ()
    assert pairs_from_events([events[-1]]) == ()


def test_a_decision_may_name_its_escalation_in_the_event() -> None:
    events: list[Any] = recorded((escalation(), Decision(verdict=Retry(), rationale="so")))
    events[-1]["escalation_id"] = events[-1]["decision"].pop("escalation_id")
    assert len(pairs_from_events(events)) == 1


@pytest.mark.parametrize("broken", [None, {}, {"verdict": {"action": "explode"}}])
def test_a_record_that_cannot_be_read_is_said_to_be_so(broken: object) -> None:
    event = {"type": "supervisor_decision", "seq": 7, "decision": broken}
    with pytest.raises(RunError, match=r"event 7 \(supervisor_decision\).*cannot be read"):
        pairs_from_events([event])


# ── Shadow ─────────────────────────────────────────────────────────────────


def test_what_would_have_been_answered_is_recorded_and_fail_is_applied() -> None:
    """supervision.md §6, Shadow."""
    inner = Scripted([Rule(answers=(ScriptedAnswer(Retry(), "it heals"),))])
    (decision,) = ask(within(Shadow(inner)), escalation(lineage=(11,)))
    said = "stopped: a supervisor would have: retry; fetch [12] timed out"
    assert decision.verdict == Fail(reason=said)
    assert decision.decided_by == DecidedBy.DEFAULT
    assert decision.asked_for == Retry()
    assert decision.rationale == "would have: retry — because it heals"


def test_what_the_watched_supervisor_cost_is_kept() -> None:
    class Paid(FailClosed):
        async def decide(self, escalation: Escalation) -> Decision:
            return Decision(verdict=Skip(), rationale="x", cost_micro_usd=900, model="m")

    box = within(Shadow(Paid()))
    (decision,) = ask(box, escalation(allowed_actions=(Action.END_STREAM, Action.FAIL)))
    assert (decision.cost_micro_usd, decision.model, box.spent_micro_usd) == (900, "m", 900)
    assert decision.rationale == "would have: skip (not allowed here) — because x"


def test_what_would_have_stuck_is_not_asked_again() -> None:
    inner = scripted("- answers: [{action: skip, apply_to: signature, reason: refused}]")
    box = within(Shadow(inner))
    decisions = ask(box, *(escalation(lineage=(n,), signature="http:451") for n in range(4)))
    assert {d.decided_by for d in decisions} == {DecidedBy.DEFAULT}
    assert decisions[-1].rationale == "would have: skip (as for all like it) — because refused"
    assert box.decisions_used == 1


@pytest.mark.parametrize("answered", [None, Decision(verdict=Skip())])
def test_an_unusable_answer_of_the_watched_is_refused_by_the_bounds(answered: object) -> None:
    class Odd(FailClosed):
        async def decide(self, escalation: Escalation) -> Decision:
            return answered  # type: ignore[return-value]

    (decision,) = ask(within(Shadow(Odd())), escalation())
    assert decision.decided_by == DecidedBy.BOUNDS


def test_a_watched_person_has_a_persons_time() -> None:
    assert Shadow(Operator(io.StringIO(), io.StringIO())).human
    assert not Shadow(FailClosed()).human


# ── modes ──────────────────────────────────────────────────────────────────


def lazily(events: list[Mapping[str, object]], fault: Exception | None) -> Iterator[Any]:
    yield from events
    if fault is not None:
        raise fault


def mode(text: str, **given: Any) -> Supervisor:
    files = {"a.yaml": "- answer: retry", "c:/x.yaml": "- answer: skip", "bad.yaml": "- 3"}
    runs: dict[str, Any] = {
        "run-1": lazily(recorded((escalation(), Decision(verdict=Skip(), rationale="x"))), None),
        "run-2": lazily([], ValueError("line 3 is no event")),
    }

    def read_text(name: str) -> str:
        if name == "latin.yaml":
            return b"\xff".decode()
        if name not in files:
            raise FileNotFoundError(2, "No such file or directory")
        return files[name]

    def read_run(name: str) -> Any:
        if name not in runs:
            raise RunError(f"there is no run {name!r}")
        return runs[name]

    streams = {"source": io.StringIO(), "sink": io.StringIO()}
    return make_supervisor(text, read_text=read_text, read_run=read_run, **(streams | given))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("off", FailClosed),
        (" off ", FailClosed),
        ("scripted:a.yaml", Scripted),
        ("scripted:c:/x.yaml", Scripted),
        ("replay:run-1", Replay),
        ("operator", Operator),
        ("shadow:scripted:a.yaml", Shadow),
        ("shadow:operator", Shadow),
    ],
)
def test_a_mode_names_a_supervisor(text: str, kind: type) -> None:
    supervisor = mode(text)
    assert type(supervisor) is kind
    assert isinstance(supervisor, Supervisor)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("agent", "supervision by a model cannot be had here; use scripted:FILE"),
        ("agent:some/model", "cannot be had here"),
        ("shadow", "cannot be had here"),
        ("shadow:agent", "cannot be had here"),
        ("shadow:off", "nothing to watch"),
        ("shadow:shadow:operator", "nothing to watch"),
        ("scripted", "write scripted:FILE"),
        ("replay:", "write replay:RUN"),
        ("operator:me", "takes nothing after it"),
        ("off:now", "takes nothing after it"),
        ("scripted:none.yaml", "cannot read 'none.yaml': No such file or directory"),
        ("scripted:latin.yaml", "it is not UTF-8 text"),
        ("replay:run-9", "there is no run 'run-9'"),
        ("replay:run-2", "cannot read 'run-2': line 3 is no event"),
        ("scriptd:a.yaml", "did you mean 'scripted'?"),
        ("", "expected one of: off, agent, operator"),
    ],
)
def test_a_mode_that_cannot_be_had_is_refused_with_the_reason(text: str, words: str) -> None:
    """surfaces.md: a mode that cannot be had is exit 2 with the reason; scenario 86."""
    with pytest.raises(RunError) as caught:
        mode(text)
    assert words in str(caught.value)


def test_a_broken_file_is_refused_with_its_problems() -> None:
    with pytest.raises(SpecError, match=r"bad\.yaml:1"):
        mode("scripted:bad.yaml")


def test_an_operator_needs_a_terminal() -> None:
    closed = io.StringIO()
    closed.close()
    with pytest.raises(RunError, match="no terminal"):
        mode("operator", source=closed)


@pytest.mark.parametrize("name", [name for name in MODES if name not in ("off", "operator")])
def test_a_mode_alone_is_known_and_says_what_it_lacks(name: str) -> None:
    with pytest.raises(RunError) as caught:
        mode(name)
    assert "unknown mode" not in str(caught.value)
