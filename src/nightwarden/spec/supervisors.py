"""Steering supervisors as a workflow declares them, and what can be wrong with that.

    supervisors:
      watchdog:
        watches: [implement, fix]      # agent or judge nodes; none means the whole run
        system: watchdog_policy        # a name from prompts:
        policy: perseverance           # or one of the shipped ones: its prompt and its monitors
        cooldown: 45s                  # between two evaluations        [30s]
        max_evals: 12                  # completed evaluations          [20]
        monitors: ["event_type=tool_error,tool_name=Bash"]

    C190  a watched node that is not there, or neither agent nor judge      warning
    C191  a cooldown, monitor or key that cannot be used, an empty block    warning; what it
          says is left out. A cooldown or max_evals of 0 or less, money that is no amount, and
          a name that is none or `operator` are errors
    C192  two of one name                                                   error
    C193  system or policy names nothing that is there                      warning

Read next: `monitors.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from nightwarden.spec.catalog import NodeType
from nightwarden.spec.durations import duration_s
from nightwarden.spec.findings import Findings, suggestion
from nightwarden.spec.monitors import BadMonitor, Monitor, parse_monitor
from nightwarden.spec.workflow import Workflow

COOLDOWN_S: Final = 30.0
MAX_EVALS: Final = 20
OPERATOR: Final = "operator"
"""The author of what people say; no supervisor is called so."""
POLICIES: Final = ("cost-pacer", "loop-breaker", "perseverance", "scope-guard")
"""The shipped policies; their texts are in `steering/policies/`."""

KEYS: Final = (
    "watches",
    "model",
    "system",
    "policy",
    "cooldown",
    "max_evals",
    "monitors",
    "boundaries",
    "cost_cap_usd",
)
_WATCHABLE: Final = ("agent", "judge")
_ONE_TURN: Final = frozenset({"llm.judge"})
"""A judge that has no next turn to read a message at."""

Lines = Mapping[str, int | None]


class SupervisorSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One declared or attached supervisor.

    `watches` are node ids, none meaning the whole run. `system` is the policy's text; `policy`
    names a shipped one, whose prompt and monitors come first. `cost_cap_usd` bounds what its own
    evaluations cost; None is no bound.
    """

    name: str = ""
    watches: tuple[str, ...] = ()
    model: str = ""
    system: str = ""
    policy: str = ""
    cooldown_s: float = COOLDOWN_S
    max_evals: int = MAX_EVALS
    monitors: tuple[Monitor, ...] = ()
    boundaries: bool = True
    cost_cap_usd: float | None = None


def bad_name(name: str) -> str:
    """What is wrong with a supervisor's name; empty for a good one."""
    if not name.strip():
        return "its name is empty"
    people = name.strip() == OPERATOR
    return f"{OPERATOR} is who people's own messages come from" if people else ""


def is_watchable(node_type: NodeType) -> bool:
    """Whether a node of this type is an agent or a judge, which read messages at each turn."""
    return reads_messages(node_type.name)


def reads_messages(type_name: str) -> bool:
    """Whether nodes of the type of that name are agents or judges."""
    name = type_name.casefold()
    return name.rpartition(".")[2] in _WATCHABLE and name not in _ONE_TURN


def is_steered(workflow: Workflow) -> bool:
    """Whether runs of it have supervisors to start, or somebody who reads messages."""
    return bool(workflow.supervisors) or any(reads_messages(n.type) for n in workflow.nodes)


def declared(workflow: Workflow) -> tuple[SupervisorSpec, ...]:
    """The supervisors of a workflow, without what its diagnostics say cannot be used."""
    return read_supervisors(workflow, Findings(workflow.file))


def read_supervisors(
    workflow: Workflow, findings: Findings, lines: Lines | None = None
) -> tuple[SupervisorSpec, ...]:
    """The same, adding what is wrong to the findings. `lines` has those of `supervisors.NAME`."""
    found = []
    for name, block in workflow.supervisors.items():
        found.append(_Block(str(name), block, workflow, findings, lines or {}).read())
    return tuple(spec for spec in found if spec is not None)


