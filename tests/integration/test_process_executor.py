"""Steps in processes of their own: real processes, held by what they say and by nothing else.

kernel.md §6: accounting comes back with the result; a worker that dies is a failure of that
invocation like any other, and nothing re-runs by itself.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pty
import select
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import process_steps as steps
import pytest

import nightwarden as nw
from nightwarden import ABSENT, Collect, NodeError, RecoverableError, Registry, RunError, Suspended
from nightwarden.events import Event, Log, NodeProgress, RecordRejected
from nightwarden.leash import Leash
from nightwarden.masking.redaction import SecretRegistry
from nightwarden.nodes.define import NodeDef, definition_of
from nightwarden.nodes.io import Loss, absent_cause
from nightwarden.runtime.accounting import Account
from nightwarden.runtime.bus import Bus
from nightwarden.runtime.context import StepContext
from nightwarden.runtime.executors.attending import WorkerDied
from nightwarden.runtime.executors.processes import ProcessExecutor
from nightwarden.runtime.failing import StepTimeout
from nightwarden.runtime.log_masking import masked_logging
from nightwarden.runtime.secrets import SecretResolver
from nightwarden.runtime.services import RunServices
from nightwarden.signatures.signature import retry_after_s, signature_of
from nightwarden.spec.catalog import NodeType

Task = asyncio.Task[Any]

SECRET = "correct-horse-battery"


class NoControls:
    """A step that controls nothing."""

    def targets(self) -> Mapping[str, NodeType]:
        return {}

    def send(self, target: str, overrides: Mapping[str, object]) -> None:
        raise AssertionError(target)

    async def ask(self, target: str, overrides: Mapping[str, object]) -> Mapping[str, object]:
        raise AssertionError(target)

    def end(self, target: str) -> None:
        raise AssertionError(target)


class Run(RunServices):
    """A run as steps see it: keeps what they say, and holds them at a gate until it is opened."""

    def __init__(self, workdir: Path, executor: ProcessExecutor) -> None:
        registry = SecretRegistry()
        super().__init__(
            Bus(),
            registry,
            SecretResolver(registry, {"KEY": SECRET}, environment={}),
            workdir=workdir,
            assets_dir=workdir / "assets",
        )
        self.executor = executor
        self.events: list[Event] = []
        self.refused: list[str] = []
        self.gates: dict[str, threading.Event] = {}
        self._running = asyncio.get_running_loop()
        self._heard = asyncio.Event()

    # -- the services a context needs --

    def secret(self, name: str) -> str:
        if name in self.gates:
            assert self.gates[name].wait(20)
            return "open"
        return super().secret(name)

    def tell(self, event: Event) -> None:
        self.events.append(event)
        self._running.call_soon_threadsafe(self._heard.set)

    def rejected(self, node_id: str, line: int, reason: str) -> None:
        self.refused.append(f"{node_id} {line} {reason}")

    # -- what a test does --

    async def call(self, step: object, /, *, timeout_s: float | None = None, **values: Any) -> Any:
        value, _ = await self.booked(step, timeout_s=timeout_s, **values)
        return value

    async def booked(
        self, step: object, /, *, timeout_s: float | None = None, **values: Any
    ) -> tuple[Any, Account]:
        """What a step returns, and what was booked on it."""
        account = Account()
        running = self.start(step, account, timeout_s=timeout_s, **values)
        return await running, account

    def start(self, step: object, account: Account | None = None, /, **given: Any) -> Task:
        return asyncio.create_task(self.running(step, account, **given))

    def running(
        self,
        step: object,
        account: Account | None = None,
        /,
        *,
        timeout_s: float | None = None,
        **values: Any,
    ) -> Coroutine[Any, Any, Any]:
        account = account or Account()
        context = StepContext(
            self,
            account,
            node_id="n",
            lineage=(4,),
            attempt=2,
            item=lambda: "5/9 five",
            controls=NoControls(),
        )
        definition = step if isinstance(step, NodeDef) else definition_of(step)
        assert definition is not None
        return self.executor.run_step(definition, values, context, account, timeout_s=timeout_s)

    async def said(self, beginning: str, count: int = 1) -> list[list[str]]:
        """Wait until so many lines that begin like this were logged; their further words."""
        while True:
            self._heard.clear()
            lines = [e.message for e in self.events if isinstance(e, Log)]
            found = [line.split()[1:] for line in lines if line.startswith(beginning)]
            if len(found) >= count:
                return found
            await asyncio.wait_for(self._heard.wait(), 20)


@asynccontextmanager
async def opened(folder: Path, workers: int = 2, **options: Any) -> AsyncIterator[Run]:
    run = Run(folder, ProcessExecutor(workers, **options))
    try:
        yield run
    finally:
        for gate in run.gates.values():
            gate.set()
        run.executor.close()
        assert children() == set()


def on_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an async test on a real loop, for at most half a minute."""

    def run(tmp_path: Path, **arguments: Any) -> None:
        asyncio.run(asyncio.wait_for(test(tmp_path, **arguments), 30))

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


