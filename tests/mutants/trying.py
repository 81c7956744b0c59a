"""Tries changes: a pytest plugin that, once all is collected, forks a process for each.

    collected ─▶ a fork that runs every test and notes which lines of the kernel it reaches
              ─▶ for each change a fork: the code of its function replaced, then, as pytest does
                 it, the tests that reach it, the quickest file first, until one fails

What is done when a module is loaded cannot be replaced later: such a change (there are few) is put
in before anything is collected, and tried against all tests. Read next: `changing.py`.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Generator, Sequence
from functools import cache
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import TYPE_CHECKING, Protocol

import hypothesis
import pytest
from changing import KERNEL, Wrong, changed

TESTS = (
    *sorted(str(path) for path in Path("tests/unit").glob("test_kernel_rules*.py")),
    "tests/unit/test_kernel_asked.py",
    "tests/unit/test_kernel_outside.py",
    "tests/unit/test_kernel_meaning_by_hand.py",
    "tests/unit/test_kernel_meaning_woven.py",
    "tests/unit/test_kernel_meaning.py",
)
"""Below the current folder, like the sources; a test of one rule takes less than a drawn one."""
EXAMPLES = 25
"""Drawn cases per property: enough to be a second net, few enough for a thousand runs."""
_LEAST_S, _LONGER = 1.0, 4
"""A test hangs if it takes a second more than four times what it took while it was followed."""
_ALL_S = 120.0
MOST_BYTES = 3 * 1024**3
_QUICKLY = (
    *("-x", "-q", "-s", "--tb=no", "-p", "no:cacheprovider", "-p", "no:randomly"),
    *("-p", "no:faulthandler", "-p", "no:xdist", "-p", "no:cov"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning", "--hypothesis-profile=mutants"),
)
_KILLED, _HUNG, _SURVIVED = "killed", "hung", "survived"


if TYPE_CHECKING:
    from _typeshed import TraceFunction


class Notes(Protocol):
    """Where outcomes go, and who says when to end."""

    def note(self, wrong: Wrong, word: str) -> None: ...

    def time_is_over(self) -> bool: ...


class Plugin:
    """Lives in the process that has collected the tests, and in each of its forks."""

    def __init__(self, chosen: Sequence[Wrong], notes: Notes, jobs: int) -> None:
        self._chosen, self._notes, self._jobs = chosen, notes, jobs
        self._running: dict[int, Wrong] = {}
        self._reached: dict[str, set[tuple[str, int]]] = {}
        self._took: dict[str, float] = {}
        self._failed: set[str] = set()
        self._records = False
        self._told = Path("reached.json").resolve()
        self.forked = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if not os.fork():
            self._record(session)
            return None
        os.wait()
        self._learn(session)
        for wrong in self._chosen:
            if self._notes.time_is_over():
                break
            items = self._minding(session, wrong)
            if not items:
                self._notes.note(wrong, _SURVIVED)
                continue
            child = os.fork()
            if not child:
                self.forked, session.items[:] = True, items
                replace_code(wrong)
                return None
            self._running[child] = wrong
            while len(self._running) >= self._jobs:
                self._wait()
        while self._running:
            self._wait()
        return True

    def _wait(self) -> None:
        child, status = os.wait()
        self._notes.note(self._running.pop(child), word_for(status))

    def _minding(self, session: pytest.Session, wrong: Wrong) -> list[pytest.Item]:
        lines = {(wrong.module, line) for line in range(wrong.first, wrong.last + 1)}
        return [i for i in session.items if not lines.isdisjoint(self._reached[i.nodeid])]

    # -- recording --

    def _record(self, session: pytest.Session) -> None:
        self.forked = self._records = True
        session.config.option.maxfail = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self._records and report.failed:
            self._failed.add(report.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        if not self._records:
            # Of the processor's time, so that a busy machine kills nothing.
            limit = _LEAST_S + _LONGER * self._took.get(item.nodeid, _LEAST_S)
            signal.setitimer(signal.ITIMER_VIRTUAL, limit)
            return (yield)
        lines = self._reached[item.nodeid] = set()
        began = time.process_time()
        sys.settrace(lambda frame, *_: _follow(frame, lines))
        try:
            return (yield)
        finally:
            sys.settrace(None)
            self._took[item.nodeid] = time.process_time() - began

    def pytest_sessionfinish(self) -> None:
        if self._records:
            reached = {test: sorted(lines) for test, lines in self._reached.items()}
            self._told.write_text(json.dumps([reached, self._took, sorted(self._failed)]))

    def _learn(self, session: pytest.Session) -> None:
        reached, self._took, failed = json.loads(self._told.read_text())
        self._reached = {test: {(m, n) for m, n in lines} for test, lines in reached.items()}
        for test in failed:
            _say(f"left out, for it fails without any change: {test}")
        session.items[:] = [item for item in session.items if item.nodeid not in failed]


def _follow(frame: FrameType, lines: set[tuple[str, int]]) -> TraceFunction | None:
    """A function is called: note its lines, if it is one of the kernel's."""
    module = _module(frame.f_code.co_filename)
    if not module:
        return None

    def line(frame: FrameType, _event: str, _argument: object) -> TraceFunction:
        lines.add((module, frame.f_lineno))
        return line

    return line


