"""What items are called: short enough for a line, and the same wherever they are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nightwarden as nw
from nightwarden.report import fold_report, report_json, report_text
from nightwarden.session import Session, run_session
from nightwarden.store import open_store

LONG = "a whole document\nof many lines " * 2000


@nw.node(type="names.Broken", label="page {x}")
async def broken(x: str) -> str:
    raise ValueError("no")


def test_an_item_that_is_a_document_is_named_by_its_beginning(tmp_path: Path) -> None:
    """supervision.md §2, §4: lines and records are bounded, an item's label too."""
    with nw.workflow("names") as w:
        w.add(broken, id="broken", x=w.input("items", list[str]).each())
    with open_store(tmp_path) as store:
        session = Session(w.build(), {"items": [LONG]}, store=store, run_id="r", workdir=tmp_path)
        result = run_session(session)
        failed = [line for line in store.lines("r") if b'"invocation_failed"' in line]
        told = report_text(fold_report(store.read("r")))
    assert result.reason.startswith("broken [1/1 page a whole document of many lines a whole")
    assert len(result.reason) < 200
    assert len(failed[0]) < 1000
    assert max(map(len, told.splitlines())) < 2500
    assert LONG not in told


def test_a_missing_item_is_called_what_its_decision_called_it(tmp_path: Path) -> None:
    """supervision.md §2: skipped → which item, by label."""
    with nw.workflow("names") as w:
        w.add(broken, id="broken", x=w.input("items", list[str]).each())
    answers = tmp_path / "answers.yaml"
    answers.write_text("- when: {node: broken}\n  answer: {action: skip, reason: it is bad}\n")
    with open_store(tmp_path / "store") as store:
        session = Session(
            w.build(),
            {"items": ["one"]},
            store=store,
            run_id="r",
            workdir=tmp_path,
            supervise=f"scripted:{answers}",
        )
        run_session(session)
        told: Any = report_json(fold_report(store.read("r")))
    assert [missing["label"] for missing in told["missing"]] == ["page one"]
