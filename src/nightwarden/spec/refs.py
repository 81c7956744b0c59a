"""References in a workflow file: `$page`, `$page.url`, `$row[]`, `$inputs.urls[*]`, `$secrets.KEY`.

A reference is a whole string; there is no interpolation. `[*]` fans a list out, `[]` closes
the innermost fan-out; either may be repeated. A leading `$$` means a literal `$`. A list of
references makes one edge each, in order; below any other container a reference is an error.

    read("$row[]")        → (Reference("row", "", closes=1),)      wired
    read("$secrets.KEY")  → SecretRef("KEY")                       resolved at each invocation
    read("$$5.00")        → Given("$5.00")                         a value

Read next: `sugar.py`, which turns references into edges.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from nightwarden.spec.workflow import INPUTS, SECRETS, SecretRef

_ID = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_REFERENCE = re.compile(
    r"\$(?P<source>[A-Za-z_][A-Za-z0-9_-]*)(?:\.(?P<slot>[^.\[\]\s]+))?(?P<marks>(?:\[\*?\])*)"
)
_DEEPEST = 100
_HOW = "write $node, $node.slot, $inputs.NAME or $secrets.NAME, then [*] or []"


class BadReference(ValueError):
    """A string that begins like a reference and is none. `remedy` says what to write."""

    def __init__(self, message: str, remedy: str) -> None:
        self.remedy = remedy
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Reference:
    """What a string refers to. `slot` is empty where it was left out.

    `fans` counts `[*]`, `closes` counts `[]`; one of them is zero.
    """

    source: str
    slot: str
    fans: int = 0
    closes: int = 0

    def __str__(self) -> str:
        slot = f".{self.slot}" if self.slot else ""
        return f"${self.source}{slot}" + "[*]" * self.fans + "[]" * self.closes


@dataclass(frozen=True, slots=True)
class Given:
    """A value that stands in the file itself, `$$` already read."""

    value: object


Written = Given | SecretRef | tuple[Reference, ...]
"""What may stand at a slot: a value, a secret, or what is wired to it."""


def is_id(text: str) -> bool:
    """Whether a node or input may have this name."""
    return bool(_ID.fullmatch(text))


def read(value: object) -> Written:
    """What a property of the file means. Raises `BadReference`."""
    if isinstance(value, str):
        return _read_text(value)
    if isinstance(value, list) and any(_refers(item) for item in value):
        return tuple(_list_item(item) for item in value)
    return Given(literal(value))


def _read_text(text: str) -> Written:
    if not _refers(text):
        return Given(_unescaped(text))
    found = parse(text)
    return found if isinstance(found, SecretRef) else (found,)


def _list_item(item: object) -> Reference:
    if not isinstance(item, str) or not _refers(item):
        raise BadReference(
            "a list holds either references or values, not both",
            "give the value through a step of its own, or take the references out",
        )
    found = parse(item)
    if isinstance(found, SecretRef):
        raise BadReference(
            f"{item} stands in a list, but a secret is never part of a value",
            "give the secret to a slot of its own",
        )
    return found


def literal(value: object, depth: int = 0) -> object:
    """A value of the file with `$$` read as `$`. Raises `BadReference` for references in it."""
    if depth > _DEEPEST:
        raise BadReference(f"a value is nested more than {_DEEPEST} deep", "make it flatter")
    if isinstance(value, str):
        if _refers(value):
            raise BadReference(
                f"{value} stands inside another value, where nothing can be wired",
                "build the value with data.Record or data.Map; a literal dollar is $$",
            )
        return _unescaped(value)
    if isinstance(value, Mapping):
        return {key: literal(part, depth + 1) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [literal(part, depth + 1) for part in value]
    return value


def _refers(value: object) -> bool:
    return isinstance(value, str) and value.startswith("$") and not value.startswith("$$")


def _unescaped(text: str) -> str:
    return text[1:] if text.startswith("$$") else text


def parse(text: str) -> Reference | SecretRef:
    """The reference a string that begins with a single `$` is. Raises `BadReference`."""
    found = _REFERENCE.fullmatch(text)
    if found is None:
        raise _misread(text)
    source, slot, marks = found["source"], found["slot"] or "", found["marks"]
    fans, closes = marks.count("[*]"), marks.count("[]")
    if source == SECRETS:
        if not slot or marks:
            remedy = "write $secrets.NAME and nothing after it"
            raise BadReference(f"{text} names no secret", remedy)
        return SecretRef(slot)
    if source == INPUTS and not slot:
        raise BadReference(f"{text} names no input", "write $inputs.NAME")
    if fans and closes:
        raise BadReference(
            f"{text} fans out and closes at once, which undoes itself",
            "leave both out, or put a step in between",
        )
    return Reference(source, slot, fans, closes)


def _misread(text: str) -> BadReference:
    shown = text if len(text) <= 60 else text[:57] + "…"
    if re.match(r"\$[\w-]+\.[^.\[\s]+\.", text):
        return BadReference(
            f"{shown} has two dots: a slot has no parts of its own",
            "take a part out of a value with data.Map",
        )
    if re.match(r"\$[\w-]+/", text):
        return BadReference(
            f"{shown} reaches into a subworkflow, whose steps are its own affair",
            "name the value under outputs: in the subworkflow's file, then write $node.name",
        )
    if re.search(r"\[[^\]*]+\]", text):
        return BadReference(
            f"{shown} asks for one item", "only [*] and [] are known; pick items with data.Map"
        )
    if re.match(r"\$[A-Za-z_][\w.-]*(\[\*?\])*\s*\S", text) and re.search(r"\s", text):
        return BadReference(
            f"{shown} has more than a reference in it, and nothing is filled into text here",
            "fill texts with text.Template; for a literal dollar at the beginning write $$",
        )
    return BadReference(f"{shown} is no reference", f"{_HOW}; a literal dollar is $$")
