"""json.*: reading JSON strictly. What is not strict JSON is a failure that can be repaired.

Read next: `_json_strict.py`, `data.py`.
"""

from __future__ import annotations

from pydantic import JsonValue

from nightwarden.errors import RecoverableError
from nightwarden.nodes.builtin._json_strict import load
from nightwarden.nodes.define import node


@node(retry_safe=True, inline=True, pure=True)
def parse(text: str) -> JsonValue:
    """Read a JSON text by the standard, RFC 8259.

    Refused, with a code each: words or a code fence around the value, trailing commas, Python
    literals, typographic quotes, a text cut off, `NaN`, a key that stands twice, JSON inside a
    JSON text. The failure carries the text as it came, for whoever repairs it.
    """
    value, refusal = load(text)
    if refusal is None:
        return value  # type: ignore[return-value]  # what the decoder makes is JSON
    raise RecoverableError(
        f"not strict JSON: {refusal.text}", candidate_output=text, code=refusal.code
    )
