"""References become edges; `[*]` and `[]` become engine nodes.

    url: $inputs.urls[*]   inputs.urls ─▶ [inputs.urls[*]: flow.ForEach] ─▶ page.url
    rows: $row[]           row.output ─▶ table.rows                    the slot collects itself
    text: $line[]          line.output ─▶ [line.output[]: flow.Collect] ─▶ page.text

All `[*]` on one source slot are one node, so their users lie under the same fan-out and join;
likewise all `[]`. Such a node stands right before the first node that uses it.

Read next: `names.py`, `check.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from nightwarden.spec.catalog import Catalog, SlotKind
from nightwarden.spec.draft import Draft, DraftEdge, DraftNode, DraftOutput
from nightwarden.spec.findings import Findings, suggestion
from nightwarden.spec.names import (
    CLOSES,
    ENGINE_OUTPUT,
    ENGINE_TYPES,
    FANS,
    Names,
    Place,
    mark_of,
)
from nightwarden.spec.refs import Given, Reference
from nightwarden.spec.subworkflow import SUBWORKFLOW
from nightwarden.spec.workflow import EdgeSpec, NodeSpec, SecretRef, Workflow

_ENGINE_INPUT = "items"


def desugar(
    draft: Draft, catalog: Catalog, findings: Findings
) -> tuple[Workflow, Set[tuple[str, str]]]:
    """The workflow a draft stands for: names looked up, edges drawn, property values still raw.

    Also the slots (node, slot) at which something stands that was reported and left out.
    """
    names = Names((i.spec.name for i in draft.inputs), catalog, findings)
    return _Desugarer(draft, names).workflow(), names.excused


class _Desugarer:
    def __init__(self, draft: Draft, names: Names) -> None:
        self._draft = draft
        self._names = names
        self._nodes: list[NodeSpec] = []
        self._edges: list[EdgeSpec] = []
        self._made: set[str] = set()

    def workflow(self) -> Workflow:
        draft = self._draft
        for node in draft.nodes:
            self._names.admit(node)
        for node in self._names.ids.values():
            self._draw(node)
        for edge in draft.edges:
            self._explicit(edge)
        outputs = None if draft.outputs is None else self._outputs(draft.outputs)
        return Workflow(
            name=draft.name,
            description=draft.description,
            nodes=tuple(self._nodes),
            edges=tuple(self._edges),
            inputs=tuple(i.spec for i in draft.inputs),
            outputs=outputs,
            python=tuple(dict.fromkeys((*draft.python, *_inner_python(draft)))),
            supervisors=draft.supervisors,
            prompts=draft.prompts,
            settings=draft.settings,
            types=self._names.types,
            file=draft.file,
        )

    def _draw(self, node: DraftNode) -> None:
        properties: dict[str, object] = {}
        self._names.excused.update((node.id, slot) for slot in node.unread)
        for slot, written in node.written.items():
            if isinstance(written, Given):
                properties[slot] = written.value
            elif isinstance(written, SecretRef):
                properties[slot] = written
            else:
                place = Place(node.id, slot, node.line_of(slot))
                for reference in written:
                    self._wire(reference, place)
        if node.id not in self._made:
            self._made.add(node.id)
            self._nodes.append(_spec(node, properties))
        for target in node.controls:
            self._explicit(DraftEdge(node.id, "", target, "", "control", node.line))

    def _wire(self, reference: Reference, place: Place) -> None:
        source = self._names.source(reference, place)
        if source is None:
            return
        closes = self._closings(reference, place)
        for mark in FANS * reference.fans, CLOSES * closes:
            source = self._through(source, mark, place)
        self._edge(source, place)

    def _through(self, source: tuple[str, str], marks: str, place: Place) -> tuple[str, str]:
        """Lead a source through one engine node a mark, making those that are not there yet."""
        name = source[0] if mark_of(source[0]) else ".".join(source)
        for mark in marks.replace("]", "] ").split():
            name += mark
            if name not in self._made and name not in self._names.ids:
                self._made.add(name)
                self._names.look_up(name, ENGINE_TYPES[mark], place.line)
                self._edge(source, Place(name, _ENGINE_INPUT, place.line))
                self._nodes.append(NodeSpec(id=name, type=ENGINE_TYPES[mark], line=place.line))
            source = (name, ENGINE_OUTPUT)
        return source

    def _edge(self, source: tuple[str, str], place: Place, kind: str = "data") -> None:
        self._edges.append(
            EdgeSpec(
                source=source[0],
                source_slot=source[1],
                target=place.node,
                target_slot=place.slot,
                kind=kind,
                line=place.line,
            )
        )

    def _closings(self, reference: Reference, place: Place) -> int:
        """How many `flow.Collect` a reference asks for; a collecting slot closes one root."""
        node_type = self._names.types.get(place.node)
        slot = node_type.input(place.slot) if node_type else None
        if slot is None or slot.kind in (SlotKind.PLAIN, SlotKind.MANY):
            return reference.closes
        if slot.kind is SlotKind.COLLECT:
            if reference.closes == 0:
                self._names.error(
                    place,
                    "collect-brackets",
                    f"{place.slot} collects the items of a fan-out, and {reference} lacks the "
                    "[] that says so",
                    f"write {Reference(reference.source, reference.slot, closes=1)}",
                )
            return max(0, reference.closes - 1)
        if reference.closes:
            self._names.error(
                place,
                "stream-brackets",
                f"{place.slot} reads items one by one, and {reference} would gather them first",
                f"write {Reference(reference.source, reference.slot)}",
            )
        return 0

    def _explicit(self, edge: DraftEdge) -> None:
        """An edge written out: canonical form, an editor's file, `controls`."""
        place = Place(edge.target, edge.target_slot, edge.line)
        if edge.target not in self._names.ids:
            here = Place(edge.source if edge.source in self._names.ids else "", "", edge.line)
            self._names.error(
                here,
                "unknown-node",
                f"an edge leads to {edge.target!r}, which is not there",
                suggestion(edge.target, self._names.ids, what="nodes"),
            )
            return
        if edge.kind == "control":
            self._control(edge, place)
            return
        source = self._names.source(Reference(edge.source, edge.source_slot), place)
        if not edge.target_slot:
            place = Place(edge.target, self._names.only_input(edge.target), edge.line)
        if not place.slot:
            self._names.error(
                place,
                "which-slot",
                f"an edge from {edge.source!r} leads to no slot",
                f"name the slot of {edge.target} it leads to",
            )
        elif source is not None:
            self._edge(source, place)

    def _control(self, edge: DraftEdge, place: Place) -> None:
        if edge.source not in self._names.ids:
            self._names.error(
                place,
                "unknown-node",
                f"a control edge comes from {edge.source!r}, which is not there",
                suggestion(edge.source, self._names.ids, what="nodes"),
            )
        elif whole := self._subworkflow(edge):
            self._names.error(
                place,
                "not-as-a-whole",
                f"{whole} is a subworkflow, which takes no part in control as a whole",
                "control steps from within the same file",
            )
        elif edge.source_slot or edge.target_slot:
            self._names.error(
                place,
                "control-slot",
                f"a control edge leads to {edge.target_slot or edge.source_slot!r}, "
                "but control has no slots",
                "leave the slots of a control edge out",
            )
        else:
            self._edge((edge.source, ""), place, "control")

    def _subworkflow(self, edge: DraftEdge) -> str:
        """The subworkflow at either end of an edge, or nothing."""
        ends = (edge.source, edge.target)
        return next((e for e in ends if self._names.ids[e].type == SUBWORKFLOW), "")

    def _outputs(self, outputs: list[DraftOutput]) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for output in outputs:
            place = Place("", "", output.line)
            source = self._names.source(output.reference, place)
            if source is not None:
                source = self._through(source, CLOSES * output.reference.closes, place)
                found[output.name] = ".".join(source)
        return found


def _inner_python(draft: Draft) -> Iterator[str]:
    """The Python files of subworkflows, as seen from the outer file."""
    for node in draft.nodes:
        for name in node.inner.python if node.inner is not None else ():
            yield f"{node.folder}/{name}" if node.folder else name


def _spec(node: DraftNode, properties: Mapping[str, object]) -> NodeSpec:
    return NodeSpec(
        id=node.id,
        type=node.type,
        properties=properties,
        label=node.label,
        run=node.run,
        ui=node.ui,
        line=node.line,
        lines=node.lines,
    )
