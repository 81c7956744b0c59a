"""What an import brings with it, and what it does not (performance.md G11)."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import nightwarden
from nightwarden import store


def brought(statement: str) -> set[str]:
    """The modules a fresh process has after a statement."""
    done = subprocess.run(
        [sys.executable, "-c", f"{statement}\nimport sys\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return set(done.stdout.split())


def test_the_package_brings_nothing_but_its_version() -> None:
    found = brought("import nightwarden")
    ours = {name for name in found if name.startswith("nightwarden")}
    assert ours == {"nightwarden", "nightwarden.version"}
    assert not found & {"asyncio", "pydantic", "msgspec", "sqlite3"}


def test_one_module_of_the_store_brings_no_database() -> None:
    found = brought("import nightwarden.store.contract")
    ours = {name for name in found if name.startswith("nightwarden.store")}
    assert ours == {"nightwarden.store", "nightwarden.store.contract"}
    assert not found & {"sqlite3", "psycopg", "obstore"}


@pytest.mark.parametrize("package", [nightwarden, store])
def test_every_public_name_is_there_when_it_is_asked_for(package: object) -> None:
    names = package.__all__  # type: ignore[attr-defined]
    assert [name for name in names if getattr(package, name, None) is None] == []
    assert set(names) <= set(dir(package))


@pytest.mark.parametrize("package", ["nightwarden", "nightwarden.store"])
def test_a_name_there_is_not_is_an_attribute_error(package: str) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing_like_it'"):
        importlib.import_module(package).nothing_like_it


def test_steps_that_ask_models_bring_no_model_library_before_one_is_asked() -> None:
    """dependencies.md: nothing of it on the clean path; the check before a run needs none."""
    statement = (
        "import os; os.environ['OPENAI_API_KEY'] = 'sk-none-0123456789'; "
        "from nightwarden.nodes.registry import Registry; Registry().find('llm.Extract'); "
        "from nightwarden.agents.stepping import StepModels; "
        "from nightwarden.runtime.paying import NamedModel; "
        "StepModels().check([NamedModel('a', 'openai:gpt-5', False)])"
    )
    assert not brought(statement) & {"pydantic_ai", "openai", "anthropic", "google.genai"}


def test_neither_help_nor_telemetry_that_is_off_brings_opentelemetry() -> None:
    for statement in (
        "import nightwarden.cli.main",
        "from nightwarden import telemetry; telemetry.subscriber({})",
    ):
        assert not {n for n in brought(statement) if n.startswith("opentelemetry")}


@pytest.mark.parametrize(
    "module", ["steering.evaluating", "steering.attached", "steering.managed", "cli.supervise"]
)
def test_steering_brings_no_model_library_before_the_first_look(module: str) -> None:
    found = brought(f"import nightwarden.{module}")
    assert not found & {"pydantic_ai", "anthropic", "openai", "genai_prices"}