ELSEWHERE: set[int] = set()
"""Processes that were there before the test: a database server of other tests, say."""


@pytest.fixture(autouse=True)
def _only_this_tests_processes() -> None:
    leash = Leash()
    leash.command("true", ())  # the guard of this process is there from its first leash on
    leash.kill()
    ELSEWHERE.clear()
    ELSEWHERE.update(children())


def children(parent: int | None = None) -> set[int]:
    """The processes this one has started since the test began, unburied ones included."""
    found: set[int] = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == (parent or os.getpid()):
                found.add(int(folder.name))
    return found - ELSEWHERE


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def ended(fd: int, timeout_s: float = 20) -> bool:
    """Whether the process behind a pidfd ends in time."""
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    return bool(poller.poll(timeout_s * 1000))


async def error_of(running: Awaitable[Any]) -> BaseException:
    try:
        await running
    except BaseException as error:
        return error
    raise AssertionError("it did not raise")


# -- running --


@on_loop
async def test_a_step_runs_in_a_process_that_is_started_when_it_is_needed(tmp_path: Path) -> None:
    async with opened(tmp_path) as run:
        assert children() == set()
        first = await run.call(steps.process_id)
        assert children() == {first}
        assert await run.call(steps.process_id) == first
        assert first != os.getpid()


@on_loop
async def test_values_of_all_kinds_go_there_and_back(tmp_path: Path) -> None:
    async with opened(tmp_path) as run:
        page = await run.call(steps.tagged, page=steps.Page("u", ["a"]))
        assert page == steps.Page("u", ["a", "seen"])
        assert await run.call(steps.later, value=1) == 2
        assert await run.call(steps.path_of, path=Path("x")) == Path("x/below")
        items = Collect(["a", "b"], [0, 2], [Loss(1, "lost")])
        assert await run.call(steps.double, value="ab") == "abab"
        token = absent_cause.set("picky [2] was given up")
        try:
            why = await run.call(steps.says_why, value=ABSENT)
        finally:
            absent_cause.reset(token)
        assert why == "ABSENT: picky [2] was given up"
        found = await run.call(steps.double, value=Collect([]))
        assert found == []
        assert items.losses == [Loss(1, "lost")]


@on_loop
async def test_large_values_go_there_and_back(tmp_path: Path) -> None:
    async with opened(tmp_path) as run:
        large = os.urandom(1_000) * 50_000
        found = await run.call(steps.double, value=large)
        assert len(found) == 100_000_000
        assert found[:1_000] == found[-1_000:] == large[:1_000]


@on_loop
async def test_as_many_run_at_once_as_there_are_workers(tmp_path: Path) -> None:
    async with opened(tmp_path, workers=2) as run:
        run.gates = {"first": threading.Event(), "other": threading.Event()}
        first = run.start(steps.gated, name="first")
        second = run.start(steps.gated, name="other")
        third = run.start(steps.gated, name="other")
        running = {int(pid) for (pid,) in await run.said("running", 2)}
        assert len(running) == 2
        assert children() == running
        run.gates["first"].set()
        await first
        again = [int(pid) for (pid,) in await run.said("running", 3)]
        assert set(again) == running
        run.gates["other"].set()
        assert {await second, await third} == running


