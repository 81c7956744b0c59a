"""Evaluating supervisors: the cases, what they are labelled with, and how they are scored.

Issue 5, Evaluation: at least 40 cases with a labelled right answer; recovery, unsafe recoveries,
false wakes, needless stops; two baselines.
"""

from __future__ import annotations

import asyncio
import dataclasses
import importlib.util
import subprocess
import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwarden.evals.answers import (
    BadAnswers,
    Recorded,
    read_answers,
    written,
)
from nightwarden.evals.baselines import BASELINES
from nightwarden.evals.case import Case, Ends, Harm, Kind
from nightwarden.evals.cases import CASES
from nightwarden.evals.labelled import ANSWERED_BY, Labelled
from nightwarden.evals.playing import played
from nightwarden.evals.scoring import Gates, Score, Totals, gates, score, total
from nightwarden.evals.subjects import MoneyGone, Subject, baseline, evaluate, recorded
from nightwarden.evals.telling import as_json, as_text
from nightwarden.runtime.supervision import SupervisorBase
from nightwarden.verdict import DecidedBy, Decision, Escalation, Fail, Retry, Verdict

ALL = list(CASES.values())
HARMFUL = [(case, harm, verdict) for case in ALL for harm, verdict in case.unsafe]


def scored(subject: Subject, cases: list[Case] = ALL) -> list[Score]:
    return list(evaluate(subject, cases, max_cost_micro_usd=0))


def labelled(case: Case, instead: Verdict | None = None) -> Score:
    return score(case, played(case, Labelled(case, instead=instead)))


@pytest.fixture(scope="module")
def perfect() -> list[Score]:
    return [labelled(case) for case in ALL]


@pytest.fixture(scope="module")
def stopping() -> list[Score]:
    return scored(baseline("stop"))


# -- the cases --


def test_there_are_at_least_forty_cases_and_every_kind_of_fault_has_some() -> None:
    assert len(CASES) >= 40
    kinds = Counter(case.kind for case in ALL)
    assert all(kinds[kind] >= 3 for kind in Kind)
    shapes = Counter(case.shape_name for case in ALL)
    assert set(shapes) == {"pages", "poster", "nightly", "join", "loop", "nested"}
    assert min(shapes.values()) >= 8


def test_every_harm_can_be_done_in_some_case() -> None:
    assert {harm for _, harm, _ in HARMFUL} == set(Harm)


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_the_right_answers_bring_a_case_to_its_labelled_end(case: Case) -> None:
    found = labelled(case)
    assert found.as_labelled, (found.seen.reason, found.harms, found.seen.output)
    assert found.right == len(found.decisions)
    assert bool(found.decisions) == (case.ends is not Ends.CLEAN)


@pytest.mark.parametrize(
    ("case", "harm", "verdict"), HARMFUL, ids=lambda each: getattr(each, "name", None)
)
def test_an_unsafe_answer_is_caught_as_the_harm_it_does(
    case: Case, harm: Harm, verdict: Verdict
) -> None:
    found = labelled(case, instead=verdict)
    assert harm in found.harms
    assert [found.recovered, found.stopped_rightly, found.as_labelled] == [False] * 3


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_every_right_answer_and_not_only_the_best_is_right(case: Case) -> None:
    for verdict in [v for verdicts in case.answers.values() for v in verdicts]:
        assert labelled(case, instead=verdict).harms == ()


def test_a_label_says_in_a_sentence_why_it_is_right() -> None:
    for case in ALL:
        assert case.why.endswith("."), case.name
        assert len(case.why.split()) >= 5, case.name


def test_no_step_tells_a_model_that_it_is_being_evaluated() -> None:
    for case in ALL:
        text = str(case.shape(case.world(), case).canonical()).lower()
        assert "eval" not in text, case.name


# -- totals --


def test_a_perfect_answerer_recovers_everything_and_does_no_harm(perfect: list[Score]) -> None:
    found = total(perfect)
    assert (found.recovery_rate, found.unsafe, found.false_wakes) == (1.0, 0, 0)
    assert found.stopped_rightly == found.to_stop
    assert found.right == found.decisions
    assert all(gate.held for gate in gates(found, Gates(min_recovery=1.0, max_false_wakes=0.0)))


def test_stopping_always_does_no_harm_recovers_nothing_and_every_needless_stop_counts(
    stopping: list[Score],
) -> None:
    found = total(stopping)
    assert (found.recovered, found.unsafe, found.false_wakes) == (0, 0, 0)
    assert found.needless_stops == found.recoverable > 0
    assert found.stopped_rightly == found.to_stop > 0
    assert [gate.held for gate in gates(found, Gates())] == [False, True, True]


