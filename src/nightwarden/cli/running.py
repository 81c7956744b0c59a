"""Carrying a session to its end for a command: bars, lines, signals, the closing lines.

    Session ─▶ carry_out ─▶ exit code
                  ├─ watching.py      lines while it runs
                  ├─ progress.py      bars, on a terminal
                  └─ interrupting.py  Ctrl-C

Read next: `failing.py` (what the exit codes mean), `run.py`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from nightwarden.cli.failing import EXITS, SUPERVISED, LostRun
from nightwarden.cli.interrupting import interruptible
from nightwarden.cli.options import same_store
from nightwarden.cli.output import Output
from nightwarden.cli.printing import masked_printing
from nightwarden.cli.progress import Bars
from nightwarden.cli.watching import Watcher
from nightwarden.events.words import count, cut, dollars, items_text, list_of, mapping_of

if TYPE_CHECKING:
    from nightwarden.result import RunResult
    from nightwarden.session import Session

_LINE = 120


class Stage:
    """What a person who is asked needs of the terminal: the bars step back while it stands."""

    def __init__(self) -> None:
        self.bars: Bars | None = None

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Enter this while a question stands."""
        with self.bars.aside() if self.bars is not None else contextlib.nullcontext():
            yield


def carry_out(session: Session, out: Output, stage: Stage | None = None) -> RunResult:
    """Run the session, showing what happens. Raises `LostRun` when its record cannot be kept."""
    with masked_printing(session.masked):  # the bars take over what is printed beside them
        return _carried_out(session, out, stage)


def _carried_out(session: Session, out: Output, stage: Stage | None) -> RunResult:
    from nightwarden.errors import StoreError
    from nightwarden.own_loop import run_on_own_loop

    bars = Bars(session.progress) if out.draws else None
    watcher = Watcher(out, session.progress, steps=bars is None)
    if not out.quiet:
        session.subscribe(watcher)
    if stage is not None:
        stage.bars = bars
    try:
        result = run_on_own_loop(
            _watched(session, out, bars), left_behind=lambda: session.abandoned
        )
    except StoreError as error:
        if session.begun:
            raise LostRun(f"the run was ended without its record: {error}") from error
        raise
    watcher.close()
    return result


def finish(
    session: Session,
    out: Output,
    stage: Stage,
    *,
    strict: bool = False,
    store: str | None = None,
) -> int:
    """Run the session, print what it came to, and return the exit code; `store` is the option."""
    result = carry_out(session, out, stage)
    if out.as_json:
        out.data(result.to_json(session.masked_outputs(result)))
    conclude(session, result, out, store=store)
    return exit_code(result, strict=strict)


async def _watched(session: Session, out: Output, bars: Bars | None) -> RunResult:
    with interruptible(session.cancel, out):
        if bars is None:
            return await session.run()
        async with bars.drawn():
            out.above = bars.print
            try:
                return await session.run()
            finally:
                out.above = None


def exit_code(result: RunResult, *, strict: bool = False) -> int:
    """The exit code of a run."""
    if strict and result.ok and result.supervised:
        return SUPERVISED
    return EXITS[result.status]


def conclude(session: Session, result: RunResult, out: Output, *, store: str | None = None) -> None:
    """Print the closing lines."""
    outputs = session.masked_outputs(result)
    if out.quiet and not result.ok:
        out.error(result.headline)
    out.say(f"── {result.headline}", "bold" if result.ok else "red")
    for line in result.other_roots:
        out.say(f"   {line}")
    for name, value in closing(result, outputs, at=same_store(store)):
        out.say(f"   {name:<9} {value}")
    steering = result.costs.get("steering_micro_usd")
    if steering:
        out.say(f"   {'steering':<9} {dollars(steering)}, no part of what the run cost")
    for line in session.remarks():
        out.note(f"   {line}", "dim")


def closing(
    result: RunResult, outputs: Mapping[str, object], *, at: str = ""
) -> Iterator[tuple[str, str]]:
    """What stands below the closing line: what is missing, the outputs, where the record lies."""
    roots = [r for r in result.ledger["roots"] if r["missing"] and r["depth"] == 1]
    for root in roots:
        items = items_text([list_of(item.get("lineage")) for item in root["missing"]])
        yield "missing", items + (f" of {root['node']}" if len(roots) > 1 else "")
    for node, number in result.rejected.items():
        yield "rejected", f"{count(number, 'record')} by {node}"
    for name, value in outputs.items():
        if result.ok or not _never_reached(value):
            yield name, output_text(value)
    if result.record:
        yield "record", near(result.record)
        yield "report", f"nightwarden report {result.run_id}{at}"
        if not result.ok:
            yield "resume", f"nightwarden resume {result.run_id}{at}"


def _never_reached(value: object) -> bool:
    """Whether an output is only missing because the run ended early: that is said already."""
    found = mapping_of(value)
    return found.keys() == {"absent", "causes"} and found["absent"] == "failed"


def output_text(value: object) -> str:
    """An output in one line: a file's path, a text, how many items there are, why there is none."""
    found = mapping_of(value)
    if "absent" in found and "causes" in found:
        causes = "; ".join(str(cause) for cause in list_of(found["causes"]))
        return f"no output: {causes or found['absent']}"
    if found.keys() == {"values", "indices", "losses"}:
        lost = len(list_of(found["losses"]))
        kept = count(len(list_of(found["values"])), "value")
        return kept + (f", {lost:,} lost" if lost else "")
    if isinstance(value, list):
        return f"a list of {len(value):,}"
    if isinstance(value, dict):
        return cut(f"a record of {', '.join(value)}", _LINE)
    return cut(near(value) if isinstance(value, str) else _word(value), _LINE)


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "nothing" if value is None else str(value)


def near(path: str) -> str:
    """A path as short as it can be written from here; any other text stays as it is."""
    if not os.path.isabs(path) or "\n" in path:
        return path
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return path
