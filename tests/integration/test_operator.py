"""A person decides at a pseudo-terminal (supervision.md §6, Operator; issue 2)."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import pty
import sys
import termios
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import pytest

from nightwarden.events.words import visible
from nightwarden.ids import EscalationId, NodeId, RunId
from nightwarden.runtime.bounded import Bounded
from nightwarden.runtime.supervision import Bounds
from nightwarden.runtime.supervisors.operator import Operator
from nightwarden.runtime.supervisors.terminal import Terminal
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
)

PLAIN = (Action.RETRY, Action.SUBSTITUTE, Action.SKIP, Action.FAIL)
PATIENCE_S = 8.0  # only reached when a test fails


def escalation(**fields: Any) -> Escalation:
    given: dict[str, Any] = {
        "id": EscalationId("e7"),
        "run_id": RunId("20261130-185103-k3f9q"),
        "node_id": NodeId("text"),
        "node_type": "html.Extract",
        "lineage": (147,),
        "item": Item(number="148", total=200, label="https://x.test/p/147"),
        "attempt": 2,
        "retries_left": 1,
        "allowed_actions": PLAIN,
        "detail": "the page has no main part",
        "error_type": "RecoverableError",
        "has_candidate": True,
        "candidate_output": {"title": "?"},
        "inputs": {"page": "<html>", "depth": 3},
        "declared_outputs": {"output": {"type": "object"}},
        "cost_micro_usd": 12_500,
        "created_assets": 1,
        "retry_safe": True,
        "emitted": 400,
        "caused_by": (EscalationId("e3"),),
        "at": "2026-11-30T18:51:03.000Z",
    }
    return Escalation(**(given | fields))


class Person:
    """The other side of the terminal: sees what is shown, types."""

    def __init__(self) -> None:
        self.fd, slave = pty.openpty()
        self.tty = os.fdopen(slave, "r+b", buffering=0)
        self.source: TextIO = io.TextIOWrapper(self.tty, encoding="utf-8", write_through=True)
        self.sink: TextIO = io.TextIOWrapper(
            os.fdopen(os.dup(slave), "wb", buffering=0), encoding="utf-8", write_through=True
        )
        self.seen = ""
        self.unread = ""

    def close(self) -> None:
        self.sink.close()
        self.source.close()
        os.close(self.fd)

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    async def sees(self, *words: str) -> str:
        """What is shown up to and including these words, in this order."""
        passed = ""
        for word in words:
            while word not in self.unread:
                await self._more()
            before, _, self.unread = self.unread.partition(word)
            passed += before + word
        return passed

    async def answers(self, *exchange: tuple[str, str]) -> None:
        """Waits for each prompt, and types what belongs to it."""
        for prompt, text in exchange:
            await self.sees(prompt)
            self.type(text)

    async def _more(self) -> None:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(self.fd, ready.set)
        try:
            async with asyncio.timeout(PATIENCE_S):
                await ready.wait()
        except TimeoutError:
            pytest.fail(f"waited for more than this:\n{self.seen}", pytrace=False)
        finally:
            loop.remove_reader(self.fd)
        chunk = os.read(self.fd, 65_536).decode()
        self.seen += chunk
        self.unread += chunk


class Run:
    """A reader of a run that accepts repairs by a rule."""

    run_id = "r"

    def __init__(self, accepts: Callable[[Mapping[str, object]], Sequence[str]]) -> None:
        self.accepts = accepts
        self.checked: list[Mapping[str, object]] = []

    def state(self) -> Mapping[str, object]:
        return {}

    def check(self, escalation_id: str, outputs: Mapping[str, object]) -> Sequence[str]:
        assert escalation_id == "e7"
        self.checked.append(outputs)
        return self.accepts(outputs)


@pytest.fixture
def person() -> Iterator[Person]:
    someone = Person()
    yield someone
    someone.close()


def conversation(
    person: Person,
    one: Escalation,
    talk: Callable[[], Coroutine[Any, Any, None]],
    *,
    editor: str = "",
    reader: Run | None = None,
) -> Decision:
    """The decision, while the person talks on the same loop: which so is never blocked."""

    async def main() -> Decision:
        operator = Operator(person.source, person.sink, editor=editor)
        box = Bounded(operator, Bounds(), stamp=lambda: "")
        if reader is not None:
            box.attach(reader)
        task = asyncio.create_task(box.decide(one))
        await talk()
        async with asyncio.timeout(PATIENCE_S):
            return await task

    return asyncio.run(main())


# ── showing and choosing ───────────────────────────────────────────────────


def test_the_escalation_is_shown_with_every_field(person: Person) -> None:
    async def talk() -> None:
        shown = await person.sees("answer> ")
        for words in (
            "⛨ text [148/200 https://x.test/p/147] failed: the page has no main part",
            "html.Extract, attempt 2, 1 retry left, safe to repeat",
            "RecoverableError",
            "spent $0.012500, 1 file made, 400 items produced",
            "what was decided on e3",
            'page = "<html>"',
            "depth = 3",
            '{"title": "?"}',
            'output = {"type": "object"}',
            "e7 of run 20261130-185103-k3f9q, 2026-11-30T18:51:03.000Z",
        ):
            assert words in shown
        person.type("skip\nlogin page\n")

    decision = conversation(person, escalation(), talk)
    assert decision.verdict == Skip()
    assert decision.decided_by == DecidedBy.OPERATOR
    assert (decision.rationale, decision.escalation_id) == ("login page", "e7")


@pytest.mark.parametrize(
    ("allowed", "offered"),
    [
        (PLAIN, ["retry", "repair", "skip", "stop"]),
        ((Action.SKIP, Action.FAIL), ["skip", "stop"]),
        ((Action.END_STREAM, Action.FAIL), ["end_stream", "stop"]),
    ],
)
def test_only_the_allowed_verbs_are_offered(
    person: Person, allowed: tuple[Action, ...], offered: list[str]
) -> None:
    async def talk() -> None:
        shown = await person.sees("answer> ")
        lines = [line.split() for line in shown.splitlines() if line.lstrip().startswith("[")]
        assert [words[1] for words in lines] == offered
        person.type("\x04")

    conversation(person, escalation(allowed_actions=allowed), talk)


@pytest.mark.parametrize(
    ("typed", "verdict"),
    [
        ("r", Retry()),
        ("retry", Retry()),
        ("  Skip ", Skip()),
        ("s", Skip()),
        ("e", EndStream()),
        ("end_stream", EndStream()),
        ("x", Fail(reason="because")),
        ("stop", Fail(reason="because")),
        ("fail", Fail(reason="because")),
    ],
)
def test_a_verb_is_a_letter_or_a_word(person: Person, typed: str, verdict: object) -> None:
    async def talk() -> None:
        await person.answers(("answer> ", f"{typed}\n"), ("why?> ", "because\n"))

    decision = conversation(person, escalation(allowed_actions=(*PLAIN, Action.END_STREAM)), talk)
    assert (decision.verdict, decision.rationale) == (verdict, "because")


def test_a_verb_that_is_not_offered_is_asked_again(person: Person) -> None:
    async def talk() -> None:
        await person.answers(
            ("answer> ", "retry\n"),
            ("retry is not offered here; choose one of: skip, stop", ""),
            ("answer> ", "dance\n"),
            ("dance is no answer; choose one of: skip, stop", ""),
            ("answer> ", "\n"),
            ("answer> ", "stop\n"),
            ("why?> ", "\n"),
        )

    decision = conversation(person, escalation(allowed_actions=(Action.SKIP, Action.FAIL)), talk)
    summary = "stopped: the operator ended the run; text [148/200] the page has no main part"
    assert decision.verdict == Fail(reason=summary)
    assert decision.rationale == "the operator gave no reason"


@pytest.mark.parametrize(("typed", "extent"), [("y", ApplyTo.SIGNATURE), ("", ApplyTo.INVOCATION)])
def test_a_skip_may_be_for_all_failures_alike(person: Person, typed: str, extent: ApplyTo) -> None:
    async def talk() -> None:
        await person.answers(
            ("answer> ", "s\n"),
            ("skip every http:451 of text from now on, too? [y/N]> ", f"{typed}\n"),
            ("why?> ", "refused\n"),
        )

    decision = conversation(person, escalation(signature="http:451"), talk)
    assert decision.verdict == Skip(apply_to=extent)


# ── no answer ──────────────────────────────────────────────────────────────


def test_ctrl_d_is_no_answer_and_fails(person: Person) -> None:
    async def talk() -> None:
        await person.answers(("answer> ", "\x04"))

    decision = conversation(person, escalation(), talk)
    assert (type(decision.verdict), decision.decided_by) == (Fail, DecidedBy.BOUNDS)
    words = "the supervisor failed: no answer at the terminal (end of input)"
    assert decision.rationale == words


def test_a_word_without_its_return_key_is_no_answer(person: Person) -> None:
    async def talk() -> None:
        await person.answers(("answer> ", "skip\x04\x04"))

    assert conversation(person, escalation(), talk).decided_by == DecidedBy.BOUNDS


def test_nobody_at_the_terminal_fails_after_ten_minutes(person: Person) -> None:
    """supervision.md §5: 600 s where a person answers; on a virtual clock."""

    async def main() -> tuple[Decision, float]:
        operator = Operator(person.source, person.sink)
        decision = await Bounded(operator, Bounds(), stamp=lambda: "").decide(escalation())
        return decision, asyncio.get_running_loop().time()

    decision, at = run(main())
    assert at == pytest.approx(600)
    assert decision.decided_by == DecidedBy.BOUNDS
    assert decision.rationale == "no decision within 600 s"


def test_a_cancelled_question_is_withdrawn_at_once(person: Person) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        operator = Operator(person.source, person.sink)
        task = asyncio.create_task(operator.decide(escalation()))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        assert loop.time() == pytest.approx(1)
        assert not loop.remove_reader(person.source.fileno())
        await person.sees("answer> ", "no longer asked")

    run(main())


def test_what_was_typed_before_the_question_answers_nothing(person: Person) -> None:
    person.type("skip\n")

    async def talk() -> None:
        await person.answers(("answer> ", "retry\n"), ("why?> ", "once more\n"))

    assert conversation(person, escalation(), talk).verdict == Retry()


def test_a_terminal_that_hangs_up_is_no_answer() -> None:
    someone = Person()

    async def main() -> Decision:
        operator = Operator(someone.source, io.StringIO())
        box = Bounded(operator, Bounds(), stamp=lambda: "")
        task = asyncio.create_task(box.decide(escalation()))
        await asyncio.sleep(0)
        os.close(someone.fd)
        async with asyncio.timeout(PATIENCE_S):
            return await task

    assert asyncio.run(main()).decided_by == DecidedBy.BOUNDS
    someone.sink.close()
    someone.source.close()


# ── repairing ──────────────────────────────────────────────────────────────


def title_needed(outputs: Mapping[str, object]) -> Sequence[str]:
    value = outputs.get("output")
    good = isinstance(value, dict) and value.get("title") == "Home"
    return [] if good else ["output.title: expected 'Home'"]


def test_a_bad_repair_is_said_to_be_so_and_asked_again(person: Person) -> None:
    """reference §17, 19: an interactive repair that is refused does not burn the decision."""
    reader = Run(title_needed)

    async def talk() -> None:
        await person.answers(
            ("answer> ", "p\n"),
            ("value> ", '{"title": \n'),
            ("not JSON: expecting value (line 1, column 10)", ""),
            ("value> ", "[NaN]\n"),
            ("not JSON: NaN is not a JSON value", ""),
            ("value> ", '{"a": 1, "a": 2}\n'),
            ("not JSON: 'a' is given twice", ""),
            ("value> ", '{"title": "Hom"}\n'),
            ("output.title: expected 'Home'", ""),
            ("value> ", '{"output": {"title": "Home"}}\n'),
            ("why?> ", "plain to see\n"),
        )

    decision = conversation(person, escalation(), talk, reader=reader)
    assert decision.verdict == Substitute({"output": {"title": "Home"}})
    assert decision.rationale == "plain to see"
    assert reader.checked == [{"output": {"title": "Hom"}}, {"output": {"title": "Home"}}]


def test_a_person_may_choose_another_verb_after_all(person: Person) -> None:
    async def talk() -> None:
        await person.answers(
            ("answer> ", "repair\n"),
            ("value> ", "back\n"),
            ("answer> ", "skip\n"),
            ("why?> ", "too hard\n"),
        )

    assert conversation(person, escalation(), talk).verdict == Skip()


def test_a_repaired_value_may_come_from_a_file(person: Person, tmp_path: Path) -> None:
    good = tmp_path / "a value.json"
    good.write_text('{"title": "Home"}', encoding="utf-8")
    (tmp_path / "latin").write_bytes(b'"\xff"')
    os.mkfifo(tmp_path / "pipe")

    async def talk() -> None:
        await person.answers(
            ("answer> ", "p\n"),
            ("value> ", f"@{tmp_path}/none\n"),
            ("there is no file", ""),
            ("value> ", f"@{tmp_path}/pipe\n"),
            ("there is no file", ""),
            ("value> ", f"@{tmp_path}/latin\n"),
            ("is not UTF-8 text", ""),
            ("value> ", f"@{good}\n"),
            ("why?> ", "looked it up\n"),
        )

    decision = conversation(person, escalation(), talk, reader=Run(title_needed))
    assert decision.verdict == Substitute({"output": {"title": "Home"}})


def test_several_slots_have_to_be_named(person: Person) -> None:
    one = escalation(declared_outputs={"title": {}, "body": {}})

    async def talk() -> None:
        await person.answers(
            ("answer> ", "p\n"),
            ("an object with title, body;", ""),
            ("value> ", '"Home"\n'),
            ("expected an object with the slots title, body", ""),
            ("value> ", '{"title": "Home", "body": null}\n'),
            ("why?> ", "so\n"),
        )

    decision = conversation(person, one, talk)
    assert decision.verdict == Substitute({"title": "Home", "body": None})


def editor(path: Path, body: str) -> str:
    """A command that runs `body` on `file` as an editor would."""
    path.write_text(
        f"import json, os, sys\nfrom pathlib import Path\nfile = Path(sys.argv[1])\n{body}\n",
        encoding="utf-8",
    )
    return f"'{sys.executable}' '{path}'"


def test_a_value_is_repaired_in_an_editor_on_a_private_file(person: Person, tmp_path: Path) -> None:
    """Issue 2: takes a repaired value from `$EDITOR`. The file is private, and gone after."""
    notes = tmp_path / "notes"
    command = editor(
        tmp_path / "edit.py",
        f"""