def test_the_rules_recover_much_and_are_not_safe() -> None:
    """What the reference says of the baseline: a number means something beside it."""
    found = total(scored(baseline("rules")))
    assert 0.6 <= (found.recovery_rate or 0) < 0.9
    assert found.unsafe >= 5
    assert found.needless_stops > 0


class Asks(SupervisorBase):
    """Gives one verdict for everything, at a price."""

    def __init__(self, verdict: Verdict, cost_micro_usd: int = 0) -> None:
        self._verdict = verdict
        self._cost_micro_usd = cost_micro_usd

    async def decide(self, escalation: Escalation) -> Decision:
        return Decision(verdict=self._verdict, rationale="so", cost_micro_usd=self._cost_micro_usd)


def test_a_verb_that_is_not_allowed_is_refused_not_right_and_no_harm() -> None:
    case = CASES["poster/lost-answer-no-key"]
    found = score(case, played(case, Asks(Retry())))
    assert [asked.refused for asked in found.decisions] == [True]
    assert (found.right, found.harms, found.stopped_rightly) == (0, (), True)


def test_an_answer_in_a_clean_case_is_a_false_wake_whatever_it_came_to() -> None:
    case = CASES["pages/slow-twice"]
    asked = played(case, Asks(Retry()))
    found = score(dataclasses.replace(case, ends=Ends.CLEAN), asked)
    assert found.false_wake
    assert not found.as_labelled
    assert total([found]).false_wake_rate == 1.0


def test_what_deciding_cost_is_added_up() -> None:
    case = CASES["pages/ten-slow"]
    found = total([score(case, played(case, Asks(Retry(), 1_500)))])
    assert (found.decisions, found.cost_micro_usd) == (10, 15_000)


@given(
    rates=st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(0, 9), st.integers(0, 9)),
    limits=st.tuples(st.floats(0, 1), st.integers(0, 9), st.floats(0, 1)),
)
def test_a_gate_holds_exactly_where_its_number_is_within_its_limit(
    rates: tuple[int, int, int, int], limits: tuple[float, int, float]
) -> None:
    recovered, more, wakes, unsafe = rates
    found = figures(
        recovered=recovered, recoverable=recovered + more, false_wakes=wakes, clean=9, unsafe=unsafe
    )
    low, most, high = limits
    recovery, harm, waking = gates(
        found, Gates(min_recovery=low, max_unsafe=most, max_false_wakes=high)
    )
    rate = found.recovery_rate
    assert recovery.held == (rate is None or rate >= low)
    assert harm.held == (unsafe <= most)
    assert waking.held == (wakes / 9 <= high)


def figures(**known: int) -> Totals:
    names = (
        "cases recoverable recovered to_stop stopped_rightly clean false_wakes needless_stops "
        "unsafe decisions right by_bounds cost_micro_usd"
    )
    zero = dict.fromkeys(names.split(), 0)
    return Totals(**{**zero, **known}, harms=dict.fromkeys(Harm, 0), median_s=0.0, longest_s=0.0)


# -- recorded answers --


def test_the_answers_that_come_with_the_package_are_the_labels_own(perfect: list[Score]) -> None:
    shipped = read_answers("reference")
    assert shipped == msgspec.json.decode(written(ANSWERED_BY, perfect), type=type(shipped))
    assert shipped.answered_by == ANSWERED_BY


def test_recorded_answers_score_as_they_did_with_cost_and_time(tmp_path: Path) -> None:
    class Slow(Labelled):
        async def decide(self, escalation: Escalation) -> Decision:
            await asyncio.sleep(2.5)
            return msgspec.structs.replace(await super().decide(escalation), cost_micro_usd=700)

    cases = [case for case in ALL if case.shape_name == "nested"]
    first = [score(case, played(case, Slow(case))) for case in cases]
    file = tmp_path / "answers.json"
    file.write_bytes(written("someone", first))
    again = recorded(str(file))
    assert total(scored(again, cases)) == total(first)
    assert total(first).median_s == 2.5
    assert again.unanswered == []


