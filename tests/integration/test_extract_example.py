"""The example that asks a model, by the commands its how-to page shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from nightwarden.testing.model_server import ModelServer

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-to" / "extract-with-a-model.md"
SHOWN = re.findall(
    r"^```console\n\$ nightwarden (.*)\n((?:.*\n)*?)```$", PAGE.read_text(), re.MULTILINE
)


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A folder with the examples and the list of documents, as the page makes it."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    documents = sorted((tmp_path / "examples" / "docs").glob("*.txt"))
    lines = "".join(f"{path.relative_to(tmp_path)}\n" for path in documents)
    (tmp_path / "documents.txt").write_text(lines)
    return tmp_path


@pytest.fixture
def environ(desk: Path) -> Iterator[Mapping[str, str]]:
    """The stand-in serves, in a process of its own."""
    with subprocess.Popen(
        [sys.executable, "examples/extract_model.py", "0"],
        cwd=desk,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        yield {**os.environ, "OLLAMA_BASE_URL": address, "COLUMNS": "200"}
        server.terminate()


def command(line: str, desk: Path, environ: Mapping[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "nightwarden", *line.split()],
        cwd=desk,
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_the_commands_of_the_page_do_what_it_shows(desk: Path, environ: Mapping[str, str]) -> None:
    assert len(SHOWN) == 3
    for line, lines in SHOWN:
        code, said = command(line, desk, environ)
        assert code == (0 if "── completed" in lines else 1), said
        for shown in re.split("\n|…", lines):
            assert shown in said, said
    table = (desk / "facts.csv").read_text().splitlines()
    assert len(table) == 5
    assert "made of cheese" not in "".join(table)


def test_a_budget_survives_being_resumed_and_a_larger_one_ends_the_run(desk: Path) -> None:
    sys.path.insert(0, str(ROOT / "examples"))
    try:
        from extract_model import read
    finally:
        sys.path.remove(str(ROOT / "examples"))
    with ModelServer([read]) as server:
        (desk / "nightwarden.toml").write_text(
            f'[models."ollama:*"]\nbase_url = "{server.base_url}/v1"\nprice_in = 1\nprice_out = 5\n'
        )
        run = (
            "run examples/extract.yaml --input documents=@documents.txt --run-id r --max-cost 0.008"
        )
        answers = " --supervise scripted:examples/extract.answers.yaml"
        code, said = command(run + answers, desk, os.environ)
        assert (code, "does not cover the next model call" in said) == (1, True), said
        asked = len(server.requests)
        assert 1 <= asked < 5
        code, said = command("resume r", desk, os.environ)
        assert (code, len(server.requests)) == (1, asked), said
        code, said = command("resume r --max-cost 0.1", desk, os.environ)
        assert (code, len(server.requests)) == (0, 5), said
        code, said = command("report r", desk, os.environ)
        assert "$0.00625" in said or "$0.006250" in said, said
