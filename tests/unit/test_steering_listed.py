"""Every steering scenario a comparable system met is a test here, or is explained.

They are counted 1 to 103. Where ours is otherwise, `docs/decisions/017-…` says why.
"""

from __future__ import annotations

import re
from pathlib import Path

SCENARIOS = set(range(1, 104))
CITED = re.compile(r"[Ss]cenarios? ((?:\d+(?:–\d+)?(?:, | and )?)+)")


def numbers(text: str) -> set[int]:
    found: set[int] = set()
    for part in re.findall(r"\d+(?:–\d+)?", text):
        first, _, last = part.partition("–")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def cited(root: Path) -> set[int]:
    texts = (f.read_text(encoding="utf-8") for f in (root / "tests").rglob("test_steering*.py"))
    return {n for text in texts for match in CITED.finditer(text) for n in numbers(match.group(1))}


def explained(root: Path) -> set[int]:
    (page,) = (root / "docs" / "decisions").glob("*-steering-scenarios-we-answer-otherwise.md")
    rows = re.findall(r"^\| ([\d, –]+) \| .{20,} \|$", page.read_text(encoding="utf-8"), re.M)
    return {n for row in rows for n in numbers(row)}


def test_every_scenario_is_a_test_or_is_explained(root: Path) -> None:
    assert sorted(SCENARIOS - cited(root) - explained(root)) == []


def test_only_scenarios_that_exist_are_named(root: Path) -> None:
    assert cited(root) | explained(root) <= SCENARIOS
