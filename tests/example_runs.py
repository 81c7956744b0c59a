"""The examples, run in a folder of their own: through the library and the command line.

desk = desk_in(tmp_path)                  a copy of `examples/` lies in it
result = desk.run("poster", supervise=True, fault="gate")
told(result)                              where, allowed, applied, by whom, what became of it
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nightwarden as nw
from nightwarden import RunResult
from nightwarden.verdict import action_of

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


@dataclass(frozen=True)
class Desk:
    """A folder with a copy of the examples, where runs leave what they leave."""

    folder: Path

    def path(self, name: str) -> Path:
        """A file of the examples."""
        return self.folder / "examples" / name

    def session(self, name: str, inputs: Mapping[str, object], **options: Any) -> nw.Session:
        """A run of an example that has not begun; `supervise=True` takes its own answers."""
        if options.get("supervise") is True:
            options["supervise"] = f"scripted:{self.path(f'{name}.answers.yaml')}"
        places = {"workdir": self.folder, "store": self.folder / ".nightwarden"}
        workflow = nw.load(self.path(f"{name}.yaml"), trust=True)
        return nw.Session(workflow, inputs, **{**places, **options})

    def run(self, name: str, *, supervise: Any = None, **inputs: object) -> RunResult:
        """Run an example; `supervise=True` takes its own answers."""
        if supervise is True:
            supervise = f"scripted:{self.path(f'{name}.answers.yaml')}"
        return nw.run(
            nw.load(self.path(f"{name}.yaml"), trust=True),
            inputs,
            supervise=supervise,
            workdir=self.folder,
            store=self.folder / ".nightwarden",
        )

    def command(self, *arguments: str) -> tuple[int, str, str]:
        """`nightwarden …` in the folder: exit code, stdout, stderr."""
        done = subprocess.run(
            [sys.executable, "-m", "nightwarden", *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "200"},
            capture_output=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def lines(self, name: str) -> list[str]:
        """The lines of a file that a run may have left."""
        path = self.folder / name
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def posts(self) -> list[dict[str, str]]:
        """What `poster` published."""
        return [json.loads(line) for line in self.lines("outbox.jsonl")]

    def asset(self, result: RunResult, name: str) -> bytes:
        """A file of a run."""
        runs = Path(result.record).parent / "runs"
        return (runs / result.run_id / "assets" / name).read_bytes()

    def stored(self, store: str = "nightly.db") -> list[tuple[str, int, str, bytes]]:
        """What `nightly` stored: document, position, text and vector of every piece, in order."""
        with closing(sqlite3.connect(self.folder / store)) as db:
            query = "select document, position, text, vector from chunks order by 1, 2"
            return list(db.execute(query))


def desk_in(folder: Path) -> Desk:
    """A copy of the examples in a folder."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(EXAMPLES, folder / "examples", ignore=ignored)
    return Desk(folder)


def only(result: RunResult) -> Any:
    """The one intervention of a run, decided and closed."""
    (found,) = result.interventions
    assert found.decision is not None
    assert found.outcome is not None
    return found


def told(result: RunResult) -> tuple[str, list[str], str, str, str]:
    """Of the one intervention: where, what was allowed, what was applied, by whom, what became."""
    found = only(result)
    return (
        found.escalation.node_id,
        [str(action) for action in found.escalation.allowed_actions],
        str(action_of(found.decision.verdict)),
        str(found.decision.decided_by),
        str(found.outcome.kind),
    )


def counts(result: RunResult, node: str) -> Mapping[str, int]:
    """A node's line in the ledger."""
    (found,) = [n for n in result.ledger["nodes"] if n["node_id"] == node]
    assert isinstance(found, dict)
    return found
