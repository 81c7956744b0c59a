"""Monitors: what they say and what they match (steering.md §3); scenarios 43–51 of §23."""

from __future__ import annotations

import contextlib
import importlib
import math
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from steering_kit import event, seen

from nightwarden import events
from nightwarden.events import Event
from nightwarden.spec.durations import duration_s, duration_text
from nightwarden.spec.monitors import (
    EVENT_TYPES,
    KEYS,
    NEVER_MATCHED,
    BadMonitor,
    Monitor,
    parse_monitor,
)
from nightwarden.spec.patterns import is_runaway
from nightwarden.steering.lookout import Lookout
from nightwarden.steering.monitors import Watchlist
from nightwarden.steering.observed import Observed
from nightwarden.steering.questions import holds
from nightwarden.steering.repeats import only_looks


def match(monitor: str, kind: str, /, node: str = "a", **fields: Any) -> bool:
    return holds(parse_monitor(monitor), seen(kind, node, **fields))


# -- the grammar --


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("event_type=", "event_type has no value"),
        ("foo=1", "there is no key 'foo'"),
        ("event_type", "'event_type' has no '='"),
        ("", "it is empty"),
        (",", "it is empty"),
        (" , ,", "it is empty"),
        ("cost_gt=NaN", "an amount of dollars above 0"),
        ("cost_gt=inf", "an amount of dollars above 0"),
        ("cost_gt=0", "an amount of dollars above 0"),
        ("cost_gt=-1", "an amount of dollars above 0"),
        ("cost_gt=much", "a number"),
        ("event_type=log,count=0", "a whole number from 1"),
        ("event_type=log,count=2.5", "a whole number from 1"),
        ("repeat=1", "a whole number from 2"),
        ("event_type=log,count=3,within=soon", "a duration above 0"),
        ("event_type=log,within=5m", "within needs a count"),
        ("count=3", "count needs something to count"),
        ("idle_for=0s", "a duration above 0"),
        ("idle_for=5m,repeat=3", "in which nothing can be counted"),
        ("matches=[", "a regular expression"),
        ("matches=(a+)+", "a repetition inside a repetition"),
        ("event_type=log,event_type=log", "event_type is there twice"),
        ("text_contains=a,b", "'b' has no '='"),
        ("event_type=assistant_text,cost_gt=3", "no assistant_text has a cost_gt"),
        ("event_type=log,tool_name=Bash", "no log has a tool_name"),
        ("event_type=user_message_queued", "supervisors do not wake themselves"),
        ("event_type=steering_woken", "supervisors do not wake themselves"),
        ("x" * 600, "at most 500 are read"),
        (7, "a monitor is text, not int"),
        ({"event_type": 7}, "event_type is 7"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(written: object, said: str) -> None:
    """Scenarios 46 and 48."""
    with pytest.raises(BadMonitor) as caught:
        parse_monitor(written)
    assert said in str(caught.value)


def test_a_value_may_hold_an_equals_sign() -> None:
    """Scenario 47."""
    assert parse_monitor("text_contains=a=b").text_contains == "a=b"


def test_blanks_and_empty_segments_do_not_count() -> None:
    assert parse_monitor(" event_type = log , , node_id=a ,") == Monitor(
        event_type="log", node_id="a"
    )


def test_a_mapping_says_the_same_as_the_text() -> None:
    written = {
        "event_type": "tool_error",
        "tool_name": "Bash",
        "text_contains": "",
        "cost_gt": None,
    }
    assert parse_monitor(written) == parse_monitor("event_type=tool_error,tool_name=Bash")


@pytest.mark.parametrize(
    ("written", "remark"),
    [
        ("text_contains=stuck", "text without an event_type"),
        ("matches=stuck", "text without an event_type"),
        ("event_type=tool_eror", "did you mean 'tool_error'?"),
    ],
)
def test_what_is_dubious_has_a_remark(written: str, remark: str) -> None:
    """steering.md §2: an unpinned text_contains is a warning."""
    (found,) = parse_monitor(written).remarks()
    assert remark in found


_TEXT = st.text(
    st.characters(exclude_characters=",", exclude_categories=["Cs"]), min_size=1, max_size=20
)
_MONITORS = st.builds(
    Monitor,
    node_id=_TEXT.map(str.strip),
    text_contains=_TEXT.map(str.strip),
    cost_gt=st.none() | st.floats(0.01, 1e6).map(lambda f: round(f, 4)),
    count=st.none() | st.integers(1, 99),
)


@given(_MONITORS.filter(lambda m: bool(m.node_id and m.text_contains)))
def test_what_is_written_reads_as_it_was(monitor: Monitor) -> None:
    again = parse_monitor(monitor.text())
    assert again.text() == monitor.text()
    assert again.node_id == monitor.node_id


@given(st.text(max_size=60))
def test_no_text_breaks_the_parser(text: str) -> None:
    with contextlib.suppress(BadMonitor):
        parse_monitor(text)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("45s", 45), ("2m30s", 150), ("1h", 3600), ("90", 90), (5, 5), ("1.5m", 90), ("500ms", 0.5)],
)
def test_a_duration_is_read(written: object, seconds: float) -> None:
    assert duration_s(written) == seconds


