"""Which model a name stands for, and what is refused before a run: supervision.md §6."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from nightwarden.agents.models import is_allowed, resolve
from nightwarden.agents.opening import notice, supervising_model
from nightwarden.agents.prices import FREE, Usage
from nightwarden.agents.providers import PROVIDERS, is_own_server
from nightwarden.errors import ModelError
from nightwarden.runtime.supervisors.modes import model_in, with_model
from nightwarden.settings import ModelEntry, Settings, load_settings

KEYS = {variable: f"key-of-{p.name}" for p in PROVIDERS.values() for variable in p.keys}
MILLION = Usage(tokens_in=1_000_000, tokens_out=1_000_000)


def no_keyring(name: str) -> None:
    return None


def refusal(name: str, settings: Settings | None = None, **environ: str) -> str:
    with pytest.raises(ModelError) as caught:
        resolve(name, settings or Settings(), environ=environ, keyring=no_keyring)
    line = str(caught.value)
    assert "\n" not in line
    return line


def entry(name: str, **fields: object) -> Settings:
    return Settings(models={name: ModelEntry(**fields)})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "host", "dollars"),
    [
        ("anthropic:claude-sonnet-5", "api.anthropic.com", None),
        ("openai:gpt-5", "api.openai.com", 11.25),
        ("openai-chat:gpt-5", "api.openai.com", 11.25),
        ("google:gemini-2.5-flash", "generativelanguage.googleapis.com", None),
        ("groq:qwen/qwen3-32b", "api.groq.com", None),
        ("mistral:mistral-large-latest", "api.mistral.ai", 8.0),
        ("openrouter:meta-llama/llama-3.3-70b-instruct", "openrouter.ai", None),
        ("ollama:llama3.2:1b", "localhost", 0.0),
        ("vllm:Qwen/Qwen3-8B", "localhost", 0.0),
        ("lmstudio:gemma-3", "localhost", 0.0),
    ],
)
def test_a_name_is_a_provider_and_its_own_name_for_the_model(
    name: str, host: str, dollars: float | None
) -> None:
    """Scenario 88: names with slashes and colons are read right."""
    model = resolve(name, Settings(), environ=KEYS)
    assert (model.name, model.id, model.host) == (name, name.split(":", 1)[1], host)
    assert model.price is not None
    cost = model.price.micro_usd(MILLION)
    assert cost == dollars * 1_000_000 if dollars is not None else cost > 0


def test_the_key_comes_from_the_environment_else_from_the_keyring_and_is_never_shown() -> None:
    model = resolve("openai:gpt-5", Settings(), environ={"OPENAI_API_KEY": " sk-from-env "})
    assert (model.key_name, model.key) == ("OPENAI_API_KEY", "sk-from-env")
    assert "sk-from-env" not in repr(model)
    kept = {"GEMINI_API_KEY": "from-keyring"}
    google = resolve("google:gemini-2.5-flash", Settings(), environ={}, keyring=kept.get)
    assert (google.key_name, google.key) == ("GEMINI_API_KEY", "from-keyring")


def test_a_missing_key_is_named_with_where_it_would_be_for() -> None:
    assert refusal("anthropic:claude-sonnet-5") == (
        "anthropic:claude-sonnet-5 needs a key for api.anthropic.com: "
        "set ANTHROPIC_API_KEY in the environment"
    )
    assert "GOOGLE_API_KEY or GEMINI_API_KEY" in refusal("google:gemini-2.5-flash")


def test_a_model_at_home_needs_no_key_and_is_free_not_unpriced() -> None:
    """supervision.md §6: a local model is free, not unpriced.

    row: S6-PRICE
    """
    model = resolve("ollama:anything-at-all", Settings(), environ={}, keyring=no_keyring)
    assert (model.price, model.key, model.at_home) == (FREE, "", True)


@pytest.mark.parametrize(
    ("url", "own"),
    [
        ("http://localhost:11434/v1", True),
        ("http://127.0.0.1/v1", True),
        ("http://[::1]:1/v1", True),
        ("http://192.168.1.7:8000", True),
        ("http://10.0.0.3", True),
        ("http://gpu-box:8000", True),
        ("http://gpu.local.:8000", True),
        ("https://ollama.com/v1", False),
        ("https://8.8.8.8/v1", False),
        ("https://localhost.example.com/v1", False),
    ],
)
def test_a_server_of_ones_own_is_told_by_its_address(url: str, own: bool) -> None:
    assert is_own_server(url) is own


def test_a_server_at_home_that_is_somewhere_else_needs_a_price() -> None:
    away = {"OLLAMA_BASE_URL": "https://ollama.com/v1"}
    assert "has no known price" in refusal("ollama:gpt-oss", **away)
    priced = entry("ollama:gpt-oss", price_in=0.1, price_out=0)
    found = resolve("ollama:gpt-oss", priced, environ=away, keyring=no_keyring)
    assert found.price is not None
    assert found.price.micro_usd(MILLION) == 100_000


def test_a_paid_providers_model_behind_a_gateway_at_home_is_not_free() -> None:
    url = {"OPENAI_BASE_URL": "http://localhost:4000/v1", "OPENAI_API_KEY": "sk-x"}
    model = resolve("openai:gpt-5", Settings(), environ=url)
    assert (model.host, model.at_home) == ("localhost", True)
    assert model.price is not None
    assert model.price.micro_usd(MILLION) == 11_250_000


def test_a_model_without_a_price_is_refused_and_told_how_to_give_one() -> None:
    """Scenario 72; no price, no call.

    row: S6-MODELS
    """
    assert refusal("openai:nobody-knows-it", OPENAI_API_KEY="k") == (
        "openai:nobody-knows-it has no known price, so that nothing could hold it to a budget; "
        "set price_in and price_out ($ a million tokens) under "
        '[models."openai:nobody-knows-it"] in nightwarden.toml'
    )


def test_the_users_price_wins_over_the_catalogue_and_zero_is_a_price() -> None:
    own = resolve("openai:gpt-5", entry("openai:*", price_in=1, price_out=2), environ=KEYS)
    assert own.price is not None
    assert own.price.micro_usd(MILLION) == 3_000_000
    free = resolve("openai:gpt-5", entry("openai:gpt-5", price_in=0, price_out=0), environ=KEYS)
    assert free.price is not None
    assert free.price.words() == "free"


def test_half_a_price_is_refused() -> None:
    line = refusal("openai:gpt-5", entry("openai:gpt-5", price_in=1), OPENAI_API_KEY="k")
    assert line.endswith("nightwarden.toml has price_in for it and no price_out; a price has both")


def test_the_entry_of_a_name_wins_over_those_of_patterns_part_by_part() -> None:
    settings = Settings(
        models={
            "vllm:*": ModelEntry(base_url="http://gpu:1/v1", price_in=1, price_out=1),
            "vllm:small": ModelEntry(base_url="http://gpu:2/v1"),
        }
    )
    model = resolve("vllm:small", settings, environ={}, keyring=no_keyring)
    assert model.base_url == "http://gpu:2/v1"
    assert model.price is not None
    assert model.price.words() == "$1 in and $1 out for a million tokens"


def test_the_settings_address_wins_over_the_environments_and_that_over_the_default() -> None:
    environ = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "https://gateway.example"}
    name = "anthropic:claude-sonnet-5"
    assert resolve(name, Settings(), environ=environ).base_url == "https://gateway.example"
    own = entry("anthropic:*", base_url="https://other.example/anthropic")
    assert resolve(name, own, environ=environ).base_url == "https://other.example/anthropic"


def test_any_other_server_needs_an_address() -> None:
    assert "set COMPATIBLE_BASE_URL" in refusal("compatible:house-model")
    priced = entry(
        "compatible:house-model", base_url="https://llm.example/v1", price_in=1, price_out=1
    )
    model = resolve("compatible:house-model", priced, environ={}, keyring=no_keyring)
    assert (model.host, model.key) == ("llm.example", "")


def test_what_is_no_address_is_refused_without_showing_a_password() -> None:
    line = refusal("ollama:x", OLLAMA_BASE_URL="ftp://me:hunter2@host/v1")
    assert "is no web address" in line
    assert "hunter2" not in line


@pytest.mark.parametrize(
    "url",
    ["localhost", "http://", "http://[::1", "http://h:x/v1", "http://h:99999", "http://a b/v1"],
)
def test_an_address_no_request_could_be_sent_to_is_refused_and_its_place_is_named(url: str) -> None:
    said = f"{url!r}, which is no web address; write http://HOST/…"
    assert refusal("ollama:x", OLLAMA_BASE_URL=url) == f"ollama:x: OLLAMA_BASE_URL is {said}"
    line = refusal("ollama:x", entry("ollama:*", base_url=url))
    assert line == f"ollama:x: base_url in nightwarden.toml is {said}"


@pytest.mark.parametrize("name", ["", "gpt-5", ":gpt-5", "openai:", " openai:gpt-5", "openai: "])
def test_a_name_without_both_parts_is_refused(name: str) -> None:
    assert "names no model: write provider:name" in refusal(name)


def test_an_unknown_provider_is_refused_with_what_was_meant() -> None:
    assert refusal("antropic:x").endswith("did you mean anthropic?")
    assert "there are anthropic, openai" in refusal("zzz:x")


@pytest.mark.parametrize(
    ("patterns", "allowed"),
    [
        (None, True),
        ((), False),
        (("openai:*",), True),
        (("*",), True),
        (("openai:gpt-4*", "openai:gpt-5"), True),
        (("OpenAI:*",), False),
        (("gpt-5",), False),
        (("openai-chat:*",), False),
    ],
)
def test_a_model_is_allowed_by_its_whole_name(
    patterns: tuple[str, ...] | None, allowed: bool
) -> None:
    """supervision.md §6: allowed_models; an empty list allows none."""
    assert is_allowed("openai:gpt-5", patterns) is allowed


def test_a_model_that_is_not_allowed_is_refused_before_anything_else_is_asked() -> None:
    assert refusal("openai:nobody-knows-it", Settings(allowed_models=("ollama:*",))) == (
        "openai:nobody-knows-it is not allowed here: allowed_models has ollama:*; "
        "add it there, or take a model that is allowed"
    )


def test_the_workspaces_model_is_taken_where_none_is_named() -> None:
    settings = Settings(supervisor_model="ollama:llama3.2")
    assert supervising_model("", settings, environ={}).name == "ollama:llama3.2"
    assert supervising_model("vllm:x", settings, environ={}).name == "vllm:x"
    with pytest.raises(ModelError, match="needs to know which"):
        supervising_model("", Settings(), environ={})


def test_the_notice_is_one_sentence_with_what_is_sent_and_to_whom() -> None:
    """supervision.md §7."""
    away = resolve("openai:gpt-5", Settings(), environ=KEYS)
    assert notice(away) == (
        "When a step fails, its error and inputs, and what its item comes from, are sent to "
        "openai:gpt-5 at api.openai.com, with secrets masked."
    )
    home = resolve("ollama:x", Settings(), environ={}, keyring=no_keyring)
    assert "ollama:x on your own network, with secrets masked." in notice(home)


@pytest.mark.parametrize(
    ("mode", "asks", "written"),
    [
        ("agent", "", "agent:ollama:x"),
        ("agent:openai:a/b:c", "openai:a/b:c", "agent:ollama:x"),
        ("shadow", "", "shadow:agent:ollama:x"),
        ("shadow:agent", "", "shadow:agent:ollama:x"),
        ("shadow:agent:openai:gpt-5", "openai:gpt-5", "shadow:agent:ollama:x"),
        ("operator", None, ""),
        ("scripted:agent.yaml", None, ""),
        ("shadow:operator", None, ""),
        ("shadow:shadow", None, ""),
        ("shadow:off", None, ""),
    ],
)
def test_a_mode_tells_which_model_it_asks(mode: str, asks: str | None, written: str) -> None:
    assert model_in(mode) == asks
    if asks is not None:
        assert with_model(mode, "ollama:x") == written
        assert model_in(written) == "ollama:x"


def test_what_is_wrong_with_a_model_of_the_settings_is_said_of_the_setting() -> None:
    with pytest.raises(ModelError, match=r"^supervisor\.model: 'gpt-5' names no model: write "):
        supervising_model("", Settings(supervisor_model="gpt-5"), environ={})
    with pytest.raises(ModelError, match=r"^'gpt-5' names no model: write "):
        supervising_model("gpt-5", Settings(supervisor_model="ollama:x"), environ={})


def test_the_settings_shown_in_the_guide_are_right(tmp_path: Path) -> None:
    guide = Path(__file__).parents[2] / "docs" / "how-to" / "let-a-model-decide.md"
    shown = guide.read_text("utf-8").split("```toml\n")[1].split("```")[0]
    (tmp_path / "nightwarden.toml").write_text(shown, encoding="utf-8")
    settings = load_settings(tmp_path, environ={})
    assert supervising_model("", settings, environ={}).host == "gpu.lan"
    own = supervising_model("compatible:house-model", Settings(models=settings.models), environ={})
    assert own.price is not None
    assert own.price.micro_usd(MILLION) == 2_000_000


# -- nothing of it is loaded where it is not used --

HEAVY = ("pydantic_ai", "anthropic", "openai", "google.genai", "mcp", "jsonschema_rs", "httpx")


def loaded(code: str, cwd: Path) -> list[str]:
    """Which of the heavy libraries a fresh interpreter has loaded after this code."""
    script = f"{code}\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=cwd, capture_output=True, text=True, check=True
    )
    modules = set(json.loads(done.stdout.splitlines()[-1]))
    return [name for name in (*HEAVY, "genai_prices", "nightwarden.agents") if name in modules]


FINE = """
import nightwarden as nw
@nw.node(type="t.Add")
def add(x: int) -> int: return x + 1
with nw.workflow("fine", registry=nw.Registry()) as w:
    w.add(add, id="add", properties={"x": 1})
