"""`docs/reference/events.md` is written from the code, and is what the code says (issue 4)."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from nightwarden import events
from nightwarden.events import Event
from nightwarden.lineage import Lineage

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "events.md"


def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "events_reference", ROOT / "tools" / "events_reference.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


REFERENCE = tool()


def test_the_page_is_what_the_code_says() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert written == REFERENCE.page(), "write it again with `make pages`"


def test_every_event_there_is_stands_on_the_page() -> None:
    exported = {
        str(kind.__struct_config__.tag)
        for kind in vars(events).values()
        if isinstance(kind, type) and issubclass(kind, Event)
    }
    tags = {tag for tag in exported if tag[0].islower()}
    assert {"run_started", "invocation_failed", "supervisor_outcome"} <= tags
    assert tags <= set(re.findall(r"^### (\w+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))


def test_every_field_has_a_meaning_below_it_in_the_source_or_in_the_table() -> None:
    silent = [
        f"{kind.__name__}.{name}"
        for kind in REFERENCE.all_kinds()
        if issubclass(kind, msgspec.Struct)
        for name, meaning in REFERENCE.meanings_of(kind).items()
        if not meaning
    ]
    assert silent == [], "say in tools/event_fields.toml what they mean"


def test_every_event_says_what_it_is() -> None:
    assert [kind.__name__ for kind in REFERENCE.all_kinds() if not kind.__doc__] == []


def test_nothing_is_said_of_what_there_is_not() -> None:
    known: dict[str, set[str]] = {"everywhere": set()}
    for kind in REFERENCE.all_kinds():
        for part in kind.__mro__:
            if part is msgspec.Struct or not issubclass(part, msgspec.Struct):
                continue
            names = set(part.__struct_fields__)
            known["everywhere"] |= names
            known.setdefault(part.__name__, set()).update(names)
            known.setdefault(str(part.__struct_config__.tag), set()).update(names)
    said = REFERENCE._MEANINGS
    stray = [f"{table}.{name}" for table in said for name in set(said[table]) - known[table]]
    assert stray == []


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        (str, "text"),
        (float | None, "number or null"),
        (Lineage, "list of whole numbers"),
        (tuple[str, int], "[text, whole number]"),
        (tuple[tuple[str, Lineage], ...], "list of [text, list of whole numbers]"),
        (dict[str, object], "object"),
        (dict[str, str], "object of texts"),
        (list[dict[str, object]], "list of objects"),
    ],
)
def test_types_are_told_in_the_words_of_json(hint: object, words: str) -> None:
    assert REFERENCE.type_text(hint) == words