class _Block:
    """One supervisor block. What cannot be used is reported and left out."""

    def __init__(
        self, name: str, block: object, workflow: Workflow, findings: Findings, lines: Lines
    ) -> None:
        self._name = name
        self._block = block
        self._workflow = workflow
        self._findings = findings
        self._lines = lines

    def read(self) -> SupervisorSpec | None:
        if not isinstance(self._block, Mapping) or not self._block:
            self._say("C191", "it says nothing", "give it watches:, system: or monitors:")
            return None
        wrong = bad_name(self._name)
        if wrong:
            self._say("C191", wrong, "give it another name", error=True)
        for key in self._block:
            if key not in KEYS:
                remedy = suggestion(str(key), KEYS, what="keys")
                self._say("C191", f"a supervisor has no key {key!r}", remedy, str(key))
        return SupervisorSpec(
            name=self._name,
            watches=tuple(self._watches()),
            model=self._text("model"),
            system=self._system(),
            policy=self._policy(),
            cooldown_s=self._cooldown(),
            max_evals=self._max_evals(),
            monitors=tuple(self._monitors()),
            boundaries=self._boundaries(),
            cost_cap_usd=self._cost_cap(),
        )

    def _say(
        self, rule: str, message: str, remedy: str = "", key: str = "", *, error: bool = False
    ) -> None:
        place = f"supervisors.{self._name}"
        line = self._lines.get(f"{place}.{key}") or self._lines.get(place)
        said = self._findings.error if error else self._findings.warn
        said(rule, f"supervisor {self._name!r}: {message}", remedy, line=line)

    def _text(self, key: str) -> str:
        value = self._value(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            self._say("C191", f"{key} has to be text", "put it in quotes", key)
            return ""
        return value.strip()

    def _value(self, key: str) -> object:
        assert isinstance(self._block, Mapping)
        return self._block.get(key)

    def _list(self, key: str, of: str) -> list[object]:
        value = self._value(key)
        if value is None:
            return []
        if isinstance(value, (str, Mapping)):
            return [value]
        if not isinstance(value, (list, tuple)):
            self._say("C191", f"{key} has to be a list of {of}", "", key)
            return []
        return list(value)

    def _watches(self) -> Iterator[str]:
        """The nodes, also those of no use: they may be watched in vain, but not ignored."""
        types = self._workflow.types
        ids = [node.id for node in self._workflow.nodes]
        for watched in dict.fromkeys(map(str, self._list("watches", "node ids"))):
            if watched not in ids:
                remedy = suggestion(watched, ids, what="nodes")
                self._say("C190", f"there is no node {watched!r} to watch", remedy, "watches")
            elif watched in types and not is_watchable(types[watched]):
                self._say(
                    "C190",
                    f"{watched} is {types[watched].name}, which reads no messages",
                    "watch agent or judge nodes",
                    "watches",
                )
            yield watched

    def _system(self) -> str:
        name = self._text("system")
        if not name:
            return ""
        text = self._workflow.prompts.get(name)
        if isinstance(text, str):
            return text
        if name in self._workflow.prompts:
            message, remedy = f"prompt {name!r} is no text", "write its text below it"
        else:
            message = f"there is no prompt {name!r}"
            remedy = suggestion(name, map(str, self._workflow.prompts), what="prompts")
        self._say("C193", f"{message}, so it has no policy", remedy, "system")
        return ""

    def _policy(self) -> str:
        name = self._text("policy")
        if not name or name in POLICIES:
            return name
        remedy = suggestion(name, POLICIES, what="policies")
        self._say("C193", f"there is no shipped policy {name!r}", remedy, "policy")
        return ""

    def _cooldown(self) -> float:
        value = self._value("cooldown")
        if value is None:
            return COOLDOWN_S
        seconds = duration_s(value)
        if seconds is None:
            used = f"so it is {COOLDOWN_S:g}s"
            self._say("C191", f"cooldown {value!r} is no duration, {used}", "as in 45s", "cooldown")
            return COOLDOWN_S
        if seconds <= 0:
            self._not_positive("cooldown", value, "as in 45s")
            return COOLDOWN_S
        return seconds

    def _max_evals(self) -> int:
        value = self._value("max_evals")
        if value is None:
            return MAX_EVALS
        if isinstance(value, bool) or not isinstance(value, int):
            used = f"so it is {MAX_EVALS}"
            self._say("C191", f"max_evals {value!r} is no whole number, {used}", "", "max_evals")
            return MAX_EVALS
        if value <= 0:
            self._not_positive("max_evals", value, "to switch it off: --supervisors off")
            return MAX_EVALS
        return value

    def _not_positive(self, key: str, value: object, remedy: str) -> None:
        message = f"{key} is {value!r}, but has to be more than 0"
        self._say("C191", message, remedy, key, error=True)

    def _monitors(self) -> Iterator[Monitor]:
        for written in self._list("monitors", "monitors"):
            try:
                monitor = parse_monitor(written)
            except BadMonitor as error:
                message = f"monitor {written!r} is left out: {error}"
                self._say("C191", message, error.remedy, "monitors")
                continue
            for remark in monitor.remarks():
                self._say("C191", f"monitor {written!r}: {remark}", "", "monitors")
            yield monitor

    def _boundaries(self) -> bool:
        value = self._value("boundaries")
        if value is False and not self._value("monitors") and not self._value("policy"):
            message = "without boundaries it looks when a monitor holds, and it has none"
            self._say("C191", message, "give it monitors: or a policy:", "boundaries")
        if value is None or isinstance(value, bool):
            return value is not False
        self._say("C191", "boundaries has to be true or false", "", "boundaries")
        return True

    def _cost_cap(self) -> float | None:
        value = self._value("cost_cap_usd")
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e9:
            message = f"cost_cap_usd {value!r} is no amount of dollars"
            self._say("C191", message, "as in 0.50", "cost_cap_usd", error=True)
            return None
        return float(value)