@pytest.mark.parametrize("written", ["soon", "", "5 x", True, None, math.nan, math.inf, "nan", []])
def test_what_is_no_duration_is_none(written: object) -> None:
    assert duration_s(written) is None


@pytest.mark.parametrize("text", ["45s", "5m", "1h", "90s"])
def test_a_duration_is_written_as_short_as_can_be(text: str) -> None:
    found = duration_s(text)
    assert found is not None
    assert duration_text(found) == text


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+",
        "(a*)*b",
        "(a|aa)+$",
        r"(\w+\s?)*$",
        "((ab)*)*",
        "(x{2,})+",
        "(a+){8}$",
        "(a|aa){12}$",
    ],
)
def test_a_pattern_that_could_run_away_is_seen(pattern: str) -> None:
    assert is_runaway(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "(foo|bar)",
        r"\bgit\s+(push|reset)\b",
        "[(+]+",
        r"\(a+\)+",
        "a+b+",
        "(ab){8}",
        r"(\d{3} ){4}",
        "(a+){1}",
    ],
)
def test_a_harmless_pattern_is_let_through(pattern: str) -> None:
    assert not is_runaway(pattern)


def all_events(kind: type[Event] = Event) -> Iterator[str]:
    """The types of all events there are."""
    for each in kind.__subclasses__():
        tag = str(each.__struct_config__.tag)
        if tag.islower():  # others only hold what their kind has in common
            yield tag
        yield from all_events(each)


def test_the_known_types_are_those_there_are() -> None:
    """Monitors are read where events may not be imported: the two stay in step."""
    for module in pkgutil.iter_modules(events.__path__):
        importlib.import_module(f"nightwarden.events.{module.name}")
    ours = {tag for tag in all_events() if not tag.startswith(NEVER_MATCHED)}
    of_sessions = {"session_stopped", "session_ended"}
    assert ours | of_sessions | {"run_paused"} == EVENT_TYPES


# -- matching --


def test_all_that_is_set_must_hold() -> None:
    """Scenario 43."""
    assert match("event_type=tool_error,tool_name=Bash", "tool_error", tool="Bash")
    assert not match("event_type=tool_error,tool_name=Bash", "tool_error", tool="Edit")
    assert not match("event_type=tool_error,tool_name=Bash", "tool_called", tool="Bash")


@pytest.mark.parametrize(
    ("fields", "held"),
    [
        ({"tool": "Bash"}, True),
        ({"tool": "", "tool_name": "Bash"}, True),
        ({"tool_name": "BASH"}, True),
        ({"tool": 5}, False),
        ({"tool": 5, "tool_name": "bash"}, True),
        ({}, False),
    ],
)
def test_a_tool_is_known_by_either_name_whatever_its_case(
    fields: dict[str, Any], held: bool
) -> None:
    """Scenario 44."""
    assert match("tool_name=bash", "tool_called", **fields) is held


