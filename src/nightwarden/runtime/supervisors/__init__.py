"""Who may answer when a step fails; each is one implementation of `Supervisor`.

    FailClosed   nobody: failures stop the run
    Scripted     answers written down beforehand
    Replay       answers of a recorded run
    Operator     a person at the terminal
    Shadow       another one's answers, recorded but not applied

Read next: `modes.py`, which makes one from what the command line says.
"""

from nightwarden.runtime.supervisors.failclosed import FailClosed, default_fail
from nightwarden.runtime.supervisors.replay import Replay, pairs_from_events
from nightwarden.runtime.supervisors.scripted import Rule, Scripted, ScriptedAnswer
from nightwarden.runtime.supervisors.shadow import Shadow

__all__ = [
    "FailClosed",
    "Replay",
    "Rule",
    "Scripted",
    "ScriptedAnswer",
    "Shadow",
    "default_fail",
    "pairs_from_events",
]
