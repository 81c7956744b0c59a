"""The tools of a native agent, each bound to one workspace: what they take, do and answer.

    shell   read   write   edit   list   search   fetch

A tool answers with text, cut where it is too long, or raises `ToolProblem` with what the agent
can do about it. Their names and descriptions are what the model sees.

Read next: `workspace.py`, `shell.py`, `toolset.py`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

from nightwarden.agents.shell import clean_environment, run_command
from nightwarden.agents.workspace import MOST_ENTRIES, ToolProblem, Workspace
from nightwarden.masking.marks import MASK_PREFIX
from nightwarden.nodes.builtin._http_errors import FetchError
from nightwarden.nodes.builtin._http_exchange import Ask, checked_url, exchange, open_client
from nightwarden.nodes.working import Task

MOST_LINES: Final = 2_000
"""Lines `read` shows at once."""

_SEARCH_S: Final = 30.0
_FETCH_S: Final = 30.0
_FETCH_BYTES: Final = 5_000_000

_OPEN_FOLDERS: Final = "/proc/self/fd/{}" if Path("/proc/self/fd").exists() else "/dev/fd/{}"

ToolFunction = Callable[..., Awaitable[str]]


class Tools:
    """The tools of one piece of work."""

    def __init__(self, task: Task, *, environ: Mapping[str, str] = os.environ) -> None:
        self.workspace = Workspace(task.workspace)
        self._limits = task.limits
        self._env = clean_environment(environ, task.env)
        functions: dict[str, ToolFunction] = {
            "shell": self.shell,
            "read": self.read,
            "write": self.write,
            "edit": self.edit,
            "list": self.list,
            "search": self.search,
            "fetch": self.fetch,
        }
        self.functions = {name: functions[name] for name in task.tools}

    async def shell(self, command: str) -> str:
        """Run a shell command in the workspace and read its output and exit code.

        Nothing stands on its input, and whatever it starts ends with it.

        Args:
            command: What to run, as for `sh -c`.
        """
        timeout_s = self._limits.command_timeout_s
        ran = await run_command(
            ["/bin/sh", "-c", command],
            cwd=self.workspace.root,
            env=self._env,
            timeout_s=timeout_s,
            max_chars=self._limits.max_output_chars,
        )
        if ran.code is None:
            raise ToolProblem(f"killed after {timeout_s:g} s\n{ran.output}".rstrip())
        if ran.code != 0:
            raise ToolProblem(f"exit code {ran.code}\n{ran.output}".rstrip())
        return ran.output or "(no output)"

    async def read(self, path: str, first_line: int = 1, lines: int = MOST_LINES) -> str:
        """Read a text file of the workspace.

        Args:
            path: The file, relative to the workspace.
            first_line: The first line wanted, from 1.
            lines: How many lines at most.
        """
        text = await asyncio.to_thread(self.workspace.read, path)
        found = text.splitlines(keepends=True)
        start = max(first_line, 1) - 1
        shown = found[start : start + max(min(lines, MOST_LINES), 1)]
        left = len(found) - start - len(shown)
        more = f"\n… {left} more lines, from line {start + len(shown) + 1} …" if left > 0 else ""
        return ("".join(shown) or "(nothing)") + more

    async def write(self, path: str, text: str) -> str:
        """Write a text file of the workspace, replacing what it held; folders are made.

        Args:
            path: The file, relative to the workspace.
            text: All of its new content.
        """
        _refuse_masks(text)
        size = await asyncio.to_thread(self.workspace.write, path, text)
        return f"{path} written, {size} bytes"

    async def edit(self, path: str, old: str, new: str, replace_all: bool = False) -> str:
        """Replace a piece of text in a file of the workspace.

        Args:
            path: The file, relative to the workspace.
            old: The text that stands there, copied exactly; it has to be there just once.
            new: What is to stand there instead.
            replace_all: Replace it wherever it stands.
        """
        _refuse_masks(new)
        times = await asyncio.to_thread(
            self.workspace.edit, path, old, new, replace_all=replace_all
        )
        return f"{path} changed in {times} place{'s' if times > 1 else ''}"

    async def list(self, path: str = ".", recursive: bool = False) -> str:
        """List a folder of the workspace; folders end in a slash, links in @.

        Args:
            path: The folder, relative to the workspace.
            recursive: Also what lies in the folders below.
        """
        found = await asyncio.to_thread(self.workspace.entries, path, recursive=recursive)
        cut = "\n… there is more …" if len(found) >= MOST_ENTRIES else ""
        return ("\n".join(found) or "(empty)") + cut

    async def search(self, pattern: str, path: str = ".") -> str:
        """Search the text files of a folder of the workspace; gives file, line number and line.

        Args:
            pattern: An extended regular expression, as for `grep -E`.
            path: The folder, relative to the workspace.
        """
        if not pattern:
            raise ToolProblem("the pattern is empty; say what to look for")
        with self.workspace.folder(path) as fd:
            ran = await run_command(
                ["grep", "-rnIE", "--exclude-dir=.git", "-e", pattern, "."],
                cwd=_OPEN_FOLDERS.format(fd),
                env=self._env,
                timeout_s=_SEARCH_S,
                max_chars=self._limits.max_output_chars,
                pass_fds=(fd,),
            )
        if ran.code == 1:
            return "(nothing found)"
        if ran.code is None:
            raise ToolProblem(f"the search took more than {_SEARCH_S:g} s; narrow it down")
        if ran.code != 0:
            raise ToolProblem(ran.output.strip() or "the pattern cannot be used")
        return ran.output

    async def fetch(self, url: str) -> str:
        """Get a page or a file of text from the web (GET).

        Args:
            url: Its address, with http:// or https://.
        """
        try:
            ask = Ask(
                url=checked_url(url),
                method="GET",
                headers={},
                timeout_s=_FETCH_S,
                max_bytes=_FETCH_BYTES,
            )
            async with open_client() as client:
                page = await exchange(client, ask)
        except FetchError as error:
            raise ToolProblem(str(error)) from error
        if page.content:
            raise ToolProblem(f"{url} is no text ({page.content_type or 'of no known type'})")
        return page.text


def shortened(text: str, max_chars: int) -> str:
    """A text whose middle is left out where it is too long."""
    if len(text) <= max_chars:
        return text
    half = max(max_chars // 2, 1)
    left_out = len(text) - 2 * half
    return f"{text[:half]}\n… {left_out:,} characters left out …\n{text[-half:]}"


def _refuse_masks(text: str) -> None:
    """What the agent was shown masked must not be written over the real thing."""
    if MASK_PREFIX in text:
        raise ToolProblem(
            f"the text holds {MASK_PREFIX}…), which stands for a secret you are not shown; "
            "change the places around it instead"
        )
