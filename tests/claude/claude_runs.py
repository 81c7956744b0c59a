"""Runs with Claude Code in them, on a model server: the folder, the run, what it said."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_kit import Hear, Ran, run_file
from model_server import ModelServer

from nightwarden.agents.claude.program import MARK

MODEL = "anthropic:claude-sonnet-5"
KEY = "sk-test-0123456789-abcdef"


@dataclass
class Bench:
    """A folder to run agents in."""

    folder: Path

    def run(
        self,
        script: Sequence[Any],
        *,
        node: str = "agent.Agent",
        hear: Hear = lambda event, session: None,
        options: Mapping[str, Any] | None = None,
        more: Mapping[str, Any] | None = None,
        **properties: Any,
    ) -> Ran:
        """Run one node with this script."""
        with ModelServer(script) as server:
            file = self.written(server, node=node, more=more, **properties)
            return run_file(file, server, folder=self.folder, hear=hear, options=options)

    def written(
        self,
        server: ModelServer,
        *,
        node: str = "agent.Agent",
        more: Mapping[str, Any] | None = None,
        **properties: Any,
    ) -> Path:
        """The workflow, with its models at this server."""
        (self.folder / "nightwarden.toml").write_text(
            f'[models."anthropic:*"]\nbase_url = "{server.base_url}"\n'
            "price_in = 3\nprice_out = 15\n"
        )
        given = {"type": node, "model": MODEL, "prompt": "Do it.", "backend": "claude_code"}
        given |= {"workspace": "ws", **properties}
        file = self.folder / "w.json"
        nodes = {"work": given, **(more or {})}
        file.write_text(json.dumps({"version": 1, "name": "w", "nodes": nodes}))
        return file


def marked(folder: Path) -> list[int]:
    """The processes that bear a mark of ours: Claude Code at work there, or what it started."""
    found = []
    for name in os.listdir("/proc"):
        try:
            environ = Path(f"/proc/{name}/environ").read_bytes() if name.isdigit() else b""
        except OSError:
            continue
        if f"{MARK}=".encode() in environ and str(folder).encode() in environ:
            found.append(int(name))
    return found