modes = [oct(p.stat().st_mode & 0o777) for p in (file, file.parent)]
Path({str(notes)!r}).write_text("\\n".join([str(file), *modes, file.read_text()]))
(file.parent / "repair.json~").write_text("left behind")
draft = json.loads(file.read_text())
draft["output"]["title"] = "Home"
file.write_text(json.dumps(draft))
print("editor was here", os.isatty(0), os.isatty(1))
""",
    )

    async def talk() -> None:
        await person.answers(
            ("answer> ", "p\n"),
            ("value> ", "\n"),
            ("editor was here True True", ""),
            ("why?> ", "edited\n"),
        )

    decision = conversation(person, escalation(), talk, editor=command, reader=Run(title_needed))
    assert decision.verdict == Substitute({"output": {"title": "Home"}})
    file, file_mode, directory_mode, draft = notes.read_text().split("\n", 3)
    assert (file_mode, directory_mode) == ("0o600", "0o700")
    assert draft.split() == ["{", '"output":', "{", '"title":', '"?"', "}", "}"]
    assert not Path(file).parent.exists()


def test_an_editor_goes_on_from_the_last_draft(person: Person, tmp_path: Path) -> None:
    command = editor(
        tmp_path / "edit.py",
        """
text = file.read_text()
file.write_text('{"title": "Home"}' if text == "broken {" else "broken {")
""",
    )

    async def talk() -> None:
        await person.answers(
            ("answer> ", "p\n"),
            ("value> ", "\n"),
            ("not JSON", ""),
            ("value> ", "\n"),
            ("why?> ", "second try\n"),
        )

    decision = conversation(person, escalation(), talk, editor=command, reader=Run(title_needed))
    assert decision.verdict == Substitute({"output": {"title": "Home"}})


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("", "no editor is set: set $EDITOR, or give @FILE or JSON"),
        ("no-such-editor-anywhere", "cannot start no-such-editor-anywhere: No such file"),
        ("'unclosed", "$EDITOR cannot be read"),
        (f"'{sys.executable}' -c 'raise SystemExit(3)'", "ended with 3, nothing was taken"),
        (f"'{sys.executable}' -c 'import os, sys; os.unlink(sys.argv[1])'", "there is no file"),
    ],
)
def test_an_editor_that_fails_is_asked_again(person: Person, command: str, words: str) -> None:
    async def talk() -> None:
        await person.answers(
            ("answer> ", "p\n"),
            ("value> ", "\n"),
            (words, ""),
            ("value> ", '{"title": "Home"}\n'),
            ("why?> ", "by hand\n"),
        )

    decision = conversation(person, escalation(), talk, editor=command, reader=Run(title_needed))
    assert decision.verdict == Substitute({"output": {"title": "Home"}})


@pytest.mark.parametrize("ignores", ["", "signal.signal(signal.SIGTERM, signal.SIG_IGN)"])
def test_a_cancelled_editor_is_ended_and_the_terminal_given_back(
    person: Person, tmp_path: Path, ignores: str
) -> None:
    command = editor(
        tmp_path / "edit.py",
        f"""