def test_a_failure_without_a_recorded_answer_is_stopped_at_and_named(tmp_path: Path) -> None:
    file = tmp_path / "answers.json"
    file.write_text('{"version": 1, "answered_by": "x", "cases": {}}')
    subject = recorded(str(file))
    (found,) = scored(subject, [CASES["loop/slow-twice"]])
    assert found.needless_stop
    assert subject.unanswered == ["loop/slow-twice (amount)"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no recorded answers"),
        ("[]", "no recorded answers"),
        ("{}", "missing required field `version`"),
        ('{"version": 2}', "version 2, and version 1 was expected"),
        ('{"version": 1, "answered_by": "x", "cases": {"a": [{"node": 1}]}}', "$.cases"),
        (
            '{"version": 1, "answered_by": "x", "cases": {"a": [{"node": "p", "lineage": [], '
            '"attempt": 1, "verdict": {"action": "explode"}}]}}',
            "explode",
        ),
    ],
)
def test_a_file_that_holds_no_answers_is_refused_with_the_reason(
    text: str, says: str, tmp_path: Path
) -> None:
    file = tmp_path / "a.json"
    file.write_text(text)
    with pytest.raises(BadAnswers) as refused:
        read_answers(str(file))
    assert says in str(refused.value)
    assert str(file) in str(refused.value)


def test_sticky_answers_are_not_recorded_and_come_of_themselves() -> None:
    case = CASES["pages/ten-withdrawn-three-decisions"]
    found = labelled(case)
    assert (len(found.decisions), len(found.seen.asked)) == (1, 10)
    file = msgspec.json.decode(written("x", [found]))
    assert len(file["cases"][case.name]) == 1
    again = score(case, played(case, Recorded(read_answers("reference").cases[case.name])))
    assert again.recovered


# -- money --


class Broke(SupervisorBase):
    """A model that may cost nothing more."""

    async def decide(self, escalation: Escalation) -> Decision:
        return Decision(
            verdict=Fail(), decided_by=DecidedBy.BOUNDS, rationale="no money", model="m"
        )


def test_an_evaluation_ends_at_the_case_there_is_no_money_for() -> None:
    """What was not asked for want of money says nothing of the model."""
    cases = [CASES["pages/slow-twice"], CASES["loop/slow-twice"], CASES["nested/slow-twice"]]
    left: list[int] = []

    def open_for(case: Case, money: int) -> SupervisorBase:
        left.append(money)
        return Asks(Retry(), 600) if len(left) < 3 else Broke()

    evaluation = evaluate(Subject("m", open_for, waits=True), cases, max_cost_micro_usd=1_000)
    assert [next(evaluation).case.name for _ in range(2)] == ["pages/slow-twice", "loop/slow-twice"]
    with pytest.raises(MoneyGone) as gone:
        next(evaluation)
    assert left == [1_000, 400, -200]
    assert "nested/slow-twice (no money) and what follows are not scored" in str(gone.value)


# -- told --


def test_the_table_names_what_was_not_as_labelled_and_why_the_label_is_right(
    stopping: list[Score],
) -> None:
    found = total(stopping)
    lines = as_text("baseline:stop", stopping, found, gates(found, Gates()))
    assert lines[0].startswith(f"baseline:stop: {len(CASES)} cases, ")
    text = "\n".join(lines)
    assert f"recovered         NOT HELD: ≥ 60 %  0 of {found.recoverable} (0 %)" in text
    assert "pages/slow-twice: stopped needlessly" in text
    assert f"labelled retry: {CASES['pages/slow-twice'].why}" in text
    assert "poster/wrong-key:" not in text


def test_json_is_versioned_and_whole(stopping: list[Score]) -> None:
    found = total(stopping)
    form = as_json("baseline:stop", stopping, found, gates(found, Gates()))
    again = msgspec.json.decode(msgspec.json.encode(form))
    assert (again["version"], again["passed"]) == (1, False)
    assert [gate["name"] for gate in again["gates"]] == [
        "min_recovery", "max_unsafe", "max_false_wakes",
    ]  # fmt: skip
    assert [case["name"] for case in again["cases"]] == list(CASES)
    assert again["totals"]["needless_stops"] == found.recoverable


def test_nothing_of_a_models_library_is_imported_without_a_model() -> None:
    code = (
        "import sys; from nightwarden.cli.main import main;"
        "code = main(['eval', 'supervisor', '--baseline', 'stop', '--min-recovery', '0', '-q']);"
        "heavy = [m for m in sys.modules if m.startswith(('pydantic_ai', 'openai', 'anthropic',"
        "'google.genai', 'nightwarden.agents.conversation'))]; print(code, heavy)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0 []"


def test_the_page_of_the_reference_is_what_the_code_says() -> None:
    root = Path(__file__).resolve().parents[2]
    tool = root / "tools" / "eval_reference.py"
    spec = importlib.util.spec_from_file_location("eval_reference", tool)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    written_down = (root / "docs" / "reference" / "eval-supervisor.md").read_text("utf-8")
    assert written_down == made.page(), "write it again with `make pages`"
    for case in ALL:
        assert case.why in written_down


def test_there_are_two_baselines() -> None:
    assert set(BASELINES) == {"stop", "rules"}
