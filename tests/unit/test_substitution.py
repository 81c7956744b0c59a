"""What a repair may name: files of the run, just as they are (supervision.md §6)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import pytest

import nightwarden as nw
from nightwarden import AssetRef, Context
from nightwarden.testing import InlineExecutor, play
from nightwarden.verdict import DecidedBy, Substitute


@dataclass(frozen=True, slots=True)
class Held:
    picture: AssetRef
    note: str = ""


class Repairs:
    """Answers every failure with one repair."""

    def __init__(self, outputs: dict[str, object]) -> None:
        self.outputs = outputs

    async def decide(self, escalation: object) -> nw.Decision:
        return nw.Decision(verdict=Substitute(self.outputs), rationale="as it should be")

    def attach(self, reader: object) -> None: ...

    async def aclose(self) -> None: ...


@nw.node(type="t.Draws")
async def draws(ctx: Context) -> Held:
    kept = ctx.assets.write("a.png", b"pixels")
    assert ctx.assets.read(kept) == b"pixels"
    raise nw.RecoverableError("not quite", candidate_output={"picture": "?"})


DIGEST = hashlib.sha256(b"pixels").hexdigest()


@pytest.mark.parametrize(
    ("name", "digest", "size", "good"),
    [
        ("a.png", DIGEST, 6, True),
        ("not-there.png", DIGEST, 6, False),
        ("a.png", "0" * 64, 6, False),
        ("a.png", DIGEST, 99, False),
        ("../a.png", DIGEST, 6, False),
    ],
)
def test_a_repair_may_only_name_an_asset_that_is_just_that(
    tmp_path: Path, name: str, digest: str, size: int, good: bool
) -> None:
    with nw.workflow("held") as w:
        w.add(draws, id="draws")
    repair = {"output": {"picture": {"name": name, "digest": digest, "size_bytes": size}}}
    session = nw.Session(
        w.build(), supervise=Repairs(repair), workdir=tmp_path, executor=InlineExecutor()
    )
    result = play(session, seed=1).result
    decision = result.interventions[0].decision
    assert decision is not None
    assert (result.status == "completed") is good
    if not good:
        assert decision.decided_by is DecidedBy.KERNEL
        assert "is no file of this run" in result.reason
