"""What reaches a run from elsewhere: pushes, cancels and control events, also out of threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from scenarios import add, inc, read

import nightwarden as nw
from nightwarden import Context
from nightwarden.errors import RunError
from nightwarden.runtime.feeding import ROOM
from nightwarden.testing import InlineExecutor, play


def wired(build: Callable[[Any], Any]) -> Any:
    with nw.workflow("hosted") as w:
        build(w)
    return w.build()


# -- control events out of a thread --


@nw.node(type="h.Tell")
def tell(ctx: Context, n: int) -> int:
    for i in range(n):
        ctx.control("add", b=i)
    ctx.end_control("add")
    return n


@nw.node(type="h.TellAndYield")
def tell_and_yield(ctx: Context, n: int) -> Iterator[int]:
    for i in range(n):
        ctx.control("add", b=10 * i)
        yield i


@nw.node(type="h.TellNobody")
def tell_nobody(ctx: Context) -> None:
    ctx.control("nobody")


@nw.node(type="h.Ask")
def ask(ctx: Context) -> object:
    return ctx.call("add", b=1)


def controlling(boss: Callable[..., Any], **given: object) -> Any:
    def build(w: Any) -> None:
        w.add(boss, id="boss", controls=[w.add(add, id="add", a=100)], **given)

    return wired(build)


def test_a_step_in_a_thread_sends_events_in_order() -> None:
    outputs = nw.run(controlling(tell, n=3)).outputs
    assert outputs["boss"] == 3
    assert list(outputs["add"]) == [100, 101, 102]


def test_a_generator_in_a_thread_sends_events_between_its_items() -> None:
    outputs = nw.run(controlling(tell_and_yield, n=3)).outputs
    assert list(outputs["boss"]) == [0, 1, 2]
    assert list(outputs["add"]) == [100, 110, 120]


def test_a_step_in_a_thread_is_told_what_it_does_not_control() -> None:
    assert "does not control 'nobody'" in nw.run(controlling(tell_nobody)).reason


def test_a_step_in_a_thread_that_asks_for_an_answer_is_told_to_be_async() -> None:
    result = nw.run(controlling(ask))
    assert result.status == "failed"
    assert "make the step `async def`, or use ctx.control" in result.reason


# -- a run in a thread --


@nw.node(type="h.Endless")
async def endless() -> AsyncIterator[int]:
    number = 0
    while True:
        yield number
        number += 1
        await asyncio.sleep(0)


class InThread:
    """A run on a loop in a thread of its own, from its first event on."""

    def __init__(self, session: nw.Session) -> None:
        self.loop = asyncio.new_event_loop()
        self.results: list[nw.RunResult] = []
        begun = threading.Event()
        session.subscribe(lambda event: begun.set())
        self._session = session
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert begun.wait(5)

    def _run(self) -> None:
        self.results.append(self.loop.run_until_complete(self._session.run()))
        self.loop.close()

    def result(self) -> nw.RunResult:
        self._thread.join(5)
        return self.results[0]


def test_a_run_is_cancelled_from_another_thread_and_twice_changes_nothing() -> None:
    session = nw.Session(wired(lambda w: w.add(inc, id="sink", x=w.add(endless, id="source"))))
    run = InThread(session)
    session.cancel("enough")
    result = run.result()
    assert (result.status, result.reason) == ("cancelled", "enough")
    session.cancel("after its end")


def test_an_open_input_is_closed_from_another_thread_and_pushed_to_on_the_loop_only() -> None:
    session = feeding(lambda w, items: w.add(inc, id="sink", x=items))
    run = InThread(session)
    with pytest.raises(RunError, match="push on the loop the run is on"):
        asyncio.run(session.push("xs", 1))
    asyncio.run_coroutine_threadsafe(session.push("xs", 1), run.loop).result(5)
    session.close("xs")
    with pytest.raises(RunError, match="ys is not open"):
        session.close("ys")
    assert list(run.result().outputs["sink"]) == [2]


# -- who pushes, and when nobody takes it --


def feeding(build: Callable[[Any, Any], Any], **options: Any) -> nw.Session:
    def outer(w: Any) -> None:
        build(w, w.input("xs", list[int], default=[]).each())

    return nw.Session(wired(outer), open_inputs="xs", **options)


class Host:
    """Pushes numbers from the first second on, until told that there is no use."""

    def __init__(self, session: nw.Session, most: int) -> None:
        self._session = session
        self._most = most
        self.pushed = 0
        self.told = ""
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._push())

    async def _push(self) -> None:
        try:
            for number in range(self._most):
                await self._session.push("xs", number)
                self.pushed += 1
        except RunError as error:
            self.told = str(error)


def hosted(session: nw.Session, most: int, *also: tuple[float, Callable[[], None]]) -> Any:
    host = Host(session, most)
    result = play(session, seed=3, at=[(1.0, host.begin), *also]).result
    return host, result


@pytest.mark.parametrize("wanted", [1, 3])
def test_a_run_whose_readers_have_enough_does_not_wait_for_further_pushes(wanted: int) -> None:
    session = feeding(
        lambda w, items: w.add("flow.Limit", id="some", items=items, count=wanted),
        executor=InlineExecutor(),
    )
    _, result = hosted(session, wanted)
    assert result.status == "completed"
    assert list(result.outputs["some"]) == list(range(wanted))
    assert result.ledger["roots"][0]["marks"] == {"cut": 1}


def test_who_pushes_to_readers_that_have_enough_is_told_so() -> None:
    session = feeding(
        lambda w, items: w.add(read, id="some", xs=items, most=3), executor=InlineExecutor()
    )
    host, result = hosted(session, 10 * ROOM)
    assert result.outputs["some"] == [0, 1, 2]
    assert host.told == "input xs: nothing more can be pushed: nobody takes it any more"
    assert host.pushed < 10 * ROOM


def test_a_push_after_the_end_of_the_run_is_refused() -> None:
    session = feeding(lambda w, items: w.add(inc, id="sink", x=items), executor=InlineExecutor())
    _, result = hosted(session, 2, (2.0, session.cancel))
    assert result.status == "cancelled"

    async def push() -> None:
        await session.push("xs", 1)

    with pytest.raises(RunError, match="nothing more can be pushed"):
        asyncio.run(push())
