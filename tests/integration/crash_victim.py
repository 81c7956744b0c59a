"""A process that runs a workflow in children, kills them, and resumes until the run has ended.

    crash_victim.py FOLDER KILLS SEED     prints, as JSON, what came of it

The children are forked from a process that has everything imported, so that a death costs little.
Effects are lines in a file that outlives them all: `effects.txt`, one line an effect.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import select
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import nightwarden as nw
from nightwarden import Collect, RunResult
from nightwarden.errors import NodeError
from nightwarden.nodes.registry import Registry
from nightwarden.resuming import NothingLeft, resume_session
from nightwarden.runtime.past_folding import fold_past
from nightwarden.runtime.risks import Risk, risks
from nightwarden.runtime.supervision import Bounds, SupervisorBase
from nightwarden.session import Session, run_session
from nightwarden.spec.workflow import Workflow
from nightwarden.store import open_store
from nightwarden.verdict import ApplyTo, Decision, Escalation, Skip

FOLDER = Path(sys.argv[1])
ITEMS = [f"item-{number}" for number in range(10)]
GONE = {"item-3", "item-7"}


def effect(line: str) -> None:
    """What must not be done twice: a line that is there as soon as it is done."""
    fd = os.open(FOLDER / "effects.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(fd, f"{line}\n".encode())
    os.close(fd)


@nw.node(type="v.Fetch", retry_safe=True, label="{name}")
async def fetch(name: str) -> dict[str, Any]:
    await asyncio.sleep(0.001)
    if name in GONE:
        raise NodeError(f"{name} is gone", code="gone")
    return {"name": name, "text": name * 3000}


@nw.node(type="v.Pieces", retry_safe=True)
async def pieces(page: dict[str, Any]) -> AsyncIterator[str]:
    for number in range(4):
        await asyncio.sleep(0.001)
        yield f"{page['name']}.{number}"


@nw.node(type="v.Publish", label="{piece}")
async def publish(piece: str) -> str:
    effect(piece)
    await asyncio.sleep(0.001)
    return f"published {piece}"


@nw.node(type="v.Table")
async def table(rows: Collect[str]) -> list[str]:
    effect(f"table {rows[0].split()[1].split('.')[0] if rows else 'of nothing'}")
    return sorted(rows)


def workflow() -> Workflow:
    """Pages in pieces, each published once, and a table of each page."""
    registry = Registry()
    for step in (fetch, pieces, publish, table):
        registry.add(step)
    with nw.workflow("victim", registry=registry) as w:
        names = w.input("names", list[str])
        page = w.add(fetch, id="page", name=names.each())
        piece = w.add(pieces, id="piece", page=page)
        done = w.add(publish, id="publish", piece=piece)
        w.add(table, id="rows", rows=done.collect())
    return w.build()


class Skipper(SupervisorBase):
    """Gives up what cannot be had."""

    async def decide(self, escalation: Escalation) -> Decision:
        """Skip it, and all that are gone alike."""
        gone = escalation.signature == "node:gone"
        apply_to = ApplyTo.SIGNATURE if gone else ApplyTo.INVOCATION
        return Decision(verdict=Skip(apply_to=apply_to), rationale="it cannot be had")


def once(place: Path) -> RunResult:
    """Begin the run, or go on with it, to the end."""
    options: dict[str, Any] = {
        "supervise": Skipper(),
        "bounds": Bounds(max_decisions=10_000),
        "workdir": FOLDER,
    }
    with open_store(place) as store:
        if not store.run_ids() or not any(True for _ in store.lines("r")):
            if store.run_ids():
                store.delete("r")
            given = {"names": ITEMS}
            return run_session(Session(workflow(), given, store=store, run_id="r", **options))
        past = fold_past(store.lines("r"))
        effects = FOLDER / "effects.txt"
        done = set(effects.read_text().splitlines() if effects.exists() else ())
        undone = [str(r) for r in risks(past, workflow().types) if _effect_of(r) not in done]
        session = resume_session(store, workflow=workflow(), retry=undone, **options)
        return run_session(session)


def _effect_of(risk: Risk) -> str:
    """The line a cut-off invocation would have left."""
    if risk.node_id == "publish":
        page, number = risk.lineage
        return f"{ITEMS[page]}.{number}"
    return f"table {ITEMS[risk.lineage[0]]}"


def child(place: Path, pipe: int) -> None:
    """One life: to the end, if it is let."""
    try:
        result = once(place)
        told = {
            "status": str(result.status),
            "outputs": result.outputs["rows"],
            "headline": result.headline,
            "ledger": [
                {k: v for k, v in node.items() if k not in ("attempts",)}
                for node in result.ledger["nodes"]
            ],
            "at_risk_skipped": sorted(
                f"{i.escalation.node_id}{list(i.escalation.lineage)}"
                for i in result.interventions
                if i.escalation.signature == "node:interrupted"
            ),
        }
    except NothingLeft:
        told = {"status": "nothing left"}
    except BaseException as error:
        told = {"status": f"raised {type(error).__name__}: {error}"}
    os.write(pipe, json.dumps(told, default=list).encode())
    os._exit(0)


def live(place: Path, for_s: float | None) -> dict[str, Any] | None:
    """One child; killed after so many seconds. What it said, None if it was killed."""
    mine, its = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(mine)
        child(place, its)
    os.close(its)
    ready, _, _ = select.select([mine], [], [], for_s)
    if not ready:
        os.kill(pid, signal.SIGKILL)
    said = b""
    while chunk := os.read(mine, 1 << 16):
        said += chunk
    os.close(mine)
    os.waitpid(pid, 0)
    return json.loads(said) if said else None


def main() -> None:
    """Kill it so often, at moments drawn from the seed; then let it end."""
    kills, dice = int(sys.argv[2]), random.Random(int(sys.argv[3]))
    runs: list[dict[str, Any]] = []
    deaths = 0
    while deaths < kills:
        folder = FOLDER / f"s{len(runs)}"
        effects = FOLDER / "effects.txt"
        effects.unlink(missing_ok=True)
        lives, told = 0, None
        while told is None:
            # Short lives at first, so that every part of the run is died in.
            told = live(folder, None if lives > 30 else dice.uniform(0.005, 0.2))
            lives += 1
        deaths += lives - 1
        told["lives"] = lives
        told["effects"] = effects.read_text().splitlines()
        with open_store(folder) as store:
            told["whole"] = store.verify("r").whole
        runs.append(told)
    effects.unlink(missing_ok=True)
    alone = live(FOLDER / "alone", None)
    print(json.dumps({"alone": alone, "runs": runs, "deaths": deaths}))


if __name__ == "__main__":
    main()
