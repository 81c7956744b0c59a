"""How fast items move: the goals that are held against `reference.py` or against the clock.

    G1 fan-out   G2 growth   G3 memory   G4 chain   G5 join   G6 waiting   G8 streams

Read next: `goals.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plan import Measurement, Sizes, against, before_mb, peak_mb
from results import Row, at_most
from rounds import Round, each, ratios, script, seconds, step_us, typical
from steps import ideal_s


def fan_out(size: Sizes) -> Measurement:
    """G1: 20,000 items through three steps, collected."""
    n, times = size.items, size.times
    wholes = {
        "pure": "pure steps",
        "default": "steps as declared by default",
        "retry": "retry-safe steps, eight at once",
    }
    turns = {name: script("subject", "fanout", n, declared=name, times=times) for name in wholes}
    turns["generated"] = script("subject", "generated", n, times=times)
    turns["reference"] = script("reference", "fanout", n, times=times)

    def rows(found: Sequence[Round]) -> Iterable[Row]:
        for name, words in [*wholes.items(), ("generated", "pure steps, from a source")]:
            yield against("G1", f"fan-out {n:,} × 3, {words}", found, name, "reference", 3, 1.5)

    return Measurement(turns, size.rounds, rows)


def fan_out_of_records(size: Sizes) -> Measurement:
    """G1, with 10 kB records that can be changed; a step that may be retried gets a copy."""
    n, times = size.items, size.times
    turns = {
        "pure": script("subject", "rewritten-records", n, times=times),
        "rewritten": script("reference", "rewritten-records", n, times=times),
        "default": script("subject", "changed-records", n, declared="default", times=times),
        "changed": script("reference", "changed-records", n, times=times),
        "retry": script("subject", "changed-records", n, declared="retry", times=times),
    }
    what = f"fan-out {n:,} × 3, records of 10 kB"

    def rows(found: Sequence[Round]) -> Iterable[Row]:
        yield against("G1", f"{what}, pure steps", found, "pure", "rewritten", 3, 1.5)
        yield against("G1", f"{what}, by default", found, "default", "changed", 3, 1.5)
        yield against("G1", f"{what}, copied for retries", found, "retry", "changed")

    return Measurement(turns, size.rounds, rows)


def growth(size: Sizes) -> Measurement:
    """G2: a step costs the same however many items there are."""
    turns = {
        "many": script("subject", "fanout", size.many),
        "few": script("subject", "fanout", size.few, times=3 * size.times),
        "reference": script("reference", "fanout", size.many),
    }

    def rows(found: Sequence[Round]) -> Iterable[Row]:
        what = f"µs/step at {size.many:,} items against {size.few:,}"
        note = f"{typical(found, 'many', step_us):.2g} against {typical(found, 'few', step_us):.2g}"
        yield at_most("G2", what, "×", ratios(found, "many", "few", step_us), 1.3, 1.1, note=note)
        yield against("G2", f"fan-out {size.many:,} × 3, pure steps", found, "many", "reference")

    return Measurement(turns, size.rounds, rows)


def memory(size: Sizes) -> Measurement:
    """G3: what it takes to hold 100,000 items."""
    turns = {
        "engine": script("subject", "fanout", size.kept),
        "reference": script("reference", "fanout", size.kept),
    }

    def rows(found: Sequence[Round]) -> Iterable[Row]:
        what = f"peak memory, {size.kept:,} items collected"
        note = (
            f"{typical(found, 'engine', before_mb):.0f} MB before; "
            f"reference {typical(found, 'reference', peak_mb):.0f} MB"
        )
        yield at_most("G3", what, "MB", each(found, "engine", peak_mb), 100, 60, note=note)

    return Measurement(turns, size.long_rounds, rows)


def chain(size: Sizes) -> Measurement:
    """G4: a hundred steps in a row, a fresh run each time."""
    turns = {
        "pure": script("subject", "chain", 1, times=size.chains),
        "default": script("subject", "chain", 1, declared="default", times=size.chains),
        "open": script("subject", "open", 1, times=size.chains),
        "reference": script("reference", "chain", 1, times=size.chains),
    }

    def rows(found: Sequence[Round]) -> Iterable[Row]:
        reference = f"reference {typical(found, 'reference', step_us):.2g}"
        for name in ("pure", "default"):
            samples = each(found, name, step_us)
            what = f"chain of 100, fresh run, {name}"
            yield at_most("G4", what, "µs/step", samples, 40, 20, note=reference)
        opening = each(found, "open", step_us)
        yield at_most("G4", "of which opening the session", "µs/step", opening)

    return Measurement(turns, size.rounds, rows)


def join(size: Sizes) -> Measurement:
    """G5: a diamond joined by lineage."""
    n, times = size.items, size.times
    turns = {
        "pure": script("subject", "join", n, times=times),
        "default": script("subject", "join", n, declared="default", times=times),
        "reference": script("reference", "join", n, times=times),
    }

    def rows(found: Sequence[Round]) -> Iterable[Row]:
        for name, words in (("pure", "pure steps"), ("default", "steps by default")):
            what = f"diamond join {n:,}, {words}"
            yield against("G5", what, found, name, "reference", 3, 1.5)

    return Measurement(turns, size.rounds, rows)


def waiting(size: Sizes) -> Measurement:
    """G6: 20 ms of waiting, fifty at a time."""
    turns = {}
    for n in size.waits:
        turns[f"engine {n}"] = script("subject", "waiting", n, times=size.times)
        turns[f"reference {n}"] = script("reference", "waiting", n, times=size.times)

    def rows(found: Sequence[Round]) -> Iterable[Row]:
        for n, limit, stretch in zip(size.waits, (1.25, 1.15), (1.15, 1.10), strict=True):
            samples = [s / ideal_s(n) for s in each(found, f"engine {n}", seconds)]
            reference = typical(found, f"reference {n}", seconds) / ideal_s(n)
            what = f"20 ms of waiting, 50 at once, {n:,} items"
            note = f"reference {reference:.3g}"
            yield at_most("G6", what, "× ideal", samples, limit, stretch, note=note)

    return Measurement(turns, size.rounds, rows)


def streams(size: Sizes) -> Measurement:
    """G8: a million items of which nothing is kept."""
    n = size.streamed
    turns = {
        "steps": script("subject", "stream", n),
        "stages": script("subject", "stages", n),
        "reference": script("reference", "stream", n),
    }

    def rows(found: Sequence[Round]) -> Iterable[Row]:
        for name, words in (
            ("steps", "three steps an item, then a reader"),
            ("stages", "three stages that read and yield, then a reader"),
        ):
            what = f"{n:,} items streamed: {words}"
            yield against("G8", what, found, name, "reference", 2.5, 1.2)
            grown = each(found, name, lambda r: peak_mb(r) - before_mb(r))
            yield at_most("G8", "memory on top of the imports", "MB", grown, 10)

    return Measurement(turns, size.long_rounds, rows)