@on_loop
async def test_a_step_that_waits_for_a_worker_can_be_cancelled(tmp_path: Path) -> None:
    async with opened(tmp_path, workers=1) as run:
        run.gates = {"gate": threading.Event()}
        first = run.start(steps.gated)
        await run.said("running")
        waiting = run.start(steps.gated)
        last = run.start(steps.process_id)
        await asyncio.sleep(0)
        waiting.cancel()
        assert isinstance(await error_of(waiting), asyncio.CancelledError)
        run.gates["gate"].set()
        assert await first == await last
        assert len(await run.said("running")) == 1


# -- accounts --


@on_loop
async def test_what_a_step_asks_and_says_reaches_its_run(tmp_path: Path) -> None:
    async with opened(tmp_path) as run:
        result, account = await run.booked(steps.everything)
        assert result == f"{SECRET} a/b.txt 5 5/9 five (4,) 2"
        assert account.cost_micro_usd == 750_000
        assert [asset.get("name") or asset["path"] for asset in account.assets] == [
            "a/b.txt",
            str(tmp_path / "own.txt"),
        ]
        assert (run.assets_dir / "a/b.txt").read_bytes() == b"hello"
        lines = [(e.level, e.message) for e in run.events if isinstance(e, Log)]
        assert ("info", "half way") in lines
        assert ("warning", "careful") in lines
        assert ("info", "spent $0.500000 on tokens") in lines
        assert [(e.done, e.total) for e in run.events if isinstance(e, NodeProgress)] == [(1, 2)]
        assert [e.line for e in run.events if isinstance(e, RecordRejected)] == [3]
        assert run.refused == ["n 3 too few"]
        assert run.mask(f"the key is {SECRET}") != f"the key is {SECRET}"


@on_loop
async def test_accounts_are_kept_when_a_step_raises_or_dies(tmp_path: Path) -> None:
    async with opened(tmp_path) as run:
        account = Account()
        error = await error_of(run.start(steps.everything, account, fails=True))
        assert isinstance(error, RecoverableError)
        assert error.candidate_output == {"half": True}
        assert (account.cost_micro_usd, len(account.assets)) == (750_000, 2)
        account = Account()
        error = await error_of(run.start(steps.dies, account, how="exit"))
        assert isinstance(error, WorkerDied)
        assert account.cost_micro_usd == 1_500_000


@on_loop
async def test_what_a_run_refuses_is_raised_in_the_step(tmp_path: Path) -> None:
    async with opened(tmp_path) as run:
        error = await error_of(run.start(steps.gated, name="NO_SUCH_KEY"))
        assert isinstance(error, NodeError)
        assert error.code == "secret-missing"
        account = Account()
        error = await error_of(run.start(steps.bad_amount, account))
        assert isinstance(error, NodeError)
        assert (error.code, account.cost_known) == ("bad-cost", False)
        error = await error_of(run.start(steps.controlling))
        assert isinstance(error, NodeError)
        assert error.code == "no-control"


@on_loop
async def test_threads_of_a_step_book_on_that_step_and_only_while_it_runs(tmp_path: Path) -> None:
    async with opened(tmp_path, workers=1) as run:
        _, account = await run.booked(steps.spends_in_a_thread)
        assert account.cost_micro_usd == 200_000
        await run.call(steps.leaves_a_thread_behind)
        said, account = await run.booked(steps.what_came_late)
        assert said == ["the step is over, and with it what its threads may ask"]
        assert account.cost_micro_usd == 0


