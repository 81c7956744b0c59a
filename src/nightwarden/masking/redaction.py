"""The secrets of a run, and what keeps them out of every record.

Each value the secret resolver hands out is registered *before* the step sees it; from then on
no text, record, prompt or log line made through this registry shows it, in any usual disguise.

    mask(text)          the text with marks in place of secrets
    mask_value(value)   a recorded value: masked through and through, never cut
    redact(value)       what people and models are shown: masked, fields hidden by name, cut
    describe_error(e)   an error in one line
    contains(text)      whether a secret stands in it

Without secrets a text passes at the cost of one comparison. If masking itself fails, everything
is hidden. Registering is safe from any thread.

Read next: `secret_forms.py` (what is looked for), `scanner.py` (how), `bounding.py` (cuts).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nightwarden.masking import describing
from nightwarden.masking.anatomy import Atom, Items, Pairs, Text, anatomy_of, key_text
from nightwarden.masking.bounding import (
    DEFAULT,
    Json,
    Limits,
    bounded,
)
from nightwarden.masking.marks import (
    CUT_PREFIX,
    FIELD,
    HIDDEN,
    MASK_PREFIX,
    contains_mark,
    cut_of,
)
from nightwarden.masking.scanner import Scanner
from nightwarden.masking.secret_forms import SHORT, Secret, secret_of
from nightwarden.masking.sensitive import (
    hidden_pair,
    hide_named,
    holds_the_value,
    is_sensitive,
    telling_pair,
    worth_hiding,
)

__all__ = [
    "CUT_PREFIX",
    "DEFAULT",
    "FIELD",
    "HIDDEN",
    "MASK_PREFIX",
    "Json",
    "Limits",
    "SecretRegistry",
    "contains_mark",
    "is_sensitive",
]


FIELDS_LEFT_OUT: Final = "fields"
"""The only field of a record that could not be shown field by field."""


class SecretRegistry:
    """Every secret handed out during a run, and the masks made of them."""

    __slots__ = ("_built", "_secrets")

    def __init__(self) -> None:
        # Append-only, and read as a whole: no lock is needed to register from several threads.
        self._secrets: dict[str, Secret] = {}
        self._built: tuple[int, Scanner] = (0, Scanner(()))

    def register(self, name: str, value: str) -> None:
        """Mask `value` from here on as `••••(name)`. The same value again costs a look-up."""
        if value not in self._secrets:
            self._secrets.setdefault(value, secret_of(name, value))

    @property
    def secrets(self) -> int:
        """How many secrets are known so far."""
        return len(self._secrets)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is to be said about the secrets registered so far: short or empty ones."""
        return tuple(line for secret in list(self._secrets.values()) for line in secret.warnings)

    def contains(self, text: str | bytes) -> bool:
        """Whether a secret stands in `text`, in any disguise; bytes are taken as UTF-8."""
        if not self._secrets:
            return False
        plain = text if isinstance(text, str) else text.decode("utf-8", "replace")
        return self.mask(plain) != plain

    def plain_in(self, data: bytes) -> str:
        """The name of a secret that stands in `data` as it is; empty where none does.

        For content of any size: what is disguised, or too short to be told from a word, is not
        looked for.
        """
        for value, secret in list(self._secrets.items()):
            text = value.strip()
            if len(text) >= SHORT and text.encode("utf-8", "surrogatepass") in data:
                return secret.name
        return ""

    def mask(self, text: str) -> str:
        """`text` with every secret masked; the very same object where there is none."""
        if not self._secrets:
            return text
        try:
            return self._scanner().mask(text)
        except Exception:
            return HIDDEN

    def mask_text(self, text: str) -> str:
        """For lines of text: `mask`, and what stands under a telling name in it is hidden too."""
        return hide_named(self.mask(text))

    def redact(self, value: object, *, limits: Limits = DEFAULT) -> Json:
        """`value` as a record may show it: masked, then cut; JSON-safe, bounded, never raises."""
        try:
            return bounded(value, self.mask, limits, longest=self._scanner().longest)
        except BaseException:
            return HIDDEN

    def redact_fields(
        self, fields: Mapping[str, object], *, limits: Limits = DEFAULT
    ) -> dict[str, Json]:
        """`redact` for a record's fields: always a dict, whatever had to be left out of it."""
        record = self.redact(fields, limits=limits)
        return record if isinstance(record, dict) else {FIELDS_LEFT_OUT: record}

    def mask_value(self, value: object) -> tuple[object, bool]:
        """`value` masked at every depth but not cut, and whether that changed anything.

        Unchanged parts stay the objects they were; changed containers become lists and dicts.
        Where the second is true, the recorded value is sealed: it cannot stand in for the real one.
        """
        try:
            masked = _Deep(self).value(value)
        except BaseException:
            return HIDDEN, True
        return masked, masked is not value

    def describe_error(self, error: BaseException) -> str:
        """The error in one masked line of at most 500 characters, the most useful cause first."""
        try:
            return describing.describe(error, self.mask_text)
        except BaseException:
            return HIDDEN

    def mask_key(self, key: str) -> str:
        """`mask` for a field's name; names come again and again, so clean ones are remembered."""
        return self._scanner().mask_key(key) if self._secrets else key

    def may_be_numbers(self) -> bool:
        """Whether a number can hold a secret."""
        return bool(self._secrets) and self._scanner().numeric

    def _scanner(self) -> Scanner:
        size, scanner = self._built
        if size != len(self._secrets):
            secrets = list(self._secrets.values())
            scanner = Scanner(secrets)
            self._built = (len(secrets), scanner)
        return scanner


