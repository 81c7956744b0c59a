"""The demo as `make demo` runs it: 200 real pages, 13 broken, an honest account (issue 2)."""

from __future__ import annotations

import csv
import json
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from commands import environment

from nightwarden.demo import FAULTS, Kind
from nightwarden.store import open_store

SCRIPT = Path(sys.executable).with_name("nightwarden")
MISSING = sorted(
    n for n, f in FAULTS.items() if f.kind in (Kind.LOCKED, Kind.TRUNCATED, Kind.LOGIN)
)


@dataclass(frozen=True)
class Demo:
    """A finished demo and the directory it ran in."""

    place: Path
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def run_in(place: Path, *arguments: str) -> Demo:
    done = subprocess.run(
        [SCRIPT, *arguments],
        cwd=place,
        capture_output=True,
        text=True,
        env=environment(),
        timeout=110,
        check=False,
    )
    return Demo(place, done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """The demo in an empty directory; the pages are rendered there."""
    return run_in(tmp_path_factory.mktemp("demo"), "demo")


@pytest.fixture(scope="module")
def clean(demo: Demo) -> Demo:
    """The demo without faults, after the other one, its results elsewhere."""
    return run_in(demo.place, "demo", "--no-faults", "--keep", "kept")


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_demo_completes_under_supervision(demo: Demo) -> None:
    assert demo.code == 0, demo.err
    assert (
        "── completed (supervised): 193/200 items, 7 skipped, 6 decisions, 1 repaired" in demo.lines
    )


def first_run(place: Path) -> str:
    """The demo's own run: other tests may have added later ones."""
    with open_store(place / ".nightwarden") as store:
        return store.run_ids()[0]


def test_rows_and_named_missing_pages_are_two_hundred(demo: Demo) -> None:
    rows = rows_of(demo.place / ".nightwarden" / "demo" / "pages.csv")
    form = json.loads(run_in(demo.place, "report", first_run(demo.place), "--json").out)
    named = [item["label"] for item in form["missing"]]
    assert len(rows) == 193
    assert len(rows) + len(named) == 200
    numbers = [int(label.rpartition("/")[2]) for label in named]
    assert sorted(numbers) == MISSING
    assert {row["url"].rpartition("/")[2] for row in rows}.isdisjoint(map(str, numbers))
    assert list(rows[0]) == ["url", "title", "summary"]
    assert all(row["title"] and row["summary"] for row in rows)


def test_the_rows_stand_in_the_order_of_the_addresses(demo: Demo) -> None:
    rows = rows_of(demo.place / ".nightwarden" / "demo" / "pages.csv")
    numbers = [int(row["url"].rpartition("/")[2]) for row in rows]
    assert numbers == sorted(numbers)


def test_every_kind_of_help_is_shown(demo: Demo) -> None:
    shields = [line for line in demo.err.splitlines() if line.startswith("⛨")]
    assert len(shields) == 10
    assert sum("→ retry (1/2)" in line and line.endswith("→ ok") for line in shields) == 1
    assert sum("→ retry (1/2)" in line and line.endswith("failed again") for line in shields) == 1
    assert sum("→ repair (" in line and line.endswith("→ ok") for line in shields) == 1
    assert sum("· applies to http:401" in line for line in shields) == 1
    assert sum("· as for all http:401" in line for line in shields) == 4
    assert sum("→ skip (" in line for line in shields) == 7
    assert all(len(line) <= 200 for line in shields)


def test_the_broken_page_is_repaired_in_the_table(demo: Demo) -> None:
    rows = rows_of(demo.place / ".nightwarden" / "demo" / "pages.csv")
    (repaired,) = [row for row in rows if row["url"].endswith("/p/153")]
    assert repaired["title"] == "textwrap – The Python library"


def test_the_report_lies_where_the_demo_says(demo: Demo) -> None:
    places = dict(re.findall(r"^The (table|report) +(.+)$", demo.out, re.MULTILINE))
    assert places == {
        "table": ".nightwarden/demo/pages.csv",
        "report": ".nightwarden/demo/report.txt",
    }
    report = (demo.place / places["report"]).read_text(encoding="utf-8")
    for number in MISSING:
        named = rf"^ +{number}  http\S+/p/{number}  \(e\d+, by \w+\)$"
        assert re.search(named, report, re.MULTILINE)


def test_the_commands_to_try_next_work_as_they_stand(demo: Demo) -> None:
    _, _, after = demo.out.partition("\nNext\n")
    commands = [line.partition("  # ")[0].strip() for line in after.splitlines()]
    assert len(commands) == 5
    (demo.place / "urls.txt").write_text("http://127.0.0.1:9/\n")
    for command in commands:
        if command.endswith("demo --no-faults"):
            continue  # `clean` runs it
        done = subprocess.run(
            shlex.split(command),
            cwd=demo.place,
            capture_output=True,
            text=True,
            env=environment(),
            timeout=60,
            check=False,
        )
        # Nobody listens at the address in urls.txt: that run fails, but it is a run.
        assert done.returncode == (1 if " run " in command else 0), done
        assert done.stdout


def test_without_faults_every_page_is_in_the_table(clean: Demo) -> None:
    assert clean.code == 0, clean.err
    assert "── completed: 200/200 items" in clean.lines
    assert "⛨" not in clean.err
    assert len(rows_of(clean.place / "kept" / "pages.csv")) == 200


def test_kept_results_lie_together_and_are_reported_from_there(clean: Demo) -> None:
    assert sorted(path.name for path in (clean.place / "kept").iterdir()) == [
        "pages.csv",
        "record",
        "report.txt",
    ]
    (command,) = [line for line in clean.lines if " report " in line and "  # " in line]
    told = subprocess.run(
        shlex.split(command.partition("  # ")[0]),
        cwd=clean.place,
        capture_output=True,
        text=True,
        env=environment(),
        check=True,
    )
    assert "completed: 200/200 items" in told.stdout


def test_a_fresh_clone_ignores_what_the_demo_leaves_behind(demo: Demo, root: Path) -> None:
    ignored = (root / ".gitignore").read_text().split()
    left = {path.name + "/" for path in demo.place.iterdir() if path.is_dir()} - {"kept/"}
    assert left <= set(ignored)
