"""The goals, and how each is measured: which processes take turns, and what follows from them.

    G9 nobody asked   G10 failures   G11 start-up       the others: `throughput.py`

Goals that other parts of the product owe (the record, steering, the server) are left out.

Read next: `engine.py`.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from plan import Measurement, Sizes
from results import Row, at_most, exactly
from rounds import Reply, Round, Turn, each, script, seconds
from steps import FAILING
from throughput import chain, fan_out, fan_out_of_records, growth, join, memory, streams, waiting


def nobody_asked(size: Sizes) -> Measurement:
    """G9: supervision costs nothing while nothing fails."""
    turns = {"clean": script("trouble", "clean", size.clean, times=size.pairs)}

    def rows(found: Sequence[Round]) -> Iterable[Row]:
        pairs = each(found, "clean", lambda r: _paired(r, "supervised", "alone"))
        what = f"clean run of {size.clean:,} × 3, supervised against alone"
        yield at_most("G9", what, "×", pairs, 1.02)
        asked = max(each(found, "clean", lambda r: r["asked"]))
        yield exactly("G9", "the supervisor was asked", "times", asked, 0)

    return Measurement(turns, size.rounds, rows)


def failures(size: Sizes) -> Measurement:
    """G10: seven of two hundred items fail and are skipped; and one decision, end to end."""
    turns = {
        "skipped": script("trouble", "skipped", 200, times=size.pairs),
        "decided": script("trouble", "decided", size.decided),
    }

    def rows(found: Sequence[Round]) -> Iterable[Row]:
        reply = found[-1]["skipped"]
        what = f"{len(FAILING)} of 200 fail and are skipped"
        yield exactly("G10", what, "kept", reply["kept"], 200 - len(FAILING))
        yield exactly("G10", what, "itemised", reply["itemised"], len(FAILING))
        more = each(found, "skipped", lambda r: 1e3 * _difference(r, "failing", "whole"))
        yield at_most("G10", f"{what}: more time than a clean run", "ms", more, 10)
        trip = each(found, "decided", lambda r: 1e3 * seconds(r))
        yield at_most("G10", "from a failure to the next step, scripted", "ms", trip, 1)

    return Measurement(turns, size.rounds, rows)


def start_up(size: Sizes) -> Measurement:
    """G11: how long until something can be done."""
    names = "import nightwarden as n; n.node, n.workflow, n.run"
    turns = {
        "asyncio": Turn((sys.executable, "-c", "import asyncio"), replies=False),
        "import": Turn((sys.executable, "-c", "import nightwarden"), replies=False),
        "names": Turn((sys.executable, "-c", names), replies=False),
    }

    def rows(found: Sequence[Round]) -> Iterable[Row]:
        for name, words, limits in (
            ("import", "import nightwarden, more than import asyncio", (0.08, 0.04)),
            ("names", "and node, workflow, run used", (None, None)),
        ):
            more = [seconds(r[name]) - seconds(r["asyncio"]) for r in found]
            yield at_most("G11", words, "s", more, *limits)

    return Measurement(turns, size.starts, rows)


def help_shown(size: Sizes) -> Measurement:
    """G11: how long the command line takes to say what it can do."""
    command = str(Path(sys.executable).with_name("nightwarden"))

    def rows(found: Sequence[Round]) -> Iterable[Row]:
        yield at_most("G11", "nightwarden --help", "s", each(found, "help", seconds), 0.3)

    return Measurement({"help": Turn((command, "--help"), replies=False)}, size.starts, rows)


MEASUREMENTS: Mapping[str, Sequence[Callable[[Sizes], Measurement]]] = {
    "G1": (fan_out, fan_out_of_records),
    "G2": (growth,),
    "G3": (memory,),
    "G4": (chain,),
    "G5": (join,),
    "G6": (waiting,),
    "G8": (streams,),
    "G9": (nobody_asked,),
    "G10": (failures,),
    "G11": (start_up, help_shown),
}


def _paired(reply: Reply, name: str, to: str) -> float:
    return float(statistics.median(a / b for a, b in zip(reply[name], reply[to], strict=True)))


def _difference(reply: Reply, name: str, to: str) -> float:
    return float(statistics.median(a - b for a, b in zip(reply[name], reply[to], strict=True)))
