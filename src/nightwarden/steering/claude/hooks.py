"""The hooks in a project's Claude Code settings: put in, taken out, looked after.

    .claude/settings.local.json (or settings.json): "hooks": {"Stop": […], "PostToolUse": […], …}

The file is somebody else's: whatever else stands in it stays, in its order and form; it is
replaced in one step, and a copy of what was there is kept beside it. Twice is once. A file that
is no JSON object is an error and stays as it is.

Read next: `drain.py`.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nightwarden.errors import NightwardenError
from nightwarden.steering.claude import drain

EVENTS: Final = ("Stop", "PostToolUse", "PostToolUseFailure")
MATCHED: Final = ("PostToolUse", "PostToolUseFailure")
"""Events whose hooks have a matcher; Stop ignores one."""

LOCAL, SHARED = "settings.local.json", "settings.json"
BACKUP: Final = ".nightwarden-backup"
TIMEOUT_S: Final = 10
_MARKS: Final = ("nightwarden/steering/claude/drain.py", "nightwarden-drain")


_BY_HAND: Final = "mend it by hand, nothing was changed"


class BadSettingsFile(NightwardenError):
    """A settings file that cannot be edited: `wrong` says why. It has not been touched."""

    def __init__(self, wrong: str, then: str = "nothing was changed") -> None:
        self.wrong = wrong
        super().__init__(f"{wrong}; {then}" if then else wrong)


@dataclass(frozen=True, slots=True)
class Change:
    """What was done to a file. `events` are the hooks that were put in or taken out."""

    path: Path
    events: tuple[str, ...]
    backup: Path | None = None


def command() -> str:
    """What the hooks run: the drain, by the interpreter that runs now, without its packages.

    It ends well whatever is left of it: an interpreter that does not find its file exits with 2,
    which would keep a session from stopping.
    """
    here = shlex.quote(str(Path(drain.__file__).resolve()))
    return f"[ -f {here} ] && {shlex.quote(sys.executable)} -I -S {here} || true"


def settings_path(project: Path, *, shared: bool = False) -> Path:
    """The settings file of a project: one's own, or the one it shares."""
    return project / ".claude" / (SHARED if shared else LOCAL)


def install(project: Path, *, shared: bool = False) -> Change:
    """Put the hooks in. Raises `BadSettingsFile`."""
    if not project.is_dir():
        raise BadSettingsFile(f"{project} is no directory", "")
    path = settings_path(project, shared=shared)
    text = _text_of(path)
    settings = parsed(path, text)
    added = _add(settings, path)
    if not added:
        return Change(path, ())
    backup = _keep(path, text)
    _write(path, dumped(settings, like=text))
    return Change(path, tuple(added), backup)


def uninstall(project: Path, *, shared: bool = False) -> Change:
    """Take them out; what becomes empty by that goes too. Raises `BadSettingsFile`."""
    path = settings_path(project, shared=shared)
    text = _text_of(path)
    if text is None:
        return Change(path, ())
    settings = parsed(path, text)
    backup = path.with_name(path.name + BACKUP)
    before = _text_of(backup)
    untouched = before is not None and _became(before, settings, backup)
    removed = _remove(settings)
    if removed:
        if before is not None and untouched:
            _write(path, before)  # nobody else has changed anything since
        elif before is None and not settings:
            path.unlink()  # there was none before us
        else:
            _write(path, dumped(settings, like=text))
        backup.unlink(missing_ok=True)
    return Change(path, tuple(removed))


def check(project: Path, *, shared: bool = False) -> None:
    """Raise `BadSettingsFile` where the hooks could not be put in."""
    path = settings_path(project, shared=shared)
    _add(parsed(path, _text_of(path)), path)


def installed(project: Path, *, shared: bool = False) -> tuple[str, ...]:
    """The events our hooks are put at. Raises `BadSettingsFile`."""
    return tuple(commands(project, shared=shared))


def commands(project: Path, *, shared: bool = False) -> dict[str, str]:
    """What our hooks run, by event. Raises `BadSettingsFile`."""
    path = settings_path(project, shared=shared)
    hooks = parsed(path, _text_of(path)).get("hooks")
    groups = hooks if isinstance(hooks, Mapping) else {}
    told = {event: map(_handler, _list(groups.get(event))) for event in EVENTS}
    found = {event: next(filter(None, each), "") for event, each in told.items()}
    return {event: command for event, command in found.items() if command}


# -- the settings --


def parsed(path: Path, text: str | None) -> dict[str, Any]:
    """The settings in a file; empty for none. Raises `BadSettingsFile`."""
    if text is None or not text.strip().removeprefix("\ufeff"):
        return {}
    try:
        settings = json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_without_doubles)
        json.dumps(settings, allow_nan=False)  # numbers no JSON has
    except (ValueError, RecursionError) as error:
        raise BadSettingsFile(f"{path} cannot be edited: {error}", _BY_HAND) from error
    if not isinstance(settings, dict):
        raise BadSettingsFile(f"{path} holds no JSON object", _BY_HAND)
    return settings


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(k for k in found if sum(k == key for key, _ in pairs) > 1)
        raise ValueError(f"the key {twice!r} stands twice")
    return found


