"""Settings: flag, else environment, else `nightwarden.toml`, else the default.

    [supervisor]                 NIGHTWARDEN_SUPERVISOR_MAX_DECISIONS=5
    max_decisions = 5            --max-decisions 5

One table, `SETTINGS`, says what there is: the file's keys, the variables' names and the checks
are read from it. A key that is none is an error that names the nearest one. A variable that
only begins like ours may be another program's, so it is a remark.

What is known of single models stands in a table by name, in the file only:

    [models."ollama:llama3.2"]   base_url = "http://gpu.lan:11434/v1"
    [models."openai:*"]          price_in = 1.25, price_out = 10   ($ a million tokens)

Nothing of the engine is imported here. Read next: `cli/run.py`.
"""

from __future__ import annotations

import difflib
import math
import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

FILE: Final = "nightwarden.toml"
PREFIX: Final = "NIGHTWARDEN_"
SECRET_PREFIX: Final = "NIGHTWARDEN_SECRET_"
SUPERVISORS: Final = "NIGHTWARDEN_SUPERVISORS"
"""The switch of declared supervisors, which is no setting: a resume is told again."""
_LARGEST: Final = 1_000_000

Value = str | int | float | bool | tuple[str, ...]


class BadSettings(ValueError):
    """Settings that cannot be used: one line a problem, each with its place and a remedy."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """What the user says of a model, or of all whose name fits a pattern.

    Prices are dollars for a million tokens. None where the program's own knowledge holds.
    """

    base_url: str | None = None
    price_in: float | None = None
    price_out: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is set. Seconds and dollars; None where the engine's own default holds."""

    store_url: str = ".nightwarden"
    store_blobs: str | None = None
    store_keep_days: float | None = None
    store_keep_last: int | None = None
    supervisor_mode: str | None = None
    supervisor_model: str | None = None
    supervisor_max_decisions: int | None = None
    supervisor_max_retries: int | None = None
    supervisor_cost_cap_usd: float | None = None
    supervisor_decision_timeout_s: float | None = None
    steering_enabled: bool | None = None
    steering_model: str | None = None
    run_stop_grace_s: float | None = None
    run_max_retry_delay_s: float | None = None
    run_window: int | None = None
    run_trust: bool = False
    run_max_cost_usd: float | None = None
    allowed_models: tuple[str, ...] | None = None
    models: Mapping[str, ModelEntry] = field(default_factory=dict)
    remarks: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: `key` as in the file, what it takes, and what it is for."""

    key: str
    read: Callable[[object], Value]
    expects: str
    doc: str

    @property
    def field(self) -> str:
        """Its name in `Settings`."""
        return self.key.replace(".", "_")

    @property
    def variable(self) -> str:
        """Its name in the environment."""
        return PREFIX + self.field.upper()


def _text(value: object) -> str:
    if isinstance(value, str) and value.strip():
        return value
    raise ValueError


def _patterns(value: object) -> tuple[str, ...]:
    """A list of texts; a variable writes it with commas between."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list):
        raise ValueError  # noqa: TRY004  (one kind of error for all that does not fit)
    return tuple(_text(part).strip() for part in parts)


def _number(value: object) -> float:
    # A variable is always text; a file that writes a number in quotes is understood as well.
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError  # noqa: TRY004  (one kind of error for all that does not fit)
    number = float(value)
    if not math.isfinite(number) or number < 0:
        raise ValueError
    return number


def _count(value: object) -> int:
    number = _number(value)
    if number != int(number) or number > _LARGEST:
        raise ValueError
    return int(number)


def _window(value: object) -> int:
    number = _count(value)
    if number < 1:
        raise ValueError
    return number


