"""Which names tell that their value is a secret: by word, not by substring.

A name is cut into words (`dbPassword`, `db-password`, `DB_PASSWORD` → db, password) and is
sensitive when a telling word or run of words is among them: `access_token`, `X-Api-Key`,
`set-cookie`, `pin`. `author`, `max_tokens`, `tokenizer`, `compass` are not, and neither are
names *about* a secret: `token_url`, `password_length`, `has_password`.

`hide_named` applies the same rule to text: `?token=…`, `'api_key': '…'`, `Authorization: …`,
`//user:password@`.

Read next: `redaction.py`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, TypeGuard

from nightwarden.masking.anatomy import Pairs
from nightwarden.masking.marks import FIELD, MASK_PREFIX

_WORDS: Final = frozenset((
    "password", "passwords", "passwd", "passphrase", "passcode", "pwd", "secret", "secrets",
    "token", "credential", "credentials", "creds", "cred", "authorization", "cookie", "cookies",
    "bearer", "dsn", "pin", "ssn", "cvv", "cvc", "otp", "totp", "jwt", "csrf", "xsrf", "apikey",
    "apikeys", "phpsessid", "jsessionid", "sessid", "passwort", "kennwort", "contraseña",
    "senha", "пароль",
))  # fmt: skip
_KEYS: Final = (
    "api", "access", "secret", "private", "account", "encryption", "signing", "shared", "auth",
    "master", "ssh", "service", "subscription", "session",
)  # fmt: skip
_PASSES: Final = ("user", "db", "smtp", "ftp", "login", "proxy", "admin", "root")
_RUNS: Final = frozenset(
    {(word, key) for word in _KEYS for key in ("key", "keys")}
    | {(word, "pass") for word in _PASSES}
    | {(word, "auth") for word in ("basic", "http", "proxy", "x")}
    | {("session", "id"), ("connection", "string"), ("connection", "str"), ("conn", "str")}
    | {("auth", "header"), ("security", "code"), ("amz", "signature"), ("mot", "de", "passe")}
)
_COMPACT: Final = frozenset("".join(run) for run in _RUNS) | {
    "accesstoken", "authtoken", "refreshtoken", "idtoken", "bearertoken", "sessiontoken",
    "clientsecret", "sharedaccesskey", "connectionstring",
}  # fmt: skip
_ENDINGS: Final = ("password", "passwd", "passphrase", "apikey", "accesstoken", "privatekey")
_WHOLE: Final = frozenset({("pass",), ("pw",), ("auth",), ("sig",)})
"""Too common as a word among others (`pass_rate`); telling when it is the whole name."""

_ABOUT: Final = frozenset((
    "url", "uri", "endpoint", "type", "types", "count", "counts", "limit", "limits", "usage",
    "budget", "length", "len", "size", "policy", "name", "names", "expiry", "expires", "ttl",
    "at", "strength", "required", "enabled", "field", "fields", "index", "rate", "price",
    "cost", "method", "provider", "scope", "scopes", "domain", "path",
    "file",
))  # fmt: skip
"""A last word that makes the name one about the secret."""
_ASKING: Final = frozenset({"is", "has", "needs", "use", "uses", "no", "with", "num", "max", "min"})
"""A first word that does."""
_TOKEN_OF_A_MODEL: Final = frozenset((
    "eos", "bos", "pad", "unk", "stop", "max", "min", "num", "n", "per", "total", "input",
    "output", "prompt", "completion", "first",
))  # fmt: skip

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W_]+")


def is_sensitive(name: object) -> bool:
    """Whether a field of this name holds a secret. Anything but text has no telling name."""
    if not is_text(name):
        return False
    text = name.decode("latin-1") if isinstance(name, bytes) else str.__str__(name)
    return _is_sensitive(text) if len(text) <= 100 else _judge(text[:1_000])


def _judge(name: str) -> bool:
    words = tuple(word.rstrip("0123456789") or word for word in _words(name))
    if not words or words[0] in _ASKING or (len(words) > 1 and words[-1] in _ABOUT):
        return False
    if words in _WHOLE:
        return True
    return any(_tells(words, i) for i in range(len(words)))


def _words(name: str) -> list[str]:
    return _WORD.findall(_CAMEL.sub(" ", name).lower())


def _tells(words: tuple[str, ...], at: int) -> bool:
    word = words[at]
    if word == "token":
        return at == 0 or words[at - 1] not in _TOKEN_OF_A_MODEL
    if word in _WORDS or word in _COMPACT or word.endswith(_ENDINGS):
        return True
    return words[at : at + 2] in _RUNS or words[at : at + 3] in _RUNS


_is_sensitive = lru_cache(maxsize=4096)(_judge)


def worth_hiding(value: object) -> bool:
    """Whether there is anything to hide: that nothing was given may be seen."""
    if is_text(value):
        return len(value) > 0 and value != FIELD
    return not (value is None or value is True or value is False)


def telling_pair(record: Pairs) -> bool:
    """Whether it reads `{"name": "Authorization", "value": …}`, as recorded headers do."""
    if not 2 <= record.count <= 3:
        return False
    return any(
        is_text(key) and key in ("name", "Name", "key", "Key") and is_sensitive(value)
        for key, value in record.pairs
    )


def holds_the_value(key: object) -> bool:
    """Whether the field of a telling pair is the one to hide."""
    return is_text(key) and key in ("value", "Value")


def hidden_pair(value: object) -> str | bytes | None:
    """The name in a `(name, value)` pair whose name is telling, as lists of headers have them."""
    if type(value) not in (tuple, list) or len(value) != 2:  # type: ignore[arg-type]
        return None
    name: object = value[0]  # type: ignore[index]
    secret: object = value[1]  # type: ignore[index]
    if not is_text(name) or not is_text(secret) or not is_sensitive(name):
        return None
    return name if worth_hiding(secret) else None


def is_text(value: object) -> TypeGuard[str | bytes]:
    """`isinstance` without asking the value, whose `__class__` may raise."""
    return issubclass(type(value), (str, bytes))


_NAME = r"[A-Za-z_][\w.\[\]-]{0,80}+"
_QUOTED = re.compile(
    # 'name': 'value'  "name": "value"  "name": 12  — quotes escaped or not; also name='value'
    rf"(?P<key>(?P<open>\\*[\"'])(?P<name>{_NAME})(?P=open)\s*[:=]\s*|\b(?P<bare>{_NAME})\s*=\s*)"
    r"(?P<pre>[bru]?(?P<quote>\\*[\"']))(?P<value>.+?)(?:(?<!\\)(?P=quote)|\Z)",
    re.DOTALL,
)
_PLAIN = re.compile(
    # ?name=value&  name=value  "name": 1234
    rf"(?P<key>\b(?P<name>{_NAME})=|[\"'](?P<quoted>{_NAME})\\*[\"']\s*:\s*(?=\d))"
    r"(?P<value>[^\s&;,'\"\\<>(){}\[\]#]+)"
)
_HEADER = re.compile(
    r"(?P<key>\b(?:(?:proxy-)?authorization|(?:set-)?cookie|x-[a-z-]{0,40}(?:key|token|secret))"
    r"['\"]?\s*:\s*['\"]?)(?P<value>[^\r\n'\"]+)",
    re.IGNORECASE,
)
_SCHEME = re.compile(
    r"(?P<key>\b(?:bearer|basic|digest|token)\s+)"
    r"(?P<value>(?=[A-Za-z]{0,200}[0-9+/=_.~-])[A-Za-z0-9+/=_.~-]{8,2000})",
    re.IGNORECASE,
)
_USERINFO = re.compile(r"(?P<key>://[^\s/?#@:'\"]{0,200}:)(?P<value>[^\s/?#@'\"]{1,500})(?=@)")
_ONLY_A_MARK = re.compile(rf"(?:[A-Za-z]+ )?{re.escape(MASK_PREFIX)}[^)]*\)")


def hide_named(text: str) -> str:
    """`text` with every value hidden that stands under a telling name, header or in a URL."""
    lowered = text.lower()
    if "=" in text or ":" in text:
        text = _USERINFO.sub(_hide, text)
        if any(word in lowered for word in ("authorization", "cookie", "x-")):
            text = _HEADER.sub(_hide, text)
        text = _QUOTED.sub(_hide_if_named, text)
        text = _PLAIN.sub(_hide_if_named, text)
    if any(word in lowered for word in ("bearer", "basic", "digest", "token")):
        text = _SCHEME.sub(_hide, text)
    return text


def _hide(match: re.Match[str]) -> str:
    return match[0] if _is_hidden(match["value"]) else match["key"] + FIELD


def _is_hidden(value: str) -> bool:
    return _ONLY_A_MARK.fullmatch(value) is not None


def _hide_if_named(match: re.Match[str]) -> str:
    groups = match.groupdict()
    name = groups["name"] or groups.get("bare") or groups.get("quoted") or ""
    if not is_sensitive(name) or _is_hidden(match["value"]):
        return match[0]
    quote = groups.get("quote") or ""
    quote = quote if match[0].endswith(quote) else ""  # cut off before the closing quote
    return f"{match['key']}{groups.get('pre') or ''}{FIELD}{quote}"
