"""JSON Schemas in workflow files: checked when a workflow is loaded, and values against them.

A schema may say nothing that has to be fetched: references lead to its own parts only.

Read next: `checker.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Annotated, Any, Final

from pydantic import AfterValidator, JsonValue

_MOST_PROBLEMS: Final = 10
_LONGEST: Final = 400


def problems_of(value: object, schema: Mapping[str, object]) -> list[str]:
    """What in a value does not fit a schema, one line each: place and rule."""
    validator = _validator(json.dumps(schema, sort_keys=True))
    lines = (
        f"{_place(e.instance_path)}{e.message}"[:_LONGEST] for e in validator.iter_errors(value)
    )
    return [line for line, _ in zip(lines, range(_MOST_PROBLEMS), strict=False)]


@lru_cache(maxsize=64)
def _validator(text: str) -> Any:
    import jsonschema_rs  # noqa: PLC0415  (loaded when used)

    return jsonschema_rs.validator_for(json.loads(text))


def _place(path: object) -> str:
    steps = ".".join(str(step) for step in path or ())  # type: ignore[attr-defined]
    return f"{steps}: " if steps else ""


def _checked(schema: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The schema, if it is one. Raises `ValueError` with what is wrong."""
    elsewhere = [ref for ref in _references(schema) if not ref.startswith("#")]
    if elsewhere:
        raise ValueError(f"$ref {elsewhere[0]!r} leads elsewhere; put that part under $defs")
    try:
        _validator(json.dumps(schema, sort_keys=True))
    except Exception as error:
        first = str(getattr(error, "message", error)).splitlines()[0]
        raise ValueError(f"no JSON Schema: {first[:_LONGEST]}") from None
    return schema


def _references(part: object) -> Iterator[str]:
    if isinstance(part, Mapping):
        for name, value in part.items():
            if name in ("$ref", "$dynamicRef", "$schema") and isinstance(value, str):
                if name != "$schema":
                    yield value
            else:
                yield from _references(value)
    elif isinstance(part, list):
        for value in part:
            yield from _references(value)


JsonSchema = Annotated[dict[str, JsonValue], AfterValidator(_checked)]
"""A property that is a JSON Schema."""
