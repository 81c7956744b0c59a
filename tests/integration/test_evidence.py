"""What a supervisor may read of a run: only what the failing item descends from.

supervision.md §6: scoped by lineage, never a sibling's value, redacted. Scenarios 67–69.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import nightwarden as nw
from nightwarden import Context, RecoverableError, Registry, RunResult, node
from nightwarden.events.budget import BudgetReserved, BudgetState
from nightwarden.resuming import resume
from nightwarden.runtime.supervision import Bounds, Brief, Found, RunEvidence, RunReader
from nightwarden.spec.workflow import Workflow
from nightwarden.verdict import Decision, Escalation, Fail, Skip, Substitute, Verdict


class Looks:
    """Reads what it may of each failure, and answers."""

    def __init__(self, *reads: str, answer: Verdict | None = None) -> None:
        self.found: list[dict[str, Found]] = []
        self.briefs: list[Brief] = []
        self.candidates: list[object] = []
        self.budgets: list[BudgetState] = []
        self._reads = reads
        self._answer = answer or Skip()
        self._reader: Any = None

    def attach(self, reader: RunReader) -> None:
        assert isinstance(reader, RunEvidence)
        self._reader = reader
        self.budgets.append(reader.budget())

    async def decide(self, escalation: Escalation) -> Decision:
        await self._reader.durable()
        self.found.append({n: self._reader.output(escalation.id, n) for n in self._reads})
        self.briefs.append(self._reader.brief(escalation.id))
        self.candidates.append(self._reader.candidate(escalation.id))
        self.verdict = self._answer
        await self.more(escalation)
        return Decision(verdict=self.verdict, rationale="seen")

    async def more(self, escalation: Escalation) -> None:
        """For what one test does besides."""

    async def aclose(self) -> None:
        pass


@node(type="t.Config")
def config() -> dict[str, str]:
    """Says where things are."""
    return {"base": "https://shop.example"}


@node(type="t.Names")
def names() -> list[str]:
    return ["ant", "bee", "cat"]


@node(type="t.Fetch")
def fetch(name: str, config: dict[str, str]) -> str:
    return f"page of {name}"


@node(type="t.Parse", retry_safe=True)
def parse(page: str, config: dict[str, str]) -> str:
    """Reads a page."""
    if "bee" in page:
        raise ValueError("no main part")
    return page.upper()


@node(type="t.Join")
def join(pages: nw.Collect[str]) -> int:
    return len(list(pages))


def shop() -> Workflow:
    """names [*] ─▶ fetch ─▶ parse ─▶ join, and config for every item."""
    with nw.workflow("shop", registry=Registry()) as w:
        settings = w.add(config, id="config")
        listed = w.add(names, id="names")
        page = w.add(fetch, id="fetch", properties={"name": listed.each(), "config": settings})
        parsed = w.add(parse, id="parse", properties={"page": page, "config": settings})
        w.add(join, id="join", properties={"pages": parsed.collect()})
    return w.build()


def read(workflow: Workflow, looks: Looks, store: Path | None, **options: Any) -> RunResult:
    return nw.run(workflow, supervise=looks, store=store, **options)


def test_an_item_sees_its_own_branch_and_what_all_share(tmp_path: Path) -> None:
    """Scenario 67: own branch → given; single-fire producer → given.

    row: S6-TOOLS
    """
    looks = Looks("fetch", "config")
    read(shop(), looks, tmp_path)
    (found,) = looks.found
    assert found["fetch"] == Found(value={"output": "page of bee"})
    assert found["config"] == Found(value={"output": {"base": "https://shop.example"}})


def test_of_the_list_an_item_came_from_only_its_element_is_shown(tmp_path: Path) -> None:
    """Scenario 68: never a sibling's; whether the list or the fan-out is asked for."""
    looks = Looks("names", "names.output[*]")
    read(shop(), looks, tmp_path)
    (found,) = looks.found
    assert found["names"] == Found(value={"output": "bee"})
    assert found["names.output[*]"] == Found(value={"output": "bee"})


@pytest.mark.parametrize("name", ["join", "parse", "nobody", "", "inputs"])
def test_what_is_not_upstream_is_refused(tmp_path: Path, name: str) -> None:
    """Scenario 67: refused."""
    looks = Looks(name)
    read(shop(), looks, tmp_path)
    assert looks.found[0][name].refusal
    assert looks.found[0][name].value is None


