"""Hand mutants: a copy of the package with one wrong in it, and the test that has to fail.

    mutants.toml ─▶ copy of src, one text replaced ─▶ pytest of its one test ─▶ it must fail
                 ─▶ copy of src as it is           ─▶ pytest of all of them  ─▶ they must pass

    python tests/mutants/run.py [NAME …]

Read next: `mutate.py`, which makes its mutants itself.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PACKAGE = Path("src") / "nightwarden"
AT_ONCE = 2
_ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
PASSED, FAILED = 0, 1
"""Exit codes of pytest; anything else means that the test was not run at all."""


class RottenError(Exception):
    """A mutant that no longer fits the source."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One wrong: see the head of `mutants.toml`."""

    name: str
    law: str
    file: str
    find: str
    replace: str
    killed_by: str

    def put_into(self, folder: Path) -> None:
        """Change the copy in `folder`. Raises `RottenError` unless its text stands there once."""
        path = folder / PACKAGE / self.file
        text = path.read_text(encoding="utf-8")
        times = text.count(self.find)
        if times != 1:
            raise RottenError(f"{self.name}: {self.find!r} stands {times} times in {self.file}")
        path.write_text(text.replace(self.find, self.replace), encoding="utf-8")
        Path(cache_from_source(str(path))).unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Tried:
    """What pytest said."""

    code: int
    output: str


def mutants() -> tuple[Mutant, ...]:
    """All of them, in the order of the file."""
    with (HERE / "mutants.toml").open("rb") as file:
        return tuple(Mutant(**entry) for entry in tomllib.load(file)["mutant"])


def unchanged(tests: Iterable[str]) -> Tried:
    """These tests against a copy that is as it was."""
    with tempfile.TemporaryDirectory() as folder:
        _copy(Path(folder))
        return _pytest(sorted(set(tests)), Path(folder))


def changed(mutant: Mutant) -> Tried:
    """The test of one mutant against it."""
    with tempfile.TemporaryDirectory() as folder:
        _copy(Path(folder))
        mutant.put_into(Path(folder))
        return _pytest([mutant.killed_by, "-x"], Path(folder))


def _copy(folder: Path) -> None:
    # With their times, so that what was compiled before need not be compiled again.
    shutil.copytree(ROOT / PACKAGE, folder / PACKAGE)


def _pytest(arguments: Sequence[str], folder: Path) -> Tried:
    path = os.pathsep.join((str(folder / "src"), str(ROOT / "tests")))
    options = ["-q", "-p", "no:cacheprovider", "-p", "mutants.copied"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *arguments],
        cwd=ROOT,
        env={**os.environ, **_ALONE, "PYTHONPATH": path, "NIGHTWARDEN_COPY": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    return Tried(done.returncode, done.stdout[-4_000:] + done.stderr[-2_000:])


def main(names: Sequence[str]) -> int:
    """The command line: 0 if every mutant is killed."""
    chosen = [m for m in mutants() if not names or m.name in names]
    whole = unchanged(m.killed_by for m in chosen)
    if whole.code != PASSED:
        print(whole.output)
        return 2
    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(changed, chosen))
    for mutant, tried in zip(chosen, results, strict=True):
        word = "killed" if tried.code == FAILED else f"SURVIVED ({tried.code})"
        print(f"{word:14} {mutant.name}")
    return int(any(tried.code != FAILED for tried in results))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
