"""`--input NAME=VALUE` and `--inputs FILE.json`, read as the workflow declares its inputs.

    name=text         as it is where text (or a path, an address) is declared, else as JSON
    name=@file        what the file holds: a text, JSON, or for a list an item a line
    name=@-           the same, from standard input
    name=@@text       a value that begins with @

Whether a value fits its type is the session's to say.

Read next: `run.py`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from nightwarden.cli.failing import Usage

if TYPE_CHECKING:
    from nightwarden.spec.workflow import Workflow


def read_inputs(
    workflow: Workflow, pairs: Sequence[str], file: Path | None = None
) -> dict[str, object]:
    """The inputs given on the command line; single ones win over the file's.

    Raises `Usage` that names the input and what to write.
    """
    from nightwarden.spec.generics import input_types

    types = input_types(workflow)
    found = _from_file(file) if file is not None else {}
    named: set[str] = set()
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise Usage(f"--input wants NAME=VALUE, not {pair!r}")
        name = name.strip()
        if name in named:
            raise Usage(f"input {name} is given twice; a list is {name}=@FILE or {name}='[…]'")
        named.add(name)
        found[name] = _value(name, value, types.get(name, str))
    return found


def _from_file(file: Path) -> dict[str, object]:
    text = _read(str(file), "--inputs")
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Usage(f"--inputs {file}: it is no JSON: {error}") from error
    if not isinstance(values, dict):
        raise Usage(f'--inputs {file}: expected an object such as {{"name": "value"}}')
    return values


def _value(name: str, text: str, annotation: Any) -> object:
    if text.startswith("@@"):
        text = text[1:]
    elif text.startswith("@"):
        return _file_value(name, text[1:], annotation)
    return text if _is_text(annotation) else _parsed(name, text, annotation)


def _file_value(name: str, file: str, annotation: Any) -> object:
    from nightwarden.spec.items import read_items

    if not file:
        raise Usage(f"input {name}: no file is named after the @; a literal @ is written @@")
    text = _read(file, f"input {name}")
    shape = _without_none(annotation)
    if get_origin(shape) is list:
        return read_items(text, file, get_args(shape)[0])
    if shape is str:
        return text
    return text.strip() if _is_text(shape) else _parsed(name, text, annotation)


def _read(file: str, what: str) -> str:
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise Usage(f"{what}: {file} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise Usage(f"{what}: {file} is not UTF-8 text (byte {error.start})") from error


def _parsed(name: str, text: str, annotation: Any) -> object:
    """JSON where it is some; else the text, for the type check to judge."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        if text.lstrip()[:1] in ("[", "{") and not _takes_text(annotation):
            raise Usage(f"input {name}: it is no JSON: {error}") from error
        return text


def _takes_text(annotation: Any) -> bool:
    """Whether a text is one of the things an input may be."""
    if get_origin(annotation) in (Union, UnionType, Annotated):
        return any(_takes_text(kind) for kind in get_args(annotation))
    return annotation in (Any, object) or _is_text(annotation)


def _is_text(annotation: Any) -> bool:
    shape = _without_none(annotation)
    return isinstance(shape, type) and (shape is str or hasattr(shape, "__fspath__"))


def _without_none(annotation: Any) -> Any:
    """The type inside `T?` and inside the markers of an address."""
    if get_origin(annotation) is Annotated:
        return _without_none(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        rest = [part for part in get_args(annotation) if part is not NoneType]
        return _without_none(rest[0]) if len(rest) == 1 else annotation
    return annotation
