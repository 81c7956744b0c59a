"""Where Claude Code keeps its sessions, and which of them is meant.

    a directory   the newest transcript of that project       a session id   wherever it lies

Read next: `observer.py`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from nightwarden.errors import NightwardenError
from nightwarden.steering.claude.drain import is_session_id

LONGEST_KEY: Final = 200


class NoSession(NightwardenError):
    """There is no session to watch; the message says where it was looked for."""


def claude_home(env: Mapping[str, str] = os.environ) -> Path:
    """Claude Code's own directory."""
    given = env.get("CLAUDE_CONFIG_DIR")
    return Path(given) if given else Path.home() / ".claude"


def project_key(cwd: str) -> str:
    """The name of a project's folder: letters and digits stay, every other character is `-`.

    Longer names are cut and followed by a hash that only Claude Code knows; see `folders_of`.
    """
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in cwd)[:LONGEST_KEY]


def folders_of(cwd: Path, projects: Path, env: Mapping[str, str] = os.environ) -> list[Path]:
    """The folders a project's transcripts may be in; older versions kept the underscore."""
    own = env.get("CLAUDE_CODE_PROJECT_DIR_NAME")
    if own:
        return [projects / own]
    key = project_key(str(cwd))
    older = "".join(c if (c.isascii() and c.isalnum()) or c == "_" else "-" for c in str(cwd))
    found = [projects / name for name in dict.fromkeys((key, older[:LONGEST_KEY]))]
    if len(str(cwd)) > LONGEST_KEY:
        found += sorted(projects.glob(f"{key}-*"))
    return found


def find_transcript(meant: str, env: Mapping[str, str] = os.environ) -> Path:
    """The transcript of the session that is meant. Raises `NoSession`."""
    projects = claude_home(env) / "projects"
    folder = Path(meant).expanduser()
    if meant and folder.is_dir():
        return _newest(folder.resolve(), projects, env)
    if not is_session_id(meant):
        raise NoSession(f"{meant!r} is neither a directory nor a session id")
    found = sorted(projects.glob(f"*/{meant}.jsonl"), key=_written)
    if not found:
        raise NoSession(f"no session {meant!r} below {projects}; start claude first")
    return found[-1]


def project_of(transcript: Path) -> Path | None:
    """The directory a session was started in, where its transcript says so and it is there."""
    told = next(_cwds(transcript), "")
    return Path(told) if told and Path(told).is_dir() else None


def _newest(cwd: Path, projects: Path, env: Mapping[str, str]) -> Path:
    folders = folders_of(cwd, projects, env)
    found = [path for folder in folders for path in folder.glob("*.jsonl")]
    mine = [path for path in sorted(found, key=_written, reverse=True) if _is_of(path, cwd)]
    if not mine:
        raise NoSession(f"no session of {cwd} in {folders[0]}; start claude there first")
    return mine[0]


def _written(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _is_of(path: Path, cwd: Path) -> bool:
    """Whether a transcript is of this directory; two directories may have one key."""
    for told in _cwds(path):
        return Path(told) == cwd or cwd in Path(told).parents
    return True  # it does not say


def _cwds(path: Path, most: int = 50) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            for _, line in zip(range(most), lines, strict=False):
                try:
                    record = json.loads(line)
                except ValueError:
                    continue
                told = record.get("cwd") if isinstance(record, dict) else None
                if isinstance(told, str) and told:
                    yield told
    except OSError:
        return


def is_alive(session_id: str, env: Mapping[str, str] = os.environ) -> bool | None:
    """Whether the session's process runs; None where Claude Code keeps no list of them."""
    folder = claude_home(env) / "sessions"
    if not folder.is_dir():
        return None
    for path in folder.glob("*.json"):
        try:
            entry = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(entry, dict) and entry.get("sessionId") == session_id:
            pid = str(entry.get("pid", path.stem))
            return pid.isdigit() and _runs(int(pid))
    return False


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
