"""Sessions drawn at random: transcripts, growing files, loops (steering.md §7; H09, H10, H11)."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from steering_kit import spec

from nightwarden.steering.claude.tail import Tail
from nightwarden.steering.claude.transcript import Transcript, Usage
from nightwarden.steering.rehearsal import rehearse

# -- H09: what was used --


@st.composite
def sessions(draw: DrawFn) -> tuple[list[list[dict[str, Any]]], Usage]:
    """Session files, and what they come to: forks that copied, answers in many lines."""
    expect = Usage()
    lines: list[dict[str, Any]] = []
    for i in range(draw(st.integers(1, 5))):
        if draw(st.integers(0, 4)) == 0:
            message = {"id": f"x{i}", "model": "<synthetic>", "usage": counts(9), "content": []}
            lines.append({"type": "assistant", "uuid": f"f{i}", "message": message})
            expect.failed_requests += 1
            continue
        parts = draw(st.integers(1, 4))
        final = draw(st.integers(1, 99))
        for part in range(parts):
            last = part == parts - 1
            block: dict[str, Any] = {"type": "text", "text": f"{i} {part}"}
            if draw(st.booleans()):
                block = {"type": "tool_use", "id": f"t{i}.{part}", "name": "Read", "input": {}}
                expect.tool_calls += 1
            message = {"id": f"m{i}", "usage": counts(final if last else 1), "content": [block]}
            lines.append({"type": "assistant", "requestId": f"r{i}", "message": message})
            if block["type"] == "tool_use" and draw(st.booleans()):
                answered = {"type": "tool_result", "tool_use_id": block["id"], "content": "x"}
                lines.append({"type": "user", "message": {"content": [answered]}})
        expect.model_answers += 1
        expect.input_tokens += 5
        expect.output_tokens += final
    for n, line in enumerate(lines):
        line.setdefault("uuid", f"u{n}")
        line["timestamp"] = f"2026-05-04T09:{n // 60:02}:{n % 60:02}.000Z"
    files = [lines]
    for fork in range(draw(st.integers(0, 2))):
        upto = draw(st.integers(0, len(lines)))
        renamed = draw(st.booleans())
        copy = [{**x, "uuid": f"{fork}{x['uuid']}"} if renamed else x for x in lines[:upto]]
        files.insert(draw(st.integers(0, len(files))), copy)
    aside = {"type": "assistant", "isSidechain": True, "uuid": "s", "requestId": "rs"}
    message = {"id": "ms", "usage": counts(1000), "content": [{"type": "text", "text": "aside"}]}
    if draw(st.booleans()):
        files[0] = [*files[0], {**aside, "message": message}]
    return files, expect


def counts(output: int) -> dict[str, Any]:
    """The counts of a line, with what newer versions say besides."""
    return {"input_tokens": 5, "output_tokens": output, "service_tier": "x", "cache_creation": {}}


@given(sessions())
def test_h09_usage_counts_every_answer_once_in_whatever_order_it_is_read(
    drawn: tuple[list[list[dict[str, Any]]], Usage],
) -> None:
    """Also where a fork ends in the middle of an answer, or gave its copies other uuids."""
    files, expect = drawn
    reader = Transcript()
    events = [e for file in files for record in file for e in reader.take(record)]
    assert reader.usage == expect
    steps = [e for e in events if e["type"] == "llm_step_finished"]
    assert len(steps) in (expect.model_answers, expect.model_answers - 1)  # the last may go on
    started = [e["tool_use_id"] for e in events if e["type"] == "tool_started"]
    assert len(started) == len(set(started)) == expect.tool_calls
    said = [e["text"] for e in events if e["type"] == "assistant_text"]
    assert len(said) == len(set(said))


def test_h09_an_answer_that_names_nothing_is_one_by_itself() -> None:
    reader = Transcript()
    for uuid in ("a", "b", "b"):
        reader.take({"type": "assistant", "uuid": uuid, "message": {"usage": counts(7)}})
    assert (reader.usage.model_answers, reader.usage.output_tokens) == (2, 14)


def test_h09_a_line_without_counts_takes_none_away() -> None:
    reader = Transcript()
    message = {"id": "m", "usage": counts(7), "content": []}
    reader.take({"type": "assistant", "requestId": "r", "message": message})
    reader.take({"type": "user", "message": {"content": "go on"}})
    reader.take({"type": "assistant", "requestId": "r", "message": {"id": "m", "content": []}})
    assert reader.usage.output_tokens == 7


# -- H10: a file that grows --

GOOD = "good"
LINES = (
    GOOD,
    b"{broken\n",
    b"\r\n",
    b"[1, 2]\n",
    b'{"half": "\xf0\x9f\x99"}\n',  # a character that was cut
    b'{"a":' + b"[" * 30_000 + b"\n",
)


@st.composite
def growths(draw: DrawFn) -> list[tuple[str, Any]]:
    """What happens to a file: it grows in pieces, is polled, cut, replaced; its reader restarts."""
    steps: list[tuple[str, Any]] = []
    for _ in range(draw(st.integers(1, 6))):
        kinds = draw(st.lists(st.sampled_from(LINES), max_size=4))
        steps.append(("write", kinds))
        steps.append(("polls", draw(st.lists(st.integers(1, 60), max_size=4))))
        what = draw(st.sampled_from(["", "", "restart", "cut", "replace", "rewrite"]))
        if what:
            steps.append((what, None))
    return steps


class Writer:
    """A file in whose generations every good line has a number of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.generation = 0
        self.written: list[list[int]] = [[]]
        self.waiting = b""
        self._number = 0

    def lines(self, kinds: list[str | bytes]) -> None:
        for kind in kinds:
            if isinstance(kind, bytes):
                self.waiting += kind
                continue
            self._put("é🙂" * (self._number % 40))

    def _put(self, text: str) -> None:
        self._number += 1
        self.written[-1].append(self._number)
        self.waiting += json.dumps({"n": self._number, "t": text}).encode() + b"\n"

    def grow(self, size: int) -> None:
        with self.path.open("ab") as file:
            file.write(self.waiting[:size])
        self.waiting = self.waiting[size:]

    def begin_again(self, how: str) -> None:
        self.written.append([])
        self.waiting = b""
        if how == "replace":
            other = self.path.with_suffix(".new")
            other.write_bytes(b"")
            other.replace(self.path)
        elif how == "cut":
            self.path.write_bytes(b"")
        else:
            size = self.path.stat().st_size
            while len(self.waiting) <= size:  # so that its size says nothing
                self._put("another")
            self.path.write_bytes(self.waiting)
            self.waiting = b""