@pytest.mark.parametrize(
    ("kind", "fields", "held"),
    [
        ("usage_progress", {"used": 5}, False),
        ("usage_progress", {"used": 5.01}, True),
        ("usage_progress", {"tokens": 9_000_000}, False),
        ("usage_progress", {"used": True}, False),
        ("usage_progress", {"used": "6"}, False),
        ("usage_progress", {"cost_micro_usd": 6_000_000}, True),
        ("budget_warning", {"used": 8, "dimension": "cost_usd"}, True),
        ("budget_warning", {"used": 9_000, "dimension": "tokens"}, False),
        ("budget_warning", {"used": 9_000, "dimension": "duration"}, False),
        ("llm_step_finished", {"used": 9}, False),
    ],
)
def test_cost_counts_dollars_only(kind: str, fields: dict[str, Any], held: bool) -> None:
    """Scenarios 45 and 51."""
    assert match("cost_gt=5", kind, **fields) is held


@pytest.mark.parametrize("threshold", [math.nan, math.inf, 0.0, -1.0])
def test_a_threshold_forced_in_never_matches(threshold: float) -> None:
    """Scenario 46."""
    assert not holds(Monitor(cost_gt=threshold), seen("usage_progress", used=1e9))


def test_an_empty_monitor_never_matches() -> None:
    assert not holds(Monitor(), seen("log", message="x"))
    assert not holds(Monitor(count=1), seen("log", message="x"))


def test_a_word_pinned_to_the_agents_own_is_not_found_in_what_it_reads() -> None:
    """Scenarios 50 and 100."""
    pinned = "event_type=assistant_text,text_contains=impossible"
    assert match(pinned, "assistant_text", text="This is IMPOSSIBLE.")
    assert not match(pinned, "tool_called", tool="Read", output="impossible")
    assert match("text_contains=impossible", "tool_called", tool="Read", output="impossible")


def test_words_are_found_however_far_back_they_stand() -> None:
    text = "x" * 5_000 + " I give up"
    assert match("event_type=assistant_text,text_contains=give up", "assistant_text", text=text)


def test_a_digit_is_not_found_in_the_number_of_the_event() -> None:
    assert not match("text_contains=42", "assistant_text", seq=42, text="fine")


@pytest.mark.parametrize("kind", ["user_message_queued", "steering_woken", "steering_evaluated"])
def test_what_supervisors_do_never_matches(kind: str) -> None:
    """Scenario 28."""
    assert not match("text_contains=stuck", kind, text="stuck", supervisor="stuck")


def test_a_pattern_is_searched_without_regard_to_case() -> None:
    assert match(
        r"matches=\bgit\s+push\b", "tool_called", tool="Bash", input={"command": "Git  push"}
    )


# -- counting --


def hits(monitor: str, *given: tuple[float, str, dict[str, Any]]) -> list[float]:
    found, lookout = Watchlist([parse_monitor(monitor)]), Lookout()
    return [
        at
        for at, kind, fields in given
        if found.matches(lookout.observe(event(kind, "a", **fields)), at)
    ]


def errors(*times: float, error: str = "x") -> list[tuple[float, str, dict[str, Any]]]:
    return [(at, "tool_error", {"error": error}) for at in times]


def test_so_many_within_so_long() -> None:
    monitor = "event_type=tool_error,count=3,within=5m"
    assert hits(monitor, *errors(0, 100, 200)) == [200]
    assert hits(monitor, *errors(0, 200, 400)) == []
    assert hits(monitor, *errors(0, 200, 400, 450)) == [450]


def test_after_a_count_it_counts_anew() -> None:
    assert hits("event_type=tool_error,count=2", *errors(1, 2, 3, 4, 5)) == [2, 4]


