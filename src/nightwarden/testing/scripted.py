"""A model that follows a script: to try a workflow with agents in it without a key.

    python -m nightwarden.testing.scripted SCRIPT -- COMMAND…

serves the script on loopback as `ollama:NAME`, whatever the name, runs the command beside it, and
ends with its exit code. A script is YAML: lists of turns by the name of a tool. A request is
answered from the first list whose tool it offers; the last turn of a list is kept.

    answer:                             a judge has the tool `answer`
      - call: answer
        with: {passed: true, reason: It works.}
    shell:                              an agent
      - say: I look first.              what it says, the tool it calls, or both
        call: list
        with: {}
      - say: Done.

Read next: `model_server.py`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from nightwarden.testing.answers import Call, Say
from nightwarden.testing.model_server import ModelServer as _Server
from nightwarden.testing.model_server import Request, Status, Turn

USAGE = "usage: python -m nightwarden.testing.scripted SCRIPT -- COMMAND…"


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    """One turn as it is written."""

    say: str = ""
    call: str = ""
    given: dict[str, Any] = msgspec.field(default_factory=dict, name="with")

    def turn(self) -> Turn:
        return Call(self.call, self.given, say=self.say) if self.call else Say(self.say)


class Script:
    """Lists of turns, each at its own place. A request that none answers gets an error."""

    def __init__(self, lists: Mapping[str, Sequence[Turn]]) -> None:
        self._lists = {tool: list(turns) for tool, turns in lists.items()}

    def __call__(self, request: Request) -> Turn:
        """The turn a request is answered with."""
        for tool, turns in self._lists.items():
            if tool in request.tools and turns:
                return turns.pop(0) if len(turns) > 1 else turns[0]
        offered = ", ".join(request.tools) or "no tool"
        return Status(400, {"error": {"message": f"the script has nothing for {offered}"}})


def read_script(path: Path) -> Script:
    """A script from its file. Raises `ValueError` with what is wrong with it."""
    try:
        written = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
        lines = msgspec.convert(written, dict[str, list[_Line]])
    except (OSError, YAMLError, msgspec.ValidationError) as error:
        raise ValueError(f"{path}: no script of a model: {error}") from error
    return Script({tool: [line.turn() for line in turns] for tool, turns in lines.items()})


def main(arguments: Sequence[str]) -> int:
    """Serve a script while a command runs; gives the command's exit code."""
    if len(arguments) < 3 or arguments[1] != "--":
        print(USAGE, file=sys.stderr)  # noqa: T201
        return 2
    try:
        script = read_script(Path(arguments[0]))
    except ValueError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2
    with _Server([script]) as server:
        environ = {**os.environ, "OLLAMA_BASE_URL": f"{server.base_url}/v1"}
        return subprocess.run(arguments[2:], env=environ, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