def test_a_library_that_logs_a_secret_is_masked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """supervision.md §4: logs of other libraries pass the filter, those of workers too."""

    async def main() -> None:
        async with opened(tmp_path) as run:
            with masked_logging(run.registry):
                await run.call(steps.everything)

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    (line,) = [record for record in caplog.records if record.name == "a.library"]
    assert line.getMessage().startswith("talks of ")
    assert SECRET not in caplog.text
    assert line.levelno == logging.WARNING


# -- errors --


@on_loop
async def test_an_error_arrives_as_what_it_was(tmp_path: Path) -> None:
    async with opened(tmp_path) as run:
        odd = await error_of(run.start(steps.raises, what="odd"))
        assert isinstance(odd, steps.OddError)
        assert (str(odd), odd.code, odd.number, odd.lock) == ("odd E7 7", "E7", 7, None)
        system = await error_of(run.start(steps.raises, what="system"))
        assert isinstance(system, FileNotFoundError)
        assert (system.errno, system.filename) == (2, "x.csv")
        decoding = await error_of(run.start(steps.raises, what="unicode"))
        assert isinstance(decoding, UnicodeDecodeError)
        assert decoding.object == b"\xff"
        group = await error_of(run.start(steps.raises, what="group"))
        assert isinstance(group, ExceptionGroup)
        assert [type(part) for part in group.exceptions] == [ValueError, OSError]
        exit_ = await error_of(run.running(steps.raises, what="exit"))
        assert isinstance(exit_, SystemExit)
        assert exit_.code == "enough"
        interrupt = await error_of(run.running(steps.raises, what="interrupt"))
        assert isinstance(interrupt, KeyboardInterrupt)
        pause = await error_of(run.start(steps.pausing))
        assert isinstance(pause, Suspended)
        assert (pause.reason, pause.state) == ("wait for me", {"at": 3})


@on_loop
async def test_an_error_brings_what_it_was_raised_from(tmp_path: Path) -> None:
    async with opened(tmp_path) as run:
        wrapped = await error_of(run.start(steps.raises, what="wrapped"))
        assert isinstance(wrapped.__cause__, TimeoutError)
        assert wrapped.__suppress_context__
        assert signature_of(wrapped) == "timeout"
        meanwhile = await error_of(run.start(steps.raises, what="while"))
        assert isinstance(meanwhile.__context__, KeyError)
        assert meanwhile.__cause__ is None


