"""`nightwarden supervise`: watch a running agent of another process, and now and then say a word.

    --run-id RUN            a run of Nightwarden: its record is followed
    --claude-session WHICH  a Claude Code session nobody here launched: its transcript is

It ends with what it watches; Ctrl-C only lets go.

Read next: `nightwarden/steering/attached.py`, `nightwarden/steering/claude/watching.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from nightwarden.cli.failing import COMPLETED, Usage
from nightwarden.cli.monitors import MonitorOption, PolicyOption, supervisor_of
from nightwarden.cli.options import Debug, Quiet, Store, opened, settings_for
from nightwarden.cli.output import Output
from nightwarden.events.render import render
from nightwarden.events.words import count, dollars

if TYPE_CHECKING:
    from nightwarden.agents.models import Model
    from nightwarden.events import Event
    from nightwarden.settings import Settings
    from nightwarden.spec.supervisors import SupervisorSpec
    from nightwarden.steering.evaluating import ModelEvaluator
    from nightwarden.steering.wakes import TriggerState
    from nightwarden.store.contract import RunEntry
    from nightwarden.store.sqlstore import SqlStore

NAME = "supervisor"
"""What a supervisor is called that was given no name."""


class Watch(Protocol):
    """What carries a supervisor: over a run, or over a session."""

    @property
    def state(self) -> TriggerState:
        """What it remembers."""
        ...

    def start(self) -> None:
        """Watch."""
        ...

    async def wait(self) -> None:
        """Return when there is nothing left to watch."""
        ...

    async def close(self) -> None:
        """Let go."""
        ...


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the options come to."""

    nodes: Sequence[str]
    name: str
    system: str | None
    model: str | None
    monitors: Sequence[str]
    policy: str | None
    cooldown: float | None
    max_evals: int | None
    cost_cap: float | None
    boundaries: bool


def supervise(
    run_id: Annotated[
        str | None,
        typer.Option("--run-id", metavar="RUN", help="The run to watch: an id, or 'last'."),
    ] = None,
    claude_session: Annotated[
        str | None,
        typer.Option(
            "--claude-session",
            metavar="DIR|ID",
            help="The Claude Code session to watch: its id, or a project's newest.",
        ),
    ] = None,
    node: Annotated[
        list[str] | None,
        typer.Option("--node", metavar="ID", help="Watch this agent only. Repeatable [the run]."),
    ] = None,
    name: Annotated[str, typer.Option("--name", metavar="N", help="What it is called.")] = NAME,
    system: Annotated[
        str | None,
        typer.Option("--system", metavar="TEXT|@FILE", help="Its policy: when to say what."),
    ] = None,
    policy: PolicyOption = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="M",
            help="The model that thinks, as provider:name [steering.model, else that of the "
            "provider the watched agents run on].",
        ),
    ] = None,
    monitor: MonitorOption = None,
    cooldown: Annotated[
        float | None,
        typer.Option("--cooldown", metavar="S", help="Seconds between two looks [30]."),
    ] = None,
    max_evals: Annotated[
        int | None, typer.Option("--max-evals", metavar="N", help="Looks at most [20].")
    ] = None,
    cost_cap: Annotated[
        float | None,
        typer.Option("--cost-cap", metavar="USD", help="What its looks may cost, in dollars."),
    ] = None,
    no_boundaries: Annotated[
        bool,
        typer.Option("--no-boundaries", help="Look when a monitor holds only, not at turns."),
    ] = False,
    quiet: Quiet = False,
    store: Store = None,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """Watch a running agent, and now and then leave it a word it reads at its next turn.

    Ends with the run or the session. Ctrl-C lets go of it; whatever is watched goes on.
    """
    if (run_id is None) == (claude_session is None):
        raise Usage("name what to watch: either --run-id RUN or --claude-session DIR|ID")
    wanted = Wanted(
        nodes=tuple(dict.fromkeys(node or ())),
        name=name,
        system=system,
        model=model,
        monitors=monitor or (),
        policy=policy,
        cooldown=cooldown,
        max_evals=max_evals,
        cost_cap=cost_cap,
        boundaries=not no_boundaries,
    )
    out = Output(quiet=quiet)
    spec = spec_of(wanted, out)
    settings = settings_for(out)
    if claude_session is not None:
        if wanted.nodes:
            out.note("--node means nothing here: a session has no nodes", "yellow")
        return _over_session(claude_session, spec, settings, out)
    assert run_id is not None
    with opened(store, settings) as place:
        return _over_run(place, place.entry(run_id), spec, settings, out)