def _truth(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in _TRUTHS:
        return _TRUTHS[value.lower()]
    raise ValueError


_TRUTHS: Final = dict.fromkeys(("true", "1", "yes", "on"), True) | dict.fromkeys(
    ("false", "0", "no", "off"), False
)


_SECONDS: Final = "seconds, 0 or more"
_WHOLE: Final = f"a whole number from 0 to {_LARGEST:,}"
_POSITIVE: Final = f"a whole number from 1 to {_LARGEST:,}"

SETTINGS: Final = (
    Setting("store.url", _text, "a folder or postgresql://…", "where runs are recorded"),
    Setting("store.blobs", _text, "a folder or s3://…", "where large values are kept"),
    Setting("store.keep_days", _number, "days, 0 or more", "how long ended runs are kept"),
    Setting("store.keep_last", _count, _WHOLE, "how many ended runs are kept"),
    Setting("supervisor.mode", _text, "a mode, such as operator", "what --supervise is"),
    Setting("supervisor.model", _text, "a model, as provider:name", "which model decides"),
    Setting("supervisor.max_decisions", _count, _WHOLE, "decisions a run may take"),
    Setting("supervisor.max_retries", _count, _WHOLE, "retries of one step for one item"),
    Setting("supervisor.cost_cap_usd", _number, "dollars, 0 or more", "what deciding may cost"),
    Setting("supervisor.decision_timeout_s", _number, _SECONDS, "how long a decision may take"),
    Setting("steering.enabled", _truth, "true or false", "whether declared supervisors run"),
    Setting("steering.model", _text, "a model, as provider:name", "which model they ask"),
    Setting("run.stop_grace_s", _number, _SECONDS, "how long a stopped run may drain"),
    Setting("run.max_retry_delay_s", _number, _SECONDS, "the longest wait before a retry"),
    Setting("run.window", _window, _POSITIVE, "items a fan-out is ahead"),
    Setting("run.max_cost_usd", _number, "dollars, 0 or more", "what a run's steps may spend"),
    Setting("run.trust", _truth, "true or false", "whether workflows may name Python files"),
    Setting("allowed_models", _patterns, "a list such as ollama:*", "models that may be asked"),
)
"""Everything that can be set."""

_ENTRY: Final[Mapping[str, tuple[Callable[[object], Value], str]]] = {
    "base_url": (_text, "a web address"),
    "price_in": (_number, "dollars for a million tokens, 0 or more"),
    "price_out": (_number, "dollars for a million tokens, 0 or more"),
}

_BY_KEY: Final = {setting.key: setting for setting in SETTINGS}
_SECTIONS: Final = {key.partition(".")[0] for key in _BY_KEY if "." in key}
_BY_VARIABLE: Final = {setting.variable: setting for setting in SETTINGS}


def load_settings(
    folder: Path | None = None, *, environ: Mapping[str, str] = os.environ
) -> Settings:
    """What file and environment set. Raises `BadSettings` with everything that is wrong."""
    problems: list[str] = []
    file = (folder or Path.cwd()) / FILE
    values = _from_file(file, problems)
    given, remarks = _from_environment(environ, problems)
    if problems:
        raise BadSettings(problems)
    return replace(Settings(), **{**values, **given, "remarks": remarks})  # type: ignore[arg-type]


def _from_file(file: Path, problems: list[str]) -> dict[str, Value]:
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        problems.append(f"{file.name} cannot be read: {why}")
        return {}
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        problems.append(f"{file.name} is no TOML: {error}")
        return {}
    return _checked(document, file.name, problems)


def _checked(document: Mapping[str, object], file: str, problems: list[str]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    document = dict(document)
    models = document.pop("models", None)
    if models is not None:
        found["models"] = _models(models, file, problems)  # type: ignore[assignment]
    for key, value in _flat(document):
        setting = _BY_KEY.get(key)
        if setting is None:
            problems.append(f"{file}: there is no setting {key}; {_meant(key, _BY_KEY)}")
            continue
        _take(setting, value, f"{file}: {key}", found, problems)
    return found


def _models(table: object, file: str, problems: list[str]) -> dict[str, ModelEntry]:
    """The table of models; what is wrong in it is a problem each."""
    found: dict[str, ModelEntry] = {}
    for name, entry in table.items() if isinstance(table, dict) else [("", table)]:
        if not isinstance(entry, dict) or not name:
            problems.append(
                f'{file}: models is no table of models; write [models."openai:gpt-5"] '
                f"with {', '.join(_ENTRY)} below it"
            )
            continue
        parts: dict[str, Any] = {}
        for key, value in entry.items():
            place = f'{file}: models."{name}".{key}'
            if key not in _ENTRY:
                problems.append(f"{place} is no setting; {_meant(key, _ENTRY)}")
                continue
            read, expects = _ENTRY[key]
            try:
                parts[key] = read(value)
            except (ValueError, OverflowError):
                problems.append(f"{place} is {_written(value)}, but has to be {expects}")
        found[name] = ModelEntry(**parts)
    return found


def _flat(document: Mapping[str, object]) -> Iterable[tuple[str, object]]:
    """Each value by its key; a section may be empty, where it is one."""
    for section, value in document.items():
        if isinstance(value, dict) and (value or section in _SECTIONS):
            yield from ((f"{section}.{key}", item) for key, item in value.items())
        else:
            yield section, value


def _from_environment(
    environ: Mapping[str, str], problems: list[str]
) -> tuple[dict[str, Value], tuple[str, ...]]:
    found: dict[str, Value] = {}
    remarks = []
    for name, value in environ.items():
        ours = name.startswith(PREFIX) and not name.startswith(SECRET_PREFIX)
        if not ours or name == SUPERVISORS:
            continue
        setting = _BY_VARIABLE.get(name)
        if setting is None:
            remarks.append(f"{name} in the environment is no setting; {_meant(name, _BY_VARIABLE)}")
        elif value:  # empty counts as not set
            _take(setting, value, name, found, problems)
    return found, tuple(sorted(remarks))


def _take(
    setting: Setting,
    value: object,
    place: str,
    found: dict[str, Value],
    problems: list[str],
) -> None:
    try:
        found[setting.field] = setting.read(value)
    except (ValueError, OverflowError):
        problems.append(f"{place} is {_written(value)}, but has to be {setting.expects}")


def _written(value: object) -> str:
    """A value as it would stand in the file."""
    match value:
        case bool():
            return str(value).lower()
        case str() | int() | float():
            return repr(value)
        case list():
            return "a list"
        case dict():
            return "a table"
    return str(value)  # a date or a time


def _meant(word: str, known: Iterable[str]) -> str:
    names = list(known)
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