@on_loop
async def test_an_error_that_cannot_be_sent_is_described_with_its_signature(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as run:
        local = await error_of(run.start(steps.raises, what="local"))
        assert type(local) is NodeError
        assert str(local) == "LocalError: nobody else knows me"
        assert signature_of(local) == "code:card_declined"
        response = await error_of(run.start(steps.raises, what="response"))
        assert type(response) is NodeError
        assert signature_of(response) == "http:451"
        assert retry_after_s(response, 0.0) == 7.0
        candidate = await error_of(run.start(steps.raises, what="candidate"))
        assert isinstance(candidate, RecoverableError)
        assert (str(candidate), candidate.code) == ("nearly", "nearly")
        assert candidate.candidate_output is None


@on_loop
async def test_values_that_cannot_be_sent_are_named_by_slot(tmp_path: Path) -> None:
    async with opened(tmp_path) as run:
        error = await error_of(run.start(steps.double, value=threading.Lock()))
        assert isinstance(error, NodeError)
        assert error.code == "not-picklable"
        assert str(error).startswith("process_steps.Double: input value: a lock cannot be sent")
        error = await error_of(run.start(steps.gives_a_lock))
        assert isinstance(error, NodeError)
        assert error.code == "not-picklable"
        assert str(error).startswith("process_steps.GivesALock: output output: a dict cannot be")
        error = await error_of(run.start(steps.gives_two))
        assert isinstance(error, NodeError)
        assert str(error).startswith("process_steps.GivesTwo: output second: a lock cannot be sent")
        assert await run.call(steps.double, value=2) == 4


@pytest.mark.parametrize(
    ("step", "code", "why"),
    [
        (steps.Setup, "bad-process", "a class is set up once a run"),
        (steps.yields, "bad-process", "a step that streams stays where its stream is"),
        (steps.reads, "bad-process", "a step that streams stays where its stream is"),
        (steps.inlined, "bad-process", "exclude each other"),
        (steps.covered_step, "not-importable", "process_steps._covered is not the step itself"),
    ],
)
def test_steps_that_cannot_run_elsewhere_are_refused(
    tmp_path: Path, step: object, code: str, why: str
) -> None:
    async def main() -> None:
        async with opened(tmp_path) as run:
            error = await error_of(run.start(step))
            assert isinstance(error, NodeError)
            assert error.code == code
            assert why in str(error)
            assert children() == set()

    asyncio.run(main())


@on_loop
async def test_a_function_inside_another_is_refused(tmp_path: Path) -> None:
    @nw.node(type="test.Inner", executor="process")
    def inner() -> None:
        return None

    async with opened(tmp_path) as run:
        error = await error_of(run.start(inner))
        assert isinstance(error, NodeError)
        assert error.code == "not-importable"
        assert "put it at the top of a module" in str(error)


# -- deaths --


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("exit", "ended with exit code 3"),
        ("kill", "was ended by SIGKILL (for want of memory, perhaps)"),
        ("segfault", "was ended by SIGSEGV"),
        ("fork", "was ended by SIGKILL"),
    ],
)
def test_a_worker_that_dies_is_a_failure_of_its_step_and_of_no_other(
    tmp_path: Path, how: str, words: str
) -> None:
    """kernel.md §6."""

    async def main() -> None:
        async with opened(tmp_path, workers=2) as run:
            run.gates = {"gate": threading.Event()}
            other = run.start(steps.gated)
            ((pid,),) = await run.said("running")
            error = await error_of(run.start(steps.dies, how=how))
            assert isinstance(error, WorkerDied)
            assert error.code == "worker-died"
            assert signature_of(error) == "node:worker-died"
            assert str(error).startswith(f"the worker process of the step {words}")
            assert children() == {int(pid)}
            run.gates["gate"].set()
            assert await other == int(pid)
            assert await run.call(steps.double, value=2) == 4

    asyncio.run(asyncio.wait_for(main(), 30))


@on_loop
async def test_a_worker_that_dies_while_it_has_nothing_to_do_is_replaced(tmp_path: Path) -> None:
    async with opened(tmp_path, workers=1) as run:
        first = await run.call(steps.process_id)
        watch = os.pidfd_open(first)
        os.kill(first, signal.SIGKILL)
        assert ended(watch)
        os.close(watch)
        second = await run.call(steps.process_id)
        assert children() == {second}
        assert second != first


@on_loop
async def test_a_worker_that_dies_before_the_step_began_is_no_failure(tmp_path: Path) -> None:
    """The module kills the first process that imports it; the step has not been called yet."""
    file = tmp_path / "fragile.py"
    file.write_text(
        textwrap.dedent(
            f"""
            import os, signal
            from pathlib import Path
            import nightwarden as nw

            mark = Path({str(tmp_path / "mark")!r})
            if mark.exists():
                mark.unlink()
                os.kill(os.getpid(), signal.SIGKILL)

            @nw.node(executor="process")
            def survive() -> str:
                return "alive"
            """
        )
    )
    (definition,) = Registry().load_file(file)
    (tmp_path / "mark").write_text("")
    async with opened(tmp_path) as run:
        assert await run.call(definition) == "alive"
        assert not (tmp_path / "mark").exists()


# -- being stopped --


@on_loop
async def test_a_cancelled_step_is_gone_with_all_it_started(tmp_path: Path) -> None:
    async with opened(tmp_path, workers=1) as run:
        account = Account()
        running = run.start(steps.busy, account)
        ((worker, child),) = await run.said("running")
        watch = os.pidfd_open(int(child))
        running.cancel()
        assert isinstance(await error_of(running), asyncio.CancelledError)
        assert not is_there(int(worker))
        assert ended(watch)
        os.close(watch)
        assert account.cost_micro_usd == 250_000
        assert await run.call(steps.double, value=2) == 4


