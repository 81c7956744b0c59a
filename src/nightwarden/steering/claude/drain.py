"""What a Claude Code session runs at each boundary: hand over what waits for it, or say nothing.

    stdin   the hook's JSON                    stdout   the answer as JSON, or nothing
    queued/ ─claim─▶ claimed/ ─printed─▶ delivered/    each step one atomic rename

It must never disturb the agent: it always exits with 0, prints whole JSON or nothing, and is done
in well under 100 ms. So it imports a handful of modules of the standard library and nothing of
ours, and is run as a file. The mailbox is found by session id, never by the working directory,
which moves. Sub-agents get nothing: the word is for the one that is watched.

A message that was claimed and not printed (a crash) waits again after half a minute. What is too
long for one answer is handed over in parts. A continuation that would be cut off is not used.

Read next: `box.py`, which puts messages there.
"""

from __future__ import annotations

import json
import os
import sys
import time

QUEUED, CLAIMED, DELIVERED = "queued", "claimed", "delivered"
CONSUMED, CANCELLED, EXPIRED, BROKEN = "consumed", "cancelled", "expired", "broken"
FOLDERS = (QUEUED, CLAIMED, DELIVERED, CONSUMED, CANCELLED, EXPIRED, BROKEN)
STOPS = "stops"

TOOL_EVENTS = ("PostToolUse", "PostToolUseFailure")
STOP = "Stop"
OPERATORS = "0-"
"""File names of what people say begin with this, so that it goes first."""

LONGEST = 9_900
"""Characters an answer may have, as the reader counts them: at 10,000 it is cut."""
STOP_CAP = 8
"""Continuations in a row after which a turn is ended whatever the hook says."""
RECLAIM_S = 30.0
GATE_S = 5.0
"""So long one supervisor's word stands alone; hooks of one batch run at the same time."""

RULE = "\n\n---\n\n"


def mailbox_root() -> str:
    """Where the mailboxes of all sessions are."""
    return os.path.join(os.path.expanduser("~"), ".nightwarden", "claude")


def is_session_id(name: object) -> bool:
    """Whether it can name a mailbox: no path, nothing hidden."""
    if not isinstance(name, str) or not 0 < len(name) <= 200 or name.startswith("."):
        return False
    return all(c.isalnum() or c in "-_." for c in name)


def main() -> int:
    """Drain once. Always 0: a hook that fails would be shown to the user."""
    try:
        answer, claims = prepared(json.loads(sys.stdin.buffer.read()), time.time())
    except BaseException:
        return 0
    if answer:
        try:
            sys.stdout.buffer.write(answer.encode("utf-8", "backslashreplace"))
            sys.stdout.buffer.flush()
        except BaseException:
            settle(claims, printed=False)
            return 0
        settle(claims, printed=True)
    return 0


class Claim:
    """A message that is ours alone now. `upto` is how much of its text is in the answer."""

    def __init__(self, box: str, name: str, message: dict[str, object]) -> None:
        self.box = box
        self.name = name
        self.message = message
        text, start = message.get("text"), message.get("offset")
        self.text = text if isinstance(text, str) else ""
        self.start = start if isinstance(start, int) else 0
        self.upto = len(self.text)


def prepared(hook: object, now: float) -> tuple[str, list[Claim]]:
    """The answer to a hook, and the messages in it; an empty answer where nothing is said."""
    if not isinstance(hook, dict) or hook.get("agent_id"):
        return "", []
    event, session = hook.get("hook_event_name"), hook.get("session_id")
    if event not in (*TOOL_EVENTS, STOP) or not is_session_id(session):
        return "", []
    box = os.path.join(mailbox_root(), str(session))
    if not os.path.isdir(box) or not _may_speak(box, event, bool(hook.get("stop_hook_active"))):
        return "", []
    claims = claimed(box, now)
    if not claims:
        return "", []
    return answer_to(str(event), fitted(claims)), claims


def answer_to(event: str, text: str) -> str:
    """The hook's answer with a text for the agent."""
    if event == STOP:
        return json.dumps({"decision": "block", "reason": text})
    said = {"hookEventName": event, "additionalContext": text}
    return json.dumps({"hookSpecificOutput": said})


# -- continuations --


def _may_speak(box: str, event: object, follows_a_stop: bool) -> bool:
    """Whether the agent would still read it: too many continuations in a row are cut off."""
    path = os.path.join(box, STOPS)
    if event != STOP:
        _remember(path, 0)
        return True
    count = _remembered(path) + 1 if follows_a_stop else 0
    _remember(path, count)
    cap = _cap()
    return cap <= 0 or count < cap


def _cap() -> int:
    try:
        return int(os.environ.get("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", ""))
    except ValueError:
        return STOP_CAP


def _remembered(path: str) -> int:
    try:
        with open(path, encoding="ascii") as file:
            return int(file.read(20))
    except (OSError, ValueError):
        return 0


def _remember(path: str, count: int) -> None:
    if _remembered(path) == count:
        return
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(str(count))
    except OSError:
        return


# -- claiming --