def test_nothing_of_a_sibling_is_in_anything_that_can_be_read(tmp_path: Path) -> None:
    reads = ("names", "names.output[*]", "fetch", "config", "parse", "join", "inputs")
    looks = Looks(*reads)
    read(shop(), looks, tmp_path)
    shown = repr(looks.found)
    assert "bee" in shown
    assert "ant" not in shown
    assert "cat" not in shown


@node(type="t.Pages")
def pages(at: str) -> Iterator[str]:
    for number in range(4):
        yield f"{at}/{number}"


@node(type="t.Check")
def check(page: str) -> str:
    if page.endswith("/2"):
        raise ValueError("broken")
    return page


def stream() -> Workflow:
    """config-like text ─▶ a generator ─▶ check."""

    @node(type="t.Where")
    def where() -> str:
        return "all of /0 /1 /2 /3"

    with nw.workflow("stream", registry=Registry()) as w:
        at = w.add(where, id="where")
        made = w.add(pages, id="pages", properties={"at": at})
        w.add(check, id="check", properties={"page": made})
    return w.build()


def test_of_a_stream_only_the_frame_is_shown_and_nothing_behind_it(tmp_path: Path) -> None:
    """What a fan-out was made from holds every item: it is not this item's alone."""
    looks = Looks("pages", "where")
    read(stream(), looks, tmp_path)
    (found,) = looks.found
    assert found["pages"] == Found(value={"output": "all of /0 /1 /2 /3/2"})
    assert "of other items, too" in found["where"].refusal


def test_what_was_gathered_belongs_to_who_gathered_it(tmp_path: Path) -> None:
    @node(type="t.Last")
    def last(pages: nw.Collect[str]) -> int:
        raise ValueError("full")

    with nw.workflow("gather", registry=Registry()) as w:
        listed = w.add(names, id="names")
        settings = w.add(config, id="config")
        page = w.add(fetch, id="fetch", properties={"name": listed.each(), "config": settings})
        w.add(last, id="last", properties={"pages": page.collect()})
    looks = Looks("fetch", answer=Fail(reason="stop"))
    read(w.build(), looks, tmp_path)
    assert looks.found[0]["fetch"].value == [
        {"item": "1", "output": "page of ant"},
        {"item": "2", "output": "page of bee"},
        {"item": "3", "output": "page of cat"},
    ]


def test_run_inputs_are_shown_as_far_as_they_are_the_items(tmp_path: Path) -> None:
    @node(type="t.One")
    def one(name: str, base: str) -> str:
        raise ValueError("no")

    with nw.workflow("given", registry=Registry()) as w:
        listed = w.input("names", list[str])
        base = w.input("base", str)
        w.add(one, id="one", properties={"name": listed.each(), "base": base})
    looks = Looks("inputs", answer=Fail(reason="stop"))
    given = {"names": ["ant"], "base": "https://shop.example"}
    nw.run(w.build(), given, supervise=looks, store=tmp_path)
    assert looks.found[0]["inputs"].value == {"names": "ant", "base": "https://shop.example"}


def test_a_secret_in_an_output_upstream_is_masked(tmp_path: Path) -> None:
    """Scenario 61, 69: redacted."""

    @node(type="t.Login")
    def login(ctx: Context) -> str:
        return f"token={ctx.secret('PARTNER')}"

    @node(type="t.Use")
    def use(session: str) -> str:
        raise RecoverableError("odd", candidate_output={"output": f"{session} and more"})

    with nw.workflow("secret", registry=Registry()) as w:
        w.add(use, id="use", properties={"session": w.add(login, id="login")})
    looks = Looks("login", answer=Fail(reason="stop"))
    read(w.build(), looks, tmp_path, secrets={"PARTNER": "hunter2-hunter2"})
    shown = repr((looks.found, looks.candidates))
    assert "hunter2" not in shown
    assert "••••(PARTNER)" in shown


def test_a_long_value_is_read_whole_from_where_it_is_kept(tmp_path: Path) -> None:
    @node(type="t.Long")
    def long() -> str:
        return "x" * 500_000

    @node(type="t.Use")
    def use(text: str) -> str:
        raise RecoverableError("odd", candidate_output=text + "!")

    with nw.workflow("long", registry=Registry()) as w:
        w.add(use, id="use", properties={"text": w.add(long, id="long")})
    looks = Looks("long", answer=Fail(reason="stop"))
    read(w.build(), looks, tmp_path)
    assert looks.found[0]["long"].value == {"output": "x" * 500_000}
    assert looks.candidates == ["x" * 500_000 + "!"]


