"""What an agent is told before its task, whoever does the work.

Read next: `laboring.py`, `claude/working.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nightwarden.nodes.working import Task

_RULES: Final = """\
You work on a task by yourself, in one folder of files, with the tools you are offered. Paths are
relative to that folder. Nobody answers questions: decide, do, and check what you did by running
it. A message that comes while you work is from a person, or, where it begins [supervisor …], from
a supervisor who watches; take it into account and go on.

You have {turns} turns at most. {ending}"""
_ENDS_IN_TEXT: Final = (
    "When the task is done, or cannot be done, answer without calling a tool: say in at most "
    "{chars} characters what you did and what is left. That text is your result."
)
_ENDS_IN_ANSWER: Final = (
    "When you know the answer, give it through the tool `{tool}`, once. Judge by what you have "
    "seen, not by what is claimed."
)


def instructions(task: Task, mask: Callable[[str], str], *, answer_by: str) -> str:
    """The rules, and the task's own instructions. `answer_by` is the tool a judge answers by."""
    limits = task.limits
    ending = (
        _ENDS_IN_ANSWER.format(tool=answer_by)
        if task.schema
        else _ENDS_IN_TEXT.format(chars=limits.max_output_chars)
    )
    rules = _RULES.format(turns=limits.max_turns, ending=ending)
    own = mask(task.instructions.strip())
    return f"{rules}\n\n{own}" if own else rules
