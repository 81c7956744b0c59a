"""The public API, as a type checker sees it (house.md §3; issue 3, Python types that check)."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

import nightwarden as nw

PLACE = Path("tests") / "typing"
ERROR = re.compile(r"^(?P<file>[^:]+):(?P<line>\d+): error: (?P<text>.*)$")
MARK = re.compile(r"# E: (.*?)(?= *# E: |$)")
Errors = dict[tuple[str, int], list[str]]


@pytest.fixture(scope="module")
def found(root: Path) -> Errors:
    """Every error mypy has to report, by file and line; checked as strictly as the package."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", "--no-pretty", str(PLACE)],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    errors: Errors = {}
    for line in done.stdout.splitlines():
        match = ERROR.match(line)
        if match:
            place = (match["file"], int(match["line"]))
            errors.setdefault(place, []).append(match["text"])
    return errors


def expected(root: Path) -> Iterator[tuple[tuple[str, int], list[str]]]:
    """Every line that is marked, with what its errors must say."""
    for path in sorted((root / PLACE / "wrong").glob("*.py")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            parts = MARK.findall(line)
            if parts:
                yield (str(path.relative_to(root)), number), parts


def test_right_uses_of_the_public_api_check_strictly(found: Errors) -> None:
    right = str(PLACE / "right")
    assert {place: texts for place, texts in found.items() if place[0].startswith(right)} == {}


def test_wrong_uses_are_errors_where_and_as_they_are_marked(root: Path, found: Errors) -> None:
    marked = dict(expected(root))
    assert len(marked) >= 15
    wrong = str(PLACE / "wrong")
    assert {place for place in found if place[0].startswith(wrong)} == set(marked)
    for place, parts in marked.items():
        texts = found[place]
        assert len(texts) == len(parts), (place, texts)
        missing = [part for part in parts if not any(part in text for text in texts)]
        assert missing == [], (place, texts)


def test_every_public_name_is_used_by_the_right_modules(root: Path) -> None:
    text = "".join(p.read_text(encoding="utf-8") for p in (root / PLACE / "right").glob("*.py"))
    unused = [name for name in nw.__all__ if not re.search(rf"\b{name}\b", text)]
    assert set(unused) <= {"__version__", "arun", "Suspended"}


def test_the_package_says_that_it_is_typed() -> None:
    """PEP 561: without this file other people's type checkers see nothing."""
    assert (files("nightwarden") / "py.typed").is_file()
