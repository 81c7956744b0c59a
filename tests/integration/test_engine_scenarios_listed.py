"""Every scenario that users of comparable engines met is a test here, or is explained.

The list counts scenarios 1 to 178 and defects D1 to D65. Those whose meaning differs from ours,
or that belong to a later part, stand in `docs/decisions/014-scenarios-we-answer-otherwise.md`.
"""

from __future__ import annotations

import re
from pathlib import Path

SCENARIOS = {str(n) for n in range(1, 179)}
DEFECTS = {f"D{n}" for n in range(1, 66)}
MARKER = re.compile(r"(?:scenario|defect): ((?:D?\d+(?:, )?)+)")


def cited(root: Path) -> set[str]:
    """The numbers that tests cite."""
    found: set[str] = set()
    for file in (root / "tests").rglob("*.py"):
        if file != Path(__file__):
            for match in MARKER.finditer(file.read_text(encoding="utf-8")):
                found |= set(re.findall(r"D?\d+", match.group(1)))
    return found


def explained(root: Path) -> dict[str, str]:
    """Number → why there is no such test, or where it is instead."""
    page = root / "docs" / "decisions" / "014-scenarios-we-answer-otherwise.md"
    found: dict[str, str] = {}
    for line in page.read_text(encoding="utf-8").splitlines():
        match = re.match(r"\| ([D\d, –]+) \| (.+?) \|$", line)
        if match:
            for part in match.group(1).split(", "):
                first, _, last = part.partition("–")
                letter = "D" if first.startswith("D") else ""
                numbers = range(int(first.lstrip("D")), int((last or first).lstrip("D")) + 1)
                found |= {f"{letter}{n}": match.group(2) for n in numbers}
    return found


def test_every_scenario_is_a_test_or_is_explained(root: Path) -> None:
    missing = (SCENARIOS | DEFECTS) - cited(root) - set(explained(root))
    assert sorted(missing, key=lambda n: (n[0] == "D", int(n.lstrip("D")))) == []


def test_only_scenarios_that_exist_are_named(root: Path) -> None:
    assert (cited(root) | set(explained(root))) <= SCENARIOS | DEFECTS


def test_an_explanation_says_something(root: Path) -> None:
    assert all(len(text) > 20 for text in explained(root).values())
