"""`nightwarden steering replay RUN`: when a supervisor would have looked, and why it stayed silent.

Read next: `nightwarden/steering/rehearsal.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from nightwarden.cli.failing import COMPLETED, Usage
from nightwarden.cli.monitors import (
    MonitorOption,
    NameOption,
    PolicyOption,
    SupervisorFile,
    supervisor_of,
)
from nightwarden.cli.options import Debug, Json, RunArgument, Store, runs_in
from nightwarden.cli.output import Output
from nightwarden.events.words import count, cut, seconds

if TYPE_CHECKING:
    from nightwarden.spec.supervisors import SupervisorSpec
    from nightwarden.steering.rehearsal import Moment, Rehearsal

FORMAT: Final = 1
_WIDTH: Final = 110


def replay(
    run: RunArgument,
    supervisor: SupervisorFile = None,
    name: NameOption = "",
    policy: PolicyOption = None,
    monitor: MonitorOption = None,
    thinking: Annotated[
        float,
        typer.Option("--thinking", metavar="S", help="Seconds an evaluation takes."),
    ] = 2.0,
    json: Json = False,
    store: Store = None,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """Lead a recorded run past a supervisor, on the run's own time.

    Nobody is asked: each look finds nothing to say. What is shown is when it would have looked,
    why, and what kept it silent.
    """
    from nightwarden.steering.rehearsal import rehearse

    if not 0 <= thinking < float("inf"):
        raise Usage(f"--thinking is {thinking:g}, but has to be seconds, 0 or more")
    out = Output(as_json=json)
    spec = supervisor_of(out, supervisor, name, policy, monitor or ())
    with runs_in(store, out) as place:
        found = rehearse(place.read(run), spec, thinking_s=thinking)
    if json:
        out.data(_as_json(run, spec, found))
        return COMPLETED
    for moment in found.moments:
        for line in _lines(moment):
            out.say(f"{_clock(moment.at_s)}  {line}")
    looks = f"{count(len(found.wakes), 'look')} of {spec.max_evals} at most"
    out.say(f"{count(found.events, 'event')}: {looks}, silent {count(len(found.silences), 'time')}")
    return COMPLETED


def _lines(moment: Moment) -> Iterator[str]:
    from nightwarden.steering import wakes

    match moment.act:
        case wakes.Armed(node):
            yield f"armed: {node or 'the whole run'}"
        case wakes.Wake(causes, _, number):
            yield f"look {number}"
            yield from (f"    {cut(cause.text(), _WIDTH)}" for cause in causes)
        case wakes.Deferred(cause, wait_s, why):
            until = _WHY.get(why, why) if wait_s is None else f"{why}, for {seconds(wait_s)}"
            yield f"put off ({until}): {cut(cause.text(), _WIDTH)}"
        case wakes.Silent(why, monitor, _):
            yield f"silent: {monitor} held, but {why}"
        case wakes.Exhausted(limit, detail):
            yield f"spent: {detail or count(limit, 'look')}"
        case wakes.Closed():
            yield "the run is over"
        case _:
            return


_WHY: Final = {"evaluating": "a look is under way", "ended": "its node has ended"}


def _clock(at_s: float) -> str:
    minutes, rest = divmod(at_s, 60)
    return f"{int(minutes):>4}:{rest:04.1f}"


def _as_json(run: str, spec: SupervisorSpec, found: Rehearsal) -> dict[str, object]:
    return {
        "version": FORMAT,
        "run": run,
        "events": found.events,
        "looks": len(found.wakes),
        "max_evals": spec.max_evals,
        "moments": [_moment(moment) for moment in found.moments],
    }


def _moment(moment: Moment) -> dict[str, Any]:
    from nightwarden.steering import wakes

    row: dict[str, Any] = {
        "at_s": round(moment.at_s, 3),
        "seq": moment.seq or None,
        "what": type(moment.act).__name__.lower(),
    }
    match moment.act:
        case wakes.Wake(causes, node, number):
            row |= {"number": number, "node_id": node, "causes": [c.text() for c in causes]}
        case wakes.Deferred(cause, wait_s, why):
            row |= {"why": why, "wait_s": wait_s, "causes": [cause.text()]}
        case wakes.Silent(why, monitor, _):
            row |= {"why": why, "monitor": monitor}
        case _:
            pass
    return row


app = typer.Typer(
    help="Try steering supervisors on recorded runs.", no_args_is_help=True, rich_markup_mode=None
)
app.command("replay")(replay)