def call(
    command: str, outcome: str = "red", ok: bool = False, **given: Any
) -> tuple[str, dict[str, Any]]:
    asked = {"command": command, **given}
    what = {"output": outcome} if ok else {"error": outcome}
    return ("tool_called" if ok else "tool_error"), {"tool": "Bash", "input": asked, **what}


EDIT = ("tool_called", {"tool": "Edit", "input": {"file_path": "p"}, "output": "ok"})
FAILED_EDIT = ("tool_error", {"tool": "Edit", "input": {"file_path": "p"}, "error": "no match"})
READ = ("tool_called", {"tool": "Read", "input": {"file_path": "p"}, "output": "text"})


def rounds(
    *given: tuple[str, dict[str, Any]], monitor: str = "event_type=tool_error,repeat=3"
) -> int:
    return len(hits(monitor, *((float(i), *g) for i, g in enumerate(given))))


def test_the_same_call_with_the_same_outcome_is_a_repeat() -> None:
    assert rounds(call("t"), call("t"), call("t")) == 1
    assert rounds(*[call("t")] * 6) == 2
    assert rounds(call("t"), call("t")) == 0


def test_words_and_durations_do_not_count() -> None:
    """H11: compare calls and outcomes, not words or durations."""
    assert (
        rounds(
            call("t", "1 failed in 0.41s at 09:00:01", description="try 0"),
            call("t", "1 failed in 12.9 s at 09:01:44", description="try 1"),
            call(" t ", "1 failed in 3 min at 10:00:00", description="once more"),
        )
        == 1
    )


@pytest.mark.parametrize(
    "outcomes",
    [
        ("5%", "31%", "58%"),
        ("3 of 9", "4 of 9", "5 of 9"),
        ("p.py:12:30", "p.py:13:31", "p.py:14:2"),
    ],
)
def test_an_answer_that_moves_on_is_no_repeat(outcomes: tuple[str, ...]) -> None:
    assert rounds(*(call("t", o) for o in outcomes)) == 0


def test_an_edit_in_between_starts_anew_and_one_that_failed_does_not() -> None:
    assert rounds(call("pytest"), EDIT, call("pytest"), EDIT, call("pytest")) == 0
    assert rounds(call("pytest"), FAILED_EDIT, call("pytest"), READ, call("pytest")) == 1


def test_a_command_that_may_change_something_starts_anew_and_one_that_looks_does_not() -> None:
    assert (
        rounds(call("pytest"), call("pip install x", ok=True), call("pytest"), call("pytest")) == 0
    )
    assert (
        rounds(call("pytest"), call("cat p.py | head", ok=True), call("pytest"), call("pytest"))
        == 1
    )


def test_two_commands_in_turn_are_a_loop_as_well() -> None:
    both = [call("make a"), call("make b")]
    assert rounds(*both * 5) >= 1


def test_edits_are_seen_though_the_monitor_is_about_errors_of_one_tool() -> None:
    pinned = "event_type=tool_error,tool_name=Bash,repeat=3"
    assert rounds(call("t"), EDIT, call("t"), call("t"), monitor=pinned) == 0


def test_a_result_without_its_input_is_known_by_its_start() -> None:
    monitor, given = "event_type=tool_error,repeat=2", []
    for i, command in enumerate(("a", "a", "b")):
        start = {"tool": "Bash", "tool_use_id": f"t{i}", "input": {"command": command}}
        given.append((float(i), "tool_started", start))
        given.append(
            (i + 0.5, "tool_error", {"tool": "Bash", "tool_use_id": f"t{i}", "error": "x"})
        )
    assert hits(monitor, *given) == [1.5]


@pytest.mark.parametrize(
    "command",
    [
        "ls -la",
        "cd src && pytest -q 2>&1 | tail -5",
        "PYTHONPATH=. python -m pytest x > /dev/null",
        "git status; git diff",
        "npm run test",
        "find . -name '*.py'",
    ],
)
def test_commands_that_only_look(command: str) -> None:
    assert only_looks(command)


