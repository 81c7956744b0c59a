"""Node code for tests, in one word each, and answers to what fails.

Values say where they come from: `join(thumb(2),caption(2))`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nightwarden.lineage import Lineage
from nightwarden.spec.catalog import NodeType
from nightwarden.verdict import Action, EndStream, Fail, Skip, Verdict
from reference.words import END, At, Broken, Code, Emit, Judge, Listed, Next, Outputs, Running


def text(value: object) -> str:
    """A value as provenance."""
    if isinstance(value, Listed):
        return text(value.values)
    if isinstance(value, tuple):
        return "[" + ",".join(text(v) for v in value) + "]"
    return str(value)


def made(at: At, *more: object) -> str:
    """What a node makes of its inputs: its name around them."""
    given = [text(v) for _, v in sorted(at.inputs.items()) if str(v) != "STREAM"]
    return f"{at.node}({','.join(given + [text(m) for m in more])})"


def plain(node_type: NodeType) -> Code:
    """Put the provenance on every slot."""
    names = [n for n, s in node_type.outputs.items() if not s.stream]
    return lambda at: {n: made(at) if n == "output" else f"{made(at)}.{n}" for n in names}


def gives(**outputs: object) -> Code:
    """These values, whatever comes in."""
    return lambda at: outputs


def yields(*values: object, then: Broken | None = None, **scalars: object) -> Code:
    """A frame a value (a mapping is a whole frame), then the end, or a failure."""

    def code(at: At) -> Running:
        for value in values:
            yield Emit(value if isinstance(value, Mapping) else {"output": value})
        if then is not None:
            raise then
        return scalars

    return code


def reads(slot: str, count: int | None = None, then: Broken | None = None) -> Code:
    """Read so many items (None: all) and put them out as one value."""

    def code(at: At) -> Running:
        items: list[object] = []
        while count is None or len(items) < count:
            item = yield Next(slot)
            if item is END:
                break
            assert isinstance(item, tuple)
            items.append(item[1])
        if then is not None:
            raise then
        return {"output": made(at, *items)}

    return code


def fails(
    *lineages: Lineage,
    attempts: int = 99,
    code: Code | None = None,
    broken: Callable[[], Broken] = Broken,
) -> Code:
    """Fail for these lineages (none: all) in the first attempts, else do what `code` does."""

    def failing(at: At) -> Outputs | Running:
        if at.attempt <= attempts and (not lineages or at.lineage in lineages):
            raise broken()
        return code(at) if code else {"output": made(at)}

    return failing


def leaves(slot: str, *lineages: Lineage) -> Code:
    """Take another branch: this slot has no value for these lineages (none: all)."""

    def code(at: At) -> Outputs:
        taken = lineages and at.lineage not in lineages
        return {slot: made(at)} if taken else {}

    return code


def gives_up(node: str, lineage: Lineage, attempt: int, allowed: frozenset[Action]) -> Verdict:
    """Skip, or what reads as a skip of a stream."""
    return Skip() if Action.SKIP in allowed else EndStream()


def answers(**verdicts: Verdict) -> Judge:
    """One verdict a node; whoever is not named fails."""
    return lambda node, lineage, attempt, allowed: verdicts.get(node, Fail())
