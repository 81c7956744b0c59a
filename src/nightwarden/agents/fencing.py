"""What comes from the run stands inside a fence, so that it cannot be taken for instructions.

    <data-9f2c41… about="error">
    …whatever the page, the API or the file said…
    </data-9f2c41…>

The fence's name is drawn anew for every conversation and cannot be guessed by whoever wrote the
data, so that no text in it can close the fence. The instructions say what the name means.

Read next: `prompt.py`.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Final

import msgspec

_BYTES: Final = 12


class Fence:
    """The fence of one conversation. `draw` gives its name; only tests have a say in it."""

    def __init__(self, draw: Callable[[], str] = lambda: secrets.token_hex(_BYTES)) -> None:
        self.tag = f"data-{draw()}"

    def around(self, about: str, text: str) -> str:
        """The text as data. `about` is a word of ours, never of the run's."""
        # It would have to be guessed; should it ever be, it is taken apart.
        safe = text.replace(self.tag, "data-…").encode("utf-8", "replace").decode()
        return f'<{self.tag} about="{about}">\n{safe}\n</{self.tag}>'


def as_text(value: object) -> str:
    """A value as text: text as it is, everything else as JSON."""
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.format(msgspec.json.encode(value, enc_hook=repr), indent=1).decode()
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError, UnicodeError):
        return repr(value)
