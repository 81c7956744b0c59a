"""What tests of the model side share: escalations, a run to read, and a model on loopback.

`Run` stands for the run a supervisor reads; it keeps what is written into it, in order, and what
was durable when. `stub_model` is a real provider's model that talks to a `ModelServer`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from model_server import Call, ModelServer

from nightwarden.agents.models import Model, resolve
from nightwarden.agents.prices import Fixed
from nightwarden.events.base import Event
from nightwarden.events.budget import BudgetCommitted, BudgetReserved, BudgetState
from nightwarden.ids import EscalationId, NodeId, RunId
from nightwarden.runtime.patching import BadPatch, apply_patch, repairable
from nightwarden.runtime.supervision import Brief, Found
from nightwarden.settings import ModelEntry, Settings
from nightwarden.verdict import Action, Escalation, Item

PROTOCOLS = (
    "anthropic:claude-sonnet-5",
    "openai:gpt-5",
    "openai-chat:gpt-5",
    "google:gemini-2.5-flash",
    "ollama:llama3.2",
)
"""One model of each protocol, and one at home."""
KEY = "sk-test-0123456789-abcdef"
PRICE = Fixed(Decimal(3), Decimal(15))
"""$3 and $15 a million tokens: 3 and 15 micro-dollars for one."""


def stub_model(server: ModelServer, name: str = "openai-chat:gpt-5", **fields: Any) -> Model:
    """A model of that name at this server, for 3 and 15 micro-dollars a token."""
    version = "" if name.startswith(("anthropic", "google")) else "/v1"
    entry = ModelEntry(base_url=server.base_url + version, price_in=3, price_out=15)
    keys = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY", "OLLAMA_API_KEY")
    environ = dict.fromkeys(keys, KEY)
    model = resolve(name, Settings(models={name: entry}), environ=environ)
    return Model(
        **{
            "name": model.name,
            "id": model.id,
            "provider": model.provider,
            "base_url": model.base_url,
            "price": model.price,
            "key_name": model.key_name,
            "key": model.key,
            **fields,
        }
    )


def escalation(**fields: Any) -> Escalation:
    """A failure of `parse` for item 148 of 200; a repair is offered."""
    known: dict[str, Any] = {
        "id": EscalationId("e1"),
        "run_id": RunId("r"),
        "node_id": NodeId("parse"),
        "node_type": "t.Parse",
        "lineage": (147,),
        "item": Item("148", 200, "https://shop.example/p/147"),
        "attempt": 1,
        "retries_left": 2,
        "allowed_actions": (Action.RETRY, Action.SUBSTITUTE, Action.SKIP, Action.FAIL),
        "detail": "the reply is no JSON",
        "error_type": "RecoverableError",
        "signature": "value:json",
        "has_candidate": True,
        "candidate_output": "{'n': 1}",
        "declared_outputs": {"record": RECORD},
        "inputs": {"reply": "{'n': 1}"},
    }
    return Escalation(**{**known, **fields})


RECORD: Mapping[str, object] = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}


def answer(action: str, *, rationale: str = "It is so.", **fields: Any) -> Call:
    """The model answers."""
    arguments = {
        "diagnosis": "something broke",
        "verdict": {"action": action, **fields},
        "rationale": rationale,
    }
    return Call("decide", arguments)


RETRY = answer("retry")
FAIL = answer("fail", reason="The key is wrong.", apply_to="invocation")
SKIP = answer("skip", apply_to="invocation")


def repair(value: object) -> Call:
    """The model repairs the record."""
    return answer("substitute", outputs={"record": value})


class Run:
    """A run to read, as far as a supervisor may. `check` says what is wrong with outputs."""

    def __init__(
        self,
        *,
        check: Callable[[Mapping[str, object]], Sequence[str]] = lambda outputs: [],
        candidate: object = None,
        outputs: Mapping[str, object] | None = None,
        spent: BudgetState | None = None,
        brief: Brief | None = None,
        on_durable: Callable[[], None] = lambda: None,
    ) -> None:
        self.run_id = "r"
        self.events: list[Event] = []
        self.protected: dict[str, str] = {}
        self.checked: list[Mapping[str, object]] = []
        self._check = check
        self._candidate = candidate
        self._outputs = outputs or {}
        self._spent = spent or BudgetState()
        self._brief = brief or Brief()
        self._on_durable = on_durable

    def state(self) -> Mapping[str, object]:
        return {"nodes": [{"id": "parse", "due": 200, "done": 147}], "decisions": 1}

    def check(self, escalation_id: str, outputs: Mapping[str, object]) -> Sequence[str]:
        self.checked.append(outputs)
        return self._check(outputs)

    def brief(self, escalation_id: str) -> Brief:
        return self._brief

    def output(self, escalation_id: str, node_id: str) -> Found:
        if node_id not in self._outputs:
            return Found(refusal=f"{node_id} is not upstream of the failed step")
        return Found(value=self._outputs[node_id])

    def candidate(self, escalation_id: str) -> object:
        return self._candidate

    def patched(
        self, escalation_id: str, patch: Sequence[Mapping[str, object]]
    ) -> tuple[Mapping[str, object], Sequence[str]]:
        try:
            outputs = apply_patch(repairable(self._candidate, ["record"]), patch)
        except BadPatch as error:
            return {}, [str(error)]
        problems = self.check(escalation_id, outputs)
        return ({} if problems else outputs), problems

    def budget(self) -> BudgetState:
        return self._spent

    def protect(self, name: str, value: str) -> None:
        self.protected[name] = value

    def publish(self, event: Event) -> None:
        self.events.append(event)

    async def durable(self) -> None:
        self._on_durable()

    @property
    def reserved(self) -> list[BudgetReserved]:
        """The reservations written down."""
        return [event for event in self.events if isinstance(event, BudgetReserved)]

    @property
    def committed(self) -> list[BudgetCommitted]:
        """The bookings written down."""
        return [event for event in self.events if isinstance(event, BudgetCommitted)]

    @property
    def bookings(self) -> list[tuple[str, int]]:
        """How each turn was booked, and at what."""
        return [(str(event.booked), event.cost_micro_usd) for event in self.committed]
