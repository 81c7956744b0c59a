"""Which model a supervisor asks (steering.md §6)."""

from __future__ import annotations

import pytest
from steering_kit import spec

from nightwarden.agents.models import Model
from nightwarden.errors import ModelError
from nightwarden.settings import ModelEntry, Settings
from nightwarden.spec.workflow import EdgeSpec, NodeSpec, Workflow
from nightwarden.steering.choosing import SMALL, Running, choose, pinned, running_on

BOTH = {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"}


def chosen(
    *running: str,
    pin: str = "",
    settings: Settings | None = None,
    env: dict[str, str] | None = None,
    inputs: dict[str, object] | None = None,
) -> Model:
    return choose(
        spec(model=pin),
        settings or Settings(),
        [Running(f"n{i}", name) for i, name in enumerate(running)],
        inputs=inputs,
        environ=BOTH if env is None else env,
        keyring=lambda _name: None,
    )


def test_a_pin_goes_before_the_setting_and_that_before_the_watched_nodes() -> None:
    set_ = Settings(steering_model="openai:gpt-5")
    running = "anthropic:claude-sonnet-4-5"
    assert (
        chosen(
            running,
            pin="google:gemini-2.5-flash",
            settings=set_,
            env={**BOTH, "GOOGLE_API_KEY": "g"},
        ).name
        == "google:gemini-2.5-flash"
    )
    assert chosen(running, settings=set_).name == "openai:gpt-5"
    assert chosen(running).name == SMALL["anthropic"]


def test_the_provider_of_the_watched_nodes_goes_before_the_first_with_a_key() -> None:
    """Scenario 80."""
    assert chosen("openai:gpt-5").name == SMALL["openai"]
    assert chosen().name == SMALL["anthropic"]
    only = {"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": " "}
    assert chosen("anthropic:claude-sonnet-4-5", env=only).name == SMALL["openai"]


def test_a_claude_code_node_asks_for_an_anthropic_model() -> None:
    """Scenario 80: although another key stands first in the environment."""
    node = NodeSpec(id="fix", type="nightwarden.Agent", properties={"backend": "claude_code"})
    other = NodeSpec(id="other", type="flow.Value", properties={"model": "openai:gpt-5"})
    flow = Workflow(name="w", nodes=(node, other), edges=())
    found = running_on(flow, spec(watches=("fix",)))
    assert found == running_on(flow, spec()) == [Running("fix", SMALL["anthropic"])]
    assert (
        chosen(*(r.model for r in found), env={"OPENAI_API_KEY": "o", **BOTH}).name
        == (SMALL["anthropic"])
    )


def test_a_model_that_is_an_input_of_the_run_is_known() -> None:
    node = NodeSpec(id="fix", type="agent.Agent")
    edge = EdgeSpec(source="inputs", source_slot="m", target="fix", target_slot="model")
    flow = Workflow(name="w", nodes=(node,), edges=(edge,))
    assert running_on(flow, spec(), {"m": "openai:gpt-5"}) == [Running("fix", "openai:gpt-5")]
    assert running_on(flow, spec()) == []


def test_a_pin_that_comes_to_nothing_is_none() -> None:
    """Scenario 79."""
    assert chosen("openai:gpt-5", pin="${X:-}").name == SMALL["openai"]
    assert chosen("openai:gpt-5", pin="${X}").name == SMALL["openai"]


@pytest.mark.parametrize(
    ("pin", "found"),
    [
        ("${X:-openai:gpt-5}", "openai:gpt-5"),
        ("${Y:-openai:gpt-5}", "anthropic:why"),
        ("${Y}", "anthropic:why"),
        ("$inputs.m", "groq:fast"),
        ("{{vars.m}}", "groq:fast"),
        ("{{ inputs.m }}", "groq:fast"),
        ("$inputs.none", ""),
        ("openai:gpt-5", "openai:gpt-5"),
    ],
)
def test_a_pin_may_be_of_the_environment_or_of_the_inputs(pin: str, found: str) -> None:
    """Scenario 79."""
    assert pinned(pin, {"m": "groq:fast"}, {"Y": "anthropic:why"}) == found


@pytest.mark.parametrize("model", ["compatible:mine", "openrouter:x/y", "acme:z", "openai:gpt-5"])
def test_a_watched_node_behind_a_gateway_asks_for_a_pin(model: str) -> None:
    """Scenario 81: a named refusal, never a call to somebody else."""
    entry = ModelEntry(base_url="http://gateway.corp/v1", price_in=1, price_out=1)
    settings = Settings(models={"openai:gpt-5": entry})
    with pytest.raises(ModelError, match=rf"n0 runs on {model}, behind a gateway"):
        chosen(model, settings=settings)
    assert chosen(model, pin="anthropic:claude-haiku-4-5", settings=settings).name == (
        "anthropic:claude-haiku-4-5"
    )


def test_a_node_on_a_model_at_home_is_looked_at_by_that_model() -> None:
    assert chosen("ollama:llama3.2").name == "ollama:llama3.2"


def test_only_models_that_are_allowed_are_asked() -> None:
    allowed = Settings(allowed_models=("openai:*",))
    assert chosen("anthropic:claude-sonnet-4-5", settings=allowed).name == SMALL["openai"]
    own = Settings(allowed_models=("anthropic:claude-sonnet-4-5",))
    assert chosen("anthropic:claude-sonnet-4-5", settings=own).name == "anthropic:claude-sonnet-4-5"
    with pytest.raises(ModelError, match="is not allowed here"):
        chosen(pin="openai:gpt-5", settings=own)


def test_without_any_key_the_line_says_what_to_do() -> None:
    """steering.md §6: a Claude login without an API key is no credential."""
    with pytest.raises(ModelError, match=r"there is no model for supervisor 'dog'.*steering.model"):
        chosen("anthropic:claude-sonnet-4-5", env={"CLAUDE_CODE_OAUTH_TOKEN": "login"})


@pytest.mark.parametrize("name", SMALL.values())
def test_every_small_model_has_a_price(name: str) -> None:
    keys = ("ANTHROPIC", "OPENAI", "GOOGLE", "GROQ", "MISTRAL", "DEEPSEEK", "XAI")
    env = {f"{key}_API_KEY": "k" for key in keys}
    assert chosen(pin=name, env=env).price is not None
