"""The nodes of a file: what stands beside a node's `type`, and what stands at its slots.

    page:                                  - id: page
      type: http.Fetch                       type: http.Fetch
      url: $inputs.urls[*]                   properties: {url: "$inputs.urls[*]"}
      run: {timeout: 30, concurrency: 4}     run: {timeout: 30, concurrency: 4}

Every key that is not one of a node's own is a slot. `properties` serves slots whose names
collide with those. What only the code of a node may promise is refused here: a file that
calls a step safe to repeat does not make it so.

Read next: `refs.py`, `draft.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nightwarden.spec.document import Document, Path
from nightwarden.spec.draft import DraftNode
from nightwarden.spec.findings import Findings, suggestion
from nightwarden.spec.limits import concurrency_problem, timeout_problem
from nightwarden.spec.refs import BadReference, read
from nightwarden.spec.workflow import RunOptions

NODE_KEYS: Final = ("type", "label", "run", "controls", "ui", "properties")
RUN_KEYS: Final = ("timeout", "concurrency")
CODE_ONLY: Final = (
    "retry_safe",
    "idempotent_by",
    "inline",
    "pure",
    "executor",
    "join",
)
"""Promises about a node's code, which only `@node` can make."""


def read_nodes(
    data: Mapping[str, object], document: Document, findings: Findings
) -> list[DraftNode]:
    """The nodes of a file, in its order, people's form or canonical."""
    value = data.get("nodes")
    reader = NodeReader(document, findings)
    if isinstance(value, Mapping):
        return [reader.read(key, item, ("nodes", key)) for key, item in value.items()]
    elif isinstance(value, list):
        found = [reader.listed(item, ("nodes", i)) for i, item in enumerate(value)]
        return [node for node in found if node is not None]
    elif value is None:
        reader.wrong("the workflow has no nodes", ("nodes",), "list its steps under nodes:")
    else:
        reader.wrong("nodes have to be a mapping by id, or a list", ("nodes",))
    return []


