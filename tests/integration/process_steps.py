"""Steps for test_process_executor.py, where a worker process can import them."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import nightwarden as nw
from nightwarden import Absent, Context, Node, NodeError, RecoverableError, Stream
from nightwarden.runtime.accounting import current


@dataclass
class Page:
    """A value of a class of one's own."""

    url: str
    tags: list[str]


class OddError(Exception):
    """Its constructor does not take its message, and it holds what cannot be sent."""

    def __init__(self, code: str, *, number: int) -> None:
        super().__init__(f"odd {code} {number}")
        self.code = code
        self.number = number
        self.lock = threading.Lock()


class FakeResponse:
    """What an HTTP client's error holds on to: a line that is open."""

    status_code = 451
    headers = {"retry-after": "7"}  # noqa: RUF012

    def __init__(self) -> None:
        self.line = threading.Lock()


class ResponseError(Exception):
    """An error that is recognised by what cannot be sent."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.response = FakeResponse()


@nw.node(executor="process")
def double(value: Any) -> Any:
    return value * 2


@nw.node(executor="process")
def process_id() -> int:
    return os.getpid()


@nw.node(executor="process")
async def later(value: int) -> int:
    await asyncio.sleep(0)
    return value + 1


@nw.node(executor="process")
def tagged(page: Page) -> Page:
    return Page(page.url, [*page.tags, "seen"])


@nw.node(executor="process")
def gated(ctx: Context, name: str = "gate") -> int:
    """Says that it runs, and waits until the test lets it go on."""
    ctx.log.info(f"running {os.getpid()}")
    ctx.secret(name)
    return os.getpid()


@nw.node(executor="process")
def busy(ctx: Context) -> None:
    """Says that it runs, with a child of its own, and computes for ever."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    ctx.spend(0.25)
    ctx.log.info(f"running {os.getpid()} {child.pid}")
    while True:
        pass


@nw.node(executor="process")
def everything(ctx: Context, fails: bool = False) -> str:
    key = ctx.secret("KEY")
    ctx.spend(0.5, what="tokens")
    ref = ctx.assets.write("a/b.txt", b"hello", media_type="text/plain")
    (ctx.workdir / "own.txt").write_text("mine")
    ctx.assets.record(ctx.workdir / "own.txt")
    ctx.log.info("half way")
    ctx.log.warning("careful")
    ctx.progress(1, 2)
    ctx.rejected(3, "a;b", "too few")
    current.get().spend(0.25)
    logging.getLogger("a.library").warning("talks of %s", key)
    if fails:
        raise RecoverableError("after all that", candidate_output={"half": True}, code="half")
    return f"{key} {ref.name} {ref.size_bytes} {ctx.item} {ctx.lineage} {ctx.attempt}"


@nw.node(executor="process")
def bad_amount(ctx: Context) -> None:
    ctx.spend(-1.0)


@nw.node(executor="process")
def controlling(ctx: Context) -> None:
    ctx.control("other", x=1)


@nw.node(executor="process")
def pausing(ctx: Context) -> None:
    ctx.suspend("wait for me", {"at": 3})


@nw.node(executor="process")
def spends_in_a_thread(ctx: Context) -> None:
    threads = [threading.Thread(target=ctx.spend, args=(0.01,)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


late: list[str] = []
go_on = threading.Event()


@nw.node(executor="process")
def leaves_a_thread_behind(ctx: Context) -> None:
    """The thread spends when the step is over: when `what_came_late` lets it."""

    def spend_late() -> None:
        go_on.wait()
        try:
            ctx.spend(99.0)
        except NodeError as error:
            late.append(str(error))

    threading.Thread(target=spend_late, daemon=True, name="late").start()


@nw.node(executor="process")
def what_came_late() -> list[str]:
    go_on.set()
    for thread in threading.enumerate():
        if thread.name == "late":
            thread.join()
    return late


def _exit() -> None:
    os._exit(3)


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _segfault() -> None:
    ctypes.string_at(0)


def _kill_with_a_fork_left() -> None:
    """The fork holds the worker's end of the line."""
    if os.fork() == 0:
        signal.pause()
    _kill()


DEATHS: dict[str, Callable[[], None]] = {
    "exit": _exit,
    "kill": _kill,
    "segfault": _segfault,
    "fork": _kill_with_a_fork_left,
}


@nw.node(executor="process")
def dies(how: str, ctx: Context) -> None:
    ctx.spend(1.5)
    DEATHS[how]()


@nw.node(executor="process")
def raises(what: str) -> None:
    if what == "wrapped":
        try:
            raise TimeoutError("it took too long")
        except TimeoutError as error:
            raise NodeError("could not be had") from error
    if what == "while":
        try:
            raise KeyError("first")
        except KeyError:
            raise ValueError("second")  # noqa: B904
    if what == "local":

        class LocalError(Exception):
            code = "card_declined"

        raise LocalError("nobody else knows me")
    if what == "candidate":
        raise RecoverableError("nearly", candidate_output=threading.Lock(), code="nearly")
    raise {
        "odd": OddError("E7", number=7),
        "system": FileNotFoundError(2, "No such file or directory", "x.csv"),
        "response": ResponseError("not for you"),
        "unicode": UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        "exit": SystemExit("enough"),
        "interrupt": KeyboardInterrupt(),
        "group": ExceptionGroup("two", [ValueError("a"), OSError(5, "b")]),
    }[what]


@nw.node(executor="process")
def says_why(value: str | Absent) -> str:
    return f"{value!r}: {nw.ABSENT.cause}"


@nw.node(executor="process")
def gives_a_lock() -> object:
    return {"fine": 1, "lock": threading.Lock()}


@nw.outputs
class Two(NamedTuple):
    first: int
    second: object


@nw.node(executor="process")
def gives_two() -> Two:
    return Two(1, threading.Lock())


@nw.node(executor="process")
class Setup(Node):
    async def run(self, value: int) -> int:
        return value


@nw.node(executor="process")
def yields(count: int) -> Iterator[int]:
    yield from range(count)


@nw.node(executor="process")
async def reads(value: Stream[int]) -> int:
    return len([item async for item in value])


@nw.node(executor="process", inline=True)
def inlined(value: int) -> int:
    return value


def hidden(step: Callable[..., Any]) -> Callable[..., Any]:
    def instead(value: int) -> int:
        return step(value)  # type: ignore[no-any-return]

    return instead


def _covered(value: int) -> int:
    return value


covered_step = nw.node(type="steps.Covered", executor="process")(_covered)
_covered = hidden(_covered)  # type: ignore[assignment]


@nw.node(executor="process")
def path_of(path: Path) -> Path:
    return path / "below"


@nw.node(executor="process", retry_safe=True)
def square(value: int) -> tuple[int, int]:
    return value * value, os.getpid()


@nw.node(executor="process")
def dies_at_two(value: int) -> int:
    if value == 2:
        _kill()
    return value


@nw.node(executor="process", retry_safe=True, timeout=1.0)
def once_bad(mark: str, how: str) -> str:
    if Path(mark).exists():
        return "second time"
    Path(mark).touch()
    if how == "die":
        _kill()
    while True:
        pass
