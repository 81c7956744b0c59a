"""data.*: building records, and computing with what is in them.

Read next: `_expressions.py`, `flow.py`.
"""

from __future__ import annotations

from nightwarden.nodes.builtin._expressions import Expression, evaluate
from nightwarden.nodes.define import node


@node(retry_safe=True, inline=True, pure=True)
def record(**fields: object) -> dict[str, object]:
    """Build a record from further inputs: each becomes the field of its name, in their order."""
    return fields


@node(type="data.Map", retry_safe=True, inline=True, pure=True)
def map_(expression: Expression, *, item: object = None, **fields: object) -> object:
    """Compute a value from an item by an expression: `item.price * 1.19`, `len(item.tags) > 2`.

    `item` and all further inputs are known by their names. Parts are reached as `item.name` or
    `item["name"]`; there are arithmetic, comparison, `and or not`, `x if y else z`, lists, records,
    `[x for x in y if z]`, and the functions abs all any bool count decimal endswith float get int
    join keys len list lower max min replace round sorted split startswith str strip sum title upper
    values. What takes too long, or makes too much, fails (code `expression`).
    """
    return evaluate(expression, {"item": item, **fields})
