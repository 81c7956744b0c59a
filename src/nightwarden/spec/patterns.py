"""Regular expressions an author may write: none that could hang whoever matches them.

Python's matcher goes back over what it has tried, and cannot be told to stop: a repetition inside
a repetition, on a text that nearly fits, takes time exponential in its length.

Read next: `monitors.py`.
"""

from __future__ import annotations

import re
from typing import Final

_QUANTIFIED: Final = re.compile(r"\)(?:[*+]|\{(?:\d*,\d*|[2-9]|\d{2,})\})")
_OPEN_ENDED: Final = re.compile(r"[*+]|\{\d*,\d*\}|\|")


def is_runaway(pattern: str) -> bool:
    """Whether a group that repeats, or chooses, is itself repeated: `(a+)+`, `(a+){8}`, `(a|aa)*`.

    Such patterns can take time exponential in the text. Some harmless ones are refused as well;
    a list of the words meant says the same.
    """
    plain = re.sub(r"\\.|\[\^?\]?[^\]]*\]", "x", pattern)
    starts: list[int] = []
    for i, char in enumerate(plain):
        if char == "(":
            starts.append(i)
        elif char == ")" and starts:
            inside = plain[starts.pop() + 1 : i].removeprefix("?:")
            if _QUANTIFIED.match(plain, i) and _OPEN_ENDED.search(inside):
                return True
    return False
