"""Private copies of mutable values.

A value is shared as long as nobody can notice. A copy is made where it goes to several
consumers, and for a step that may be run again; which of the two holds depends on the graph
and the node types only, never on whether anybody supervises.

Read next: `binding.py`.
"""

from __future__ import annotations

import copy
import marshal

SHARED = frozenset(
    (str, int, float, bool, bytes, type(None), complex, frozenset, range, type, type(Ellipsis))
)
"""Types whose values never change. A tuple is looked into."""


class NotCopiable(Exception):
    """The value cannot be copied; it is shared, and its step cannot be retried."""


def private(value: object) -> object:
    """A copy nobody else holds, or the value itself where it cannot change.

    Raises `NotCopiable`.
    """
    if type(value) in SHARED:
        return value
    try:
        # For plain containers of plain values this is ten times faster than `deepcopy`,
        # and keeps shared parts shared. Anything else it refuses.
        return marshal.loads(marshal.dumps(value))  # type: ignore[arg-type]
    except ValueError:
        pass
    try:
        return copy.deepcopy(value)
    except Exception as error:
        raise NotCopiable(f"{type(value).__name__} cannot be copied") from error