def _add(settings: dict[str, Any], path: Path) -> list[str]:
    hooks = settings.setdefault("hooks", {})
    if not isinstance(hooks, dict):
        raise BadSettingsFile(f"{path}: hooks is no object", _BY_HAND)
    added = []
    for event in EVENTS:
        groups = hooks.setdefault(event, [])
        if not isinstance(groups, list):
            raise BadSettingsFile(f"{path}: hooks.{event} is no list", _BY_HAND)
        if any(_handler(group) == command() for group in groups):
            continue
        groups[:] = [kept for g in groups if (kept := _pruned(g)) is not None]  # an older path
        groups.append(_group(event))
        added.append(event)
    return added


def _group(event: str) -> dict[str, Any]:
    handler = {"type": "command", "command": command(), "timeout": TIMEOUT_S}
    matcher = {"matcher": "*"} if event in MATCHED else {}
    return {**matcher, "hooks": [handler]}


def _remove(settings: dict[str, Any]) -> list[str]:
    hooks = settings.get("hooks")
    if not isinstance(hooks, dict):
        return []
    removed = []
    for event in list(hooks):
        groups = hooks[event]
        if not isinstance(groups, list) or not any(map(_has_ours, groups)):
            continue
        removed.append(event)
        groups[:] = [kept for group in groups if (kept := _pruned(group)) is not None]
        if not groups:
            del hooks[event]
    if not hooks and removed:
        del settings["hooks"]
    return removed


def _pruned(group: object) -> object | None:
    """A group without our handlers; None if nothing is left of it."""
    if not isinstance(group, dict) or not _has_ours(group):
        return group
    kept = [h for h in _list(group.get("hooks")) if not _is_ours(h)]
    return {**group, "hooks": kept} if kept else None


def _has_ours(group: object) -> bool:
    return isinstance(group, Mapping) and any(map(_is_ours, _list(group.get("hooks"))))


def _handler(group: object) -> str:
    """The command of our handler in a group; empty where there is none."""
    handlers = _list(group.get("hooks")) if isinstance(group, Mapping) else []
    return next((str(h["command"]) for h in handlers if _is_ours(h)), "")


def _is_ours(handler: object) -> bool:
    text = handler.get("command") if isinstance(handler, Mapping) else None
    return isinstance(text, str) and any(mark in text for mark in _MARKS)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


# -- the file --


def dumped(settings: Mapping[str, Any], *, like: str | None) -> str:
    """The settings as text, in the form the file had: indentation, line end, byte order mark."""
    text = json.dumps(settings, indent=_indent(like), ensure_ascii=False)
    if any("\ud800" <= letter <= "\udfff" for letter in text):  # half a character, as an escape
        text = json.dumps(settings, indent=_indent(like))
    end = "\n" if like is None or like.endswith("\n") else ""
    return ("\ufeff" if like and like.startswith("\ufeff") else "") + text + end


def _indent(like: str | None) -> int | str | None:
    if like is None or not like.strip():
        return 2
    lines = like.strip().splitlines()
    if len(lines) == 1:
        return None if len(like) > 2 else 2
    space = lines[1][: len(lines[1]) - len(lines[1].lstrip())]
    return space or 2


def _became(before: str, settings: Mapping[str, Any], backup: Path) -> bool:
    """Whether the settings are what was there before, with our hooks and nothing else."""
    try:
        then = parsed(backup, before)
        _add(then, backup)
    except BadSettingsFile:
        return False
    return then == settings


def _text_of(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise BadSettingsFile(f"{path} is not UTF-8", _BY_HAND) from error
    except OSError as error:
        raise BadSettingsFile(f"{path} cannot be read: {error.strerror or error}") from error


def _keep(path: Path, text: str | None) -> Path | None:
    """A copy of what was there, made once: what we changed ourselves is no original."""
    backup = path.with_name(path.name + BACKUP)
    if text is None or backup.exists():
        return backup if backup.exists() else None
    _write(backup, text)
    return backup


def _write(path: Path, text: str) -> None:
    """Put a text there in one step; a link stays a link, and the mode what it was."""
    target = path.resolve() if path.is_symlink() else path
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o644
        handle, draft = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(text.encode("utf-8"))
                file.flush()
                os.fsync(file.fileno())
            os.chmod(draft, mode)
            os.replace(draft, target)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise
    except OSError as error:
        why = error.strerror or error
        raise BadSettingsFile(f"{path} cannot be written: {why}") from error
