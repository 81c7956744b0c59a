"""Reading YAML 1.2 with line numbers, bounded, into plain data.

`no` is text, and so is `2026-11-30`. Anchors, aliases and merge keys work; an alias costs what
it stands for, so a file cannot blow up. Values are made of parser events, never of tags: a
YAML file cannot create anything but plain data.

Read next: `document.py`, `yamlerror.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from nightwarden.spec.document import DEEPEST, LARGEST, LINES_DEEPEST, Document, Path, doubled
from nightwarden.spec.findings import Findings
from nightwarden.spec.yamlerror import explain

_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_TRUE = frozenset(("true", "True", "TRUE"))
_FALSE = frozenset(("false", "False", "FALSE"))
_INT = re.compile(r"[-+]?[0-9]{1,400}")
_OCTAL_HEX = re.compile(r"0o([0-7]{1,400})|0x([0-9a-fA-F]{1,400})")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_TAGS = "tag:yaml.org,2002:"
_KNOWN_TAGS = ("str", "int", "float", "bool", "null", "map", "seq")
_MERGE = "<<"


class _Stop(Exception):
    """The text cannot be read further; the reason is among the findings."""


@dataclass(slots=True)
class _Open:
    """A mapping or list that is still being read."""

    path: Path
    line: int
    anchor: str | None
    value: dict[str, object] | list[object]
    size: int = 1
    key: str | None = None
    skipping: bool = False
    merges: list[object] = field(default_factory=list)
    merging: bool = False

    def place(self) -> Path:
        """The path of the value that comes next."""
        last = len(self.value) if isinstance(self.value, list) else self.key
        return (*self.path, "" if last is None else last)

    @property
    def wants_key(self) -> bool:
        return isinstance(self.value, dict) and self.key is None and not self.skipping


def read_yaml(text: str, findings: Findings) -> Document | None:
    """Parse YAML text; None, and the reason in `findings`, when it is none."""
    from ruamel.yaml import YAML  # noqa: PLC0415  (takes 20 ms to import)
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415

    reader = _Reader(findings)
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            reader.take(event)
    except YAMLError as error:
        message, remedy, line = explain(error, text)
        findings.error("yaml-syntax", message, remedy, line=line)
        return None
    except (ValueError, RecursionError) as error:
        findings.error("yaml-syntax", f"the file cannot be read: {error}", "check its syntax")
        return None
    except _Stop:
        return None
    if not reader.documents:
        findings.error("empty-file", "the file is empty", "write a workflow into it")
        return None
    return Document(reader.root, reader.lines)


class _Reader:
    def __init__(self, findings: Findings) -> None:
        self.root: object = None
        self.documents = 0
        self.lines: dict[Path, int] = {}
        self._findings = findings
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[object, int]] = {}

    def take(self, event: Any) -> None:
        """Take one parser event."""
        line = event.start_mark.line + 1
        match type(event).__name__:
            case "ScalarEvent":
                self._scalar(event, line)
            case "AliasEvent":
                self._alias(event.anchor, line)
            case "MappingStartEvent":
                self._begin({}, event, line)
            case "SequenceStartEvent":
                self._begin([], event, line)
            case "MappingEndEvent" | "SequenceEndEvent":
                self._end()
            case "DocumentStartEvent":
                self._document(line)

    def _document(self, line: int) -> None:
        self.documents += 1
        self._anchors.clear()
        if self.documents > 1:
            self._findings.error(
                "yaml-syntax",
                "the file holds a second document after ---",
                "keep one workflow a file",
                line=line,
            )
            raise _Stop

    def _scalar(self, event: Any, line: int) -> None:
        top = self._stack[-1] if self._stack else None
        plain = bool(event.implicit[0])
        if top is not None and top.wants_key and plain and event.value == _MERGE:
            top.key, top.merging = _MERGE, True
            return
        value = self._resolved(event, line, plain=plain)
        if event.anchor:
            self._anchors[event.anchor] = (value, 1)
        self._put(value, 1, line)

    def _resolved(self, event: Any, line: int, *, plain: bool) -> object:
        if plain:
            return self._plain(event.value, line)
        tag = str(event.tag or "")
        if not tag or tag == "!" or tag == _TAGS + "str":
            return event.value
        name = tag.removeprefix(_TAGS)
        if name in _KNOWN_TAGS:
            return self._plain(event.value, line)
        self._bad_tag(tag, line)
        return event.value

    def _bad_tag(self, tag: str, line: int) -> None:
        self._findings.error(
            "bad-tag", f"the tag {tag!r} has no meaning here", "write the value plainly", line=line
        )

    def _plain(self, text: str, line: int) -> object:
        if text in _NULLS:
            return None
        if text in _TRUE or text in _FALSE:
            return text in _TRUE
        if _INT.fullmatch(text):
            return int(text)
        based = _OCTAL_HEX.fullmatch(text)
        if based is not None:
            return int(based[1], 8) if based[1] else int(based[2], 16)
        if _NOT_FINITE.fullmatch(text) or (_FLOAT.fullmatch(text) and abs(float(text)) > 1e308):
            self._findings.error(
                "bad-value", f"{text} cannot be written in JSON", "use a finite number", line=line
            )
            return None
        return float(text) if _FLOAT.fullmatch(text) else text

    def _alias(self, name: str, line: int) -> None:
        if name not in self._anchors:
            inside = any(opened.anchor == name for opened in self._stack)
            what = "stands inside what it names" if inside else "names no anchor above it"
            remedy = f'if the text *{name} is meant, quote it: "*{name}"'
            self._findings.error("bad-alias", f"*{name} {what}", remedy, line=line)
            raise _Stop
        value, size = self._anchors[name]
        self._put(value, size, line)

    def _begin(self, value: dict[str, object] | list[object], event: Any, line: int) -> None:
        tag = str(event.tag or "")
        if tag and tag != "!" and tag.removeprefix(_TAGS) not in _KNOWN_TAGS:
            self._bad_tag(tag, line)
        if len(self._stack) >= DEEPEST:
            self._too_much("too-deep", f"values are nested more than {DEEPEST} deep", line)
        top = self._stack[-1] if self._stack else None
        path = () if top is None else top.place()
        self._stack.append(_Open(path, line, event.anchor, value))

    def _end(self) -> None:
        done = self._stack.pop()
        if isinstance(done.value, dict):
            for other in reversed([m for merged in done.merges for m in _mappings(merged)]):
                done.value = {**other, **done.value}
        if done.anchor:
            self._anchors[done.anchor] = (done.value, done.size)
        self._put(done.value, done.size, done.line)

    def _put(self, value: object, size: int, line: int) -> None:
        if not self._stack:
            self.root = value
            self.lines.setdefault((), line)
            return
        top = self._stack[-1]
        top.size += size
        if top.size > LARGEST:
            self._too_much(
                "too-large", f"with its aliases written out it has over {LARGEST:,} values", line
            )
        if isinstance(top.value, list):
            self._note(top.place(), line)
            top.value.append(value)
        elif top.key is None and not top.skipping:
            self._key(top, top.value, value, line)
        else:
            self._member(top, top.value, value)

    def _key(self, top: _Open, into: dict[str, object], key: object, line: int) -> None:
        if not isinstance(key, str):
            shown = "a list or mapping" if isinstance(key, (list, dict)) else repr(key)
            self._findings.error(
                "bad-key", f"{shown} is a key, but keys are text", "put it in quotes", line=line
            )
        elif key in into:
            first = self.lines.get((*top.path, key))
            before = f" (first on line {first})" if first else ""
            self._findings.error(
                doubled(top.path),
                f"the key {key!r} stands twice{before}",
                "remove or rename one of the two",
                line=line,
            )
        else:
            top.key = key
            self._note((*top.path, key), line)
            return
        top.skipping = True

    def _member(self, top: _Open, into: dict[str, object], value: object) -> None:
        if top.merging:
            top.merges.append(value)
        elif top.key is not None:
            into[top.key] = value
        top.key, top.skipping, top.merging = None, False, False

    def _note(self, path: Path, line: int) -> None:
        if len(path) <= LINES_DEEPEST:
            self.lines.setdefault(path, line)

    def _too_much(self, rule: str, message: str, line: int) -> None:
        remedy = "keep data in files of their own and read them with a step"
        self._findings.error(rule, message, remedy, line=line)
        raise _Stop


def _mappings(merged: object) -> Iterator[dict[str, object]]:
    """The mappings a merge key names, the first one winning."""
    for part in merged if isinstance(merged, list) else [merged]:
        if isinstance(part, dict):
            yield part
