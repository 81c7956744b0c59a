"""A repair of a long value as a JSON Patch (RFC 6902): only what changes is written.

    candidate, slots ─▶ {slot: value, …} ─▶ patch ─▶ the outputs

The value is patched as it is in this process, so that what is masked or cut for a reader stays
whole. Whether the outputs may enter the graph is for `substitution.py` to say.

Read next: `substitution.py`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Final, cast

LARGEST_PATCH: Final = 200
"""Operations in one patch, at most."""


class BadPatch(ValueError):
    """A patch that cannot be applied; the message says which operation, and why."""


def repairable(candidate: object, slots: Sequence[str]) -> dict[str, object]:
    """The broken value as the object a patch is written for: every declared slot, by name.

    A mapping that has a slot's name among its keys is the outputs themselves, as far as they
    go; anything else is the value of the only slot, or of the first.
    """
    if isinstance(candidate, Mapping) and any(slot in candidate for slot in slots):
        return {slot: candidate.get(slot) for slot in slots}
    rest: dict[str, object] = dict.fromkeys(slots)
    if slots:
        rest[slots[0]] = candidate
    return rest


def apply_patch(
    document: Mapping[str, object], patch: Sequence[Mapping[str, object]]
) -> dict[str, object]:
    """The document after every operation; it is left as it was. Raises `BadPatch`."""
    from jsonpatch import JsonPatch, JsonPatchException  # noqa: PLC0415  (for repairs only)
    from jsonpointer import JsonPointerException  # noqa: PLC0415

    if not patch or len(patch) > LARGEST_PATCH:
        raise BadPatch(f"a patch has 1 to {LARGEST_PATCH} operations, this one has {len(patch)}")
    changed: object = copy.deepcopy(dict(document))
    for number, operation in enumerate(patch, start=1):
        try:
            changed = JsonPatch([dict(operation)]).apply(changed)
        except (JsonPatchException, JsonPointerException, TypeError, KeyError, ValueError) as error:
            told = " ".join(str(error).split()) or type(error).__name__
            what = f"{operation.get('op', '?')} {operation.get('path', '?')}"
            raise BadPatch(f"operation {number} ({what}): {told[:200]}") from None
    if not isinstance(changed, dict):
        raise BadPatch("a patch has to leave an object with the step's outputs")
    return cast("dict[str, object]", changed)
