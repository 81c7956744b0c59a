"""What two definitions of a workflow differ in, and what that changes for a run half done.

    differences(old, new)     lines for people
    changed_nodes(old, new)   ids of nodes that do something else now, or get it from elsewhere
    below(nodes, edges)       those, and everything their results reach

Definitions are canonical (`Workflow.canonical`). Pure. Read next: `workflow.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Definition = Mapping[str, Any]

_SIDE = ("ui", "label")
_CUT = 60


def differences(old: Definition, new: Definition) -> list[str]:
    """One line a difference that matters to a run: nodes, edges, inputs, outputs."""
    lines: list[str] = []
    before, after = _nodes(old), _nodes(new)
    lines += [f"node {name} is gone" for name in before if name not in after]
    lines += [f"node {name} is new" for name in after if name not in before]
    for name in before:
        if name in after:
            lines += _node_lines(name, before[name], after[name])
    gone, come = _edges(old), _edges(new)
    lines += [f"no longer wired: {edge}" for edge in gone if edge not in come]
    lines += [f"newly wired: {edge}" for edge in come if edge not in gone]
    for part in ("inputs", "outputs"):
        if old.get(part) != new.get(part):
            lines.append(f"the workflow's {part} have changed")
    return lines


def changed_nodes(old: Definition, new: Definition) -> set[str]:
    """The nodes of the new definition whose recorded results are no longer theirs."""
    before, after = _nodes(old), _nodes(new)
    changed = {name for name, node in after.items() if _bare(node) != _bare(before.get(name, {}))}
    gone, come = set(_edges(old)), set(_edges(new))
    for edge in new.get("edges", ()):
        if _edge_text(edge) in come - gone:
            changed.add(edge["target"])
    for edge in old.get("edges", ()):
        if _edge_text(edge) in gone - come and edge["target"] in after:
            changed.add(edge["target"])
    inputs = _changed_inputs(old, new)
    changed |= {
        edge["target"]
        for edge in new.get("edges", ())
        if edge["source"] == "inputs" and edge["source_slot"] in inputs
    }
    return changed


def below(nodes: Iterable[str], edges: Iterable[Mapping[str, Any]]) -> set[str]:
    """These nodes and all that data or control leads to from them."""
    after: dict[str, list[str]] = {}
    for edge in edges:
        after.setdefault(edge["source"], []).append(edge["target"])
    found, ahead = set(), list(nodes)
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            ahead += after.get(name, ())
    return found


def _nodes(definition: Definition) -> dict[str, Mapping[str, Any]]:
    return {node["id"]: node for node in definition.get("nodes", ())}


def _bare(node: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key not in (*_SIDE, "run")}


def _node_lines(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    if old.get("type") != new.get("type"):
        return [f"node {name}: type {old.get('type')} is now {new.get('type')}"]
    before, after = old.get("properties", {}), new.get("properties", {})
    lines = [
        f"node {name}: {key} {_shown(before, key)} is now {_shown(after, key)}"
        for key in dict.fromkeys((*before, *after))
        if before.get(key) != after.get(key) or (key in before) != (key in after)
    ]
    if old.get("run") != new.get("run"):
        lines.append(f"node {name}: its timeout or concurrency has changed")
    return lines


def _shown(properties: Mapping[str, Any], key: str) -> str:
    if key not in properties:
        return "(unset)"
    text = repr(properties[key])
    return text if len(text) <= _CUT else text[: _CUT - 1] + "…"


def _edges(definition: Definition) -> Sequence[str]:
    return [_edge_text(edge) for edge in definition.get("edges", ())]


def _edge_text(edge: Mapping[str, Any]) -> str:
    source = f"{edge['source']}.{edge['source_slot']}"
    kind = "" if edge.get("kind", "data") == "data" else f" ({edge['kind']})"
    return f"{source} → {edge['target']}.{edge.get('target_slot', '')}{kind}"


def _changed_inputs(old: Definition, new: Definition) -> set[str]:
    before = {spec["name"]: spec for spec in old.get("inputs", ())}
    after = {spec["name"]: spec for spec in new.get("inputs", ())}
    return {name for name, spec in after.items() if before.get(name) != spec}