@on_loop
async def test_a_step_out_of_time_is_gone(tmp_path: Path) -> None:
    async with opened(tmp_path, workers=1) as run:
        error = await error_of(run.start(steps.busy, timeout_s=1.0))
        assert isinstance(error, StepTimeout)
        assert str(error) == "timeout after 1 s"
        assert signature_of(error) == "timeout"
        assert children() == set()
        assert await run.call(steps.double, value=2) == 4


@on_loop
async def test_the_time_starts_when_the_step_does(tmp_path: Path) -> None:
    """Neither a worker that starts nor a module that takes long to import uses it up."""
    file = tmp_path / "slow_import.py"
    file.write_text(
        "import time\nimport nightwarden as nw\nif __name__ != 'here': time.sleep(1.2)\n"
        "@nw.node(executor='process')\ndef quick() -> int: return 1\n"
    )
    (definition,) = Registry().load_file(file)
    async with opened(tmp_path) as run:
        assert await run.call(definition, timeout_s=1.0) == 1


@on_loop
async def test_closing_ends_what_still_runs(tmp_path: Path) -> None:
    async with opened(tmp_path) as run:
        running = run.start(steps.busy)
        await run.said("running")
        running.cancel()
        run.executor.close()
        assert children() == set()
        await error_of(running)
        with pytest.raises(RunError, match="have been closed"):
            await run.call(steps.process_id)


# -- where code is found --


@on_loop
async def test_a_python_file_is_loaded_once_in_a_worker(tmp_path: Path) -> None:
    file = tmp_path / "own_steps.py"
    file.write_text(
        textwrap.dedent(
            f"""
            from dataclasses import dataclass
            import nightwarden as nw

            with open({str(tmp_path / "loads")!r}, "a") as note:
                note.write("x")

            @dataclass
            class Row:
                n: int

            @nw.node(executor="process")
            def make(n: int) -> Row:
                return Row(n)

            @nw.node(executor="process")
            def take(row: Row) -> int:
                assert type(row) is Row
                return row.n
            """
        )
    )
    make, take = Registry().load_file(file)
    async with opened(tmp_path, workers=1) as run:
        row = await run.call(make, n=3)
        assert await run.call(take, row=row) == 3
        assert await run.call(make, n=4) != row
    assert (tmp_path / "loads").read_text() == "xx"  # here, and in the one worker


@on_loop
async def test_values_may_be_of_classes_from_another_python_file(tmp_path: Path) -> None:
    file = tmp_path / "their_types.py"
    file.write_text(
        "from dataclasses import dataclass\n@dataclass\nclass Two:\n    a: int\n"
        "    def __mul__(self, n): return Two(self.a * n)\n"
    )
    registry = Registry()
    registry.load_file(file)
    two = sys.modules["their_types"].Two
    async with opened(tmp_path, files=registry.files) as run:
        assert await run.call(steps.double, value=two(3)) == two(6)


SCRIPT = """
    import asyncio, os, signal, sys
    from dataclasses import dataclass
    from pathlib import Path
    sys.path.insert(0, {tests!r})
    from fake_context import FakeContext
    import nightwarden as nw
    from nightwarden.nodes.define import definition_of
    from nightwarden.runtime.accounting import Account
    from nightwarden.runtime.executors.processes import ProcessExecutor

    print("imported", __name__, flush=True)

    @dataclass
    class Mine:
        n: int

    @nw.node(executor="process")
    def more(mine: Mine) -> Mine:
        return Mine(mine.n + 1)

    @nw.node(executor="process")
    def forever() -> None:
        print("busy", os.getpid(), flush=True)
        while True:
            pass

    async def main(step, **values):
        executor = ProcessExecutor(1)
        try:
            return await executor.run_step(definition_of(step), values, FakeContext(), Account())
        finally:
            executor.close()
"""


def script(folder: Path, tests: Path, ending: str) -> list[str]:
    file = folder / "the_script.py"
    file.write_text(textwrap.dedent(SCRIPT).format(tests=str(tests)) + textwrap.dedent(ending))
    return [sys.executable, str(file)]


