"""`make mutants`: small wrongs put into the kernel one by one, to see which of them no test minds.

    the kernel's quick tests, collected once ─▶ each run once: the lines of the kernel it reaches
    a change ─▶ a fork of that process, one function made wrong ─▶ the tests that reach its line
    killed: a test fails, or the process hangs or takes too much memory.  survived: all pass.

    python tests/mutants/mutate.py [--minutes 10] [--file matching [--line 50]] [--seed 0]
                                   [--jobs 1] [--results FILE [--again]] [--list]

The standard library only, and pytest. A survivor is either a gap in the tests or a change that
means the same: those are listed in `survivors.toml`, each with its reason. Exit code 1: one that
is not listed. With `--results` what was tried is kept in a file, and not tried the next time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from changing import Wrong, wrongs

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FILES = (
    "matching",
    "closing",
    "reading",
    "routing",
    "allowed",
    "escalating",
    "applying",
    "engine",
    "control",
    "ledger",
    "causes",
    "stopping",
    "waiting",
    "machine",
    "asked",
    "emitting",
    "propagating",
    "assembly",
    "compiling",
)
SURVIVED = "survived"


@dataclass(slots=True)
class Tally:
    """What has come of the changes so far."""

    known: frozenset[tuple[str, str, str]]
    kept: Path | None
    ends: float
    words: Counter[str] = field(default_factory=Counter)
    new: int = 0

    def note(self, wrong: Wrong, word: str) -> None:
        """A change has been tried."""
        self.words[word] += 1
        if self.kept is not None:
            entry = {"said": wrong.said, "nth": wrong.nth, "word": word}
            with self.kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry, ensure_ascii=False) + "\n")
        if word == SURVIVED and wrong.said not in self.known:
            self.new += 1
            print(f"survived  {wrong}", flush=True, file=sys.__stdout__)

    def time_is_over(self) -> bool:
        """Whether no further change may be begun."""
        return time.monotonic() > self.ends


def survivors() -> frozenset[tuple[str, str, str]]:
    """Those that are listed with a reason."""
    with (HERE / "survivors.toml").open("rb") as file:
        listed = tomllib.load(file)["survivor"]
    return frozenset((one["module"], one["text"], one["change"]) for one in listed)


def left_to_try(found: Sequence[Wrong], kept: Path | None, *, again: bool) -> list[Wrong]:
    """Less those whose outcome is kept; of several outcomes the last one counts."""
    if kept is None or not kept.exists():
        return list(found)
    entries = [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]
    known = {(*entry["said"], entry["nth"]): entry["word"] for entry in entries}
    tried = {key for key, word in known.items() if not (again and word == SURVIVED)}
    return [wrong for wrong in found if (*wrong.said, wrong.nth) not in tried]


def main() -> int:
    """The command line."""
    options = argparse.ArgumentParser(description="which wrongs in the kernel no test minds")
    options.add_argument("--minutes", type=float, default=10)
    options.add_argument("--file", action="append", choices=FILES, help="only this module")
    options.add_argument("--line", action="append", type=int, help="only changes of this line")
    options.add_argument("--seed", type=int, default=0, help="which changes come first")
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--results", type=Path, help="keep outcomes here, and go on from them")
    options.add_argument("--again", action="store_true", help="try kept survivors once more")
    options.add_argument("--list", action="store_true", help="show the changes, try none")
    given = options.parse_args()
    kept = given.results.resolve() if given.results else None
    with tempfile.TemporaryDirectory() as copy:
        _work_on(Path(copy))
        found = [wrong for name in given.file or FILES for wrong in wrongs(name)]
        if given.line:
            found = [wrong for wrong in found if wrong.line in given.line]
        if given.list:
            print(*found, sep="\n")
            return 0
        chosen = left_to_try(found, kept, again=given.again)
        random.Random(given.seed).shuffle(chosen)
        return _tried(chosen, Tally(survivors(), kept, _end(given.minutes)), given.jobs)


def _tried(chosen: Sequence[Wrong], tally: Tally, jobs: int) -> int:
    import trying

    began = time.monotonic()
    trying.all_of(chosen, tally, jobs)
    words = ", ".join(f"{number} {word}" for word, number in sorted(tally.words.items()))
    print(f"{tally.words.total()} of {len(chosen)} changes tried", end=" ")
    print(f"in {time.monotonic() - began:.0f} s: {words}; {tally.new} survivors are not listed")
    return int(bool(tally.new))


def _end(minutes: float) -> float:
    return time.monotonic() + 60 * minutes


def _work_on(copy: Path) -> None:
    """Everything is read from a copy, whoever edits meanwhile."""
    for folder in ("src", "tests"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
        sys.path.insert(0, str(copy / folder))
    shutil.copy2(ROOT / "pyproject.toml", copy)
    sys.dont_write_bytecode = True
    os.chdir(copy)


if __name__ == "__main__":
    raise SystemExit(main())
