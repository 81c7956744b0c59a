"""Python files with node types, named by hand (kernel.md §4)."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nightwarden.errors import SpecError
from nightwarden.nodes.registry import Registry

STEP = """
from dataclasses import dataclass
from nightwarden import node

@dataclass
class Part:
    text: str

@node
def part(text: str) -> Part:
    return Part("{word} " + text)
"""


@pytest.fixture(autouse=True)
def own_modules() -> Iterator[None]:
    """What a test has imported is forgotten."""
    before = dict(sys.modules)
    yield
    for name in set(sys.modules) - set(before):
        del sys.modules[name]
    sys.modules.update(before)


def steps(folder: Path, word: str = "a", name: str = "own_steps.py") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(STEP.format(word=word))
    return path


def made(path: Path) -> Any:
    """What the file's step returns."""
    (definition,) = Registry().load_file(path)
    return definition.target("x")


def test_a_file_is_imported_once_by_a_process(tmp_path: Path) -> None:
    path = steps(tmp_path)
    assert type(made(path)) is type(made(path))


def test_a_file_that_has_changed_is_imported_again(tmp_path: Path) -> None:
    assert made(steps(tmp_path, "old")).text == "old x"
    assert made(steps(tmp_path, "new")).text == "new x"


def test_a_value_of_a_file_that_is_loaded_again_can_be_sent_to_another_process(
    tmp_path: Path,
) -> None:
    path = steps(tmp_path)
    first, second = made(path), made(path)
    for value in (first, second):
        assert pickle.loads(pickle.dumps(value)) == first


def test_of_two_files_of_one_name_the_one_loaded_last_can_be_sent(tmp_path: Path) -> None:
    one, other = steps(tmp_path / "one", "one"), steps(tmp_path / "other", "other")
    for path, word in ((one, "one"), (other, "other"), (one, "one")):
        assert pickle.loads(pickle.dumps(made(path))).text == f"{word} x"


def test_a_changed_file_can_be_sent_as_well(tmp_path: Path) -> None:
    made(steps(tmp_path, "old"))
    assert pickle.loads(pickle.dumps(made(steps(tmp_path, "new")))).text == "new x"


def test_a_file_named_like_a_module_that_is_in_use_does_not_take_its_name(tmp_path: Path) -> None:
    assert made(steps(tmp_path, name="json.py")).text == "a x"
    assert sys.modules["json"] is json


def test_a_file_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "own_broken.py"
    path.write_text("1 / 0\n")
    with pytest.raises(SpecError, match="ZeroDivisionError: division by zero"):
        Registry().load_file(path)
    assert "own_broken" not in sys.modules
    path.write_text(STEP.format(word="mended"))
    assert made(path).text == "mended x"


def test_a_file_that_is_no_python_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "steps.txt"
    path.write_text("")
    with pytest.raises(SpecError) as refused:
        Registry().load_file(path)
    assert str(refused.value).endswith("not a Python file [python-file] — name a .py file")