def test_steps_and_classes_of_the_script_that_was_started(tmp_path: Path, root: Path) -> None:
    ending = """
    if __name__ == "__main__":
        found = asyncio.run(main(more, mine=Mine(1)))
        print(found, type(found) is Mine)
    """
    command = script(tmp_path, root / "tests", ending)
    for run in (command, [sys.executable, "-m", "the_script"]):
        done = subprocess.run(
            run, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False
        )
        assert done.stderr == ""
        assert done.stdout.splitlines() == [
            "imported __main__",
            "imported __mp_main__",
            "Mine(n=2) True",
        ]


def test_a_script_that_starts_itself_again_is_told_so(tmp_path: Path, root: Path) -> None:
    command = script(tmp_path, root / "tests", "asyncio.run(main(more, mine=Mine(1)))\n")
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1
    assert 'put what starts runs under `if __name__ == "__main__":`' in done.stderr
    assert done.stdout.splitlines() == ["imported __main__", "imported __mp_main__"]


def test_control_c_in_the_terminal_prints_nothing_of_the_workers(
    tmp_path: Path, root: Path
) -> None:
    ending = """
    if __name__ == "__main__":
        try:
            asyncio.run(main(forever))
        except KeyboardInterrupt:
            print("stopped", flush=True)
    """
    command = script(tmp_path, root / "tests", ending)
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(command[0], command)
    seen = b""
    try:
        while b"busy" not in seen:
            seen += os.read(fd, 4096)
        worker = int(seen.split(b"busy")[1].split()[0]) if seen.endswith(b"\n") else 0
        os.write(fd, b"\x03")
        while chunk := _read(fd):
            seen += chunk
    finally:
        os.close(fd)
        _, status = os.waitpid(pid, 0)
    assert b"stopped" in seen
    assert b"Traceback" not in seen
    assert status == 0
    assert not worker or not is_there(worker)


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, 4096)
    except OSError:  # the terminal is gone with the last who had it
        return b""


def test_workers_end_with_the_process_that_started_them(tmp_path: Path, root: Path) -> None:
    ending = """
    if __name__ == "__main__":
        asyncio.run(main(forever))
    """
    command = script(tmp_path, root / "tests", ending)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        line = next(line for line in parent.stdout if line.startswith("busy"))
        watch = os.pidfd_open(int(line.split()[1]))
        parent.kill()
        assert ended(watch)
        os.close(watch)


@on_loop
async def test_two_files_of_one_name_keep_their_own_code_and_classes(tmp_path: Path) -> None:
    """What is defined in a file imported by hand is found by its file, not by its module's name."""
    text = (
        "from dataclasses import dataclass\n"
        "from nightwarden import node\n"
        "@dataclass\n"
        "class Thing:\n"
        "    name: str\n"
        "class Odd(ValueError): pass\n"
        '@node(type="{0}.Make", retry_safe=True, executor="process")\n'
        "def make(name: str) -> Thing:\n"
        "    if not name: raise Odd('{0}')\n"
        "    return Thing(name + ' of {0}')\n"
        '@node(type="{0}.Tell", retry_safe=True, executor="process")\n'
        "def tell(thing: Thing) -> str:\n"
        "    assert type(thing) is Thing\n"
        "    return thing.name\n"
    )
    registry = Registry()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same_named.py").write_text(text.format(name))
        registry.load_file(tmp_path / name / "same_named.py")

    async with opened(tmp_path, files=registry.files) as run:
        for name in ("one", "two", "one"):
            make, tell = (registry.definition(f"{name}.{step}") for step in ("Make", "Tell"))
            assert make is not None
            assert tell is not None
            made = await run.call(make, name="a")
            assert type(made) is make.target.__globals__["Thing"]
            assert await run.call(tell, thing=made) == f"a of {name}"
            raised = await error_of(run.start(make, name=""))
            assert type(raised) is make.target.__globals__["Odd"]