class _Deep:
    """One pass over one value: each shared part is masked once, cycles end."""

    def __init__(self, registry: SecretRegistry) -> None:
        self._mask = registry.mask
        self._mask_key = registry.mask_key
        self._numbers = registry.may_be_numbers()
        self._has_secrets = bool(registry._secrets)
        self._done: dict[int, object] = {}
        self._alive: list[object] = []

    def value(self, value: object) -> object:
        kind = type(value)
        if kind is str:
            return self._mask(value)  # type: ignore[arg-type]
        if value is None or kind is bool or (not self._numbers and kind in (int, float)):
            return value
        anatomy = anatomy_of(value)
        if isinstance(anatomy, Atom):
            return self._other(value, str(anatomy.value))
        if isinstance(anatomy, Text):
            return self._hidden_inside(value, self._other(value, anatomy.text))
        key = id(value)
        if key not in self._done:
            self._done[key] = cut_of(1, "cycle")  # what stands inside itself
            self._alive.append(value)
            self._done[key] = self._container(anatomy, value)
        return self._done[key]

    def _container(self, anatomy: Pairs | Items, value: object) -> object:
        if isinstance(anatomy, Pairs):
            return self._pairs(anatomy, value)
        return self._items(anatomy, value)

    def _other(self, value: object, shown: str) -> object:
        masked = self._mask(shown)
        return value if masked == shown else masked

    def _hidden_inside(self, value: object, masked: object) -> object:
        """An object may hold a secret that its `repr` does not show."""
        inside = getattr(value, "__dict__", None) if masked is value else None
        if self._has_secrets and isinstance(inside, dict) and self.value(inside) is not inside:
            return HIDDEN
        return masked

    def _pairs(self, anatomy: Pairs, value: object) -> object:
        pairs = list(anatomy.pairs)
        named = telling_pair(Pairs(pairs, len(pairs)))
        made: list[tuple[object, object]] = []
        for key, part in pairs:
            hide = holds_the_value(key) if named else is_sensitive(key)
            new = FIELD if hide and worth_hiding(part) else self.value(part)
            made.append((self._key(key), new))
        same = all(a is c and b is d for (a, b), (c, d) in zip(pairs, made, strict=True))
        return value if same else _as_dict(made)

    def _key(self, key: object) -> object:
        if type(key) is str:
            return self._mask_key(key)
        return self._other(key, key_text(key))

    def _items(self, anatomy: Items, value: object) -> object:
        items = list(anatomy.items)
        made = [self._item(item) for item in items]
        same = all(a is b for a, b in zip(items, made, strict=True))
        return value if same else made

    def _item(self, item: object) -> object:
        name = hidden_pair(item)
        if name is None:
            return self.value(item)
        return [self.value(name), FIELD]


def _as_dict(pairs: list[tuple[object, object]]) -> dict[object, object]:
    result: dict[object, object] = {}
    for key, value in pairs:
        free, number = key, 2
        while free in result:
            free, number = f"{key} #{number}", number + 1
        result[free] = value
    return result
