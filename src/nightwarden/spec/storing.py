"""What of a value a record can keep, so that a later process has the same value again.

    plain_form(checker, value)   plain JSON data, and whether the value can be made of it
    original(checker, data)      the value

Every value is tried: what its plain form would be read back as is compared with it. A value that
fails (an open file, a tuple where nothing says tuple, a secret's mask) is *sealed*: a record may
show it, but whoever needs it has to compute it again.

Read next: `checker.py`.
"""

from __future__ import annotations

import msgspec

from nightwarden.spec.checker import Checker, Misfit
from nightwarden.spec.workflow import NodeSpec, Workflow

_AS_IT_IS = frozenset((str, bool, int, type(None)))
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def plain_form(checker: Checker, value: object) -> tuple[object, bool]:
    """The value as plain data, and whether `original` gives it back. Never raises.

    With False, what is returned is the value itself, for a record to show as well as it can.
    """
    if type(value) in _AS_IT_IS:
        return value, True
    try:
        plain = _decode(_encode(value))
        if plain == value:
            return value, True
    except Exception:  # what has no form in JSON, and classes with opinions about `==`
        pass
    return _by_type(checker, value)


def original(checker: Checker, data: object) -> object:
    """The value that plain data stands for. Raises `Misfit` where the type has changed."""
    if (type(data) in _AS_IT_IS and type(data) in checker.exact) or not checker.checkable:
        return data
    return checker.revive(data)


def storable(checker: Checker) -> bool:
    """Whether values of this type have a form in a record, as far as the type tells."""
    return checker.anything or checker.checkable


def unstored(workflow: Workflow) -> list[tuple[NodeSpec, str]]:
    """The slots whose values are lost with their process: nobody can keep or make them again."""
    return [
        (node, name)
        for node in workflow.nodes
        if (kind := workflow.types[node.id]).effectful and not kind.engine_owned
        for name, slot in kind.outputs.items()
        if not storable(Checker(slot.type))
    ]


def _by_type(checker: Checker, value: object) -> tuple[object, bool]:
    if not checker.checkable:
        return value, False
    try:
        plain = _decode(_encode(checker.dumped(value)))
        made = original(checker, plain)
        return (plain, True) if type(made) is type(value) and made == value else (value, False)
    except (Misfit, Exception):  # a serializer of the author's own
        return value, False
