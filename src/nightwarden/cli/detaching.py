"""`nightwarden run --detach`: a run in a process of its own, which outlives the terminal.

    this process ─▶ nightwarden run … --run-id ID   own session, what it says goes to a file
          └ waits until the run is on record, or the other has ended without one

Read next: `run.py`, `cancel.py`.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from nightwarden.cli.failing import COMPLETED, FAILED, Usage
from nightwarden.cli.options import budget_of, opened, same_store, settings_for
from nightwarden.cli.output import Output
from nightwarden.cli.running import near
from nightwarden.cli.supervising import switched

if TYPE_CHECKING:
    from nightwarden.cli.wanted import Wanted
    from nightwarden.store.contract import RunEntry
    from nightwarden.store.sqlstore import SqlStore

FORMAT: Final = 1
LOG: Final = "output.log"
"""What a detached run prints, in the folder of its files."""

_LOOK_S: Final = 0.05
_MOST_LINES: Final = 20


def detached(wanted: Wanted, out: Output) -> int:
    """Start the run, and say its id once it is on record; else the exit code of what failed."""
    from nightwarden.cli.asking import tell_once, told_in, with_the_model
    from nightwarden.opening import checked_id, fresh_id

    settings = settings_for(out)
    mode = wanted.supervise if wanted.supervise is not None else settings.supervisor_mode
    _refuse_person(mode)
    wanted.limits.check()
    wanted.limits.check_use(mode)
    switched(wanted.supervisors)
    budget_of(wanted.max_cost)
    mode = with_the_model(mode, wanted.limits.supervisor_model, settings)
    run_id = checked_id(wanted.run_id) if wanted.run_id else fresh_id()
    with opened(wanted.store, settings) as place:
        if run_id in place.run_ids():
            raise Usage(f"run {run_id} exists in {place.place}: choose another id, or resume it")
        tell_once(mode, settings, out, place.folder)
        told = told_in(place.folder)
        with _log_in(place.files(run_id)) as log:
            child = _started(words(wanted, run_id), log, wanted)
            entry = _on_record(place, run_id, child)
        if entry is None:
            return _failed(place.files(run_id), child.returncode, out)
        for about, sentence in told_in(place.folder).items():
            if about not in told:  # the run has said it where nobody looks
                out.note(sentence)
        _tell(entry, child.pid, place.files(run_id) / LOG, out, at=same_store(wanted.store))
    child.returncode = 0  # it is nobody's child any more
    return COMPLETED


def words(wanted: Wanted, run_id: str) -> list[str]:
    """The command line of the run in its own process."""
    limits = wanted.limits
    options = {
        "--inputs": wanted.inputs,
        "--supervise": wanted.supervise,
        "--supervisor-model": limits.supervisor_model,
        "--max-decisions": limits.max_decisions,
        "--max-retries": limits.max_retries,
        "--decision-timeout": limits.decision_timeout,
        "--supervisor-cost-cap": limits.supervisor_cost_cap,
        "--max-cost": wanted.max_cost,
        "--supervisors": switched(wanted.supervisors),
        "--store": wanted.store,
        "--run-id": run_id,
    }
    flags = {
        "--trust": wanted.trust,
        "--keep-going": wanted.keep_going,
        "--strict-exit": wanted.strict_exit,
    }
    return [
        "run",
        *(f"--input={pair}" for pair in wanted.input),
        *(f"--nodes={path}" for path in wanted.nodes),
        *(f"{option}={value}" for option, value in options.items() if value is not None),
        *(flag for flag, given in flags.items() if given),
        "--",
        str(wanted.file),
    ]


def _refuse_person(mode: str | None) -> None:
    """Raise `Usage` for a mode that asks at the terminal."""
    if (mode or "").strip().removeprefix("shadow:").partition(":")[0] == "operator":
        raise Usage(
            f"--supervise {mode} asks at the terminal, and a detached run has none; use "
            "scripted:FILE or agent, or run it without --detach"
        )


@contextlib.contextmanager
def _log_in(folder: Path) -> Iterator[IO[bytes]]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOG).open("wb") as log:
        yield log


def _started(arguments: list[str], log: IO[bytes], wanted: Wanted) -> subprocess.Popen[bytes]:
    """A process in a session of its own: no signal of this terminal reaches it."""
    return subprocess.Popen(
        [sys.executable, "-m", "nightwarden", *arguments],
        stdin=None if _reads_stdin(wanted) else subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def _reads_stdin(wanted: Wanted) -> bool:
    """Inputs are read before the record begins, so this process still stands at the terminal."""
    return str(wanted.inputs) == "-" or any(pair.endswith("=@-") for pair in wanted.input)


def _on_record(place: SqlStore, run_id: str, child: subprocess.Popen[bytes]) -> RunEntry | None:
    """Wait for the run's first event; None if the process has ended without one."""
    from nightwarden.errors import StoreError

    try:
        while True:
            ended = child.poll() is not None  # asked before looking: it may end in between
            with contextlib.suppress(StoreError):  # there is no such run yet
                if (entry := place.entry(run_id)).events:
                    return entry
            if ended:
                return None
            time.sleep(_LOOK_S)
    except KeyboardInterrupt:
        child.terminate()
        child.wait()
        raise


def _failed(folder: Path, code: int, out: Output) -> int:
    """Pass on what the process said, and leave nothing behind."""
    text = (folder / LOG).read_text(encoding="utf-8", errors="replace")
    for line in text.splitlines()[-_MOST_LINES:]:
        out.error(line)
    shutil.rmtree(folder, ignore_errors=True)
    return code if code > 0 else FAILED


def _tell(entry: RunEntry, process: int, log: Path, out: Output, *, at: str) -> None:
    run_id = entry.run_id
    if out.as_json:
        told = {"run_id": run_id, "process": process, "log": str(log), "status": entry.status}
        out.data({"version": FORMAT, **told})
    out.say(f"run {run_id} goes on in process {process}", "bold")
    out.say(f"   follow    nightwarden events {run_id} --follow{at}")
    out.say(f"   cancel    nightwarden cancel {run_id}{at}")
    out.say(f"   output    {near(str(log))}")
