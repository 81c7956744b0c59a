"""The workflow, once loaded: immutable, without sugar, every slot resolved.

    YAML / JSON (load.py) ──┐
    Python      (build.py) ─┴──▶ Workflow ──▶ canonical JSON, hash
                                    └──▶ scopes.analyse ──▶ kernel/plan.py

Read next: `scopes.py`, `load.py`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nightwarden.spec.catalog import MISSING, Catalog, NodeType

VERSION: Final = 1
INPUTS: Final = "inputs"
"""The id under which the run's own inputs appear as the source of edges."""
SECRETS: Final = "secrets"
WITHIN: Final = "/"
"""Stands in ids between a subworkflow and a node of it; only in the canonical form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSpec:
    """A run input: `type` as written in the file (`list[str]`, `int?`), `default` or `MISSING`."""

    name: str
    type: str = "json"
    default: object = MISSING
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What a workflow file may set about a node's running. Seconds; at least 1 at a time."""

    timeout_s: float | None = None
    concurrency: int | None = None


@dataclass(frozen=True, slots=True)
class SecretRef:
    """A property `$secrets.NAME`: resolved at each invocation, never a value or a record."""

    name: str


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the author of an outer workflow wrote what now stands at a node of an inner one."""

    file: str
    line: int | None
    node: str
    slot: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """A node as drawn. `properties` are validated values of unwired slots, `SecretRef`s too.

    `lines` are those of its slots, where they are known. A node that came out of a subworkflow
    (`outer/inner`) may have a property at a wired slot: what is used where nothing was taken.
    `file` is the subworkflow's, `origins` the places of what it was given from outside.
    """

    id: str
    type: str
    properties: Mapping[str, object] = field(default_factory=dict)
    label: str | None = None
    run: RunOptions = RunOptions()
    controls: tuple[str, ...] = ()
    ui: Mapping[str, object] | None = None
    line: int | None = None
    lines: Mapping[str, int] = field(default_factory=dict, compare=False)
    file: str = field(default="", compare=False)
    origins: Mapping[str, Origin] = field(default_factory=dict, compare=False)

    def line_of(self, slot: str) -> int | None:
        """The line of a slot, or of the node where the slot has none."""
        return self.lines.get(slot, self.line)


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeSpec:
    """A data or control edge. `source_slot` may be a projection (`$page.url`).

    `origin` is set for an edge that leads into a subworkflow: where it was drawn.
    """

    source: str
    source_slot: str
    target: str
    target_slot: str
    kind: str = "data"
    line: int | None = None
    origin: Origin | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    """What a run is. `types` holds the node type of every node, by node id.

    `outputs` maps names to `node.slot` where the author chose them, None for all unconnected ones.
    `python` lists files with nodes that the workflow asks for. `catalog` is where its node types
    were found, so that whoever runs it finds their code there too. `memo` keeps what was worked
    out about just this workflow; a changed copy starts with an empty one.
    """

    name: str
    nodes: tuple[NodeSpec, ...]
    edges: tuple[EdgeSpec, ...]
    inputs: tuple[InputSpec, ...] = ()
    outputs: Mapping[str, str] | None = None
    description: str = ""
    python: tuple[str, ...] = ()
    supervisors: Mapping[str, object] = field(default_factory=dict)
    prompts: Mapping[str, object] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    types: Mapping[str, NodeType] = field(default_factory=dict, compare=False)
    catalog: Catalog | None = field(default=None, compare=False, repr=False)
    file: str = field(default="", compare=False)
    memo: dict[str, object] = field(default_factory=dict, init=False, compare=False, repr=False)

    def node(self, node_id: str) -> NodeSpec:
        """The node of that id. Raises `KeyError`."""
        for node in self.nodes:
            if node.id == node_id:
                return node
        raise KeyError(node_id)

    def edges_into(self, node_id: str) -> Sequence[EdgeSpec]:
        """The data edges that end at a node, in edge order."""
        return [e for e in self.edges if e.target == node_id and e.kind == "data"]

    def canonical(self) -> dict[str, object]:
        """The canonical form: plain JSON values, defaults and line numbers left out."""
        form = _without_empty(
            {
                "version": VERSION,
                "name": self.name,
                "description": self.description,
                "inputs": [_input_json(i) for i in self.inputs],
                "outputs": None if self.outputs is None else dict(self.outputs),
                "python": list(self.python),
                "nodes": [_node_json(n) for n in self.nodes],
                "edges": [_edge_json(e) for e in self.edges],
                "supervisors": dict(self.supervisors),
                "prompts": dict(self.prompts),
                "settings": dict(self.settings),
            }
        )
        return {**form, "nodes": form.get("nodes", []), "edges": form.get("edges", [])}

    def digest(self) -> str:
        """SHA-256 of the canonical form without `ui`, in hex: what a run was a run of."""
        form = self.canonical()
        nodes = form.get("nodes", [])
        assert isinstance(nodes, list)
        form["nodes"] = [{k: v for k, v in n.items() if k != "ui"} for n in nodes]
        text = json.dumps(form, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


def _input_json(spec: InputSpec) -> dict[str, object]:
    form: dict[str, object] = {"name": spec.name, "type": spec.type}
    if spec.default is not MISSING:
        form["default"] = json_value(spec.default)
    if spec.description:
        form["description"] = spec.description
    return form


def _node_json(spec: NodeSpec) -> dict[str, object]:
    run = {"timeout": spec.run.timeout_s, "concurrency": spec.run.concurrency}
    return _without_empty(
        {
            "id": spec.id,
            "type": spec.type,
            "properties": {k: json_value(v) for k, v in spec.properties.items()},
            "label": spec.label,
            "run": {k: v for k, v in run.items() if v is not None},
            "controls": list(spec.controls),
            "ui": None if spec.ui is None else dict(spec.ui),
        }
    )


def _edge_json(spec: EdgeSpec) -> dict[str, object]:
    return {
        "source": spec.source,
        "source_slot": spec.source_slot,
        "target": spec.target,
        "target_slot": spec.target_slot,
        "kind": spec.kind,
    }


def json_value(value: object) -> object:
    """A property value as canonical JSON writes it: `$secrets.NAME`, `$$literal`, paths as text."""
    if isinstance(value, SecretRef):
        return f"${SECRETS}.{value.name}"
    if isinstance(value, str):
        return "$" + value if value.startswith("$") else value
    if isinstance(value, Mapping):
        return {str(k): json_value(v) for k, v in value.items()}
    if isinstance(value, list) or type(value) is tuple:
        return [json_value(v) for v in value]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return json_value(_plain(value))


def _plain(value: object) -> object:
    """Plain data for a value of another type: a path as text, a dataclass as its fields."""
    from pydantic_core import to_jsonable_python  # noqa: PLC0415  (loaded when used)

    return to_jsonable_python(value, fallback=str)


def _without_empty(form: dict[str, object]) -> dict[str, object]:
    return {k: v for k, v in form.items() if v is not None and v not in ({}, [], "")}
