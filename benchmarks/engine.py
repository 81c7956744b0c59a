"""How fast the engine is: each goal measured as a ratio to plain asyncio, in one run.

    python benchmarks/engine.py                      a table, in some ten minutes
    python benchmarks/engine.py --quick              small sizes, one round: does it work at all?
    python benchmarks/engine.py --only G1,G4 --json
    python benchmarks/engine.py --into docs/design/performance.md

Every measurement is a process of its own; those that are compared take turns. Goals that are
missed are said, not punished: the exit code is 1 only if something could not be measured.

Read next: `goals.py`, `rounds.py`, `reference.py`, `subject.py`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from goals import MEASUREMENTS
from plan import FULL, QUICK, Sizes
from results import Document, Report, Row, machine
from rounds import Broken, play


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and say with the exit code whether everything could be measured."""
    options = _parser().parse_args(arguments)
    sizes = QUICK if options.quick else FULL
    if options.rounds:
        count = options.rounds
        sizes = replace(sizes, rounds=count, long_rounds=count, starts=count)
    about = machine()
    rows, broken = measure(options.only, sizes)
    report = Report(rows, broken, about, options.quick, sizes.rounds)
    if options.into:
        options.into.write(report.markdown())
    if options.json:
        print(json.dumps(report.to_json(), indent=1, ensure_ascii=False))
    elif options.markdown:
        print(report.markdown())
    else:
        print(report.table())
    return 1 if broken else 0


def measure(goals: Sequence[str], sizes: Sizes) -> tuple[list[Row], list[str]]:
    """The rows of these goals, and what went wrong."""
    rows: list[Row] = []
    broken: list[str] = []
    for goal in goals:
        for describe in MEASUREMENTS[goal]:
            measurement = describe(sizes)
            words = f"{goal}: {describe.__name__.replace('_', ' ')}"
            try:
                found = play(measurement.turns, measurement.rounds, partial(_say, words))
                rows += measurement.rows(found)
            except Broken as error:
                broken.append(f"{words}: {error}")
    return rows, broken


def _say(what: str, progress: str) -> None:
    print(f"{what}, {progress}", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Measure the engine against its goals.")
    parser.add_argument("--quick", action="store_true", help="small sizes, one round")
    parser.add_argument("--only", type=_goals, default=tuple(MEASUREMENTS), metavar="G1,G4")
    parser.add_argument("--rounds", type=int, default=0, metavar="N", help="instead of the default")
    parser.add_argument("--into", type=_document, metavar="FILE", help="put them into a document")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="for programs")
    form.add_argument("--markdown", action="store_true", help="for documents")
    return parser


def _document(path: str) -> Document:
    try:
        return Document(path)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _goals(text: str) -> tuple[str, ...]:
    asked = tuple(part.strip() for part in text.split(",") if part.strip())
    unknown = [goal for goal in asked if goal not in MEASUREMENTS]
    if unknown:
        raise argparse.ArgumentTypeError(
            f"nothing measures {', '.join(unknown)}; known are {', '.join(MEASUREMENTS)}"
        )
    return asked


if __name__ == "__main__":
    sys.exit(main())
