"""`nightwarden monitors test RUN`: what a monitor would have hit on recorded runs.

Read next: `nightwarden/steering/counting.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from nightwarden.cli.failing import COMPLETED, Usage
from nightwarden.cli.options import Debug, Json, RunArgument, Store, runs_in
from nightwarden.cli.output import Output
from nightwarden.events.words import count, cut

if TYPE_CHECKING:
    from nightwarden.spec.monitors import Monitor
    from nightwarden.spec.supervisors import SupervisorSpec

FORMAT: Final = 1

MonitorOption = Annotated[
    list[str] | None,
    typer.Option(
        "--monitor",
        "-m",
        metavar="K=V,…",
        help="A monitor, as in event_type=tool_error,count=3,within=5m. Repeatable.",
    ),
]
PolicyOption = Annotated[
    str | None,
    typer.Option("--policy", metavar="NAME", help="A shipped policy, of `nightwarden policies`."),
]
SupervisorFile = Annotated[
    Path | None,
    typer.Option("--supervisor", metavar="FILE", help="A file with a supervisor, or a workflow."),
]
NameOption = Annotated[
    str, typer.Option("--name", metavar="NAME", help="Which of the file's supervisors.")
]


def try_out(
    run: RunArgument,
    monitor: MonitorOption = None,
    policy: PolicyOption = None,
    supervisor: SupervisorFile = None,
    name: NameOption = "",
    json: Json = False,
    store: Store = None,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """Count what monitors would have hit in a run, whoever was active.

    Cooldowns and limits are left aside: `nightwarden steering replay` shows when a supervisor
    would have looked.
    """
    from nightwarden.steering.counting import count_hits

    out = Output(as_json=json)
    wanted = supervisor_of(out, supervisor, name, policy, monitor or ())
    if not wanted.monitors:
        raise Usage("there is no monitor to test; give one with --monitor, or name a --policy")
    with runs_in(store, out) as place:
        found = count_hits(place.read(run), wanted.monitors)
    if json:
        rows = [{"monitor": h.monitor, "hits": h.hits, "examples": h.examples} for h in found]
        out.data({"version": FORMAT, "run": run, "monitors": rows})
        return COMPLETED
    for hits in found:
        out.say(f"{count(hits.hits, 'hit'):>9}  {hits.monitor}")
        for line in hits.examples:
            out.say(f"           {cut(line, 100)}")
    return COMPLETED


def supervisor_of(
    out: Output,
    file: Path | None,
    name: str,
    policy: str | None,
    monitors: Sequence[str],
) -> SupervisorSpec:
    """The supervisor the options describe; warnings about a file are printed.

    Raises `Usage` for a monitor or a policy that is none, `SpecError` for a file.
    """
    import msgspec

    from nightwarden.spec.findings import suggestion
    from nightwarden.spec.supervisors import POLICIES, SupervisorSpec
    from nightwarden.steering.files import read_supervisor
    from nightwarden.steering.policies import applied

    if policy is not None and policy not in POLICIES:
        raise Usage(
            f"there is no policy {policy!r}; {suggestion(policy, POLICIES, what='policies')}"
        )
    spec = SupervisorSpec(name=name)
    if file is not None:
        text = file.read_text(encoding="utf-8", errors="replace")
        spec, problems = read_supervisor(text, file=str(file), name=name)
        for problem in problems:
            out.note(f"warning: {problem}", "yellow")
    given = tuple(_monitor(text) for text in monitors)
    for monitor in given:
        for remark in monitor.remarks():
            out.note(f"warning: --monitor {monitor.text()!r}: {remark}", "yellow")
    added = msgspec.structs.replace(
        spec, policy=policy or spec.policy, monitors=(*spec.monitors, *given)
    )
    return applied(added)


def _monitor(text: str) -> Monitor:
    from nightwarden.spec.monitors import BadMonitor, parse_monitor

    try:
        return parse_monitor(text)
    except BadMonitor as error:
        remedy = f"; {error.remedy}" if error.remedy else ""
        raise Usage(f"--monitor {text!r}: {error}{remedy}") from error


app = typer.Typer(
    help="Try monitors on recorded runs.", no_args_is_help=True, rich_markup_mode=None
)
app.command("test")(try_out)