import signal, tty
{ignores}
tty.setraw(0)
print("raw", os.getpid(), file, "", flush=True)
signal.pause()
""",
    )
    before = termios.tcgetattr(person.source.fileno())

    async def main() -> tuple[int, Path]:
        operator = Operator(person.source, person.sink, editor=command)
        task = asyncio.create_task(operator.decide(escalation()))
        await person.answers(("answer> ", "p\n"), ("value> ", "\n"))
        await person.sees("raw ")
        pid, file = (await person.sees(" ", " ")).split()
        task.cancel()
        await asyncio.wait({task}, timeout=PATIENCE_S)
        assert task.cancelled()
        return int(pid), Path(file)

    pid, file = asyncio.run(main())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert termios.tcgetattr(person.source.fileno()) == before
    assert not file.parent.exists()


# ── what comes from the run is data ────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\x9b31m", "\\x9b31m"),
        ("abc\u202edef", "abc\\u202edef"),
        ("\u2028", "\\u2028"),
        ("\ud800", "\\ud800"),
        ("\x00\x7f", "\\x00\\x7f"),
        ("naïve – 日本 ✓", "naïve – 日本 ✓"),
    ],
)
def test_what_does_not_print_is_spelled_out(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_nothing_from_the_run_reaches_the_terminal_raw(person: Person) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\u202e\r"
    one = escalation(
        node_id=NodeId(f"n{evil}"),
        node_type=f"t{evil}",
        item=Item(number="1", label=evil),
        detail=evil,
        error_type=evil,
        signature=evil,
        candidate_output=evil,
        inputs={evil: {evil: [evil]}},
        declared_outputs={f"output{evil}": {"title": evil}},
        caused_by=(EscalationId(evil),),
        at=evil,
    )

    async def talk() -> None:
        await person.answers(
            ("answer> ", "p\n"), ("value> ", "back\n"), ("answer> ", "s\n"), ("[y/N]> ", "\x04")
        )

    conversation(person, one, talk)
    for raw in ("\x1b", "\x07", "\u202e"):
        assert raw not in person.seen
    assert "\r" not in person.seen.replace("\r\n", "").replace("\r\r\n", "")


def test_long_values_and_many_inputs_are_cut(person: Person) -> None:
    one = escalation(inputs={f"slot{n}": "x" * 5_000 for n in range(50)})

    async def talk() -> None:
        shown = await person.sees("answer> ")
        assert max(len(line) for line in shown.splitlines()) < 230
        assert shown.count("x" * 100) == 20
        assert "… and 30 more" in shown
        person.type("\x04")

    conversation(person, one, talk)


# ── without a terminal ─────────────────────────────────────────────────────


def piped(text: str, *escalations: Escalation, sink: TextIO | None = None) -> list[Decision]:
    """Decisions of an operator whose answers come through a pipe."""
    out, into = os.pipe()
    os.write(into, text.encode())
    os.close(into)

    async def main(source: TextIO) -> list[Decision]:
        box = Bounded(Operator(source, sink or io.StringIO()), Bounds(), stamp=lambda: "")
        return [await box.decide(one) for one in escalations]

    with os.fdopen(out, encoding="utf-8") as source:
        return asyncio.run(main(source))


def test_answers_may_come_through_a_pipe() -> None:
    decisions = piped("s\r\nlogin page\r\nretry\nonce more", *[escalation()] * 3)
    assert [d.verdict for d in decisions[:2]] == [Skip(), Retry()]
    assert [d.rationale for d in decisions[:2]] == ["login page", "once more"]
    assert decisions[2].decided_by == DecidedBy.BOUNDS


def test_a_line_without_end_is_refused() -> None:
    async def main() -> str:
        terminal = Terminal(io.StringIO("x" * 2_000_000), io.StringIO())
        try:
            return str(await terminal.ask("> "))
        except Exception as error:
            return str(error)

    assert run(main()) == "a line of more than 1,048,576 bytes was typed"


def test_answers_may_come_from_a_file(tmp_path: Path) -> None:
    script = tmp_path / "answers"
    script.write_text("skip\nlogin page\n", encoding="utf-8")

    async def main(source: TextIO) -> Decision:
        return await Operator(source, io.StringIO()).decide(escalation())

    with script.open(encoding="utf-8") as source:
        assert asyncio.run(main(source)).verdict == Skip()


def test_no_input_at_all_is_no_answer() -> None:
    async def main(source: TextIO) -> Decision:
        operator = Operator(source, io.StringIO())
        return await Bounded(operator, Bounds(), stamp=lambda: "").decide(escalation())

    with Path(os.devnull).open(encoding="utf-8") as source:
        assert asyncio.run(main(source)).decided_by == DecidedBy.BOUNDS


def test_a_stream_that_lacks_the_characters_gets_them_spelled_out() -> None:
    raw = io.BytesIO()
    sink = io.TextIOWrapper(raw, encoding="ascii")
    piped("s\n\n", escalation(), sink=sink)
    assert b"\\u26e8 text [148/200" in raw.getvalue()


def test_a_closed_output_fails_by_bounds() -> None:
    sink = io.StringIO()
    sink.close()
    (decision,) = piped("s\n\n", escalation(), sink=sink)
    assert decision.decided_by == DecidedBy.BOUNDS


def test_what_else_draws_on_the_terminal_steps_aside() -> None:
    states: list[str] = []

    @contextlib.contextmanager
    def aside() -> Iterator[None]:
        states.append("aside")
        yield
        states.append("back")

    operator = Operator(io.StringIO("s\nso\n"), io.StringIO(), aside=aside)
    assert run(operator.decide(escalation())).verdict == Skip()
    assert states == ["aside", "back"]