def claimed(box: str, now: float) -> list[Claim]:
    """Everything that waits and may be said now, taken so that nobody else can take it."""
    _take_back(box, now)
    found: list[Claim] = []
    gate_is_open = _gate_is_open(box, now)
    room = LONGEST
    for name in waiting(box):
        by_operator = name.startswith(OPERATORS)
        if room <= 0 or not (by_operator or gate_is_open):
            break
        claim = _claim(box, name, now)
        if claim is None:
            continue
        found.append(claim)
        gate_is_open = gate_is_open and by_operator
        room -= length(claim.text[claim.start :]) + len(RULE)
    return found


def waiting(box: str, folder: str = QUEUED) -> list[str]:
    """The messages in a folder, a person's first, then the oldest."""
    found = []
    for name in _names(box, folder):
        try:
            age = os.stat(os.path.join(box, folder, name)).st_mtime_ns
        except OSError:
            continue
        found.append((not name.startswith(OPERATORS), age, name))
    return [name for _, _, name in sorted(found)]


def _names(box: str, folder: str) -> list[str]:
    try:
        return [n for n in os.listdir(os.path.join(box, folder)) if n.endswith(".json")]
    except OSError:
        return []


def _claim(box: str, name: str, now: float) -> Claim | None:
    if not move(box, name, QUEUED, CLAIMED):
        return None  # another hook was faster, or nothing can be moved here
    message = read(box, CLAIMED, name)
    if message is None or not isinstance(message.get("text"), str):
        move(box, name, CLAIMED, BROKEN)
        return None
    expires = message.get("expires_at")
    if isinstance(expires, (int, float)) and now >= expires:
        move(box, name, CLAIMED, EXPIRED)
        return None
    return Claim(box, name, message)


def _take_back(box: str, now: float) -> None:
    """What was claimed and never printed waits again."""
    for name in _names(box, CLAIMED):
        try:
            since = os.stat(os.path.join(box, CLAIMED, name)).st_ctime
        except OSError:
            continue
        if now - since > RECLAIM_S:
            move(box, name, CLAIMED, QUEUED)


def _gate_is_open(box: str, now: float) -> bool:
    """Whether no supervisor's word has only just been handed over, or is about to be."""
    for folder in (CLAIMED, DELIVERED):
        for name in _names(box, folder):
            if name.startswith(OPERATORS):
                continue
            try:
                if now - os.stat(os.path.join(box, folder, name)).st_ctime < GATE_S:
                    return False
            except OSError:
                continue
    return True


def move(box: str, name: str, source: str, target: str) -> bool:
    """Whether the message is there now; atomic, and done by one of many only."""
    try:
        os.rename(os.path.join(box, source, name), os.path.join(box, target, name))
    except OSError:
        return False
    return True


def read(box: str, folder: str, name: str) -> dict[str, object] | None:
    """A message; None for a file that is none."""
    try:
        with open(os.path.join(box, folder, name), encoding="utf-8") as file:
            message = json.load(file)
    except (OSError, ValueError):
        return None
    return message if isinstance(message, dict) else None


# -- what fits --


def fitted(claims: list[Claim]) -> str:
    """The texts as one answer. What does not fit is marked to be handed over later."""
    parts: list[str] = []
    room = LONGEST
    for claim in claims:
        rest = claim.text[claim.start :]
        if parts and length(rest) > room:
            claim.upto = claim.start
            continue
        end = _cut(rest, room)
        claim.upto = claim.start + end
        parts.append(rest[:end].rstrip() if end < len(rest) else rest)
        room -= length(rest[:end]) + len(RULE)
    return RULE.join(parts)


def length(text: str) -> int:
    """Characters as the reader counts them: one outside the basic plane counts twice."""
    return len(text) + sum(c > "\uffff" for c in text)


def _cut(text: str, room: int) -> int:
    """How much of a text fits, up to a blank if there is one near."""
    if length(text) <= room:
        return len(text)
    end = taken = 0
    while taken < room:
        taken += 2 if text[end] > "\uffff" else 1
        end += 1
    end -= taken > room
    blank = max(text.rfind(" ", 0, end), text.rfind("\n", 0, end))
    return blank + 1 if blank > end // 2 else end


def settle(claims: list[Claim], *, printed: bool) -> None:
    """Delivered is what the agent has; the rest of it, and what it has not, waits again."""
    for claim in claims:
        if printed and claim.upto >= len(claim.text):
            move(claim.box, claim.name, CLAIMED, DELIVERED)
        elif not printed or claim.upto == claim.start:
            move(claim.box, claim.name, CLAIMED, QUEUED)
        else:
            _put_back(claim)


def _put_back(claim: Claim) -> None:
    """The next part waits where the message waited, as old as it was."""
    path = os.path.join(claim.box, CLAIMED, claim.name)
    try:
        age = os.stat(path)
        with open(f"{path}.part", "w", encoding="utf-8") as file:
            json.dump({**claim.message, "offset": claim.upto}, file)
        os.utime(f"{path}.part", ns=(age.st_atime_ns, age.st_mtime_ns))
        os.replace(f"{path}.part", path)
    except OSError:
        return
    move(claim.box, claim.name, CLAIMED, QUEUED)


if __name__ == "__main__":
    sys.exit(main())
