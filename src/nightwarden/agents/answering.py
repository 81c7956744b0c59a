"""The form of an answer: one branch for each verb that is allowed, and nothing else.

    {diagnosis, verdict: retry | substitute | skip | end_stream | fail, rationale}

The form goes to the provider as the parameters of a tool, and is checked again here: providers
promise little. What a wrong answer breaks is said verb by verb, for the model to read.

Read next: `conversation.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from nightwarden.agents.prompt import sticks
from nightwarden.masking.marks import contains_mark
from nightwarden.verdict import Action, ApplyTo, EndStream, Escalation, Fail, Retry, Skip, Verdict

Schema = dict[str, Any]

LONGEST_WORDS: Final = 1_000
_MOST_PROBLEMS: Final = 10
_REF: Final = "#/$defs/"
_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"


def needs_patch(escalation: Escalation) -> bool:
    """Whether a repair is written as a patch: the model does not see the broken value whole."""
    offered = Action.SUBSTITUTE in escalation.allowed_actions
    return offered and contains_mark(escalation.candidate_output)


def answer_schema(escalation: Escalation) -> Schema:
    """The JSON Schema of an answer to this escalation."""
    defs: Schema = {}
    allowed = [action for action in Action if action in escalation.allowed_actions]
    branches = [_branch(action, escalation, defs) for action in allowed]
    verdict = branches[0] if len(branches) == 1 else {"anyOf": branches}
    schema = _object(
        diagnosis=_text("What most likely went wrong, from the evidence. Before the verdict."),
        verdict=verdict,
        rationale=_text("Why this verdict is right, in one or two plain sentences for the owner."),
    )
    return {**schema, "$defs": defs} if defs else schema


def problems_of(answer: object, schema: Schema) -> list[str]:
    """What is wrong with an answer's form, one line each; for each verb where none fits."""
    import jsonschema_rs  # noqa: PLC0415  (loaded with the first question)

    validator = jsonschema_rs.validator_for(schema)
    lines = [line for error in validator.iter_errors(answer) for line in _lines(error, answer)]
    if not lines and isinstance(answer, Mapping):
        words = ("diagnosis", "rationale")
        lines = [f"{word} is blank" for word in words if not str(answer[word]).strip()]
    return list(dict.fromkeys(lines))[:_MOST_PROBLEMS]


def verdict_of(verdict: Mapping[str, Any]) -> Verdict | None:
    """The verdict an answer of the right form stands for; None for a repair, which is checked."""
    apply_to = ApplyTo(verdict.get("apply_to", ApplyTo.INVOCATION))
    match Action(verdict["action"]):
        case Action.RETRY:
            return Retry()
        case Action.SKIP:
            return Skip(apply_to=apply_to)
        case Action.END_STREAM:
            return EndStream()
        case Action.FAIL:
            return Fail(reason=one_line(verdict["reason"]), apply_to=apply_to)
        case Action.SUBSTITUTE:
            return None


def one_line(text: str) -> str:
    """A model's words as one bounded line."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_WORDS else line[:LONGEST_WORDS] + "…"


def _branch(action: Action, escalation: Escalation, defs: Schema) -> Schema:
    fields: Schema = {"action": {"type": "string", "enum": [str(action)]}}
    if action is Action.SUBSTITUTE:
        if needs_patch(escalation):
            fields["patch"] = _PATCH
        else:
            fields["outputs"] = _outputs(escalation.declared_outputs, defs)
    if action is Action.FAIL:
        fields["reason"] = _text("One sentence for the owner: what is wrong, and what to do.")
    if action in (Action.SKIP, Action.FAIL) and sticks(escalation):
        fields["apply_to"] = {"type": "string", "enum": [str(extent) for extent in ApplyTo]}
    made = _object(**fields)
    made["required"] = [name for name in fields if name != "apply_to"]
    return made


def _outputs(declared: Mapping[str, object], defs: Schema) -> Schema:
    """Every declared slot with its own schema; what several schemas share goes to one place."""
    slots = {}
    for number, (slot, schema) in enumerate(declared.items()):
        own = dict(schema) if isinstance(schema, Mapping) and _moves(schema) else {}
        own.pop("$schema", None)
        for name, part in own.pop("$defs", {}).items():
            defs[f"s{number}_{name}"] = _renamed(part, number)
        slots[slot] = _renamed(own, number)
    return _object(**slots)


def _moves(schema: Any) -> bool:
    """Whether a schema means the same as a part of another: one that refers to itself by other
    ways than `$defs`, has a name, or is of an older draft stays out; its check is made later."""
    if isinstance(schema, list):
        return all(map(_moves, schema))
    if not isinstance(schema, Mapping):
        return True
    ref, draft = schema.get("$ref", _REF), schema.get("$schema", _DRAFT)
    of_its_own = any(name in schema for name in ("$id", "$anchor", "$dynamicRef", "definitions"))
    known = not isinstance(ref, str) or ref.startswith(_REF)
    return known and draft == _DRAFT and not of_its_own and all(map(_moves, schema.values()))


def _renamed(schema: Any, number: int) -> Any:
    """A schema whose references point to where its parts were moved."""
    if isinstance(schema, Mapping):
        return {
            key: f"{_REF}s{number}_{part.removeprefix(_REF)}"
            if key == "$ref" and isinstance(part, str) and part.startswith(_REF)
            else _renamed(part, number)
            for key, part in schema.items()
        }
    return [_renamed(part, number) for part in schema] if isinstance(schema, list) else schema


def _object(**fields: Schema) -> Schema:
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


def _text(description: str) -> Schema:
    return {"type": "string", "minLength": 1, "description": description}


_PATCH: Final[Schema] = {
    "type": "array",
    "minItems": 1,
    "description": "JSON Patch operations on broken_value, in order.",
    "items": {
        "type": "object",
        "properties": {
            "op": {"type": "string", "enum": ["add", "remove", "replace", "move", "copy", "test"]},
            "path": {"type": "string"},
            "from": {"type": "string"},
            "value": {},
        },
        "required": ["op", "path"],
        "additionalProperties": False,
    },
}


def _lines(error: Any, answer: object) -> Iterator[str]:
    """One error as lines; where no verb fits, what each verb that was meant would want."""
    branches = getattr(error.kind, "context", None)
    if not branches:
        yield f"{_place(error)}: {error.message}"[:400]
        return
    meant = _action(answer)
    for branch in branches:
        if not any("action" in map(str, inner.instance_path) for inner in branch):
            yield from (line for inner in branch for line in _lines(inner, answer))
            return
    yield f"verdict: {meant!r} is no action that is allowed here; {_allowed(branches)}"


def _allowed(branches: Iterable[Iterable[Any]]) -> str:
    wanted = [
        str(option)
        for branch in branches
        for inner in branch
        for option in getattr(inner.kind, "options", None) or ()
    ]
    return f"there are {', '.join(wanted)}" if wanted else "see the tool's description"


def _action(answer: object) -> str:
    verdict = answer.get("verdict") if isinstance(answer, Mapping) else None
    return str(verdict.get("action", ""))[:40] if isinstance(verdict, Mapping) else ""


def _place(error: Any) -> str:
    return ".".join(str(part) for part in error.instance_path) or "answer"
