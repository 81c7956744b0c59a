"""A record may have a field of the name its own slot has; the name means the whole value."""

from __future__ import annotations

from dataclasses import dataclass

import nightwarden as nw


@dataclass(frozen=True)
class Said:
    """What a command said."""

    output: str
    code: int


@nw.node(type="t.Said", inline=True, pure=True)
def said(text: str) -> Said:
    return Said(text, 0)


def test_a_field_named_as_the_slot_is_no_second_way_to_it() -> None:
    registry = nw.Registry()
    assert list(registry.add(said).type.projections) == ["code"]
    with nw.workflow("w", registry=registry) as w:
        made = w.add("t.Said", id="made", text="hello")
        w.add("data.Map", id="whole", expression="item.output", item=made)
        w.add("data.Map", id="part", expression="item", item=made.slot("code"))
    result = nw.run(w.build(), registry=registry)
    assert result.outputs == {"whole": "hello", "part": 0}