class NodeReader:
    """Reads one node after the other; `wrong` reports with the line of a path."""

    def __init__(self, document: Document, findings: Findings) -> None:
        self._document = document
        self._findings = findings

    def wrong(
        self,
        message: str,
        path: Path,
        remedy: str = "",
        *,
        rule: str = "bad-value",
        node: str = "",
        slot: str = "",
    ) -> None:
        """Report something about the value at `path`."""
        line = self._document.line(*path)
        self._findings.error(rule, message, remedy, line=line, node=node, slot=slot)

    def listed(self, item: object, path: Path) -> DraftNode | None:
        """A node of a list, which says its own id."""
        if not isinstance(item, Mapping):
            self.wrong("a node has to be a mapping with id and type", path)
            return None
        node_id = item.get("id")
        if not isinstance(node_id, str):
            found = "has no id" if node_id is None else f"has the id {node_id!r}, which is no text"
            self.wrong(f"a node in the list {found}", path, 'as in id: "page"', rule="bad-id")
            return None
        node = self.read(node_id, {k: v for k, v in item.items() if k != "id"}, path)
        node.listed = True
        return node

    def read(self, node_id: str, item: object, path: Path) -> DraftNode:
        """A node by its id; without a type where nothing can be made of it."""
        if not isinstance(item, Mapping):
            remedy = "write its type below it, as in type: http.Fetch"
            self.wrong("a node has to be a mapping with a type", path, remedy, node=node_id)
            return DraftNode(node_id, "", line=self._document.line(*path))
        node = DraftNode(
            id=node_id,
            type=self._type(node_id, item.get("type"), path),
            label=self._label(node_id, item.get("label"), path),
            run=self._run(node_id, item.get("run"), (*path, "run")),
            controls=self._controls(node_id, item.get("controls"), (*path, "controls")),
            ui=self._ui(node_id, item.get("ui"), (*path, "ui")),
            line=self._document.line(*path),
        )
        for slot, value in item.items():
            if slot not in NODE_KEYS:
                self._slot(node, slot, value, (*path, slot))
        self.properties(node, item.get("properties"), (*path, "properties"))
        return node

    def properties(self, node: DraftNode, value: object, path: Path) -> None:
        """Read the long form of a node's slots."""
        if value is None:
            return
        if not isinstance(value, Mapping):
            self.wrong("properties has to be a mapping from slots to values", path, node=node.id)
            return
        for slot, item in value.items():
            if slot in node.written:
                self.wrong(
                    f"{slot} stands beside the type and under properties",
                    (*path, slot),
                    "keep one of the two",
                    rule="duplicate-key",
                    node=node.id,
                    slot=slot,
                )
                continue
            self._slot(node, slot, item, (*path, slot))

    def _type(self, node_id: str, value: object, path: Path) -> str:
        if isinstance(value, str) and value:
            return value
        if value is None:
            message, remedy = "the node has no type", "as in type: http.Fetch"
            self.wrong(message, path, remedy, rule="missing-type", node=node_id)
        else:
            self.wrong("a node's type has to be text", (*path, "type"), node=node_id)
        return ""

    def _label(self, node_id: str, value: object, path: Path) -> str | None:
        if value is None or isinstance(value, str):
            return value or None
        self.wrong("a label has to be text", (*path, "label"), "put it in quotes", node=node_id)
        return None

    def _ui(self, node_id: str, value: object, path: Path) -> Mapping[str, object] | None:
        if value is None or isinstance(value, Mapping):
            return value
        self.wrong("ui has to be a mapping", path, "it is the editor's own", node=node_id)
        return None

    def _controls(self, node_id: str, value: object, path: Path) -> tuple[str, ...]:
        if value is None:
            return ()
        targets = [value] if isinstance(value, str) else value
        if not isinstance(targets, list) or not all(isinstance(t, str) and t for t in targets):
            self.wrong("controls has to be a list of node ids", path, node=node_id)
            return ()
        return tuple(target.removeprefix("$") for target in targets)

    def _run(self, node_id: str, value: object, path: Path) -> RunOptions:
        if value is None:
            return RunOptions()
        if not isinstance(value, Mapping):
            remedy = "as in run: {timeout: 30, concurrency: 4}"
            self.wrong("run has to be a mapping", path, remedy, rule="run-options", node=node_id)
            return RunOptions()
        for key in value:
            if key in CODE_ONLY:
                self._code_only(node_id, key, (*path, key))
            elif key not in RUN_KEYS:
                self.wrong(
                    f"run has no key {key!r}",
                    (*path, key),
                    suggestion(key, RUN_KEYS, what="keys"),
                    rule="unknown-key",
                    node=node_id,
                )
        return RunOptions(
            timeout_s=self._timeout(node_id, value.get("timeout"), (*path, "timeout")),
            concurrency=self._concurrency(
                node_id, value.get("concurrency"), (*path, "concurrency")
            ),
        )

    def _timeout(self, node_id: str, value: object, path: Path) -> float | None:
        problem = timeout_problem(value)
        if problem:
            self.wrong(problem, path, "as in timeout: 30", rule="run-options", node=node_id)
            return None
        return None if value is None else float(value)  # type: ignore[arg-type]

    def _concurrency(self, node_id: str, value: object, path: Path) -> int | None:
        problem = concurrency_problem(value)
        if problem:
            self.wrong(problem, path, "as in concurrency: 4", rule="run-options", node=node_id)
            return None
        return value  # type: ignore[return-value]

    def _code_only(self, node_id: str, key: str, path: Path) -> None:
        message, remedy = code_only(key)
        self.wrong(message, path, remedy, rule="code-only", node=node_id)

    def _slot(self, node: DraftNode, slot: str, value: object, path: Path) -> None:
        line = self._document.line(*path)
        if line is not None:
            node.lines[slot] = line
        try:
            node.written[slot] = read(value)
        except BadReference as error:
            node.unread.add(slot)
            self.wrong(
                str(error), path, error.remedy, rule="bad-reference", node=node.id, slot=slot
            )


def code_only(key: str) -> tuple[str, str]:
    """Message and remedy for a promise that stands in a file."""
    message = f"{key} is a promise about the code of a step, and a file cannot make it"
    return message, f"remove it here, and declare it where the code is: @node({key}=…)"
