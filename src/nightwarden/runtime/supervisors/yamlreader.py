"""YAML read as nodes, so that every mistake is reported at once, with its line.

A loader that builds values stops at the first error, forgets where things stood, and has read
`3.10` as 3.1 before anybody can ask. Here the text is kept; a reader takes the nodes apart,
asks for what it expects, and notes as a `Problem` whatever is not so.

Read next: `rulefile.py`.
"""

from __future__ import annotations

import math
from typing import Final

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from nightwarden.errors import Problem
from nightwarden.runtime.supervisors.verbs import suggestion

_TAG: Final = "tag:yaml.org,2002:"
_NUMBERS: Final = (f"{_TAG}int", f"{_TAG}float")


class YamlReader:
    """Takes one YAML text apart; `problems` collects all that was wrong."""

    def __init__(self, file: str) -> None:
        self.problems: list[Problem] = []
        self._file = file
        self._yaml = YAML(typ="safe", pure=True)
        self._values: dict[int, object] = {}

    def compose(self, text: str) -> Node | None:
        """The root of the text, or None where there is none."""
        try:
            root: Node | None = self._yaml.compose(text)
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            self.problem(error.problem or str(error), "yaml", line=mark.line + 1 if mark else None)
            return None
        except (YAMLError, RecursionError) as error:
            self.problem(" ".join(str(error).split()), "yaml")
            return None
        if root is None:
            self.problem("the file is empty", "yaml", "write `[]` where nothing is meant")
        return root

    def mapping(self, node: Node, known: tuple[str, ...], expected: str) -> dict[str, Node] | None:
        """The parts of a mapping by key; unknown and repeated keys are problems."""
        if not isinstance(node, MappingNode):
            self.problem(f"expected {expected}", "shape", node=node)
            return None
        parts: dict[str, Node] = {}
        for key_node, value in node.value:
            key = str(key_node.value) if isinstance(key_node, ScalarNode) else ""
            if key not in known:
                remedy = suggestion(key, known)
                self.problem(f"unknown key {key!r}", "key", remedy, node=key_node)
            elif key in parts:
                self.problem(f"{key!r} is given twice", "key", node=key_node)
            else:
                if value.value == "":  # nothing written: it would stand where the next thing does
                    value.start_mark = key_node.start_mark
                parts[key] = value
        return parts

    def text(self, node: Node | None) -> str | None:
        """A scalar as it was written; None where there is none."""
        if node is None:
            return None
        if isinstance(node, ScalarNode) and node.tag != f"{_TAG}null":
            return str(node.value)
        self.problem("expected text", "shape", node=node)
        return None

    def value(self, node: Node) -> object:
        """The plain value of a node, as JSON knows it."""
        return self._value(node, ())

    def _value(self, node: Node, above: tuple[int, ...]) -> object:
        """Aliases share one value, so that a file full of them does not grow beyond bounds."""
        if id(node) in above:
            self.problem("a value cannot contain itself", "value", node=node)
            return None
        if id(node) not in self._values:
            self._values[id(node)] = self._build(node, (*above, id(node)))
        return self._values[id(node)]

    def _build(self, node: Node, above: tuple[int, ...]) -> object:
        if isinstance(node, MappingNode):
            built: dict[str, object] = {}
            for key_node, value in node.value:
                key = self.text(key_node)
                if key in built:
                    self.problem(f"{key!r} is given twice", "key", node=key_node)
                elif key is not None:
                    built[key] = self._value(value, above)
            return built
        if isinstance(node, SequenceNode):
            return [self._value(entry, above) for entry in node.value]
        return self._scalar(node)

    def _scalar(self, node: Node) -> object:
        kind = str(node.tag).removeprefix(_TAG)
        if kind in ("str", "timestamp"):
            return str(node.value)
        if kind not in ("int", "float", "bool", "null"):
            self.problem(f"values tagged {node.tag} are not known here", "value", node=node)
            return None
        try:
            value: object = self._yaml.constructor.construct_object(node)
        except (ValueError, YAMLError):
            self.problem("a number that cannot be read", "value", node=node)
            return None
        if isinstance(value, float) and not math.isfinite(value):
            self.problem("a number must be finite", "value", node=node)
        return value

    def problem(
        self,
        message: str,
        rule: str,
        remedy: str = "",
        *,
        node: Node | None = None,
        line: int | None = None,
    ) -> None:
        """Note what is wrong, and where."""
        place = line if node is None else line_of(node)
        self.problems.append(
            Problem(message=message, rule=rule, remedy=remedy, file=self._file, line=place)
        )


def line_of(node: Node) -> int:
    """Where a node begins, 1-based."""
    return int(node.start_mark.line) + 1


def is_number(node: Node) -> bool:
    """Whether the node was written as a number, without quotes."""
    return isinstance(node, ScalarNode) and node.tag in _NUMBERS
