"""Files of React-Flow style editors: `sourceHandle`, `targetHandle`, `data`.

Such an editor keeps a node's values below `data` (or `data.properties`) and its own things,
positions and the like, beside them; those are carried along as `ui`. A value saved for a slot
that has since been wired is dropped: the wire is what the author sees.

Read next: `shape.py`, `nodefile.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nightwarden.spec.catalog import Catalog
from nightwarden.spec.document import Document, Path
from nightwarden.spec.draft import Draft, DraftEdge, DraftNode
from nightwarden.spec.findings import Findings
from nightwarden.spec.inputs import ReadText
from nightwarden.spec.nodefile import CODE_ONLY, NodeReader
from nightwarden.spec.shape import TOP_KEYS, read_shape

_HANDLES = ("sourceHandle", "targetHandle")
_CONTROL = "__control__"
_OWN = ("type", "label", "run", "controls")


def is_editor_file(data: object) -> bool:
    """Whether data of a file has an editor's shape rather than ours."""
    if not isinstance(data, Mapping):
        return False
    edges, nodes = _mappings(data.get("edges")), _mappings(data.get("nodes"))
    if any(handle in edge for _, edge in edges for handle in _HANDLES):
        return True
    return any(isinstance(n.get("data"), Mapping) and "position" in n for _, n in nodes)


def read_editor_file(
    document: Document,
    findings: Findings,
    catalog: Catalog,
    *,
    name: str = "",
    read_text: ReadText | None = None,
) -> Draft | None:
    """The draft of an editor's file."""
    data = document.data
    assert isinstance(data, Mapping), "see is_editor_file"
    top = {key: value for key, value in data.items() if key in TOP_KEYS}
    shell = Document({**top, "nodes": [], "edges": []}, document.lines)
    draft = read_shape(shell, findings, name=name, read_text=read_text)
    if draft is None:
        return None
    reader = _Editor(document, findings, catalog)
    draft.edges = [reader.edge(edge, ("edges", i)) for i, edge in _mappings(data.get("edges"))]
    nodes = [reader.node(node, ("nodes", i)) for i, node in _mappings(data.get("nodes"))]
    draft.nodes = [node for node in nodes if node is not None]
    wired = {(edge.target, edge.target_slot) for edge in draft.edges if edge.kind == "data"}
    for node in draft.nodes:
        node.written = {s: w for s, w in node.written.items() if (node.id, s) not in wired}
    return draft


def _mappings(value: object) -> Sequence[tuple[int, Mapping[str, object]]]:
    if not isinstance(value, list):
        return []
    return [(i, item) for i, item in enumerate(value) if isinstance(item, Mapping)]


@dataclass(frozen=True, slots=True)
class _Editor:
    document: Document
    findings: Findings
    catalog: Catalog

    def node(self, item: Mapping[str, object], path: Path) -> DraftNode | None:
        reader = NodeReader(self.document, self.findings)
        found = item.get("data")
        data: Mapping[str, object] = found if isinstance(found, Mapping) else {}
        type_name = data.get("type") if isinstance(data.get("type"), str) else item.get("type")
        slots, extra = self._slots(data, str(type_name))
        ui = {k: v for k, v in item.items() if k not in ("id", "type", "data")}
        shell = {
            "id": item.get("id"),
            "type": type_name,
            **{key: data[key] for key in _OWN[1:] if key in data},
            "ui": {**ui, **({"data": extra} if extra else {})} or None,
        }
        node = reader.listed(shell, path)
        if node is not None:
            nested = isinstance(data.get("properties"), Mapping)
            reader.properties(node, slots, (*path, "data", *(["properties"] if nested else [])))
        return node

    def _slots(
        self, data: Mapping[str, object], type_name: str
    ) -> tuple[Mapping[str, object], Mapping[str, object]]:
        """What of a node's data stands at slots, and what is the editor's own."""
        properties = data.get("properties")
        if isinstance(properties, Mapping):
            known = (*_OWN, "properties")
            return properties, {k: v for k, v in data.items() if k not in known}
        node_type = self.catalog.find(type_name)
        slots: dict[str, object] = {}
        extra: dict[str, object] = {}
        for key, value in data.items():
            is_slot = node_type is None or node_type.input(key) is not None
            if key not in _OWN:
                (slots if is_slot or key in CODE_ONLY else extra)[key] = value
        return slots, extra

    def edge(self, item: Mapping[str, object], path: Path) -> DraftEdge:
        source_slot, target_slot = (_text(item.get(handle)) for handle in _HANDLES)
        kinds = (item.get("kind"), item.get("edge_type"), item.get("edgeType"))
        control = "control" in kinds or target_slot == _CONTROL
        if control:
            source_slot = ""
            target_slot = "" if target_slot == _CONTROL else target_slot
        return DraftEdge(
            source=_text(item.get("source")),
            source_slot=source_slot,
            target=_text(item.get("target")),
            target_slot=target_slot,
            kind="control" if control else "data",
            line=self.document.line(*path),
        )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