"""


@pytest.mark.parametrize(
    "code",
    [
        "import nightwarden",
        "from nightwarden.cli.main import main; main(['--help'])",
        "from nightwarden.cli.main import main; main(['run', '--help'])",
        FINE + "assert nw.run(w.build()).ok",
    ],
    ids=["import", "help", "help of run", "an unsupervised run"],
)
def test_nothing_of_the_model_side_is_loaded_on_the_clean_path(code: str, tmp_path: Path) -> None:
    """dependencies.md: nothing on the clean path, the CLI start or --help may import it."""
    assert loaded(code, tmp_path) == []


@pytest.mark.parametrize(("model", "extra"), [("ollama:x", []), ("openai:gpt-5", ["genai_prices"])])
def test_a_supervised_run_without_a_failure_loads_no_library_of_a_provider(
    model: str, extra: list[str], tmp_path: Path
) -> None:
    """seed 001 §8: silence on success. A price is looked up before the run, in the catalogue."""
    code = (
        "import os; os.environ['OPENAI_API_KEY'] = 'sk-none'\n"
        + FINE
        + f"result = nw.run(w.build(), supervise='agent:{model}')\n"
        "assert result.ok and not result.supervised"
    )
    assert loaded(code, tmp_path) == [*extra, "nightwarden.agents"]


def test_whoever_asks_is_made_without_loading_anything() -> None:
    """What `attach` and `aclose` do needs no library either."""
    from nightwarden.agents.adjudicator import Adjudicator

    supervisor = Adjudicator(resolve("ollama:x", Settings(), environ={}, keyring=no_keyring))
    asyncio.run(supervisor.aclose())
    assert supervisor.budget.cap_micro_usd == 500_000