def spec_of(wanted: Wanted, out: Output) -> SupervisorSpec:
    """The supervisor the options describe. Raises `Usage`."""
    import msgspec

    from nightwarden.spec.supervisors import bad_name

    wrong = bad_name(wanted.name)
    if wrong:
        raise Usage(f"--name {wanted.name!r}: {wrong}; write what the supervisor is called")
    for option, value in (("--cooldown", wanted.cooldown), ("--max-evals", wanted.max_evals)):
        if value is not None and not 0 < value < float("inf"):
            raise Usage(f"{option} is {value:g}, but has to be more than 0")
    if wanted.cost_cap is not None and not 0 <= wanted.cost_cap < float("inf"):
        raise Usage(f"--cost-cap is {wanted.cost_cap:g}, but has to be 0 or more; 0 means no look")
    found = supervisor_of(out, None, wanted.name.strip(), wanted.policy, wanted.monitors)
    if not wanted.boundaries and not found.monitors:
        out.note(
            "--no-boundaries looks when a monitor holds, and there is none; give one with "
            "--monitor, or a --policy that has some",
            "yellow",
        )
    own = _text(wanted.system)
    return msgspec.structs.replace(
        found,
        watches=tuple(wanted.nodes),
        model=wanted.model or "",
        system="\n\n".join(part for part in (found.system, own) if part),
        cooldown_s=found.cooldown_s if wanted.cooldown is None else wanted.cooldown,
        max_evals=found.max_evals if wanted.max_evals is None else wanted.max_evals,
        cost_cap_usd=wanted.cost_cap,
        boundaries=found.boundaries and wanted.boundaries,
    )


def _text(system: str | None) -> str:
    """A policy as it was written; `@FILE` reads one."""
    if system is None or not system.startswith("@"):
        return (system or "").strip()
    return Path(system[1:]).read_text(encoding="utf-8", errors="replace").strip()


# -- a run --


def _over_run(
    place: SqlStore, entry: RunEntry, spec: SupervisorSpec, settings: Settings, out: Output
) -> int:
    from nightwarden.cli.runs import state_of
    from nightwarden.steering.attached import Attached

    run = entry.run_id
    if not entry.owner_alive:
        told = state_of(entry)
        raise Usage(f"run {run} does not run, so there is nothing to watch: {told}")
    start: Mapping[str, Any] = next(iter(place.ends(run)), {})
    definition: Mapping[str, Any] = start.get("definition", {})
    if spec.name in definition.get("supervisors", {}):
        raise Usage(f"run {run} has a supervisor {spec.name!r} of its own; give this one a --name")
    nodes: Sequence[Mapping[str, Any]] = definition.get("nodes", ())
    _check_nodes(nodes, entry, spec.watches, out)
    model = _model(spec, settings, definition, start.get("inputs", {}))
    evaluator = _evaluator(spec, model)

    def watch() -> Watch:
        return Attached(place, run, spec, evaluator, remark=out.note, told=_shown(out))

    out.note(_notice(model, f"run {run}"))
    code = _carried(watch, evaluator, out, f"run {run}")
    left = place.entry(run)
    if left.status == "interrupted":
        out.note(state_of(left), "yellow")
    return code


def _check_nodes(
    nodes: Sequence[Mapping[str, Any]], entry: RunEntry, watched: Sequence[str], out: Output
) -> None:
    """Raise `Usage` for a node that is not there; one that reads no messages is a remark."""
    from nightwarden.spec.findings import suggestion
    from nightwarden.spec.supervisors import reads_messages

    types = {str(node["id"]): str(node["type"]) for node in nodes}
    readers = [name for name, type_name in types.items() if reads_messages(type_name)]
    for name in watched:
        if name not in types:
            remedy = suggestion(name, readers or types, what="nodes")
            raise Usage(f"--node {name}: run {entry.run_id} has no such node; {remedy}")
        if name not in readers:
            out.note(f"{name} is {types[name]}, which reads no messages", "yellow")
    if not readers:
        out.note(f"run {entry.run_id} has no agents: nobody there reads messages", "yellow")


