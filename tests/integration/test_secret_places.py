"""Secrets in places nobody thinks of: no byte of a run's folder shows one. (supervision.md §4)"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import nightwarden, on_terminal
from kept import everything_in

import nightwarden as nw
from nightwarden import Context, RunResult, Session
from nightwarden.errors import NodeError
from nightwarden.events import Event, encode
from nightwarden.session import run_session
from nightwarden.spec.workflow import Workflow
from nightwarden.store import open_store

KEY = "k7Rz-a-long-enough-secret-99"


def step(code: Callable[..., Any], **promises: Any) -> Callable[..., Any]:
    return nw.node(type=f"secret.{code.__name__.capitalize()}", **promises)(code)


def alone(code: Callable[..., Any]) -> Workflow:
    with nw.workflow("w") as w:
        w.add(step(code), id="step")
    return w.build()


def ran(workflow: Workflow, folder: Path, **options: Any) -> tuple[RunResult, list[Event]]:
    """A recorded run; neither its folder nor its events may show the key."""
    events: list[Event] = []
    session = Session(
        workflow, store=folder / "store", workdir=folder, secrets={"KEY": KEY}, **options
    )
    session.subscribe(events.append)
    result = run_session(session)
    assert_clean(folder, result, events)
    return result, events


def assert_clean(folder: Path, result: RunResult, events: list[Event]) -> None:
    assert KEY.encode() not in everything_in(folder / "store")
    assert not [path for path in folder.rglob("*") if KEY in path.name]
    assert not [event for event in events if KEY.encode() in encode(event)]
    assert KEY not in repr((result.reason, result.headline, result.ledger, result.interventions))


def test_the_name_of_an_errors_type_is_masked(tmp_path: Path) -> None:
    def named(ctx: Context) -> str:
        raise type(f"Error{ctx.secret('KEY')}", (ValueError,), {})("no")

    result, events = ran(alone(named), tmp_path)
    assert result.status == "failed"
    (failed,) = [e for e in events if type(e).__name__ == "InvocationFailed"]
    assert failed.error_type == "Error••••(KEY)"  # type: ignore[attr-defined]


@pytest.mark.parametrize("early", [True, False])
def test_the_reason_of_a_cancel_is_masked(tmp_path: Path, early: bool) -> None:
    """Also of one that comes before the first step."""

    async def waits(ctx: Context) -> str:
        session.cancel(f"because of {KEY}")
        await asyncio.sleep(60)
        return ctx.secret("KEY")

    session = Session(
        alone(waits), store=tmp_path / "store", workdir=tmp_path, secrets={"KEY": KEY}
    )
    events: list[Event] = []
    session.subscribe(events.append)
    if early:
        session.cancel(f"because of {KEY}")
    result = run_session(session)
    assert (result.status, result.reason) == ("cancelled", "because of ••••(KEY)")
    assert_clean(tmp_path, result, events)


def passes(text: str) -> str:
    return text


def test_what_was_given_as_a_secret_is_masked_before_anybody_asks_for_it(tmp_path: Path) -> None:
    """The first record of a run holds its inputs and their defaults."""
    with nw.workflow("w") as w:
        text = w.input("text", str, default=f"by default {KEY}")
        w.add(step(passes), id="step", text=text)
    workflow = w.build()
    ran(workflow, tmp_path)
    ran(workflow, tmp_path, inputs={"text": f"given {KEY}"})


def test_what_the_environment_calls_a_secret_is_masked_before_anybody_asks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTWARDEN_SECRET_KEY", KEY)
    monkeypatch.setenv("NIGHTWARDEN_SECRET_SHORT", "run")
    with nw.workflow("w") as w:
        w.add(step(passes), id="step", text=w.input("text", str))
    nw.run(w.build(), {"text": KEY}, store=tmp_path / "store", workdir=tmp_path)
    kept = everything_in(tmp_path / "store")
    assert KEY.encode() not in kept
    assert "••••(KEY)".encode() in kept
    assert "••••(SHORT)".encode() not in kept  # no ordinary word is hidden by one nobody needs


def test_an_asset_is_not_called_by_a_secret(tmp_path: Path) -> None:
    def writes(ctx: Context) -> str:
        with pytest.raises(NodeError, match=r"a secret stands in its name"):
            ctx.assets.write(f"of {ctx.secret('KEY')}/page.txt", b"text")
        return "refused"

    result, _ = ran(alone(writes), tmp_path)
    assert result.outputs["step"] == "refused"


def test_an_asset_does_not_hold_a_secret(tmp_path: Path) -> None:
    """It is kept beside the record, as long as the record; the step has made nothing then."""

    def writes(ctx: Context) -> str:
        ctx.assets.write("answer.txt", f"you sent {ctx.secret('KEY')}".encode())
        return "written"

    result, events = ran(alone(writes), tmp_path)
    assert "the asset 'answer.txt' holds the secret KEY" in result.reason
    (failed,) = [e for e in events if type(e).__name__ == "InvocationFailed"]
    assert failed.assets == 0  # type: ignore[attr-defined]


def test_a_secret_written_byte_by_byte_is_masked(tmp_path: Path) -> None:
    def dumps(ctx: Context) -> str:
        key = ctx.secret("KEY").encode()
        raise ValueError(f"got {key.hex(':')} and {key.hex('-').upper()}")

    result, _ = ran(alone(dumps), tmp_path)
    assert result.reason == "step: ValueError: got ••••(KEY) and ••••(KEY)"


PRINTS = """
import sys
from nightwarden import Context, node

