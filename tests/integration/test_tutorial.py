"""The tutorial, by the files and commands its pages show; a stand-in serves for the model."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "tutorial"
FAILURE = (PAGES / "first-failure.md").read_text(encoding="utf-8")
SUPERVISOR = (PAGES / "first-supervisor.md").read_text(encoding="utf-8")


def shown(text: str) -> list[tuple[str, list[str]]]:
    """The commands of a page, each with the lines it is said to print."""
    found = re.findall(r"^```console\n\$ nightwarden (.*)\n((?:.*\n)*?)```$", text, re.MULTILINE)
    return [(line, lines.splitlines()) for line, lines in found]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with the files of the page on the first failure."""
    for name in ("shop.py", "shop.yaml", "list.txt"):
        block = re.search(rf"^`{name}`.*?^```\w+\n(.*?)^```$", FAILURE, re.MULTILINE | re.DOTALL)
        assert block, name
        (tmp_path / name).write_text(block[1], encoding="utf-8")
    return tmp_path


@pytest.fixture
def environ() -> Iterator[Mapping[str, str]]:
    """The stand-in of the page serves, in a process of its own."""
    with subprocess.Popen(
        [sys.executable, ROOT / "examples" / "first_model.py", "0"],
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        yield {**os.environ, "OLLAMA_BASE_URL": address}
        server.terminate()


def command(line: str, cwd: Path, environ: Mapping[str, str] = os.environ) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "nightwarden", *line.replace("$MODEL", "ollama:stand-in").split()],
        cwd=cwd,
        env={**environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def assert_shown(said: str, lines: list[str]) -> None:
    for line in lines:
        assert line.strip() in said, f"{line!r} is not in\n{said}"


def test_the_first_failure_goes_as_it_is_told(shop: Path) -> None:
    run, report, resume = shown(FAILURE)
    code, said = command(run[0], shop)
    assert code == 1
    assert_shown(said, run[1])
    assert_shown(command(report[0], shop)[1], report[1])
    body = re.findall(r"^```python\n(def price.*?)^```$", FAILURE, re.MULTILINE | re.DOTALL)[0]
    code_of = (shop / "shop.py").read_text(encoding="utf-8")
    before, _, after = code_of.partition("def price")
    rest = after[after.index("\n\n\n") :]
    (shop / "shop.py").write_text(before + body.rstrip("\n") + rest, encoding="utf-8")
    code, said = command(resume[0], shop)
    assert code == 0, said
    assert_shown(said, resume[1])


def test_the_first_supervisor_decides_as_it_is_told(shop: Path, environ: Mapping[str, str]) -> None:
    run, report, shadow = shown(SUPERVISOR)
    code, said = command(run[0], shop, environ)
    assert code == 0, said
    assert_shown(said, run[1])
    assert_shown(command(report[0], shop, environ)[1], report[1])
    code, said = command(shadow[0], shop, environ)
    assert code == 1
    assert_shown(said, shadow[1])
    assert "would have" in said
