"""What every built-in node promises about being run again, and what importing it costs."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest
from pydantic import TypeAdapter

from nightwarden.nodes.define import GENERATORS, Mode
from nightwarden.nodes.registry import BUILTIN_MODULES, Registry

RETRY_SAFE = {
    "agent.Agent": False,
    "agent.Judge": False,
    "data.Map": True,
    "data.Record": True,
    "feed.Read": True,
    "file.Glob": True,
    "file.ReadCsv": True,
    "file.ReadLines": True,
    "file.ReadText": True,
    "file.WriteCsv": False,
    "file.WriteJson": False,
    "file.WriteText": False,
    "flow.Assert": True,
    "flow.Batch": True,
    "flow.Collect": True,
    "flow.Cross": False,
    "flow.Dedupe": True,
    "flow.Filter": True,
    "flow.ForEach": True,
    "flow.If": True,
    "flow.Limit": True,
    "flow.Loop": False,
    "flow.Merge": True,
    "flow.Sort": True,
    "flow.Subworkflow": False,
    "flow.Value": True,
    "flow.Window": False,
    "flow.Zip": False,
    "html.Extract": True,
    "http.Fetch": True,
    "json.Parse": True,
    "llm.Embed": True,
    "llm.Extract": True,
    "llm.Generate": True,
    "llm.Judge": True,
    "llm.Stream": True,
    "text.Split": True,
    "text.Summarise": True,
    "text.Template": True,
}
LAZY = (
    "httpx2",
    "trafilatura",
    "lxml_html_clean",
    "feedparser",
    "selectolax.lexbor",
    "charset_normalizer",
    "simpleeval",
)


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry()


def builtin_names(registry: Registry) -> list[str]:
    return [n for n in registry.names() if n.partition(".")[0] in BUILTIN_MODULES]


def test_every_builtin_node_states_whether_it_is_retry_safe(registry: Registry) -> None:
    """supervision.md §1: every built-in node states `retry_safe`; a test lists them."""
    # row: S1-BUILTIN
    stated = {name: registry.find(name).retry_safe for name in builtin_names(registry)}
    assert stated == RETRY_SAFE


def test_every_builtin_node_is_documented_slot_types_and_all(registry: Registry) -> None:
    """`nightwarden nodes TYPE` documents each from its signature: there has to be something."""
    for name in builtin_names(registry):
        found = registry.find(name)
        assert found.doc.strip(), name
        if not name.startswith("flow."):
            for slot in [*found.inputs.values(), *found.outputs.values()]:
                TypeAdapter(slot.type).json_schema()


def test_readers_of_files_and_feeds_stream_a_record_or_a_rejection(registry: Registry) -> None:
    """kernel.md §4: readers emit `record`, or `{line, raw, reason}` on slot `rejected`."""
    for name in ("feed.Read", "file.ReadCsv", "file.ReadLines"):
        definition = registry.definition(name)
        assert definition.mode in GENERATORS
        assert set(definition.type.outputs) == {"record", "rejected"}
        assert all(s.stream and s.may_be_absent for s in definition.type.outputs.values())


def test_fields_of_a_page_can_be_wired_and_so_can_the_page(registry: Registry) -> None:
    """kernel.md §5: `$page` and `$page.url` both work."""
    fetch = registry.find("http.Fetch")
    assert list(fetch.outputs) == ["output"]
    assert {"url", "final_url", "status", "text", "headers"} <= set(fetch.projections)
    assert registry.definition("http.Fetch").mode is Mode.COROUTINE


def test_blocking_nodes_run_in_a_thread(registry: Registry) -> None:
    """kernel.md §4: plain `def` in a worker thread."""
    for name in ("file.WriteCsv", "file.ReadText", "html.Extract", "text.Summarise"):
        assert registry.definition(name).mode is Mode.THREAD


@pytest.mark.parametrize("module", LAZY)
def test_a_lazily_imported_library_can_be_imported(module: str) -> None:
    """dependencies.md: an import smoke test for every lazy dependency."""
    assert importlib.import_module(module)


def test_knowing_all_builtin_nodes_imports_no_heavy_library() -> None:
    """`nightwarden nodes` and `validate` start fast: heavy imports wait for the first call."""
    code = (
        "import sys; from nightwarden.nodes.registry import Registry; Registry().names(); "
        f"print([m for m in {LAZY!r} if m != 'simpleeval' and m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("module", BUILTIN_MODULES)
def test_each_family_can_be_imported_alone(module: str) -> None:
    assert importlib.import_module(f"nightwarden.nodes.builtin.{module}").__doc__