def test_without_a_record_outputs_are_refused_and_the_candidate_is_there() -> None:
    looks = Looks("fetch")
    read(shop(), looks, None)
    assert "keeps no record" in looks.found[0]["fetch"].refusal


class Patches(Looks):
    """Answers with a patch on the raw value."""

    def __init__(self, patch: Sequence[Mapping[str, object]]) -> None:
        super().__init__()
        self.problems: Sequence[str] = ()
        self._patch = patch

    async def more(self, escalation: Escalation) -> None:
        outputs, self.problems = self._reader.patched(escalation.id, self._patch)
        if not self.problems:
            self.verdict = Substitute(outputs)


class Ticket:
    """A step whose broken value holds a secret and much text."""

    def __init__(self) -> None:
        self.got: list[object] = []

    def workflow(self) -> Workflow:
        got = self.got

        @node(type="t.Make")
        def make(ctx: Context) -> dict[str, Any]:
            value = {"key": ctx.secret("PARTNER"), "text": "t" * 9_000, "n": "1"}
            raise RecoverableError("n is no number", candidate_output=value)

        @node(type="t.Take")
        def take(ticket: dict[str, Any]) -> str:
            got.append(ticket)
            return "taken"

        with nw.workflow("ticket", registry=Registry()) as w:
            w.add(take, id="take", properties={"ticket": w.add(make, id="make")})
        return w.build()


def test_a_patch_is_applied_to_the_raw_value_and_what_is_masked_stays_whole(
    tmp_path: Path,
) -> None:
    """supervision.md §4: a JSON Patch is applied to the raw candidate in the kernel's process.

    row: S6-PATCH
    """
    ticket = Ticket()
    looks = Patches([{"op": "replace", "path": "/output/n", "value": 1}])
    result = read(ticket.workflow(), looks, tmp_path, secrets={"PARTNER": "hunter2-hunter2"})
    assert result.status == "completed"
    assert ticket.got == [{"key": "hunter2-hunter2", "text": "t" * 9_000, "n": 1}]
    assert "hunter2" not in repr(result.to_json())
    assert "hunter2" not in repr(looks.candidates)


def test_a_patch_that_brings_in_a_mark_is_refused_without_showing_the_value(
    tmp_path: Path,
) -> None:
    ticket = Ticket()
    looks = Patches([{"op": "replace", "path": "/output/n", "value": "••••(PARTNER)"}])
    read(ticket.workflow(), looks, tmp_path, secrets={"PARTNER": "hunter2-hunter2"})
    assert looks.problems
    assert "hunter2" not in repr(looks.problems)
    assert ticket.got == []


def test_like_failures_and_their_answers_are_told(tmp_path: Path) -> None:
    """supervision.md §6: how many like failures there were and what was answered."""

    @node(type="t.Odd")
    def odd(name: str) -> str:
        """Never works."""
        raise nw.NodeError("no main part", code="no-main")

    with nw.workflow("odd", registry=Registry()) as w:
        listed = w.add(names, id="names")
        done = w.add(odd, id="odd", properties={"name": listed.each()})
        w.add(join, id="join", properties={"pages": done.collect()})
    looks = Looks()
    read(w.build(), looks, tmp_path, bounds=Bounds(max_decisions=7))
    first, second, third = looks.briefs
    assert (first.purpose, first.consumers, first.like) == ("Never works.", ("join",), ())
    assert [brief.decisions_left for brief in looks.briefs] == [6, 5, 4]
    assert len(second.like) == 1
    assert len(third.like) == 2
    assert "skip by agent (skipped): seen" in third.like[0]


def test_what_deciding_cost_is_on_record_and_comes_back_with_a_resume(tmp_path: Path) -> None:
    """supervision.md §6: reservations are journaled; an open one counts at its worst.

    row: S6-JOURNAL
    """

    class Spends(Looks):
        async def more(self, escalation: Escalation) -> None:
            event = BudgetReserved(budget="supervisor", reservation=1, worst_micro_usd=777)
            self._reader.publish(event)
            await self._reader.durable()

    first = Spends(answer=Fail(reason="stop"))
    result = read(shop(), first, tmp_path)
    assert first.budgets == [BudgetState()]
    again = Looks()
    resume(result.run_id, store=tmp_path, workflow=shop(), supervise=again)
    assert again.budgets[0].at_worst_micro_usd == 777