@cache
def _module(path: str) -> str:
    within = str(Path(path).parent).endswith(str(KERNEL))
    return Path(path).stem if within else ""


def replace_code(wrong: Wrong) -> None:
    """From now on the function does it wrong, whoever has imported it."""
    found: object = importlib.import_module(f"nightwarden.kernel.{wrong.module}")
    for name in wrong.function.split("."):
        found = vars(found)[name]
    if isinstance(found, property):
        found = found.fget
    if isinstance(found, staticmethod):
        found = found.__func__
    assert isinstance(found, FunctionType), wrong
    found.__code__ = _code_of(wrong)


def _code_of(wrong: Wrong) -> CodeType:
    within = [compile(changed(wrong), str(KERNEL / f"{wrong.module}.py"), "exec")]
    for code in within:
        if code.co_qualname == wrong.function:
            return code
        within += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    raise LookupError(wrong)


def word_for(status: int) -> str:
    """What the end of a process says of a change."""
    if os.WIFSIGNALED(status):
        return _HUNG
    return _KILLED if os.WEXITSTATUS(status) else _SURVIVED


def all_of(chosen: Sequence[Wrong], notes: Notes, jobs: int) -> None:
    """Try changes, so many at once, until all are tried or the time is over."""
    hypothesis.settings.register_profile(
        "mutants",
        deadline=None,
        derandomize=True,
        database=None,
        max_examples=EXAMPLES,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
        report_multiple_bugs=False,
    )
    if any(not wrong.function for wrong in chosen) and not _alone(None):
        for wrong in chosen:
            if not (wrong.function or notes.time_is_over()):
                notes.note(wrong, word_for(_alone(wrong)))
    plugin = Plugin([wrong for wrong in chosen if wrong.function], notes, jobs)
    code = _pytest(plugin)
    if plugin.forked:
        os._exit(min(code, 125))


def _alone(wrong: Wrong | None) -> int:
    """In a process that has not imported the kernel yet: the module itself is the wrong one."""
    path = KERNEL / f"{wrong.module if wrong else 'causes'}.py"
    right = path.read_text(encoding="utf-8")
    if wrong is not None:
        path.write_text(ast.unparse(changed(wrong)), encoding="utf-8")
    child = os.fork()
    if not child:
        signal.setitimer(signal.ITIMER_VIRTUAL, _ALL_S)
        os._exit(min(_pytest(), 125))
    status = os.waitpid(child, 0)[1]
    path.write_text(right, encoding="utf-8")
    return status


def _pytest(*plugins: object) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return int(pytest.main([*TESTS, *_QUICKLY, "--rootdir", os.getcwd()], plugins=plugins))


def _say(text: str) -> None:
    print(text, flush=True, file=sys.__stdout__)
