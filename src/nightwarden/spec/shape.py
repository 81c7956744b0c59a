"""From the data of a file to a `Draft`: which keys there are, and what may stand at each.

Nodes come as people write them (a mapping by id, slots beside `type`) or in canonical form
(a list with `id` and `properties`, next to a list of edges); both may be mixed.

Read next: `inputs.py`, `nodefile.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from nightwarden.spec.document import Document, Path
from nightwarden.spec.draft import Draft, DraftEdge, DraftOutput
from nightwarden.spec.findings import Findings, suggestion
from nightwarden.spec.inputs import ReadText, read_inputs
from nightwarden.spec.nodefile import read_nodes
from nightwarden.spec.refs import BadReference, Reference, parse
from nightwarden.spec.workflow import INPUTS, VERSION, SecretRef

TOP_KEYS: Final = (
    "version",
    "name",
    "description",
    "inputs",
    "outputs",
    "python",
    "nodes",
    "edges",
    "supervisors",
    "prompts",
    "settings",
)
EDGE_KEYS: Final = ("source", "source_slot", "target", "target_slot", "kind")


def read_shape(
    document: Document, findings: Findings, *, name: str = "", read_text: ReadText | None = None
) -> Draft | None:
    """Read a whole file; None when it is no mapping at all."""
    data = document.data
    if not isinstance(data, Mapping):
        what = "a list" if isinstance(data, list) else "nothing" if data is None else "one value"
        findings.error(
            "empty-file" if data is None else "top-level",
            f"the file holds {what}, not a workflow",
            "begin with version:, name: and nodes:",
            line=document.line() if data is not None else None,
        )
        return None
    return _TopLevel(document, data, findings).read(name, read_text)


class _TopLevel:
    def __init__(self, document: Document, data: Mapping[str, object], findings: Findings) -> None:
        self._document = document
        self._data = data
        self._findings = findings

    def read(self, name: str, read_text: ReadText | None) -> Draft:
        document, findings = self._document, self._findings
        self._keys()
        self._version()
        return Draft(
            name=self._text("name") or name or "workflow",
            description=self._text("description"),
            inputs=read_inputs(self._data.get("inputs"), document, findings, read_text),
            nodes=read_nodes(self._data, document, findings),
            edges=self._edges(),
            outputs=self._outputs(),
            python=self._python(),
            supervisors=self._mapping("supervisors"),
            prompts=self._mapping("prompts"),
            settings=self._mapping("settings"),
            supervisor_lines=dict(self._supervisor_lines()),
            file=findings.file,
        )

    def _keys(self) -> None:
        for key in self._data:
            if key not in TOP_KEYS:
                self._findings.error(
                    "unknown-key",
                    f"a workflow has no key {key!r}",
                    suggestion(key, TOP_KEYS, what="keys"),
                    line=self._document.line(key),
                )

    def _version(self) -> None:
        version = self._data.get("version", VERSION)
        if version != VERSION or isinstance(version, (bool, float)):
            self._findings.error(
                "bad-version",
                f"version is {version!r}, and this program reads version {VERSION}",
                f"write version: {VERSION}, or use a newer program",
                line=self._document.line("version"),
            )

    def _wrong(self, key: str, expected: str, remedy: str = "", *path: str | int) -> None:
        self._findings.error(
            "bad-value",
            f"{key} has to be {expected}",
            remedy,
            line=self._document.line(*(path or (key,))),
        )

    def _text(self, key: str) -> str:
        value = self._data.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            self._wrong(key, "text", "put it in quotes")
            return ""
        if key == "name" and (not value.strip() or "\n" in value):
            self._wrong(key, "one line of text")
            return ""
        return value

    def _mapping(self, key: str) -> Mapping[str, object]:
        value = self._data.get(key)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self._wrong(key, "a mapping from names to what they stand for")
            return {}
        return value

    def _supervisor_lines(self) -> Iterator[tuple[str, int | None]]:
        blocks = self._data.get("supervisors")
        for name, block in blocks.items() if isinstance(blocks, Mapping) else ():
            yield f"supervisors.{name}", self._document.line("supervisors", name)
            for key in block if isinstance(block, Mapping) else ():
                yield f"supervisors.{name}.{key}", self._document.line("supervisors", name, key)

    def _python(self) -> tuple[str, ...]:
        value = self._data.get("python")
        if isinstance(value, str):
            value = [value]
        if value is None:
            return ()
        if not isinstance(value, list):
            self._wrong("python", "a list of Python files with nodes")
            return ()
        for i, item in enumerate(value):
            if not isinstance(item, str) or not item:
                self._wrong("python", "a list of file names", "", "python", i)
        return tuple(item for item in value if isinstance(item, str) and item)

    def _edges(self) -> list[DraftEdge]:
        value = self._data.get("edges")
        if value is None:
            return []
        if not isinstance(value, list):
            self._wrong("edges", "a list", "in people's form, wire slots with $node instead")
            return []
        found = (self._edge(item, ("edges", i)) for i, item in enumerate(value))
        return [edge for edge in found if edge is not None]

    def _edge(self, item: object, path: Path) -> DraftEdge | None:
        if not isinstance(item, Mapping):
            self._wrong("an edge", "a mapping with source and target", "", *path)
            return None
        for key in item:
            if key not in EDGE_KEYS:
                self._findings.error(
                    "unknown-key",
                    f"an edge has no key {key!r}",
                    suggestion(key, EDGE_KEYS, what="keys"),
                    line=self._document.line(*path, key),
                )
        fields = {key: item.get(key) or "" for key in EDGE_KEYS}
        wrong = [k for k, v in fields.items() if not isinstance(v, str)]
        wrong += [k for k in ("source", "target") if not fields[k]]
        if wrong or fields["kind"] not in ("", "data", "control"):
            key = wrong[0] if wrong else "kind"
            expected = "text" if wrong else "'data' or 'control'"
            self._wrong(f"{key} of an edge", expected, "", *path, key)
            return None
        texts = {key: str(value) for key, value in fields.items()}
        texts["kind"] = texts["kind"] or "data"
        return DraftEdge(**texts, line=self._document.line(*path))

    def _outputs(self) -> list[DraftOutput] | None:
        value = self._data.get("outputs")
        if value is None:
            return None
        if isinstance(value, list):
            pairs: list[tuple[str, object, Path]] = [
                (str(item).removeprefix("$").removesuffix("[]"), item, ("outputs", i))
                for i, item in enumerate(value)
            ]
        elif isinstance(value, Mapping):
            pairs = [(key, item, ("outputs", key)) for key, item in value.items()]
        else:
            self._wrong("outputs", "a mapping from names to references", "as in pages: $page.text")
            return None
        found = (self._output(*pair) for pair in pairs)
        return [output for output in found if output is not None]

    def _output(self, name: str, value: object, path: Path) -> DraftOutput | None:
        line = self._document.line(*path)
        try:
            reference = _output_reference(value)
        except BadReference as error:
            self._findings.error("bad-output", f"output {name!r}: {error}", error.remedy, line=line)
            return None
        return DraftOutput(name, reference, line)


def _output_reference(value: object) -> Reference:
    """The slot an output names: `$node.slot[]`, or `node.slot` as the canonical form has it."""
    remedy = "write $node or $node.slot, with [] for the items of a fan-out"
    if not isinstance(value, str) or not value:
        raise BadReference("it names no slot", remedy)
    if not value.startswith("$"):
        node, _, slot = value.rpartition(".")
        found: Reference | SecretRef = Reference(node, slot) if node else Reference(slot, "")
    else:
        found = parse(value)
    if isinstance(found, SecretRef) or found.source == INPUTS or found.fans:
        if isinstance(found, Reference) and found.source == INPUTS:
            remedy = f"lead it through a step: type: flow.Value, value: $inputs.{found.slot}"
        raise BadReference(f"{value} is nothing a step puts out", remedy)
    return found
