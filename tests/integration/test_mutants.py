"""Each hand mutant of the engine is told by its test (house.md §4; `tests/mutants/`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from mutants import run
from mutants.copied import NOT_THE_COPY
from mutants.run import Mutant, RottenError, Tried

ALL = {mutant.name: mutant for mutant in run.mutants()}


@pytest.fixture(scope="module")
def tried() -> Iterator[Mapping[str, Future[Tried]]]:
    """All of them at work, two at a time; each test waits for its own."""
    with ThreadPoolExecutor(run.AT_ONCE) as pool:
        whole = pool.submit(run.unchanged, [m.killed_by for m in ALL.values()])
        yield {"": whole, **{name: pool.submit(run.changed, m) for name, m in ALL.items()}}


def test_the_tests_pass_where_nothing_is_changed(tried: Mapping[str, Future[Tried]]) -> None:
    done = tried[""].result()
    assert done.code == run.PASSED, done.output


@pytest.mark.parametrize("name", ALL)
def test_a_wrong_engine_fails_its_test(name: str, tried: Mapping[str, Future[Tried]]) -> None:
    done = tried[name].result()
    assert done.code == run.FAILED, f"{ALL[name]}\n{done.output}"


def test_there_are_enough_of_them_and_each_changes_something() -> None:
    assert len(ALL) == len(run.mutants()) >= 16
    assert not [m.name for m in ALL.values() if m.find == m.replace]


def test_a_mutant_whose_text_is_gone_says_so(tmp_path: Path) -> None:
    file = tmp_path / run.PACKAGE / "kernel" / "matching.py"
    file.parent.mkdir(parents=True)
    file.write_text("once\ntwice twice\n", encoding="utf-8")
    for find in ("never", "twice"):
        rotten = Mutant("rotten", "", "kernel/matching.py", find, "", "")
        with pytest.raises(RottenError, match=f"'{find}' stands [02] times in kernel/matching.py"):
            rotten.put_into(tmp_path)


def test_a_copy_that_is_not_found_is_no_failing_test(tmp_path: Path) -> None:
    done = run._pytest(["tests/unit/test_kernel_rules.py", "-x"], tmp_path)
    assert done.code == NOT_THE_COPY, done.output
