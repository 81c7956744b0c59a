"""The import law of `.importlinter` holds, and a breach of it is seen (house.md §1).

row: K2-PURE
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LINT = (
    "import sys; from importlinter.cli import lint_imports_command as c;"
    "sys.exit(c(args=['--no-cache', '--no-logo'], prog_name='lint-imports'))"
)

PLANTED = {
    "a layer imports one above it": (
        "errors.py",
        "from nightwarden import verdict\n",
        "imports point one way BROKEN",
    ),
    "siblings that must not meet": (
        "nodes/context.py",
        "import nightwarden.kernel\n",
        "imports point one way BROKEN",
    ),
    "a clock in the kernel": (
        "kernel/__init__.py",
        "import time\n",
        "clock, chance, files or network BROKEN",
    ),
    "files in the specification, by a detour": (
        "errors.py",
        "import pathlib\n",
        "clock, chance, files or network BROKEN",
    ),
    "a surface that reaches behind the session": (
        "cli/__init__.py",
        "import nightwarden.runtime\n",
        "surfaces go through the session BROKEN",
    ),
}


def lint(tree: Path) -> subprocess.CompletedProcess[str]:
    """Run the import linter over the package that lies in `tree`."""
    return subprocess.run(
        [sys.executable, "-c", LINT],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def copy(root: Path, tmp_path: Path) -> Path:
    """The package and its law, alone in a directory of their own."""
    source = root / "src" / "nightwarden"
    ignore = shutil.ignore_patterns("__pycache__", "static")
    shutil.copytree(source, tmp_path / "nightwarden", ignore=ignore)
    shutil.copy(root / ".importlinter", tmp_path)
    return tmp_path


def test_the_import_law_holds(copy: Path) -> None:
    result = lint(copy)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "0 broken" in result.stdout


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_breach_is_reported(copy: Path, planted: str) -> None:
    place, line, report = PLANTED[planted]
    file = copy / "nightwarden" / place
    # Appended, since `from __future__` must stay the first statement.
    file.write_text(file.read_text() + "\n" + line)
    result = lint(copy)
    assert result.returncode == 1
    assert report in result.stdout


def test_a_new_top_level_module_needs_a_layer(copy: Path) -> None:
    (copy / "nightwarden" / "newcomer.py").write_text("")
    result = lint(copy)
    assert result.returncode != 0
    assert "nightwarden.newcomer" in result.stdout + result.stderr
