"""Reads the rules of a scripted supervisor from YAML or JSON text.

    - when: {node: fetch, signature: "http:451"}      # all conditions must hold; none: always
      answer: {action: skip, apply_to: signature, reason: refused for legal reasons}
    - when: {node: extract, item: 4}                  # 1-based, or a label in quotes
      answer: skip
    - when: {node: publish}
      answers: [retry, retry, stop]                   # used up one by one

Conditions are `node, item, signature, attempt, error_type`. Every mistake is reported
at once, with its line.

Read next: `scripted.py`, `yamlreader.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from nightwarden.errors import SpecError
from nightwarden.lineage import parse
from nightwarden.runtime.supervisors.scripted import Rule, ScriptedAnswer
from nightwarden.runtime.supervisors.verbs import action_named, every_word, suggestion
from nightwarden.runtime.supervisors.yamlreader import YamlReader, is_number, line_of
from nightwarden.verdict import Action, ApplyTo, EndStream, Fail, Retry, Skip, Substitute, Verdict

_RULE_KEYS: Final = ("when", "answer", "answers")
_CONDITIONS: Final = ("node", "item", "signature", "attempt", "error_type")
_ANSWER_KEYS: Final = ("action", "apply_to", "reason", "outputs")


def read_rules(text: str, *, file: str = "") -> tuple[Rule, ...]:
    """The rules a text holds. Raises `SpecError` with every problem found, each with its line."""
    return _Reader(file).rules(text)


class _Reader(YamlReader):
    """What could not be read is None or left out; the problem is noted, and no rule comes out."""

    def rules(self, text: str) -> tuple[Rule, ...]:
        root = self.compose(text)
        rules = [self._rule(node) for node in self._entries(root)]
        if self.problems:
            raise SpecError(sorted(self.problems, key=lambda problem: problem.line or 0))
        return tuple(rule for rule in rules if rule is not None)

    def _entries(self, root: Node | None) -> Iterable[Node]:
        """A list of rules, or one rule by itself."""
        if root is None:
            return ()
        if isinstance(root, SequenceNode):
            return list(root.value)
        if isinstance(root, MappingNode):
            return [root]
        self.problem("expected a list of rules", "answers", "start each with `- when:`", node=root)
        return ()

    def _rule(self, node: Node) -> Rule | None:
        parts = self.mapping(node, _RULE_KEYS, "a rule with `when` and `answer`")
        if parts is None:
            return None
        answers = self._answers(node, parts) or ()
        when = self.mapping(parts["when"], _CONDITIONS, "conditions") if "when" in parts else None
        when = when or {}
        item = when.get("item")
        numbered = item is not None and is_number(item)
        return Rule(
            answers=answers,
            repeats="answer" in parts,
            node=self.text(when.get("node")),
            item=None if numbered else self.text(item),
            lineage=self._lineage(item) if numbered else None,
            signature=self.text(when.get("signature")),
            attempt=self._attempt(when.get("attempt")),
            error_type=self.text(when.get("error_type")),
            line=line_of(node),
        )

    def _answers(self, rule: Node, parts: Mapping[str, Node]) -> tuple[ScriptedAnswer, ...] | None:
        given = [key for key in ("answer", "answers") if key in parts]
        if len(given) != 1:
            found = "both" if given else "neither"
            self.problem(
                f"a rule has either `answer` or `answers`, this one has {found}",
                "answer",
                node=rule,
            )
            return None
        node = parts[given[0]]
        if given == ["answer"]:
            entries = [node]
        elif isinstance(node, SequenceNode) and node.value:
            entries = list(node.value)
        else:
            self.problem("`answers` is a list of at least one answer", "answer", node=node)
            return None
        read = [self._answer(entry) for entry in entries]
        return tuple(answer for answer in read if answer is not None)

    def _answer(self, node: Node) -> ScriptedAnswer | None:
        if isinstance(node, ScalarNode):
            return self._verdict(node, node, {})
        parts = self.mapping(node, _ANSWER_KEYS, "an answer: a verb, or a mapping with `action`")
        if parts is None:
            return None
        if "action" not in parts:
            words = ", ".join(every_word())
            self.problem("the answer has no `action`", "answer", f"one of: {words}", node=node)
            return None
        return self._verdict(node, parts["action"], parts)

    def _verdict(
        self, answer: Node, verb: Node, parts: Mapping[str, Node]
    ) -> ScriptedAnswer | None:
        word = self.text(verb)
        action = None if word is None else action_named(word)
        if action is None:
            if word is not None:
                remedy = suggestion(word, every_word())
                self.problem(f"{word!r} is no verb", "answer", remedy, node=verb)
            return None
        reason = self.text(parts.get("reason")) or ""
        verdict = self._verdict_of(action, answer, parts, reason)
        return None if verdict is None else ScriptedAnswer(verdict, reason)

    def _verdict_of(
        self, action: Action, answer: Node, parts: Mapping[str, Node], reason: str
    ) -> Verdict | None:
        apply_to = self._apply_to(action, parts.get("apply_to"))
        if "outputs" in parts and action != Action.SUBSTITUTE:
            self.problem(
                f"`outputs` goes with repair, not with {action}", "answer", node=parts["outputs"]
            )
        match action:
            case Action.RETRY:
                return Retry()
            case Action.SKIP:
                return Skip(apply_to=apply_to)
            case Action.END_STREAM:
                return EndStream()
            case Action.FAIL:
                return Fail(reason=reason, apply_to=apply_to)
            case Action.SUBSTITUTE:
                return self._substitute(answer, parts.get("outputs"))

    def _substitute(self, answer: Node, outputs: Node | None) -> Verdict | None:
        if not isinstance(outputs, MappingNode):
            message = "a repair needs `outputs`, a mapping of slot to value"
            remedy = "write `{action: substitute, outputs: {output: …}}`"
            self.problem(message, "answer", remedy, node=outputs or answer)
            return None
        value = self.value(outputs)
        return Substitute(value) if isinstance(value, dict) else None

    def _apply_to(self, action: Action, node: Node | None) -> ApplyTo:
        word = self.text(node)
        if node is None or word is None:
            return ApplyTo.INVOCATION
        if action not in (Action.SKIP, Action.FAIL):
            self.problem(
                f"`apply_to` goes with skip and stop, not with {action}", "answer", node=node
            )
        elif word not in list(ApplyTo):
            remedy = suggestion(word, ApplyTo)
            self.problem(f"{word!r} is no extent of an answer", "answer", remedy, node=node)
        else:
            return ApplyTo(word)
        return ApplyTo.INVOCATION

    def _lineage(self, node: Node | None) -> tuple[int, ...] | None:
        text = self.text(node) or ""
        try:
            return parse(text)
        except ValueError:
            message = f"{text} is no item: numbers start at 1, nested ones are joined by dots"
            self.problem(message, "item", "a label goes in quotes", node=node)
            return None

    def _attempt(self, node: Node | None) -> int | None:
        text = self.text(node)
        if text is None:
            return None
        if text.isdecimal() and len(text) < 10 and int(text) >= 1:
            return int(text)
        self.problem(f"{text!r} is no attempt: the first is 1", "attempt", node=node)
        return None
