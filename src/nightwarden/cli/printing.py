"""What steps print while a run goes on passes the mask, like everything else they say.

    with masked_printing(session.masked): …

A secret that is printed in one piece is masked, on the terminal and in the file a detached run
prints to; text without one is handed on as it is, at once. What a step writes to the file
descriptors itself, or lets another program write, is its own.

Read next: `running.py`.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any, TextIO, cast


class MaskedStream:
    """A text stream that masks what is written to it, and is in all else the stream it wraps."""

    def __init__(self, stream: TextIO, mask: Callable[[str], str]) -> None:
        self._stream = stream
        self._mask = mask

    def write(self, text: str) -> int:
        """Write the text masked; as many characters count as were given."""
        self._stream.write(self._mask(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write them one by one."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def masked_printing(mask: Callable[[str], str]) -> Iterator[None]:
    """Mask what is printed until the block ends."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (_masked(stream, mask) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _masked(stream: TextIO, mask: Callable[[str], str]) -> TextIO:
    # A process may be started without one.
    return stream if stream is None else cast("TextIO", MaskedStream(stream, mask))
