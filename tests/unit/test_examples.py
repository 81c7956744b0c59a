"""The examples: one workflow through three doors is one workflow (kernel.md §5)."""

from __future__ import annotations

import importlib.util
import json
import re
import tomllib
from pathlib import Path

import pytest

import nightwarden as nw

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.json"))


def built(name: str) -> object:
    """What the example's `build` makes."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.build().canonical()


def test_every_example_has_all_three_forms() -> None:
    assert NAMES == ["extract", "implement", "nightly", "pages", "poster"]
    workflows = sorted(p.stem for p in EXAMPLES.glob("*.yaml") if ".answers" not in p.name)
    assert workflows == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_yaml_json_and_python_give_equal_canonical_json(name: str) -> None:
    from_yaml = nw.load(EXAMPLES / f"{name}.yaml", trust=True)
    from_json = nw.load(EXAMPLES / f"{name}.json", trust=True)
    assert from_yaml.canonical() == from_json.canonical() == built(name)
    assert from_yaml.digest() == from_json.digest()


@pytest.mark.parametrize("name", NAMES)
def test_the_json_of_an_example_is_its_canonical_form(name: str) -> None:
    text = (EXAMPLES / f"{name}.json").read_text(encoding="utf-8")
    assert json.loads(text) == nw.load(EXAMPLES / f"{name}.yaml", trust=True).canonical()


def test_a_wheel_holds_the_examples_where_the_demo_looks_for_them() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included == {"examples": "nightwarden/demo/examples"}
    looked = (ROOT / "src/nightwarden/demo/__init__.py").read_text(encoding="utf-8")
    assert re.search(r'__file__\)\.parent / "examples"', looked)
