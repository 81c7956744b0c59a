"""Writes `docs/reference/events.md` from the code: every event, its fields, what they mean.

    python tools/events_reference.py           writes the page
    python tools/events_reference.py --check   says whether it is up to date

One family a module of `nightwarden.events`; what is said of an event is its docstring. What a
field means stands below it in the source, or in `event_fields.toml` beside this file.
"""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import itertools
import pkgutil
import re
import sys
import textwrap
import tomllib
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Union, get_args, get_origin

import msgspec

import nightwarden.events
from nightwarden.events import Event

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "events.md"
_MEANINGS: Mapping[str, Mapping[str, str]] = tomllib.loads(
    Path(__file__).with_name("event_fields.toml").read_text(encoding="utf-8")
)

FAMILIES = ("run", "node", "invocation", "supervision", "budget", "agent", "steering")
"""In this order; modules that are not named here follow by name."""

HEAD = """\
# Events

<!-- Written by tools/events_reference.py. Do not edit: mend the docstrings, then `make pages`. -->

A run says what it does as a sequence of events. They are the record: reports, costs, resume and
replay are read from them, and `Session.subscribe` hands them to a program as they come. Each is
one JSON object, and its `type` says which.

* Pass over types and fields you do not know. A field that is missing has nothing to say.
* Values are masked before they get here. Money is in millionths of a dollar (`…_micro_usd`),
  durations are in seconds (`…_s`).
* Lineages count from 0, with a number for each fan-out an item lies under; people are shown
  them from 1.
* Exactly one of `run_completed`, `run_failed`, `run_cancelled` and `run_suspended` comes last,
  until somebody resumes the run.
"""


def page() -> str:
    """The whole page."""
    parts = [HEAD, _contents(), "## In every event\n", _table(Event, _meanings(Event))]
    for module, events in families():
        parts.append(f"## {_title(module)}\n")
        parts += [_section(event) for event in events]
    parts.append("## Records in them\n")
    parts += [_record(record) for record in _records()]
    return "\n".join(parts)


def families() -> Iterator[tuple[types.ModuleType, Sequence[type[Event]]]]:
    """The modules of events, each with the events it defines, in order."""
    names = {found.name for found in pkgutil.iter_modules(nightwarden.events.__path__)}
    for name in (*FAMILIES, *sorted(names.difference(FAMILIES))):
        if name not in names:
            continue
        module = importlib.import_module(f"nightwarden.events.{name}")
        events = [value for value in vars(module).values() if _is_event(value, module)]
        if events:
            yield module, events


def meanings_of(kind: type[msgspec.Struct]) -> Mapping[str, str]:
    """What each field of an event or record means; empty where nobody says it."""
    return _meanings(kind)


def all_kinds() -> list[type[msgspec.Struct]]:
    """Everything the page has fields of."""
    return [Event, *(event for _, events in families() for event in events), *_records()]


def _is_event(value: object, module: types.ModuleType) -> bool:
    return (
        isinstance(value, type)
        and issubclass(value, Event)
        and value.__module__ == module.__name__
        and _tag(value) != value.__name__  # without a tag of its own it is a base of others
    )


def _tag(kind: type[msgspec.Struct]) -> str:
    return str(kind.__struct_config__.tag)


def _title(module: types.ModuleType) -> str:
    first = " ".join(inspect.cleandoc(module.__doc__ or "").split("\n\n")[0].split())
    return first.partition(". ")[0].rstrip(".")


def _contents() -> str:
    lines = []
    for module, events in families():
        family = module.__name__.rpartition(".")[2]
        lines.append(f"* {family}: " + " · ".join(f"[`{_tag(e)}`](#{_tag(e)})" for e in events))
    return "\n".join(lines) + "\n"


def _section(event: type[Event]) -> str:
    meanings = _meanings(event)
    own = {name: meanings[name] for name in meanings if name not in Event.__struct_fields__}
    told = [f"### {_tag(event)}\n", _summary(event) + "\n"]
    return "\n".join(told + ([_table(event, own)] if own else []))