@node(type="p.Print")
def prints(ctx: Context) -> int:
    print("out", ctx.secret("KEY"))
    print("err", ctx.secret("KEY"), file=sys.stderr)
    sys.stderr.writelines(["one ", ctx.secret("KEY")])
    return 1
"""


@pytest.mark.parametrize("form", ["--json", "--trust"])
def test_what_a_step_prints_is_masked_by_the_command_line(tmp_path: Path, form: str) -> None:
    """A detached run prints to a file beside its record."""
    (tmp_path / "steps.py").write_text(PRINTS)
    (tmp_path / "w.json").write_text(
        '{"version": 1, "name": "w", "nodes": {"p": {"type": "p.Print"}}}'
    )
    run = ("run", "w.json", "--nodes", "steps.py", form)
    done = nightwarden(*run, cwd=tmp_path, env={"NIGHTWARDEN_SECRET_KEY": KEY})
    assert done.code == 0, done.err
    told = done.out + done.err
    assert KEY not in told
    assert "out ••••(KEY)" in told
    assert "err ••••(KEY)" in told
    assert "one ••••(KEY)" in told


def test_what_a_step_prints_beside_the_bars_of_a_terminal_is_masked(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text(PRINTS)
    (tmp_path / "w.json").write_text(
        '{"version": 1, "name": "w", "nodes": {"p": {"type": "p.Print"}}}'
    )
    run = ("run", "w.json", "--nodes", "steps.py")
    shown = on_terminal(*run, cwd=tmp_path, env={"NIGHTWARDEN_SECRET_KEY": KEY})
    assert shown.code == 0, shown.text
    assert KEY not in shown.raw
    assert "out ••••(KEY)" in shown.text


def test_a_word_from_elsewhere_is_masked_on_record_and_left_nowhere_else(tmp_path: Path) -> None:
    """Who sends it knows no secrets; who drives the run does."""
    place = tmp_path / "store"

    async def waits(ctx: Context) -> str:
        with open_store(place) as store:
            store.send(session.run_id, "cancel", {"reason": f"because of {ctx.secret('KEY')}"})
        await asyncio.sleep(60)
        return "never"

    session = Session(alone(waits), store=place, workdir=tmp_path, secrets={"KEY": KEY})
    events: list[Event] = []
    session.subscribe(events.append)
    result = run_session(session)
    assert (result.status, result.reason) == ("cancelled", "because of ••••(KEY)")
    assert_clean(tmp_path, result, events)
