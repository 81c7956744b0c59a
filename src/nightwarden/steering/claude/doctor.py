"""Whether messages can reach a Claude Code session of a project: each link of the chain, looked at.

Read next: `hooks.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nightwarden.steering.claude import drain, hooks
from nightwarden.steering.claude.sessions import NoSession, claude_home, find_transcript

SLOW_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `remedy` is what to do where it is not well."""

    well: bool
    what: str
    remedy: str = ""


def examine(project: Path) -> list[Finding]:
    """Look at everything a message has to pass."""
    return [*_hooks(project), *_switches(project), _drain(), _mailbox(), _session(project)]


def _hooks(project: Path) -> Iterator[Finding]:
    found: set[str] = set()
    for shared in (False, True):
        path = hooks.settings_path(project, shared=shared)
        try:
            found.update(hooks.installed(project, shared=shared))
            stale = _stale(project, shared=shared)
            hooks.check(project, shared=shared)
        except hooks.BadSettingsFile as error:
            yield Finding(False, error.wrong, "mend the file by hand")
            continue
        if stale:
            yield Finding(False, f"{path} runs {stale}, which is not this one", "install again")
    missing = [event for event in hooks.EVENTS if event not in found]
    if missing:
        remedy = f"nightwarden hook install --cwd {project}"
        yield Finding(False, f"no hook at {', '.join(missing)} in {project}", remedy)
    else:
        yield Finding(True, f"hooks at {', '.join(hooks.EVENTS)}")


def _stale(project: Path, *, shared: bool) -> str:
    """The command of a hook of ours that runs another program than this one's."""
    told = hooks.commands(project, shared=shared).values()
    return next((command for command in told if command != hooks.command()), "")


def _switches(project: Path) -> Iterator[Finding]:
    """Settings that switch hooks off altogether."""
    for path in (
        claude_home() / hooks.SHARED,
        hooks.settings_path(project, shared=True),
        hooks.settings_path(project),
    ):
        try:
            settings = json.loads(path.read_text(encoding="utf-8-sig"))
        except (OSError, ValueError):
            continue
        if isinstance(settings, dict) and settings.get("disableAllHooks"):
            yield Finding(False, f"{path} switches all hooks off", "remove disableAllHooks")


def _drain() -> Finding:
    """Run the drain as a hook would, for a session that does not exist."""
    hook = {"hook_event_name": "Stop", "session_id": "nightwarden-doctor"}
    start = time.perf_counter()
    try:
        done = subprocess.run(
            hooks.command(),
            shell=True,  # as Claude Code runs it
            input=json.dumps(hook).encode(),
            capture_output=True,
            timeout=hooks.TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding(False, f"the drain does not run: {error}", "install Nightwarden again")
    took = time.perf_counter() - start
    told = f"the drain answers in {took * 1000:.0f} ms"
    if done.returncode or done.stdout:
        return Finding(False, f"the drain exits with {done.returncode}", "install it again")
    return Finding(took < SLOW_S, told, "" if took < SLOW_S else "the machine is busy, or slow")


def _mailbox() -> Finding:
    root = Path(drain.mailbox_root())
    place = next(p for p in (root, *root.parents) if p.exists())
    if os.access(place, os.W_OK | os.X_OK):
        return Finding(True, f"mailboxes in {root}")
    return Finding(False, f"no mailbox can be made in {root}", f"make {place} writable")


def _session(project: Path) -> Finding:
    try:
        path = find_transcript(str(project))
    except NoSession as error:
        return Finding(False, str(error), "only a session that has begun can be watched")
    return Finding(True, f"the newest session is {path.stem}")