def _record(record: type[Any]) -> str:
    title = f"### {record.__name__}\n"
    if issubclass(record, enum.Enum):
        values = ", ".join(f"`{member.value}`" for member in record)
        return f"{title}\n{_summary(record)}\n\nOne of {values}.\n"
    lines = [title, _summary(record) + "\n"]
    if record.__struct_config__.tag is not None:
        lines.append(f"`{record.__struct_config__.tag_field}` is `{_tag(record)}`.\n")
    if record.__struct_fields__:
        lines.append(_table(record, _meanings(record)))
    return "\n".join(lines)


def _table(kind: type[msgspec.Struct], meanings: Mapping[str, str]) -> str:
    hints = typing.get_type_hints(kind)
    rows = [
        f"| `{name}` | {type_text(hints[name])} | {_cell(meaning)} |"
        for name, meaning in meanings.items()
    ]
    return "\n".join(["| field | type | meaning |", "|---|---|---|", *rows, ""])


def _cell(text: str) -> str:
    return text.rstrip(".").replace("|", "\\|")


# -- what is said --


def _meanings(kind: type[msgspec.Struct]) -> dict[str, str]:
    return {name: _meaning(kind, name) for name in kind.__struct_fields__}


def _meaning(kind: type[msgspec.Struct], name: str) -> str:
    """What stands below the field in the source, else in the table of meanings."""
    for part in kind.__mro__:
        if issubclass(part, msgspec.Struct) and part is not msgspec.Struct:
            said = _below_fields(part).get(name) or _table_of(part).get(name)
            if said:
                return said
    return _MEANINGS["everywhere"].get(name, "")


def _table_of(kind: type[msgspec.Struct]) -> Mapping[str, str]:
    key = kind.__name__ if _tag(kind) in (kind.__name__, "None") else _tag(kind)
    return {**_MEANINGS.get(kind.__name__, {}), **_MEANINGS.get(key, {})}


def _below_fields(kind: type[msgspec.Struct]) -> Mapping[str, str]:
    """String literals below fields, as they are written for whoever reads the source."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, after in itertools.pairwise(body.body):
        match field, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=said)):
                found[name] = " ".join(str(said).split())
    return found


def _summary(kind: type[Any]) -> str:
    """The docstring as paragraphs."""
    return inspect.cleandoc(vars(kind).get("__doc__") or "")


# -- types --

_WORDS = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    object: "any value",
    types.NoneType: "null",
}


def type_text(hint: Any) -> str:
    """A type as JSON has it."""
    if hint in _WORDS:
        return _WORDS[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        words = [type_text(a) for a in arguments]
        return " or ".join([w for w in words if w != "null"] + ["null"] * ("null" in words))
    if hint is typing.Any:
        return "any value"
    if isinstance(hint, typing.NewType):
        return type_text(hint.__supertype__)
    if origin is tuple and Ellipsis not in arguments:
        return f"[{', '.join(map(type_text, arguments))}]"
    if origin is tuple or origin is list:
        return f"list of {_several(type_text(arguments[0]))}"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        value = type_text(arguments[1])
        return "object" if value == "any value" else f"object of {_several(value)}"
    if isinstance(hint, type) and issubclass(hint, (msgspec.Struct, enum.Enum)):
        return f"[{hint.__name__}](#{hint.__name__.lower()})"
    raise TypeError(f"no words for {hint!r}")


def _several(word: str) -> str:
    known = {"text": "texts", "any value": "any values", "true or false": "truth values"}
    if word.startswith("["):
        return word
    return known.get(word, re.sub(r"^(\w+( number)?)\b", r"\1s", word))


def _records() -> list[type[Any]]:
    """The records and closed sets that events hold, in the order they are met."""
    found: dict[type[Any], None] = {}
    todo: list[Any] = [e for _, events in families() for e in events]
    while todo:
        kind = todo.pop(0)
        for hint in typing.get_type_hints(kind).values():
            for part in _parts(hint):
                if part not in found and not issubclass(part, Event):
                    found[part] = None
                    if issubclass(part, msgspec.Struct):
                        todo.append(part)
    return list(found)


def _parts(hint: Any) -> Iterator[type[Any]]:
    if isinstance(hint, type) and issubclass(hint, (msgspec.Struct, enum.Enum)):
        yield hint
    for argument in get_args(hint):
        yield from _parts(argument)


def main(arguments: Sequence[str]) -> int:
    """Write the page, or compare it."""
    text = page()
    if "--check" not in arguments:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write("docs/reference/events.md is out of date; `make pages` writes it again\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
