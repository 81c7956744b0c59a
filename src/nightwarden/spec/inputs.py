"""The run inputs a workflow declares: name, type, default, description.

    inputs:
      urls: {type: "list[url]", items: "@urls.txt"}     a default read from a file
      limit: int?                                       short for {type: "int?"}

A default makes an input optional. It is checked against its type here, once. This layer opens
no files: who loads hands in a reader.

Read next: `items.py`, `nodefile.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, get_args, get_origin

from nightwarden.spec.catalog import MISSING
from nightwarden.spec.checker import Checker, Misfit
from nightwarden.spec.document import Document, Path
from nightwarden.spec.draft import DraftInput
from nightwarden.spec.findings import Findings, suggestion
from nightwarden.spec.items import read_items
from nightwarden.spec.refs import BadReference, is_id, literal
from nightwarden.spec.types import parse_type, type_text
from nightwarden.spec.workflow import InputSpec

INPUT_KEYS: Final = ("type", "default", "description", "items")

ReadText = Callable[[str], str]
"""Reads a file named in a workflow, relative to it. May raise `OSError` or `UnicodeError`."""


def read_inputs(
    value: object, document: Document, findings: Findings, read_text: ReadText | None = None
) -> list[DraftInput]:
    """The inputs a file declares, as a mapping by name or as a list."""
    if value is None:
        return []
    reader = _Inputs(document, findings, read_text)
    if isinstance(value, Mapping):
        found = [reader.read(name, item, ("inputs", name)) for name, item in value.items()]
    elif isinstance(value, list):
        found = [reader.listed(item, ("inputs", i)) for i, item in enumerate(value)]
    else:
        reader.wrong("inputs have to be a mapping from names to types", ("inputs",))
        return []
    return _first_of_each(found, findings)


def _first_of_each(found: list[DraftInput | None], findings: Findings) -> list[DraftInput]:
    named: dict[str, DraftInput] = {}
    for item in found:
        if item is None:
            continue
        if item.spec.name in named:
            before = named[item.spec.name].line
            findings.error(
                "duplicate-id",
                f"there are two inputs {item.spec.name!r}{f' (line {before})' if before else ''}",
                "rename one of them",
                line=item.line,
            )
        named.setdefault(item.spec.name, item)
    return list(named.values())


def normal_type(text: str) -> tuple[Any, str]:
    """The annotation of an input's type, and the one way to write it. Raises `ValueError`."""
    annotation = parse_type(text)
    return annotation, type_text(annotation)


class _Inputs:
    def __init__(self, document: Document, findings: Findings, read_text: ReadText | None) -> None:
        self._document = document
        self._findings = findings
        self._read_text = read_text

    def wrong(self, message: str, path: Path, remedy: str = "", rule: str = "bad-value") -> None:
        self._findings.error(rule, message, remedy, line=self._document.line(*path))

    def listed(self, item: object, path: Path) -> DraftInput | None:
        name = item.get("name") if isinstance(item, Mapping) else None
        if not isinstance(item, Mapping) or not isinstance(name, str):
            self.wrong("an input in a list needs a name", path, "as in {name: urls, type: …}")
            return None
        return self.read(name, {k: v for k, v in item.items() if k != "name"}, path)

    def read(self, name: str, item: object, path: Path) -> DraftInput | None:
        if not is_id(name):
            self.wrong(
                f"an input cannot be called {name!r}",
                path,
                "use letters, digits, _ and -, beginning with a letter or _",
                "bad-id",
            )
            return None
        spec = {"type": item} if isinstance(item, str) else {} if item is None else item
        if not isinstance(spec, Mapping):
            self.wrong(f"input {name!r} has to be a type or a mapping", path, f"{name}: str")
            return None
        for key in spec:
            if key not in INPUT_KEYS:
                remedy = suggestion(key, INPUT_KEYS, what="keys")
                self.wrong(f"an input has no key {key!r}", (*path, key), remedy, "unknown-key")
        annotation, text = self._type(name, spec.get("type", "json"), (*path, "type"))
        return DraftInput(
            InputSpec(
                name=name,
                type=text,
                default=self._default(name, spec, annotation, path),
                description=self._description(name, spec.get("description"), path),
            ),
            self._document.line(*path),
        )

    def _type(self, name: str, value: object, path: Path) -> tuple[Any, str]:
        remedy = 'as in type: "list[str]"'
        if not isinstance(value, str):
            self.wrong(f"input {name!r}: a type is text", path, remedy, "input-type")
            return Any, "json"
        try:
            return normal_type(value)
        except ValueError as error:
            self.wrong(f"input {name!r}: {error}", path, remedy, "input-type")
            return Any, "json"

    def _description(self, name: str, value: object, path: Path) -> str:
        if value is None or isinstance(value, str):
            return value or ""
        self.wrong(f"the description of input {name!r} has to be text", (*path, "description"))
        return ""

    def _default(
        self, name: str, spec: Mapping[str, object], annotation: Any, path: Path
    ) -> object:
        if "default" in spec and "items" in spec:
            self.wrong(
                f"input {name!r} has a default and items", (*path, "items"), "keep one of the two"
            )
        if "items" in spec:
            return self._items(name, spec["items"], annotation, (*path, "items"))
        if "default" not in spec:
            return MISSING
        return self._read(name, spec["default"], annotation, (*path, "default"))

    def _read(self, name: str, value: object, annotation: Any, path: Path) -> object:
        """A default as the file writes it: `$$` is a dollar, and there are no references."""
        try:
            return self._checked(name, literal(value), annotation, path)
        except BadReference as error:
            remedy = "a default is a value; a literal dollar is $$"
            self.wrong(f"the default of input {name!r}: {error}", path, remedy, "input-default")
            return MISSING

    def _checked(self, name: str, value: object, annotation: Any, path: Path) -> object:
        try:
            return Checker(annotation).coerce(value)
        except Misfit as error:
            remedy = f'"{type_text(annotation)}?" takes null' if value is None else ""
            message = f"the default of input {name!r} is no {type_text(annotation)}: {error}"
            self.wrong(message, path, remedy, "input-default")
            return MISSING

    def _items(self, name: str, value: object, annotation: Any, path: Path) -> object:
        origin = get_origin(annotation)
        if origin is not list and annotation is not Any:
            remedy = f'type: "list[{type_text(annotation)}]"'
            self.wrong(f"input {name!r} has items but is no list", path, remedy, "input-items")
            return MISSING
        if not isinstance(value, str):
            return self._read(name, value, annotation, path)
        text = self._file(name, value, path)
        if text is None:
            return MISSING
        element = get_args(annotation)[0] if origin is list else Any
        return self._checked(name, read_items(text, value, element), annotation, path)

    def _file(self, name: str, value: str, path: Path) -> str | None:
        if not value.startswith("@"):
            remedy = f'write a list, or "@{value}" to read the file {value}'
            self.wrong(f"the items of input {name!r} are one text", path, remedy, "input-items")
            return None
        if self._read_text is None:
            remedy = "give the items where the run is started"
            self.wrong(f"{value} cannot be read here", path, remedy, "input-items")
            return None
        try:
            return self._read_text(value[1:])
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            self.wrong(
                f"the items of input {name!r}: {value[1:]} cannot be read ({reason})",
                path,
                "check the name; it is meant from where the workflow lies",
                "input-items",
            )
            return None
