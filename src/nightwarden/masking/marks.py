"""What stands in a record where something was taken out.

    ••••(PARTNER_KEY)   a secret, by the name it was asked for under
    ••••(field)         the value of a field with a telling name, such as `password`
    ••••(hidden)        masking failed, so everything is hidden
    …(+1,234 chars)     a cut, with how much was left out

No bracket, quote, backslash or percent sign: the marks stay readable in JSON, URLs, HTML and
terminal markup. A value that contains one is no value any more: `contains_mark` finds it.

Read next: `redaction.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from nightwarden.masking.anatomy import Items, Pairs, Text, anatomy_of

MASK_PREFIX: Final = "••••("
CUT_PREFIX: Final = "…(+"

_LABEL = re.compile(r"[^A-Za-z0-9_.-]+")


def mask_of(name: str) -> str:
    """The mark of a secret: `••••(NAME)`; the name is reduced to harmless characters."""
    return f"{MASK_PREFIX}{_LABEL.sub('_', name)[:64] or 'secret'})"


def cut_of(count: int, what: str) -> str:
    """The mark of a cut: `…(+1,234 chars)`."""
    return f"{CUT_PREFIX}{count:,} {what})"


FIELD: Final = mask_of("field")
HIDDEN: Final = mask_of("hidden")

# As JSON (escaped once or more), a URL and HTML would write the two prefixes.
_MARK = re.compile(
    r"••••\(|…\(\+"
    r"|(?:\\+u2022){4}|\\+u2026\(\+"
    r"|(?:%(?:25)*E2%(?:25)*80%(?:25)*A2){4}|%(?:25)*E2%(?:25)*80%(?:25)*A6(?:\(|%(?:25)*28)"
    r"|(?:&(?:bull|#8226|#x2022);){4}|&(?:hellip|#8230|#x2026);\(\+",
    re.IGNORECASE,
)


def has_mark(text: str) -> bool:
    """Whether a mask or cut mark stands in `text`, as it is or escaped."""
    return _MARK.search(text) is not None


def contains_mark(value: object) -> bool:
    """Whether a mask or cut mark stands anywhere in `value`, in a key or in a value.

    Such a value was written from a masked record and must not go on as data. A container that
    cannot be read may hold one too.
    """
    seen: set[int] = set()
    alive: list[object] = []
    todo = [value]
    while todo:
        part = todo.pop()
        if id(part) in seen:
            continue
        anatomy = anatomy_of(part)
        if isinstance(anatomy, Text):
            if has_mark(anatomy.text):
                return True
        elif isinstance(anatomy, Pairs | Items):
            seen.add(id(part))
            alive.append(part)  # so that its id is not used again
            try:
                todo.extend(_parts(anatomy))
            except BaseException:  # the container's own code; nothing is awaited here
                return True
    return False


def _parts(anatomy: Pairs | Items) -> Iterator[object]:
    if isinstance(anatomy, Items):
        yield from anatomy.items
        return
    for key, value in anatomy.pairs:
        yield key
        yield value
