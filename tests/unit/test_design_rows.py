"""Every row of the design's tables is shown by a test, or owed by a named issue (house.md §4)."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ID = r"[A-Z]\d-[A-Z0-9-]+"
MARKER = re.compile(rf"\brows?: *({ID}(?:, *{ID})*)")
DEFERRED = re.compile(rf"^\| *({ID}) *\| *(\d+), ([^|]+?) *\| *([^|]+?) *\|$", re.MULTILINE)
ISSUES = {"3": "the whole engine", "4": "the record", "5": "the adjudicator"}


def rows(root: Path) -> dict[str, str]:
    """Row id → what it says, with the page it stands on."""
    path = root / "tests" / "design_rows.toml"
    groups = tomllib.loads(path.read_text(encoding="utf-8")).values()
    return {
        row: f"{group['page']}: {text}" for group in groups for row, text in group["rows"].items()
    }


def cited(root: Path) -> dict[str, list[str]]:
    """Row id → the test files that cite it."""
    found: dict[str, list[str]] = {}
    for file in sorted((root / "tests").rglob("*.py")):
        if file != Path(__file__):
            for match in MARKER.finditer(file.read_text(encoding="utf-8")):
                for row in re.findall(ID, match.group(1)):
                    found.setdefault(row, []).append(str(file.relative_to(root)))
    return found


def deferred(root: Path) -> list[tuple[str, ...]]:
    """The lines of the list: row, issue, its name, what is missing."""
    text = (root / "tests" / "deferred.md").read_text(encoding="utf-8")
    return [match.groups() for match in DEFERRED.finditer(text)]


def test_every_row_is_shown_or_owed(root: Path) -> None:
    known = set(cited(root)) | {line[0] for line in deferred(root)}
    missing = [f"{row}: {text}" for row, text in rows(root).items() if row not in known]
    if missing:
        pytest.fail("no test cites and no issue owes\n" + "\n".join(missing), pytrace=False)


def test_only_rows_that_exist_are_cited(root: Path) -> None:
    unknown = {row: files for row, files in cited(root).items() if row not in rows(root)}
    assert not unknown


def test_only_rows_that_exist_are_owed_and_each_once(root: Path) -> None:
    counts = Counter(line[0] for line in deferred(root))
    assert set(counts) <= set(rows(root))
    assert [row for row, count in counts.items() if count > 1] == []


def test_each_row_that_is_owed_names_a_later_issue(root: Path) -> None:
    for _, number, name, missing in deferred(root):
        assert ISSUES[number] == name
        assert missing


def test_every_line_of_the_list_can_be_read(root: Path) -> None:
    text = (root / "tests" / "deferred.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) - 2 == len(deferred(root)), "a line is malformed"


def test_a_marker_is_found_with_one_row_and_with_several() -> None:
    found = [m.group(1) for m in MARKER.finditer("row: K1-A. row: K1-B, S2-C-D\nrows: K9-X")]
    assert found == ["K1-A", "K1-B, S2-C-D", "K9-X"]
