"""Claude Code transcripts: followed and read (steering.md §7); cases H09, H10 and H11."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from steering_kit import Box, Judge, spec

from nightwarden.steering.claude.observer import TranscriptObserver
from nightwarden.steering.claude.sessions import (
    NoSession,
    find_transcript,
    is_alive,
    project_key,
    project_of,
)
from nightwarden.steering.claude.tail import JsonLines, Position, Tail
from nightwarden.steering.claude.transcript import Transcript
from nightwarden.steering.coordinator import Coordinator
from nightwarden.steering.ports import Advice
from nightwarden.steering.rehearsal import rehearse
from nightwarden.steering.wakes import Wake
from nightwarden.testing import run as run_virtually


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def read(*files: Path) -> tuple[Transcript, list[dict[str, Any]]]:
    reader = Transcript()
    return reader, [e for f in files for record in records(f) for e in reader.take(record)]


# -- H09: usage --


def test_h09_every_answer_is_counted_once_over_both_files(cases: Path) -> None:
    folder = cases / "H09_usage_counted_once"
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    reader, _ = read(*(folder / name for name in case["data"]))
    usage = reader.usage
    assert {name: getattr(usage, name) for name in case["expect"]} == case["expect"]


def test_h09_the_order_of_the_files_does_not_matter(cases: Path) -> None:
    folder = cases / "H09_usage_counted_once"
    one, _ = read(folder / "session_1.jsonl", folder / "session_2.jsonl")
    other, _ = read(folder / "session_2.jsonl", folder / "session_1.jsonl")
    assert one.usage == other.usage


def test_h09_each_answer_ends_in_one_step_with_its_last_counts(cases: Path) -> None:
    _, events = read(cases / "H09_usage_counted_once" / "session_1.jsonl")
    steps = [e for e in events if e["type"] == "llm_step_finished"]
    assert [(s["output_tokens"], s["tool_calls"]) for s in steps][:3] == [(57, 2), (21, 0), (88, 2)]


# -- H10: a file that grows --


def writes(cases: Path) -> list[dict[str, Any]]:
    path = cases / "H10_tail_split_writes" / "writes.json"
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return found


def test_h10_uneven_pieces_give_every_record_once(cases: Path, tmp_path: Path) -> None:
    """Scenario 83: no event until the line end, then exactly one."""
    path = tmp_path / "t.jsonl"
    path.touch()
    tail = Tail(path)
    for step in writes(cases):
        with path.open("ab") as file:
            file.write(base64.b64decode(step["append_base64"]))
        tail.broken.clear()
        got = tail.poll()
        assert [r["n"] for r in got] == step["events_after"], step["note"]
        assert len(tail.broken) == step["broken_lines_after"], step["note"]
        assert tail.position.offset == step["consumed_bytes_total"], step["note"]


def test_h10_the_broken_line_is_reported_with_its_number(cases: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"".join(base64.b64decode(s["append_base64"]) for s in writes(cases)))
    tail = Tail(path)
    assert [r["n"] for r in tail.poll()] == [1, 2, 3, 4, 5, 6]
    assert tail.broken == [4]
    assert tail.remarks == [f"{path}: line 4 is no JSON object and was left out"]


def test_h10_a_restart_after_any_step_gives_the_same(cases: Path, tmp_path: Path) -> None:
    steps = [base64.b64decode(s["append_base64"]) for s in writes(cases)]
    for stop in range(len(steps)):
        path = tmp_path / f"{stop}.jsonl"
        got, broken, position = [], [], None
        for i, piece in enumerate(steps):
            with path.open("ab") as file:
                file.write(piece)
            if i == 0 or i == stop + 1:
                tail = Tail(path, position)
            got += [r["n"] for r in tail.poll()]
            position = tail.position
            if i == stop or i == len(steps) - 1:
                broken += tail.broken
        assert got == [1, 2, 3, 4, 5, 6]
        assert broken == [4]


def test_h10_a_file_that_is_cut_starts_over_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"n": 1}\n{"n": 2}\n')
    tail = Tail(path)
    tail.poll()
    path.write_text("")
    assert tail.poll() == []
    path.write_text('{"n": 3}\n')
    assert [r["n"] for r in tail.poll()] == [3]
    assert tail.remarks == [f"{path} was cut; it is read from its start again"]


def test_h10_a_file_that_is_replaced_is_read_from_its_start(tmp_path: Path) -> None:
    path, other = tmp_path / "t.jsonl", tmp_path / "new"
    path.write_text('{"n": 1}\n')
    tail = Tail(path)
    tail.poll()
    other.write_text('{"n": 5}\n{"n": 6}\n')
    other.rename(path)
    assert [r["n"] for r in tail.poll()] == [5, 6]


def test_a_file_that_is_written_again_to_the_same_length_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"n": 1}\n')
    tail = Tail(path)
    tail.poll()
    with path.open("r+") as file:
        file.write('{"n": 2}\n')
    assert [r["n"] for r in tail.poll()] == [2]


def test_h10_a_file_that_is_not_there_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    tail = Tail(path)
    assert tail.poll() == []
    path.write_text('{"n": 1}\n')
    assert [r["n"] for r in tail.poll()] == [1]
    assert tail.remarks == []


LINES = [
    b'{"n": 1}\n',
    b"{broken\n",
    b"\r\n",
    '{"n": 2, "t": "🙂é"}\n'.encode(),
    b"[1]\n",
    b'{"n": 3}',
]


@given(st.lists(st.sampled_from(LINES), max_size=8), st.lists(st.integers(1, 9), max_size=40))
def test_how_bytes_are_cut_does_not_matter(lines: list[bytes], cuts: list[int]) -> None:
    text = b"".join(lines)
    whole, pieces = JsonLines(), JsonLines()
    expected = whole.feed(text)
    got, at = [], 0
    for cut in [*cuts, len(text)]:
        got += pieces.feed(text[at : at + cut])
        at += cut
    assert got == expected
    assert (pieces.consumed, pieces.lines, pieces.broken) == (
        whole.consumed,
        whole.lines,
        whole.broken,
    )
    assert Position(whole.consumed, whole.lines).offset + whole.unread == len(text)


# -- what is read --


def line(kind: str, uuid: str = "", **fields: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "uuid": uuid or f"u{len(fields)}{kind}",
        "timestamp": "2026-05-04T09:00:00Z",
    } | fields


def said(*blocks: dict[str, Any], key: str = "1", **fields: Any) -> dict[str, Any]:
    message = {"id": f"msg_{key}", "model": "m", "content": list(blocks)} | fields
    return line("assistant", f"a-{key}-{blocks}", message=message, requestId=f"req_{key}")


def test_the_words_the_inputs_and_the_errors_are_events() -> None:
    """Scenarios 86 and 98, steering.md §7."""
    reader = Transcript()
    events = [
        e
        for r in (
            line("user", "1", message={"content": "Fix it"}),
            said({"type": "text", "text": "I am stuck"}),
            said({"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}),
            line(
                "user",
                "2",
                message={
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "t1",
                            "is_error": True,
                            "content": [{"type": "text", "text": "no such file"}],
                        }
                    ]
                },
            ),
            line("system", "3", subtype="turn_duration"),
        )
        for e in reader.take(r)
    ]
    assert [e["type"] for e in events] == [
        "user_prompt",
        "assistant_text",
        "tool_started",
        "llm_step_finished",
        "tool_error",
        "session_stopped",
    ]
    error = events[4]
    assert (error["tool"], error["input"], error["error"]) == (
        "Bash",
        {"command": "ls"},
        "no such file",
    )
    assert [e["seq"] for e in events] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("mark", ["isSidechain", "isMeta", "isCompactSummary"])
def test_what_is_not_the_agents_own_says_nothing(mark: str) -> None:
    """Scenario 85."""
    record = line("user", "1", message={"content": "x"}) | {mark: True}
    assert Transcript().take(record) == []


def test_a_record_that_comes_again_says_nothing_again() -> None:
    """Scenario 84; a uuid is known within its kind."""
    reader = Transcript()
    record = line("user", "1", message={"content": "x"})
    assert len(reader.take(record)) == 1
    assert reader.take(record) == []
    other = said({"type": "text", "text": "y"}) | {"uuid": "1"}
    assert len(reader.take(other)) == 1


@given(
    st.dictionaries(
        st.sampled_from(["type", "uuid", "message", "requestId", "subtype", "timestamp"]),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.sampled_from(["user", "assistant", "system"]),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["content", "id", "usage", "type", "text"]), inner, max_size=4
                )
            ),
            max_leaves=8,
        ),
    )
)
def test_no_record_breaks_the_reader(record: dict[str, Any]) -> None:
    Transcript().take(record)


def test_unknown_kinds_are_passed_over() -> None:
    reader = Transcript()
    for kind in ("summary", "file-history-snapshot", "queue-operation", "something-new"):
        assert reader.take({"type": kind, "summary": "x"}) == []


# -- H11 --


def h11(cases: Path, name: str) -> tuple[Any, list[dict[str, Any]], dict[str, Any]]:
    folder = cases / "H11_loop_poll_or_work"
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    watch = case["watch"]
    given = spec(
        f"event_type=tool_error,repeat={watch['repeat_failure']['same_tool_and_input']}",
        cooldown_s=watch["cooldown_s"],
        max_evals=watch["max_evals"],
        boundaries=watch["boundaries"],
    )
    _, events = read(folder / name)
    answer = case["scripted_answer"]
    found = rehearse(events, given, advise=lambda _w: Advice(**answer))
    return found, events, case["expect"][name]


def test_h11_a_loop_is_noticed_at_its_third_round(cases: Path) -> None:
    found, events, expect = h11(cases, "loop.jsonl")
    first = next(m for m in found.moments if isinstance(m.act, Wake))
    woken_by = next(e for e in events if e["seq"] == first.seq)
    assert woken_by["tool_use_id"] == expect["first_wake_after_tool_result"]
    assert expect["wakes_at_least"] <= len(found.wakes) <= expect["wakes_at_most"]
    assert 1 <= len(found.messages) <= expect["messages_at_most"]


@pytest.mark.parametrize("name", ["poll.jsonl", "work.jsonl"])
def test_h11_a_wait_and_work_are_left_alone(cases: Path, name: str) -> None:
    found, _, expect = h11(cases, name)
    assert (
        (len(found.wakes), len(found.messages)) == (expect["wakes"], expect["messages"]) == (0, 0)
    )


def test_h11_without_the_pin_to_errors_it_is_the_same(cases: Path) -> None:
    folder = cases / "H11_loop_poll_or_work"
    wakes = {}
    for name in ("loop", "poll", "work"):
        _, events = read(folder / f"{name}.jsonl")
        found = rehearse(events, spec("repeat=3", boundaries=False, cooldown_s=60))
        wakes[name] = len(found.wakes)
    assert wakes == {"loop": 1, "poll": 0, "work": 0}


# -- which session --


def test_the_key_of_a_directory_has_dashes_for_all_but_letters_and_digits() -> None:
    """Scenario 82."""
    assert project_key("/a/b.c_d E") == "-a-b-c-d-E"


def transcript(home: Path, cwd: Path, name: str, at: int) -> Path:
    path = home / "projects" / project_key(str(cwd)) / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"type": "user", "cwd": str(cwd)}) + "\n")
    os.utime(path, (at, at))
    return path


def test_a_directory_means_its_newest_session_and_an_id_that_one(tmp_path: Path) -> None:
    home, project = tmp_path / "claude", tmp_path / "my.app"
    project.mkdir()
    env = {"CLAUDE_CONFIG_DIR": str(home)}
    old = transcript(home, project, "s-old", 100)
    new = transcript(home, project, "s-new", 200)
    assert find_transcript(str(project), env) == new
    assert find_transcript("s-old", env) == old


def test_two_directories_of_one_key_are_told_apart(tmp_path: Path) -> None:
    home = tmp_path / "claude"
    one, two = tmp_path / "a.b", tmp_path / "a-b"
    one.mkdir()
    two.mkdir()
    env = {"CLAUDE_CONFIG_DIR": str(home)}
    mine = transcript(home, one, "mine", 100)
    transcript(home, two, "theirs", 200)
    assert find_transcript(str(one), env) == mine


def test_the_project_of_a_session_is_where_it_was_started(tmp_path: Path) -> None:
    """So that hooks that are missing there are named, also for a session that is given by id."""
    project = tmp_path / "my.app"
    project.mkdir()
    path = transcript(tmp_path / "claude", project, "s", 100)
    assert project_of(path) == project
    project.rmdir()
    assert project_of(path) is None
    path.write_text("{broken\n")
    assert project_of(path) is None


@pytest.mark.parametrize("meant", ["nope", "../../etc", ""])
def test_a_session_that_is_not_there_is_an_error(tmp_path: Path, meant: str) -> None:
    with pytest.raises(NoSession):
        find_transcript(meant or str(tmp_path), {"CLAUDE_CONFIG_DIR": str(tmp_path / "c")})


def test_an_empty_name_is_no_session_and_not_the_directory_one_is_in(tmp_path: Path) -> None:
    with pytest.raises(NoSession, match="'' is neither a directory nor a session id"):
        find_transcript("", {"CLAUDE_CONFIG_DIR": str(tmp_path)})


def test_whether_a_session_lives_is_known_from_its_process(tmp_path: Path) -> None:
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path)}
    assert is_alive("s1", env) is None
    (tmp_path / "sessions").mkdir()
    mine = tmp_path / "sessions" / f"{os.getpid()}.json"
    mine.write_text(json.dumps({"sessionId": "s1", "pid": os.getpid()}))
    assert is_alive("s1", env) is True
    assert is_alive("s2", env) is False


# -- a session as a run --


def test_a_session_whose_process_nobody_has_seen_is_watched_all_the_same(tmp_path: Path) -> None:
    """§7: its end is noticed where that can be known; a list that lacks it says nothing."""
    path = tmp_path / "s.jsonl"
    path.touch()
    judge = Judge()

    async def main() -> None:
        works = Coordinator(
            spec("event_type=assistant_text", boundaries=False),
            run_id="s",
            observer=TranscriptObserver(path, alive=lambda: False),
            evaluator=judge,
            injector=Box(),
        )
        works.start()
        await asyncio.sleep(60)
        path.write_text(json.dumps(said({"type": "text", "text": "still here"})) + "\n")
        await asyncio.sleep(5)
        await works.close()

    run_virtually(main())
    assert len(judge.asked) == 1


def test_a_session_is_watched_from_now_on_until_its_process_ends(tmp_path: Path) -> None:
    """Scenarios 30, 83, 98 and 99."""
    path = tmp_path / "s.jsonl"
    alive = [True]
    box, judge = Box(), Judge(Advice(intervene=True, message="look"))
    steps: list[int] = []

    def write(*found: dict[str, Any]) -> None:
        with path.open("a") as file:
            file.writelines(json.dumps(r) + "\n" for r in found)

    async def main() -> float:
        write(said({"type": "text", "text": "stuck, long ago"}, key="0"))
        observer = TranscriptObserver(path, alive=lambda: alive[0], stepped=lambda: steps.append(1))
        works = Coordinator(
            spec("event_type=assistant_text,text_contains=stuck", boundaries=False),
            run_id="s",
            observer=observer,
            evaluator=judge,
            injector=box,
        )
        works.start()
        await asyncio.sleep(10)
        assert judge.asked == []
        write(said({"type": "text", "text": "I am STUCK"}, key="1"))
        await asyncio.sleep(1)
        alive[0] = False
        await works.wait()
        return asyncio.get_running_loop().time()

    ended = run_virtually(main())
    assert len(judge.asked) == 1
    assert [w.text for w in box.words] == ["[supervisor dog] look"]
    assert steps == [1]
    assert 11 < ended < 18


def test_a_forked_session_says_what_is_new_in_it(tmp_path: Path) -> None:
    """Issue 6, bad input: a fork is another file that begins with a copy of the first."""
    old = [said({"type": "text", "text": f"old {i}"}, key=f"o{i}") for i in range(3)]
    fork = [*old, said({"type": "text", "text": "new"}, key="n")]
    reader = Transcript()
    for record in old:
        reader.take(record)
    events = [e for record in fork for e in reader.take(record)]
    assert [e["text"] for e in events if e["type"] == "assistant_text"] == ["new"]


def test_of_a_huge_transcript_only_the_end_is_read(tmp_path: Path) -> None:
    """Issue 6, bad input: 400 MB transcripts (here with a smaller limit)."""
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps({"n": i}) + "\n" for i in range(10_000)))
    tail = Tail(path)
    tail.skip_to_last(1_000)
    got = [r["n"] for r in tail.poll()]
    assert got[-1] == 9_999
    assert 50 < len(got) < 100
    assert "only its last" in tail.remarks[0]


def test_a_transcript_that_cannot_be_read_is_said_once(tmp_path: Path) -> None:
    remarks: list[str] = []

    async def main() -> None:
        observer = TranscriptObserver(tmp_path, remark=remarks.append)  # a directory
        watch = observer.observe("s", lambda _f: None)
        assert list(watch.history()) == []
        await asyncio.sleep(5)
        watch.release()

    run_virtually(main())
    assert len(remarks) == 1
    assert "cannot be read" in remarks[0]