@given(growths())
@example([("write", [b"{broken\n"]), ("polls", [5]), ("rewrite", None)])
def test_h10_nothing_is_lost_or_doubled_whatever_happens_to_the_file(
    steps: list[tuple[str, Any]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        writer = Writer(Path(folder) / "t.jsonl")
        tail, got = Tail(writer.path), [[]]  # type: ignore[var-annotated]
        for what, given_ in steps:
            if what == "write":
                writer.lines(given_)
            elif what == "polls":
                for size in given_:
                    writer.grow(size)
                    got[-1] += [r["n"] for r in tail.poll()]
            elif what == "restart":
                tail = Tail(writer.path, tail.position)
            elif writer.path.exists():
                writer.begin_again(what)
                got.append([])
        writer.grow(len(writer.waiting))
        tail.behind = True
        while tail.behind:
            got[-1] += [r["n"] for r in tail.poll()]
    assert got[-1] == writer.written[-1], "all of the last file, in order, once"
    for read, written in zip(got, writer.written, strict=True):
        assert read == written[: len(read)], "of what was cut off, what had been read"


def test_h10_what_was_held_back_is_not_glued_to_another_file(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"n": 1, "begun')
    tail = Tail(path)
    assert tail.poll() == []
    path.write_text('{"n": 2, "another": "line"}\n')
    assert [r["n"] for r in tail.poll()] == [2]
    assert tail.remarks == [f"{path} was rewritten; it is read from its start again"]


@pytest.mark.parametrize(
    ("line", "read"),
    [
        (b'{"n": "\\ud83d cut"}', "? cut"),
        (b'{"n": "\\ud83d\\ude42"}', "\N{SLIGHTLY SMILING FACE}"),
        (b'\xef\xbb\xbf{"n": 1}', 1),
        (b'{"n": 123456789012345678901234567890}', 123456789012345678901234567890),
    ],
)
def test_what_other_writers_hold_for_json_is_read(tmp_path: Path, line: bytes, read: Any) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(line + b"\n")
    (record,) = Tail(path).poll()
    assert record["n"] == read
    json.dumps(record, ensure_ascii=False).encode("utf-8")


def test_a_broken_line_far_into_a_long_file_is_named_by_where_reading_began(
    tmp_path: Path,
) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"n": 1}\n' * 200_000 + b"{broken\n" + b'{"n": 2}\n')
    tail = Tail(path)
    tail.skip_to_last(1 << 20)
    while tail.poll() or tail.behind:
        pass
    begun = path.stat().st_size - (1 << 20) + 9 - ((path.stat().st_size - (1 << 20)) % 9)
    assert tail.remarks == [
        f"{path}: only its last 1 MB are read",
        f"{path}: line {(1 << 20) // 9 - 1}, counted from byte {begun:,}, is no JSON object "
        "and was left out",
    ]


def test_many_broken_lines_are_told_together(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"{broken\n" * 8 + b'{"n": 1}\n')
    tail = Tail(path)
    tail.poll()
    assert tail.broken == [1, 2, 3, 4, 5, 6, 7, 8]
    assert tail.remarks == [
        f"{path}: lines 1, 2, 3, 4, 5 and 3 more are no JSON objects and were left out"
    ]


def test_a_file_of_nothing_but_broken_lines_is_said_to_be_so_once(tmp_path: Path) -> None:
    """Issue 6, bad input: a transcript that is no JSON."""
    path = tmp_path / "t.jsonl"
    tail = Tail(path)
    for _ in range(3):
        with path.open("a") as file:
            file.write("just words\n" * 9)
        assert tail.poll() == []
    assert tail.remarks == [
        f"{path}: 18 lines in a row are no JSON objects; is this a transcript of Claude Code?"
    ]


# -- H11: loops, waits and work --

COMMANDS = ("pytest -x", "make test", "deploy --dry", "npm install", "python check.py")
READS = ("Read", "Grep", "Glob", "WebFetch")


class Session:
    """The events of an agent's calls."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def call(self, tool: str, asked: dict[str, Any], outcome: str, *, failed: bool) -> int:
        """One call with its outcome; gives the number of its result."""
        use = f"t{len(self.events)}"
        self._add(type="tool_started", tool=tool, tool_use_id=use, input=asked)
        kind = {"type": "tool_error", "error": outcome}
        if not failed:
            kind = {"type": "tool_called", "output": outcome}
        return self._add(**kind, tool=tool, tool_use_id=use)

    def _add(self, **fields: Any) -> int:
        seq = len(self.events) + 1
        at = f"2026-05-04T{9 + seq // 3600:02}:{seq // 60 % 60:02}:{seq % 60:02}.000Z"
        self.events.append({"seq": seq, "at": at, **fields})
        return seq

    def wakes(self) -> list[int]:
        """After which events a supervisor that watches for repeats would look."""
        watch = spec("repeat=3", boundaries=False, cooldown_s=1, max_evals=99)
        return [wake.causes[0].seq for wake in rehearse(self.events, watch).wakes]


PASSING = (
    ("1 failed in 0.41s", "1 failed in 1.2 s", "1 failed in 12ms"),
    ("at 2026-05-04 12:00:07 no", "at 2026-05-04 12:01:07 no", "at 2026-05-05 01:00:00 no"),
    ("killed (pid 31)", "killed (pid 32)", "killed (pid 4711)"),
    ("<Date at 0x7f31>", "<Date at 0x7f32>", "<Date at 0x1>"),
    ("see /tmp/pytest-of-dev/pytest-1/a", "see /tmp/pytest-of-dev/pytest-2/a"),
    ("/tmp/tmpab12cd_x/log", "/tmp/tmpzz9999aa/log", "/tmp/tmp00000000/log"),
    ("id 0a1b2c3d-0000-4000-8000-000000000001", "id 0a1b2c3d-0000-4000-8000-000000000002"),
    ("no such option",),
)
"""What programs say each time they say the same."""


def between(draw: DrawFn, session: Session) -> None:
    """What changes nothing: looking around, an edit that does not go through."""
    for _ in range(draw(st.integers(0, 2))):
        if draw(st.booleans()):
            tool = draw(st.sampled_from(READS))
            session.call(tool, {"path": f"{draw(st.integers(0, 99))}.py"}, "text", failed=False)
        else:
            session.call("Edit", {"old": f"{len(session.events)}"}, "no such text", failed=True)


@st.composite
def loops(draw: DrawFn) -> tuple[Session, list[list[int]]]:
    """Some failing commands in turns, with new words each time; when which had come."""
    session = Session()
    commands = draw(st.lists(st.sampled_from(COMMANDS), min_size=1, max_size=3, unique=True))
    says = {command: draw(st.sampled_from(PASSING)) for command in commands}
    rounds: list[list[int]] = []
    for _ in range(4):
        rounds.append([])
        for command in commands:
            said = draw(st.sampled_from(says[command]))
            asked = {"command": command, "description": draw(st.text(max_size=9))}
            if draw(st.booleans()):
                asked["command"] = f"  {command} "
            rounds[-1].append(session.call("Bash", asked, said, failed=True))
            between(draw, session)
    return session, rounds


@given(loops())
def test_h11_a_loop_is_noticed_whatever_differs_in_words(
    drawn: tuple[Session, list[list[int]]],
) -> None:
    """At the third round of one of its commands, at the fourth at the latest; never before."""
    session, rounds = drawn
    wakes = session.wakes()
    assert wakes, "it is noticed"
    assert rounds[2][0] <= wakes[0] <= rounds[3][-1]


@st.composite
def work(draw: DrawFn) -> Session:
    """The same red test again and again, and something changed before each."""
    session = Session()
    for turn in range(draw(st.integers(3, 7))):
        change = draw(st.sampled_from(["Edit", "Write", "Bash", "mcp__db__migrate"]))
        asked: dict[str, Any] = {"file_path": "a.py", "new_string": str(turn)}
        if change == "Bash":
            asked = {"command": f"sed -i s/{turn}/{turn + 1}/ a.py"}
        session.call(change, asked, "ok", failed=False)
        between(draw, session)
        session.call("Bash", {"command": "pytest"}, "1 failed in 0.4s", failed=True)
        between(draw, session)
    return session


@given(work())
def test_h11_work_is_left_alone(session: Session) -> None:
    assert session.wakes() == []


@st.composite
def waits(draw: DrawFn) -> Session:
    """The same question, whose answer moves on: a share, a count, a step, a word."""
    session = Session()
    failed = draw(st.booleans())
    steps = sorted(draw(st.sets(st.integers(1, 99), min_size=3, max_size=8)))
    shape = draw(
        st.sampled_from(
            ["running {}%", "{} of 100 done in {}s", "step {}/100, 3 s", "{} rows", "v1.{}.0"]
        )
    )
    for number in steps:
        session.call("Bash", {"command": "job status"}, shape.format(number, number), failed=failed)
        if draw(st.booleans()):
            session.call("Bash", {"command": "sleep 30"}, "", failed=False)
            session.events.pop()  # the result of a sleep says nothing; and some never come
    return session


@given(waits())
def test_h11_a_wait_is_left_alone(session: Session) -> None:
    assert session.wakes() == []


def test_calls_that_no_json_has_room_for_are_told_apart() -> None:
    """Half a character in a command must not make two commands one."""
    session = Session()
    for command in ("a\ud83d", "b\ud83d", "c\ud83d"):
        session.call("Bash", {"command": command}, "no such command", failed=True)
    assert session.wakes() == []
