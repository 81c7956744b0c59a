"""From a workflow without problems to a plan: scopes become roots, slots ports, edges roles.

Nodes are numbered in topological order. Exits are numbered last, when every edge is known.

Read next: `plan.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from nightwarden.errors import KernelBug
from nightwarden.kernel.plan import (
    CONTROL,
    RUN,
    EdgeKind,
    EdgePlan,
    GatherPlan,
    NodePlan,
    OutPlan,
    Plan,
    RootPlan,
    SlotPlan,
)
from nightwarden.lineage import Scope
from nightwarden.spec.catalog import MISSING, InputSlot, NodeType, SlotKind
from nightwarden.spec.scopes import (
    Analysis,
    controllers,
    edge_scope,
    is_feedback,
    slot_streams,
)
from nightwarden.spec.workflow import INPUTS, EdgeSpec, Workflow


def compile_plan(workflow: Workflow, analysis: Analysis) -> Plan:
    """Compile a workflow that has no problems.

    Raises `KernelBug` for one that static analysis could not place whole: a node left out of the
    plan would be work left out of the run.
    """
    lost = {node.id for node in workflow.nodes} - set(analysis.order)
    if lost:
        raise KernelBug(f"analysis left these nodes without a place: {', '.join(sorted(lost))}")
    return _Compiler(workflow, analysis).compile()


class _Compiler:
    def __init__(self, workflow: Workflow, analysis: Analysis) -> None:
        self.workflow = workflow
        self.scopes = analysis.scopes
        self.order = analysis.order
        self.number = {node_id: i for i, node_id in enumerate(analysis.order)}
        self.specs = {node.id: node for node in workflow.nodes}
        self.outgoing: dict[str, list[EdgeSpec]] = defaultdict(list)
        self.incoming: dict[str, list[EdgeSpec]] = defaultdict(list)
        for edge in workflow.edges:
            if edge.kind == "data":
                self.outgoing[edge.source].append(edge)
                self.incoming[edge.target].append(edge)
        self.roots = [RootPlan(RUN, -1, "run", ())]
        self.root_of: dict[Scope, int] = {(): RUN}
        self.plans: dict[int, EdgePlan] = {}
        self.captures: list[EdgePlan] = []
        self.count = 0

    def compile(self) -> Plan:
        for node_id in self.order:
            if controllers(self.workflow, node_id):
                self._add_root(node_id, self.scopes[node_id])
            if self.workflow.types[node_id].fans_out:
                self._add_root(node_id, (*self.scopes[node_id], node_id))
        nodes = tuple(self._node(node_id) for node_id in self.order)
        inputs = {spec.name: OutPlan(spec.name, spec.name, False) for spec in self.workflow.inputs}
        for edge in self.outgoing[INPUTS]:
            inputs[edge.source_slot].edges.append(self._edge(edge))
        for node in nodes:
            self._wire_outputs(node)
        self._number_exits(nodes, inputs)
        return Plan(self.workflow, nodes, tuple(self.roots), inputs, tuple(self.captures))

    def _add_root(self, node_id: str, scope: Scope) -> None:
        parent = self.root_of[scope[:-1]]
        index = len(self.roots)
        path = (*self.roots[parent].scope, index)
        self.roots.append(RootPlan(index, self.number[node_id], scope[-1], path))
        self.roots[parent].children.append(index)
        self.root_of[scope] = index

    def _node(self, node_id: str) -> NodePlan:
        node_type = self.workflow.types[node_id]
        scope = self.scopes[node_id]
        ports: list[int] = []
        controlled = bool(controllers(self.workflow, node_id))
        slots = [self._control_slot(node_id, ports)] if controlled else []
        slots += [
            self._slot(node_id, slot, edges, ports)
            for slot, edges in self._wired(node_id, node_type)
        ]
        index = self.number[node_id]
        return NodePlan(
            index=index,
            id=node_id,
            spec=self.specs[node_id],
            type=node_type,
            order=index,
            depth=len(scope),
            root=self.root_of[scope],
            own_root=self.root_of[(*scope, node_id)] if node_type.fans_out else -1,
            slots=tuple(slots),
            ports=len(ports),
            port_depths=tuple(ports),
            outs=(),
            ends=(),
            controls=tuple(
                self.root_of[self.scopes[target]]
                for target in dict.fromkeys(
                    e.target
                    for e in self.workflow.edges
                    if e.kind == "control" and e.source == node_id
                )
            ),
            control_root=self.root_of[scope] if controlled else -1,
        )

    def _control_slot(self, node_id: str, ports: list[int]) -> SlotPlan:
        """The port by which control events arrive: first, and at the node's full scope."""
        scope = self.scopes[node_id]
        edge = EdgePlan(
            index=self.count,
            kind=EdgeKind.PLAIN,
            source=-1,
            source_slot=scope[-1],
            target=self.number[node_id],
            target_slot=CONTROL,
            depth=len(scope),
            port=len(ports),
        )
        self.count += 1
        self.roots[self.root_of[scope]].control = edge
        ports.append(len(scope))
        return SlotPlan(
            name=CONTROL,
            kind=SlotKind.PLAIN,
            ports=(edge.port,),
            has_default=False,
            accepts_absent=False,
            depth=len(scope),
        )

    def _wired(
        self, node_id: str, node_type: NodeType
    ) -> Sequence[tuple[InputSlot, Sequence[EdgeSpec]]]:
        by_slot: dict[str, list[EdgeSpec]] = defaultdict(list)
        for edge in self.incoming[node_id]:
            if not is_feedback(edge, self.workflow):
                by_slot[edge.target_slot].append(edge)
        names = [n for n in node_type.inputs if n in by_slot]
        names += [n for n in by_slot if n not in node_type.inputs]
        found = []
        for name in names:
            slot = node_type.input(name)
            assert slot is not None, f"{node_id}.{name} passed the checks"
            found.append((slot, by_slot[name]))
        return found

    def _slot(
        self, node_id: str, slot: InputSlot, edges: Sequence[EdgeSpec], ports: list[int]
    ) -> SlotPlan:
        plans = [self._edge(edge) for edge in edges]
        gathers = slot.kind in (SlotKind.COLLECT, SlotKind.STREAM)
        first = len(ports)
        if gathers:
            kind = EdgeKind.COLLECT if slot.kind is SlotKind.COLLECT else EdgeKind.READ
            self._gather(node_id, slot, plans, kind, port=first)
            ports.append(plans[0].depth - 1)
        else:
            for plan in plans:
                plan.port = len(ports)
                ports.append(plan.depth)
        has_default = slot.default is not MISSING or slot.name in self.specs[node_id].properties
        return SlotPlan(
            name=slot.name,
            kind=slot.kind,
            ports=tuple(range(first, len(ports))),
            has_default=has_default,
            accepts_absent=slot.accepts_absent,
            depth=min(ports[first:]),
        )

    def _gather(
        self,
        node_id: str,
        slot: InputSlot,
        plans: Sequence[EdgePlan],
        kind: EdgeKind,
        *,
        port: int,
    ) -> None:
        root = self.roots[self._edge_root(self.incoming[node_id], slot.name)]
        gather = GatherPlan(
            kind, self.number[node_id], slot.name, port, len(plans), slot.by_arrival
        )
        for position, plan in enumerate(plans):
            plan.kind, plan.port, plan.position = kind, port, position
            plan.group = len(root.gathers)
        root.gathers.append(gather)

    def _edge_root(self, edges: Sequence[EdgeSpec], slot: str) -> int:
        edge = next(e for e in edges if e.target_slot == slot)
        return self.root_of[edge_scope(edge, self.workflow, self.scopes)]

    def _edge(self, edge: EdgeSpec) -> EdgePlan:
        """The plan of an edge, made once: its target places it before its source wires it."""
        found = self.plans.get(id(edge))
        if found is None:
            found = EdgePlan(
                index=self.count,
                kind=EdgeKind.PLAIN,
                source=self.number.get(edge.source, -1),
                source_slot=edge.source_slot,
                target=self.number[edge.target],
                target_slot=edge.target_slot,
                depth=len(edge_scope(edge, self.workflow, self.scopes)),
            )
            self.count += 1
            self.plans[id(edge)] = found
            if is_feedback(edge, self.workflow):
                found.kind = EdgeKind.FEEDBACK
        return found

    def _wire_outputs(self, node: NodePlan) -> None:
        by_slot: dict[str, list[EdgeSpec]] = defaultdict(list)
        for edge in self.outgoing[node.id]:
            by_slot[edge.source_slot].append(edge)
        named = set((self.workflow.outputs or {}).values())
        outs = [OutPlan(n, n, s.stream) for n, s in node.type.outputs.items()]
        outs += [
            OutPlan(name, projection.slot, slot_streams(node.type, name))
            for name, projection in node.type.projections.items()
            if name in by_slot or f"{node.id}.{name}" in named
        ]
        used = {out.base for out in outs if by_slot.get(out.name)}
        for out in outs:
            out.edges = [self._edge(edge) for edge in by_slot[out.name]]
            unused = self.workflow.outputs is None and out.base not in used
            if unused or f"{node.id}.{out.name}" in named:
                out.edges.append(self._capture(node, out))
        wired = [
            out
            for out in outs
            if out.edges or out.stream or (node.control_root >= 0 and not out.projected)
        ]
        node.outs = tuple(o for o in wired if o.stream == node.type.fans_out)
        node.ends = tuple(o for o in wired if node.type.fans_out and not o.stream)

    def _capture(self, node: NodePlan, out: OutPlan) -> EdgePlan:
        plan = EdgePlan(
            index=self.count,
            kind=EdgeKind.CAPTURE,
            source=node.index,
            source_slot=out.name,
            target=-1,
            target_slot="",
            depth=node.depth + out.stream,
            port=len(self.captures),
        )
        self.count += 1
        self.captures.append(plan)
        return plan

    def _number_exits(self, nodes: Sequence[NodePlan], inputs: Mapping[str, OutPlan]) -> None:
        for node in nodes:
            targets = [e for o in (*node.outs, *node.ends) for e in o.edges if e.target >= 0]
            if node.own_root >= 0 or not targets:
                node.exit = self._exit(node.root, node.id)
            for out in node.outs:
                if out.stream and not out.projected and not self._leads_on(node, out):
                    out.exit = self._exit(node.own_root, f"{node.id}.{out.name}")
            for out in (*node.outs, *node.ends):
                self._edge_exits(out, nodes, node.own_root if out.stream else node.root)
        for out in inputs.values():
            self._edge_exits(out, nodes, RUN)

    @staticmethod
    def _leads_on(node: NodePlan, out: OutPlan) -> bool:
        return any(e.target >= 0 for o in node.outs if o.base == out.base for e in o.edges)

    def _edge_exits(self, out: OutPlan, nodes: Sequence[NodePlan], root: int) -> None:
        for edge in out.edges:
            if edge.kind is EdgeKind.CAPTURE:
                continue
            ends_here = edge.kind is not EdgeKind.PLAIN or edge.depth < nodes[edge.target].depth
            if ends_here:
                target = f"{nodes[edge.target].id}.{edge.target_slot}"
                edge.exit = self._exit(root, f"{edge.source_slot} → {target}")
            if edge.group >= 0:
                exits = self.roots[root].gathers[edge.group].exits
                exits += [-1] * (edge.position + 1 - len(exits))
                exits[edge.position] = edge.exit

    def _exit(self, root: int, name: str) -> int:
        self.roots[root].exits.append(name)
        return len(self.roots[root].exits) - 1
