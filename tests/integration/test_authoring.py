"""Beginning a workflow, completing commands, and node types as data (surfaces.md; issue 3)."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import jsonschema_rs
import pytest
from commands import COMMAND, PATIENCE_S, environment, nightwarden

BIN = Path(sys.executable).parent


def shell(command: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """What bash makes of a command, where `nightwarden` is installed."""
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "--norc", "--noprofile", "-c", command],
        cwd=cwd,
        env=environment({"PATH": path, **env}),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


# -- new --


def test_a_new_workflow_runs_and_so_does_every_command_it_prints(tmp_path: Path) -> None:
    done = nightwarden("new", "my-shop", "--dir", "a place", cwd=tmp_path)
    assert done.code == 0, done.err
    files = sorted(p.name for p in (tmp_path / "a place").iterdir())
    assert files == ["my-shop.yaml", "my_shop_nodes.py"]
    commands = [line.partition("  # ")[0] for line in done.out.splitlines() if "  # " in line]
    assert [shlex.split(command)[1] for command in commands] == [
        "run",
        "debug",
        "validate",
        "graph",
        "nodes",
    ]
    ran = shell(" && ".join(commands), tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "── completed: 3/3 items" in ran.stdout
    assert "Hello, Ada! Hello, Grace! Hello, Edsger!" in ran.stdout
    assert "my-shop can run, 2 steps" in ran.stdout


@pytest.mark.parametrize("there", ["shop.yaml", "shop_nodes.py"])
def test_new_overwrites_nothing_and_then_writes_nothing(tmp_path: Path, there: str) -> None:
    (tmp_path / there).write_text("mine")
    done = nightwarden("new", "shop", cwd=tmp_path)
    assert done.code == 2
    assert f"{there}: there already, and nothing was written" in done.err
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [(there, "mine")]


def test_new_does_not_write_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").symlink_to(tmp_path / "elsewhere")
    assert nightwarden("new", "shop", cwd=tmp_path).code == 2
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("name", ["", "../up", "a b", "1st", "x.yaml", "-x", "é", "a" * 61])
def test_a_name_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    done = nightwarden("new", "--", name, cwd=tmp_path)
    assert done.code == 2
    assert "cannot be a workflow's name" in done.err
    assert list(tmp_path.iterdir()) == []


def test_names_that_yaml_reads_as_something_else_are_names(tmp_path: Path) -> None:
    assert nightwarden("new", "no", cwd=tmp_path).code == 0
    done = nightwarden("run", "no.yaml", "--trust", "--json", cwd=tmp_path)
    assert done.code == 0, done.err


# -- completion --


def completed(cwd: Path, *words: str) -> list[str]:
    """What bash would offer for the last word."""
    done = subprocess.run(
        COMMAND,
        cwd=cwd,
        env=environment(
            {
                "_NIGHTWARDEN_COMPLETE": "complete_bash",
                "COMP_WORDS": "nightwarden " + " ".join(words),
                "COMP_CWORD": str(len(words)),
            }
        ),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0
    assert done.stderr == ""
    return done.stdout.split()


def test_commands_options_and_node_types_complete(tmp_path: Path) -> None:
    assert completed(tmp_path, "va") == ["validate"]
    assert "--break-on-failure" in completed(tmp_path, "debug", "--b")
    assert completed(tmp_path, "nodes", "http.") == ["http.Fetch"]
    assert completed(tmp_path, "nodes", "nothing.") == []


def test_the_script_a_shell_is_given_completes_in_that_shell(tmp_path: Path) -> None:
    """The how-to's own lines, with what bash itself does at a Tab."""
    script = """
        nightwarden --show-completion > completion.sh
        source completion.sh
        complete -p nightwarden
        COMP_WORDS=(nightwarden nodes http.F); COMP_CWORD=2
        _nightwarden_completion nightwarden
        echo "offered: ${COMPREPLY[@]}"
        complete -o default -F _nightwarden_completion nw
        COMP_WORDS=(nw nodes file.WriteC); COMP_CWORD=2
        _nightwarden_completion nw
        echo "offered: ${COMPREPLY[@]}"
        """
    done = shell(script, tmp_path)
    assert "_nightwarden_completion" in done.stdout
    offered = [line for line in done.stdout.splitlines() if line.startswith("offered")]
    assert offered == ["offered: http.Fetch", "offered: file.WriteCsv"], done.stderr


# -- node types as data --


def test_nodes_as_json_are_complete(tmp_path: Path) -> None:
    steps = '''
"""Steps."""
from typing import Annotated
from nightwarden import Absent, Collect, node
from pydantic import Field


@node(type="t.Take", idempotent_by="key", timeout=3, concurrency=2, label="{key}")
def take(
    key: str,
    sizes: Collect[int],
    most: Annotated[int, Field(ge=1, description="How many at most")] = 5,
    note: str | Absent = "none",
) -> list[int] | Absent:
    """Take some."""
    return sizes[:most]
'''
    (tmp_path / "steps.py").write_text(steps)
    done = nightwarden("nodes", "t.Take", "--json", "--nodes", "steps.py", cwd=tmp_path)
    (node,) = json.loads(done.out)["nodes"]
    inputs = {slot["name"]: slot for slot in node["inputs"]}
    assert inputs["key"]["schema"] == {"type": "string"}
    assert (inputs["key"]["required"], inputs["key"]["default"]) == (True, None)
    assert inputs["sizes"]["schema"] == {"type": "integer"}
    assert (inputs["sizes"]["kind"], inputs["sizes"]["type"]) == ("collect", "Collect[int]")
    assert (inputs["most"]["default"], inputs["most"]["doc"]) == (5, "How many at most")
    assert inputs["most"]["schema"]["minimum"] == 1
    assert inputs["note"]["accepts_absent"] is True
    (output,) = node["outputs"]
    assert output["schema"] == {"type": "array", "items": {"type": "integer"}}
    assert output["may_be_absent"] is True
    promises = ("retry_safe", "idempotent_by", "timeout_s", "concurrency", "label", "executor")
    assert [node[name] for name in promises] == [False, "key", 3, 2, "{key}", None]
    assert (node["doc"], node["source"]) == ("Take some.", "steps.take")


def test_every_schema_of_every_built_in_type_is_one(tmp_path: Path) -> None:
    nodes = json.loads(nightwarden("nodes", "--json", cwd=tmp_path).out)["nodes"]
    for node in nodes:
        for slot in [*node["inputs"], *node["outputs"]]:
            assert jsonschema_rs.meta.is_valid(slot["schema"]), (node["type"], slot["name"])
