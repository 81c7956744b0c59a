"""Settings: flag, environment, file, default (surfaces.md, Command line; events.md)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nightwarden.settings import (
    FILE,
    SETTINGS,
    BadSettings,
    ModelEntry,
    Settings,
    load_settings,
)


def put(folder: Path, text: str) -> Path:
    (folder / FILE).write_text(text, encoding="utf-8")
    return folder


def problems(folder: Path, environ: dict[str, str] | None = None) -> tuple[str, ...]:
    with pytest.raises(BadSettings) as caught:
        load_settings(folder, environ=environ or {})
    return caught.value.problems


def test_without_file_and_environment_everything_is_the_default(tmp_path: Path) -> None:
    assert load_settings(tmp_path, environ={}) == Settings()
    assert Settings().store_url == ".nightwarden"


def test_every_setting_can_be_set_in_the_file(tmp_path: Path) -> None:
    put(
        tmp_path,
        """
        store.url = "kept"
        store.blobs = "large"
        store.keep_days = 30
        store.keep_last = 100
        allowed_models = ["ollama:*", "anthropic:claude-*"]
        [supervisor]
        mode = "scripted:answers.yaml"
        model = "ollama:llama3.2"
        max_decisions = 3
        max_retries = 0
        cost_cap_usd = 0.25
        decision_timeout_s = 5
        [run]
        stop_grace_s = 1.5
        max_retry_delay_s = 60
        window = 16
        trust = true
        """,
    )
    assert load_settings(tmp_path, environ={}) == Settings(
        store_url="kept",
        store_blobs="large",
        store_keep_days=30,
        store_keep_last=100,
        supervisor_mode="scripted:answers.yaml",
        supervisor_model="ollama:llama3.2",
        allowed_models=("ollama:*", "anthropic:claude-*"),
        supervisor_max_decisions=3,
        supervisor_max_retries=0,
        supervisor_cost_cap_usd=0.25,
        supervisor_decision_timeout_s=5.0,
        run_stop_grace_s=1.5,
        run_max_retry_delay_s=60.0,
        run_window=16,
        run_trust=True,
    )


def test_every_setting_has_a_field_and_a_variable() -> None:
    for setting in SETTINGS:
        assert setting.field in Settings.__dataclass_fields__
        assert setting.variable == "NIGHTWARDEN_" + setting.key.replace(".", "_").upper()


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    put(tmp_path, "[supervisor]\nmax_decisions = 3\nmax_retries = 1\n")
    environ = {"NIGHTWARDEN_SUPERVISOR_MAX_DECISIONS": "7", "NIGHTWARDEN_RUN_TRUST": "yes"}
    found = load_settings(tmp_path, environ=environ)
    assert (found.supervisor_max_decisions, found.supervisor_max_retries) == (7, 1)
    assert found.run_trust is True


def test_an_empty_variable_sets_nothing(tmp_path: Path) -> None:
    assert load_settings(tmp_path, environ={"NIGHTWARDEN_STORE_URL": ""}) == Settings()


def test_zero_is_a_bound_and_not_nothing(tmp_path: Path) -> None:
    """supervision.md §5: zero is legal and means none."""
    put(tmp_path, "supervisor = {max_decisions = 0, cost_cap_usd = 0}")
    found = load_settings(tmp_path, environ={})
    assert (found.supervisor_max_decisions, found.supervisor_cost_cap_usd) == (0, 0.0)


def test_an_unknown_key_is_an_error_that_names_the_nearest_one(tmp_path: Path) -> None:
    put(tmp_path, "[supervisor]\nmax_decision = 3\n[zoo]\nlion = 1\n")
    assert problems(tmp_path) == (
        "nightwarden.toml: there is no setting supervisor.max_decision; "
        "did you mean supervisor.max_decisions?",
        "nightwarden.toml: there is no setting zoo.lion; there are "
        + ", ".join(setting.key for setting in SETTINGS),
    )


@pytest.mark.parametrize("text", ["[supervisr]", "supervisr = {}"])
def test_an_unknown_section_is_an_error_also_where_nothing_stands_in_it(
    tmp_path: Path, text: str
) -> None:
    (said,) = problems(put(tmp_path, text))
    assert said == "nightwarden.toml: there is no setting supervisr; did you mean supervisor.mode?"


def test_a_section_may_be_empty(tmp_path: Path) -> None:
    put(tmp_path, "[supervisor]\n[store]\n[models]\n")
    assert load_settings(tmp_path, environ={}) == Settings()


@pytest.mark.parametrize(
    ("word", "means"), [("on", True), ("off", False), ("YES", True), ("0", False)]
)
def test_a_switch_in_the_environment_takes_the_usual_words(
    tmp_path: Path, word: str, means: bool
) -> None:
    environ = {"NIGHTWARDEN_STEERING_ENABLED": word}
    assert load_settings(tmp_path, environ=environ).steering_enabled is means


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "run.window = 0",
            "run.window is 0, but has to be a whole number from 1 to 1,000,000",
        ),
        (
            "supervisor.max_retries = -1",
            "supervisor.max_retries is -1, but has to be a whole number from 0 to 1,000,000",
        ),
        (
            "supervisor.max_decisions = 2.5",
            "supervisor.max_decisions is 2.5, but has to be a whole number from 0 to 1,000,000",
        ),
        (
            "run.stop_grace_s = inf",
            "run.stop_grace_s is inf, but has to be seconds, 0 or more",
        ),
        ("run.trust = 3", "run.trust is 3, but has to be true or false"),
        ("store.url = ''", "store.url is '', but has to be a folder or postgresql://…"),
        (
            "supervisor.cost_cap_usd = true",
            "supervisor.cost_cap_usd is true, but has to be dollars, 0 or more",
        ),
        (
            "supervisor.max_decisions = 1000001",
            "supervisor.max_decisions is 1000001, but has to be a whole number from 0 to 1,000,000",
        ),
        (
            "store.keep_days = 2026-01-01",
            "store.keep_days is 2026-01-01, but has to be days, 0 or more",
        ),
        ("store.url = ['a']", "store.url is a list, but has to be a folder or postgresql://…"),
        ("allowed_models = {}", "allowed_models is a table, but has to be a list such as ollama:*"),
        ("[run.trust]", "run.trust is a table, but has to be true or false"),
    ],
)
def test_a_value_of_the_wrong_kind_says_what_is_expected(
    tmp_path: Path, text: str, said: str
) -> None:
    assert problems(put(tmp_path, text)) == (f"nightwarden.toml: {said}",)


def test_all_problems_come_at_once(tmp_path: Path) -> None:
    put(tmp_path, "run.window = 0\nrun.speed = 1\n")
    found = problems(tmp_path, {"NIGHTWARDEN_SUPERVISOR_MAX_RETRIES": "many"})
    assert len(found) == 3
    assert found[2] == (
        "NIGHTWARDEN_SUPERVISOR_MAX_RETRIES is 'many', "
        "but has to be a whole number from 0 to 1,000,000"
    )


@pytest.mark.parametrize("data", [b"a = \n", b"\xff\xfe", b"a = {" * 3000])
def test_a_file_that_is_no_toml_is_one_clear_line(tmp_path: Path, data: bytes) -> None:
    (tmp_path / FILE).write_bytes(data)
    (said,) = problems(tmp_path)
    assert said.startswith("nightwarden.toml ")


def test_a_directory_of_that_name_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    assert problems(tmp_path) == ("nightwarden.toml cannot be read: Is a directory",)


def test_a_variable_that_is_no_setting_is_a_remark_and_a_secret_is_none(tmp_path: Path) -> None:
    environ = {"NIGHTWARDEN_STOER_URL": "x", "NIGHTWARDEN_SECRET_KEY": "y", "HOME": "z"}
    assert load_settings(tmp_path, environ=environ).remarks == (
        "NIGHTWARDEN_STOER_URL in the environment is no setting; "
        "did you mean NIGHTWARDEN_STORE_URL?",
    )


def test_models_are_a_table_by_name(tmp_path: Path) -> None:
    """events.md, Settings: models."NAME".{base_url, price_in, price_out}."""
    put(
        tmp_path,
        """
        [models."ollama:llama3.2:3b"]
        base_url = "http://gpu.lan:11434/v1"
        [models."openai:*"]
        price_in = 1.25
        price_out = "10"
        """,
    )
    assert load_settings(tmp_path, environ={}).models == {
        "ollama:llama3.2:3b": ModelEntry(base_url="http://gpu.lan:11434/v1"),
        "openai:*": ModelEntry(price_in=1.25, price_out=10.0),
    }


def test_what_is_wrong_with_a_model_is_said_with_its_place(tmp_path: Path) -> None:
    put(tmp_path, '[models."openai:gpt-5"]\nprice_in = -1\nprice_inn = 1\nbase_url = 3\n')
    assert problems(tmp_path) == (
        'nightwarden.toml: models."openai:gpt-5".price_in is -1, but has to be dollars for a '
        "million tokens, 0 or more",
        'nightwarden.toml: models."openai:gpt-5".price_inn is no setting; did you mean price_in?',
        'nightwarden.toml: models."openai:gpt-5".base_url is 3, but has to be a web address',
    )


@pytest.mark.parametrize("text", ["models = 1", 'models.gpt = "x"', "models = []"])
def test_models_that_are_no_table_are_refused(tmp_path: Path, text: str) -> None:
    put(tmp_path, text)
    assert "models is no table of models" in problems(tmp_path)[0]


def test_allowed_models_are_a_list_and_in_the_environment_separated_by_commas(
    tmp_path: Path,
) -> None:
    environ = {"NIGHTWARDEN_ALLOWED_MODELS": "ollama:*, openai:gpt-5*"}
    assert load_settings(tmp_path, environ=environ).allowed_models == ("ollama:*", "openai:gpt-5*")
    put(tmp_path, "allowed_models = 3")
    assert "allowed_models is 3" in problems(tmp_path)[0]


def test_an_empty_list_of_allowed_models_is_kept_for_it_allows_none(tmp_path: Path) -> None:
    put(tmp_path, "allowed_models = []")
    assert load_settings(tmp_path, environ={}).allowed_models == ()


def test_every_setting_stands_in_the_reference() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "reference" / "settings.md"
    told = re.findall(r"^\| `([\w.]+)` \|", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert told == [setting.key for setting in SETTINGS]
