"""The command line: `nightwarden`, short `nw`. One file a command; this one puts them together.

    entry ─▶ arguments ─▶ a command ─▶ its exit code
                              └ raised ─▶ failing.py ─▶ one clear line, an exit code

The engine is imported inside the commands, so that `nightwarden --help` costs next to nothing.

Read next: `run.py`, `failing.py`.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Annotated, Final, NoReturn

import typer

from nightwarden import __version__
from nightwarden.cli import evaluating, hook, monitors, policies, steering
from nightwarden.cli.cancel import cancel
from nightwarden.cli.completing import is_completing
from nightwarden.cli.costs import costs
from nightwarden.cli.debug import debug
from nightwarden.cli.demo import demo
from nightwarden.cli.events import events
from nightwarden.cli.failing import COMPLETED, FAILED, NAME, USAGE, explained
from nightwarden.cli.graph import graph
from nightwarden.cli.keeping import delete, export, prune, take_in
from nightwarden.cli.message import message
from nightwarden.cli.new import new
from nightwarden.cli.nodes import nodes
from nightwarden.cli.output import Output, close_streams, prepare_streams
from nightwarden.cli.replay import replay
from nightwarden.cli.report import report
from nightwarden.cli.resume import resume
from nightwarden.cli.run import run
from nightwarden.cli.runs import runs
from nightwarden.cli.show import show
from nightwarden.cli.supervise import supervise
from nightwarden.cli.validate import validate
from nightwarden.cli.verify import verify

app = typer.Typer(
    name=NAME,
    help="Runs workflows nobody watches: a failure becomes a decision, on the record.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
_runs = typer.Typer(invoke_without_command=True, rich_markup_mode=None)
_runs.callback()(runs)
_runs.command("delete")(delete)
_runs.command("export")(export)
_runs.command("import")(take_in)
_runs.command("prune")(prune)

_COMMANDS: Final[Sequence[Callable[..., int]]] = (
    new,
    run,
    debug,
    resume,
    validate,
    graph,
    nodes,
    show,
    report,
    events,
    verify,
    costs,
    cancel,
    message,
    supervise,
    replay,
    demo,
)
for _command in _COMMANDS:
    app.command()(_command)
app.add_typer(_runs, name="runs")
for _name, _group in (
    ("steering", steering.app),
    ("monitors", monitors.app),
    ("policies", policies.app),
    ("hook", hook.app),
    ("eval", evaluating.app),
):
    app.add_typer(_group, name=_name)

_SUPERVISE: Final = "--supervise"
_WORKFLOWS: Final = (".yaml", ".yml", ".json")
_MODE_OF_SOMETHING: Final = re.compile(r"[A-Za-z][\w.-]+:")


def _version(wanted: bool) -> None:
    if wanted:
        Output().say(f"{NAME} {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None: ...


def main(arguments: Sequence[str]) -> int:
    """Run one command; its exit code. Raises nothing."""
    prepare_streams()
    words = with_bare_supervise(arguments) or ["--help"]
    try:
        code = app(args=words, prog_name=NAME, standalone_mode=False)
        code = code if isinstance(code, int) else COMPLETED
    except BaseException as error:
        code = _ended(error, debug="--debug" in arguments)
    if not arguments and not is_completing():
        code = USAGE  # help was shown because nothing was asked for
    lost = close_streams()
    if lost:
        Output().error(f"{NAME}: standard output cannot be written: {lost}")
        close_streams()
        code = code or FAILED
    return code


def _ended(error: BaseException, *, debug: bool) -> int:
    code = getattr(error, "exit_code", None)
    if isinstance(code, int) and not hasattr(error, "format_message"):
        return code  # the parser's own way to end: --help, --version
    if isinstance(error.__context__, BrokenPipeError):
        return COMPLETED  # nobody reads the help any more
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else FAILED
    if debug:
        traceback.print_exception(error, file=sys.stderr)
    lines, code = explained(error)
    for line in lines:
        Output().error(line)
    return code


def with_bare_supervise(arguments: Sequence[str]) -> list[str]:
    """The arguments with `--supervise` spelled out where it stands alone: a model decides.

    It stands alone at the end, before another option, and before what is a workflow file.
    """
    found: list[str] = []
    for i, word in enumerate(arguments):
        found.append(word)
        following = arguments[i + 1] if i + 1 < len(arguments) else "--"
        is_mode = _MODE_OF_SOMETHING.match(following)
        is_file = not is_mode and following.lower().endswith(_WORKFLOWS)
        if word == _SUPERVISE and (following.startswith("-") or is_file):
            found[-1] = f"{_SUPERVISE}=agent"
    return found


def entry() -> NoReturn:
    """What the console scripts call."""
    sys.exit(main(sys.argv[1:]))