@pytest.mark.parametrize(
    "command",
    [
        "",
        "echo x > f",
        "rm -r x",
        "git push",
        "find . -delete",
        "ls && make",
        "cat $(touch x)",
        "sed -i s/a/b/ f",
    ],
)
def test_commands_that_may_do_more(command: str) -> None:
    assert not only_looks(command)


def test_the_reference_page_lists_every_key(root: Path) -> None:
    page = (root / "docs" / "reference" / "monitors.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.+?`) \|", page, re.MULTILINE)
    assert [key.strip("`") for row in rows for key in row.split(", ")] == list(KEYS)


@pytest.mark.parametrize(("used", "held"), [(5, 0), (5.01, 1), (None, 0), (-1, 0)])
def test_an_amount_has_to_be_exceeded_in_a_list_of_monitors_too(
    used: float | None, held: int
) -> None:
    """Scenario 45."""
    watchlist = Watchlist([parse_monitor("event_type=usage_progress,cost_gt=5")])
    progress = Observed({"type": "usage_progress", "seq": 1, "used": used})
    assert len(watchlist.matches(progress, 0.0)) == held
    assert watchlist.may_match_such(progress) is bool(held)


@pytest.mark.parametrize("monitors", [("cost_gt=5",), ("cost_gt=5", "cost_gt=2", "cost_gt=9")])
def test_whoever_asks_about_money_is_given_every_event_over_an_amount(
    monitors: tuple[str, ...],
) -> None:
    """The lookout asks once for all amounts between the same two; a look changes nothing."""
    taken: list[float] = []
    lookout = Lookout()
    for text in monitors:
        watchlist = Watchlist([parse_monitor(text)])
        lookout.join(
            lambda seen: taken.append(seen.dollars or 0.0),
            watchlist.may_match_such,
            lambda: None,
            watchlist.amounts,
        )
    spent = [1, 2, 2.5, 5, 5.5, 9, 9.5, 3, 6]
    for seq, used in enumerate(spent, start=1):
        lookout({"type": "usage_progress", "seq": seq, "used": used})
    amounts = [float(text.removeprefix("cost_gt=")) for text in monitors]
    assert taken == [used for used in spent for amount in amounts if used > amount]


def test_whoever_asks_about_repeats_is_given_calls_that_come_again() -> None:
    """And no others: most calls come once."""
    taken: list[int] = []
    watchlist = Watchlist([parse_monitor("event_type=tool_error,repeat=3")])
    lookout = Lookout()
    lookout.join(lambda seen: taken.append(seen.seq), watchlist.may_match_such, lambda: None)
    for seq, command in enumerate(["a", "b", "a", "c", "a", "a"], start=1):
        asked = {"tool": "Read", "input": {"path": command}}
        lookout({"type": "tool_error", "seq": seq, **asked, "error": "none"})
    assert taken == [3, 5, 6]


def test_what_nobody_wanted_is_given_to_one_who_joins_later() -> None:
    started = [events.InvocationStarted(seq=n, node_id="fix") for n in (1, 2, 3)]
    taken: list[int] = []
    lookout = Lookout()
    lookout.join(lambda _seen: None, lambda _seen: False, lambda: None)
    lookout(started[0])
    lookout(started[1])
    lookout.join(lambda seen: taken.append(seen.seq), lambda _seen: True, lambda: None)
    lookout(started[2])
    assert taken == [3]


def test_what_nobody_wants_of_one_node_is_still_given_of_another() -> None:
    taken: list[str] = []
    lookout = Lookout()
    lookout.join(
        lambda seen: taken.append(seen.node_id), lambda seen: seen.node_id == "fix", lambda: None
    )
    for seq, node in enumerate(["page", "fix", "page", "page", "fix"], start=1):
        lookout(events.InvocationStarted(seq=seq, node_id=node))
    assert taken == ["fix", "fix"]
