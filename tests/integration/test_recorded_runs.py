"""Whole runs on a real store: SQLite and PostgreSQL, large values, words from elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kept import events_of

import nightwarden as nw
from nightwarden import Collect, Context
from nightwarden.errors import NodeError
from nightwarden.resuming import resume, resume_session
from nightwarden.runtime.accounting import current
from nightwarden.session import Session, run_session
from nightwarden.spec.workflow import Workflow
from nightwarden.store import RunBusy, Store, open_store


class Opaque:
    """A value no record can keep."""


def line_of(code: Callable[..., Any], **promises: Any) -> Workflow:
    async def gather(values: Collect[Any]) -> list[Any]:
        return list(values)

    with nw.workflow("line") as w:
        items = w.input("items", list[int])
        step = nw.node(type="rec.Step", **promises)(code)
        made = w.add(step, id="step", value=items.each())
        end = nw.node(type="rec.Gather", retry_safe=True)(gather)
        w.add(end, id="all", values=made.collect())
    return w.build()


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "sqlite":
        made = open_store(tmp_path)
    else:
        made = open_store(request.getfixturevalue("postgres_url"), files=tmp_path)
    with made:
        yield made


def test_a_failed_run_is_resumed_from_any_store(store: Store, tmp_path: Path) -> None:
    calls: list[int] = []
    broken = {3}

    async def step(value: int) -> str:
        calls.append(value)
        if value in broken:
            raise NodeError("no")
        return f"{value}" * 9_000

    workflow = line_of(step)
    options: dict[str, Any] = {"store": store, "workdir": tmp_path, "run_id": "r"}
    first = run_session(Session(workflow, {"items": [1, 2, 3, 4]}, **options))
    assert (first.status, calls) == ("failed", [1, 2, 3])
    broken.clear()
    calls.clear()
    result = resume("r", store=store, workflow=workflow, workdir=tmp_path, retry=["step[3]"])
    assert calls == [3, 4]
    assert result.outputs == {"all": [f"{n}" * 9_000 for n in (1, 2, 3, 4)]}
    assert store.verify("r").whole
    assert store.entry("r").status == "completed"


def test_a_value_over_16_kb_is_kept_apart_and_comes_back(tmp_path: Path) -> None:
    """Issue 4, Store: values over 16 kB are content-addressed blobs."""

    async def step(value: int) -> dict[str, str]:
        if value == 2 and not (tmp_path / "ok").exists():
            raise NodeError("no")
        return {"text": f"{value}" * 40_000, "small": "x"}

    workflow = line_of(step, retry_safe=True, concurrency=1)
    first = nw.run(workflow, {"items": [1, 2]}, store=tmp_path / "s", run_id="r")
    assert first.status == "failed"
    (kept,) = [
        e
        for e in events_of(tmp_path / "s")
        if e["type"] == "invocation_succeeded" and e["node_id"] == "step"
    ]
    assert "outputs" not in kept
    assert list(kept["blobs"]) == ["output"]
    (tmp_path / "ok").touch()
    result = resume("r", store=tmp_path / "s", workflow=workflow)
    assert result.outputs == {"all": [{"text": f"{n}" * 40_000, "small": "x"} for n in (1, 2)]}


def test_a_run_heeds_a_cancel_from_another_process(store: Store, tmp_path: Path) -> None:
    async def step(value: int, ctx: Context) -> int:
        await asyncio.to_thread(store.send, "r", "cancel", {"reason": "enough"})
        await asyncio.sleep(30)
        return value

    session = Session(line_of(step), {"items": [1]}, store=store, workdir=tmp_path, run_id="r")
    result = run_session(session)
    assert (result.status, result.reason) == ("cancelled", "enough")


def test_two_never_drive_one_run(store: Store, tmp_path: Path) -> None:
    """Issue 4: two processes never drive one run."""
    tried: list[str] = []

    async def step(value: int) -> int:
        try:
            resume_session(store, "r", workflow=workflow)
        except RunBusy as busy:
            tried.append(str(busy))
        return value

    workflow = line_of(step)
    session = Session(workflow, {"items": [1]}, store=store, workdir=tmp_path, run_id="r")
    assert run_session(session).status == "completed"
    assert len(tried) == 1


def test_a_run_that_could_not_be_resumed_past_a_step_says_so_at_its_start(tmp_path: Path) -> None:
    """Issue 4, Journal rules."""

    async def step(value: int) -> Opaque:
        return Opaque()

    for safe in (False, True):
        workflow = line_of(step, retry_safe=safe)
        nw.run(workflow, {"items": [1]}, store=tmp_path, run_id=f"r{safe}")
        said = [e["message"] for e in events_of(tmp_path, f"r{safe}") if e["type"] == "log"]
        assert said == (
            []
            if safe
            else [
                "its output cannot be kept in a record: a run that stops after it cannot be "
                "resumed past it"
            ]
        )


def test_the_start_of_an_effect_is_durable_before_it_runs(tmp_path: Path) -> None:
    """Issue 4, Journal rules: also everything it follows from."""
    seen: list[list[str]] = []

    async def step(value: int) -> int:
        seen.append([e["type"] for e in await asyncio.to_thread(events_of, tmp_path, "r")])
        return value

    nw.run(line_of(step), {"items": [1, 2]}, store=tmp_path, run_id="r")
    assert [types[-1] for types in seen] == ["invocation_started", "invocation_started"]
    assert seen[1].count("invocation_succeeded") == 1 + seen[0].count("invocation_succeeded")


def test_a_file_of_a_run_is_kept_where_its_large_values_are(tmp_path: Path) -> None:
    """Issue 4, Store: assets in object storage by URL; a folder stands in for a bucket here."""
    objects = tmp_path / "objects"
    objects.mkdir()
    gone = tmp_path / "gone"

    async def write(value: int, ctx: Context) -> nw.AssetRef:
        return ctx.assets.write(f"{value}.bin", b"asset %d" % value)

    async def read(made: nw.AssetRef, ctx: Context) -> str:
        if not gone.exists():
            raise NodeError("not yet")
        return ctx.assets.read(made).decode()

    with nw.workflow("assets") as w:
        items = w.input("items", list[int])
        made = w.add(nw.node(type="rec.Write")(write), id="write", value=items.each())
        w.add(nw.node(type="rec.Read", retry_safe=True)(read), id="read", made=made)
    with open_store(tmp_path / "store", blobs=f"file://{objects}") as store:
        options: dict[str, Any] = {"store": store, "workdir": tmp_path}
        first = run_session(Session(w.build(), {"items": [1]}, run_id="r", **options))
        assert first.status == "failed"
        (tmp_path / "store" / "runs" / "r" / "assets" / "1.bin").unlink()
        gone.touch()
        result = resume("r", workflow=w.build(), **options)
    assert list(result.outputs["read"]) == ["asset 1"]


def test_a_code_that_names_a_secret_is_no_signature(tmp_path: Path) -> None:
    """supervision.md §4: a key of letters and digits would pass for a category."""
    key = "sk8675309live"

    async def asks(ctx: Context) -> str:
        raise NodeError("refused", code=f"key-{ctx.secret('KEY')}")

    with nw.workflow("code") as w:
        w.add(nw.node(type="rec.Asks")(asks), id="asks")
    with open_store(tmp_path) as store:
        session = Session(w.build(), store=store, run_id="r", secrets={"KEY": key})
        result = run_session(session)
        lines = b"".join(store.lines("r"))
    assert (result.status, result.reason) == ("failed", "asks: refused")
    assert b'"invocation_failed"' in lines
    assert key.encode() not in lines


def test_what_one_item_spends_is_on_its_account_alone(tmp_path: Path) -> None:
    """Also where the step was given no context; a step that fails has an account of its own."""

    async def step(value: int) -> int:
        if value in (2, 4):
            current.get().spend(value / 100)
        if value == 4:
            current.get().made({"name": "left"})
        if value == 5:
            raise NodeError("no")
        return value

    workflow = line_of(step)
    result = nw.run(workflow, {"items": list(range(8))}, keep_going=True, store=tmp_path / "s")
    ended = [e for e in events_of(tmp_path / "s") if e.get("node_id") == "step" and e["attempt"]]
    spent = {e["lineage"][0]: e["cost_micro_usd"] for e in ended if e.get("cost_micro_usd")}
    assert spent == {2: 20_000, 4: 40_000}
    made = [e["lineage"][0] for e in ended if e.get("assets")]
    assert made == [4]
    assert result.costs["nodes_micro_usd"] == {"step": 60_000}