# -- a session --


def _over_session(meant: str, spec: SupervisorSpec, settings: Settings, out: Output) -> int:
    from nightwarden.steering.choosing import SMALL, Running, choose
    from nightwarden.steering.claude.sessions import find_transcript, project_of
    from nightwarden.steering.claude.watching import SessionWatch, without_hooks

    transcript = find_transcript(meant)
    session = transcript.stem
    named = Path(meant).expanduser()
    folder = named if named.is_dir() else project_of(transcript)
    lacking = without_hooks(folder) if folder is not None else ""
    if lacking:
        out.note(lacking, "yellow")
    model = choose(spec, settings, [Running("the session", SMALL["anthropic"])])
    evaluator = _evaluator(spec, model)

    def watch() -> Watch:
        return SessionWatch(session, spec, evaluator, remark=out.note, told=_shown(out))

    out.note(_notice(model, f"session {session}"))
    return _carried(watch, evaluator, out, f"session {session}")


# -- both --


def _model(
    spec: SupervisorSpec,
    settings: Settings,
    definition: Mapping[str, Any],
    inputs: Mapping[str, object],
) -> Model:
    """The model for a recorded run; what its agents run on stands in its definition."""
    from nightwarden.spec.workflow import EdgeSpec, NodeSpec, Workflow
    from nightwarden.steering.choosing import choose, running_on

    nodes = tuple(
        NodeSpec(id=str(n["id"]), type=str(n["type"]), properties=n.get("properties", {}))
        for n in definition.get("nodes", ())
    )
    edges = tuple(
        EdgeSpec(
            source=str(edge.get("source")),
            source_slot=str(edge.get("source_slot")),
            target=str(edge.get("target")),
            target_slot=str(edge.get("target_slot")),
        )
        for edge in definition.get("edges", ())
    )
    drawn = Workflow(name="recorded", nodes=nodes, edges=edges)
    return choose(spec, settings, running_on(drawn, spec, inputs), inputs=inputs)


def _evaluator(spec: SupervisorSpec, model: Model) -> ModelEvaluator:
    from nightwarden.steering.evaluating import evaluator_for

    return evaluator_for(spec, model)


def _notice(model: Model, watched: str) -> str:
    return f"What is said and done in {watched} is shown to {model.name} {model.whereabouts}."


def _shown(out: Output) -> Callable[[Event], None]:
    def show(event: Event) -> None:
        out.say(render(event))

    return show


def _carried(
    watch: Callable[[], Watch], evaluator: ModelEvaluator, out: Output, watched: str
) -> int:
    """Watch until there is nothing left to watch, or until Ctrl-C."""
    import asyncio

    from nightwarden.cli.interrupting import interruptible
    from nightwarden.own_loop import run_on_own_loop

    async def main() -> str:
        let_go = asyncio.Event()
        found = watch()
        with interruptible(lambda _reason: let_go.set(), out, doing="letting go"):
            found.start()
            over = asyncio.ensure_future(found.wait())
            asked = asyncio.ensure_future(let_go.wait())
            await asyncio.wait([over, asked], return_when=asyncio.FIRST_COMPLETED)
            ended = over.done()
            for task in (over, asked):
                task.cancel()
            await found.close()
            await evaluator.aclose()
        return _summary(found.state, watched, ended=ended)

    out.say(run_on_own_loop(main()))
    return COMPLETED


def _summary(state: TriggerState, watched: str, *, ended: bool) -> str:
    spent = f", {dollars(state.spent_micro_usd)}" if state.spent_micro_usd else ""
    how = f"{watched} is over" if ended else f"let go of {watched}, which goes on"
    return f"── {how}: {count(state.completed, 'look')}{spent}"
