"""Names that tell: supervision.md §4, "Sensitive names by token, not substring".

row: S4-NAMES
"""

from __future__ import annotations

import pytest

from nightwarden.masking.marks import FIELD
from nightwarden.masking.sensitive import hide_named, is_sensitive


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "passwd",
        "pwd",
        "secret",
        "token",
        "api_key",
        "authorization",
        "credential",
        "private_key",
        "session_id",
        "cookie",
        "bearer",
        "dsn",
        "connection_string",
        "pin",
        "ssn",
        "access_token",
        "accessToken",
        "X-Api-Key",
        "api-key",
        "apikey",
        "Authorization",
        "Proxy-Authorization",
        "set-cookie",
        "Set-Cookie",
        "client_secret",
        "clientSecret",
        "db_password",
        "dbPassword",
        "DB_PASSWORD",
        "PGPASSWORD",
        "password2",
        "old_passwords",
        "AWS_SECRET_ACCESS_KEY",
        "accessKey",
        "aws_access_key_id",
        "refresh_token",
        "idToken",
        "X-Auth-Token",
        "csrf_token",
        "privateKey",
        "private.key",
        "connectionString",
        "sessionId",
        "SESSION_ID",
        "passphrase",
        "pass",
        "auth",
        "user[password]",
        "secrets",
        "credentials",
        "AccountKey",
        "card_pin",
        "pinCode",
        "APIKey",
        "HTTPSecret",
        "jwt",
        "otp",
        "x-amz-signature",
        "Passwort",
    ],
)
def test_a_name_with_a_telling_word_is_sensitive(name: str) -> None:
    assert is_sensitive(name)


@pytest.mark.parametrize(
    "name",
    [
        "author",
        "authority",
        "authors",
        "max_tokens",
        "maxTokens",
        "tokenizer",
        "token_count",
        "tokens_in",
        "tokens_out",
        "tokens",
        "total_tokens",
        "pinned",
        "spinner",
        "spinning",
        "secretary",
        "compass",
        "bypass",
        "passenger",
        "passage",
        "pass_rate",
        "token_url",
        "tokenUri",
        "token_type",
        "password_length",
        "has_password",
        "is_secret",
        "key",
        "keys",
        "monkey",
        "keyboard",
        "primary_key",
        "public_key",
        "cookie_domain",
        "authored_by",
        "pins",
        "session",
        "sessions",
        "url",
        "page",
        "title",
        "signature",
        "eos_token",
        "stop_token",
        "max_token",
        "accession",
        "ssnx",
        "dsnow",
        "bearers_x",
    ],
)
def test_a_name_that_only_looks_like_one_is_not(name: str) -> None:
    assert not is_sensitive(name)


def test_only_text_can_tell_and_a_huge_name_is_bounded() -> None:
    assert is_sensitive(b"Authorization")
    assert not is_sensitive(7)
    assert not is_sensitive(None)
    assert not is_sensitive("")
    assert is_sensitive("x" * 200 + "_password")
    assert not is_sensitive("x" * 5_000_000)


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("https://h.example/x?token=abc&page=2", f"https://h.example/x?token={FIELD}&page=2"),
        ("{'api_key': 'plain-other-value', 'n': 1}", f"{{'api_key': '{FIELD}', 'n': 1}}"),
        ('{"api_key": "plain \\"q", "n": 1}', f'{{"api_key": "{FIELD}", "n": 1}}'),
        ('{"api_key": "cut here', f'{{"api_key": "{FIELD}'),
        ("{'secret': 'a\nb'}", f"{{'secret': '{FIELD}'}}"),
        (
            '"{\\"api_key\\": \\"plain\\", \\"n\\": 1}"',
            f'"{{\\"api_key\\": \\"{FIELD}\\", \\"n\\": 1}}"',
        ),
        ("connect(password='x y', host='h')", f"connect(password='{FIELD}', host='h')"),
        ('{"pin": 1234, "n": 5}', f'{{"pin": {FIELD}, "n": 5}}'),
        ("postgresql://me:pw@db.example/x", f"postgresql://me:{FIELD}@db.example/x"),
        ("Authorization: Basic abc", f"Authorization: {FIELD}"),
        ("-H 'X-Api-Key: abc'", f"-H 'X-Api-Key: {FIELD}'"),
        ("sent Bearer abc123def456.x", f"sent Bearer {FIELD}"),
        ("Cookie: a=1; b=2\nHost: h", f"Cookie: {FIELD}\nHost: h"),
    ],
)
def test_what_stands_under_a_telling_name_in_text_is_hidden(text: str, hidden: str) -> None:
    assert hide_named(text) == hidden


@pytest.mark.parametrize(
    "text",
    [
        "Unexpected token: '<' at line 1",
        "Bearer authentication failed",
        "max_tokens=2048, author='me', page=2",
        "https://api.example.com:8080/v1?page=2",
        "password must be at least 8 characters",
        "Basic understanding of tokens",
        "Authorization: Bearer ••••(PARTNER_KEY)",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert hide_named(text) == text
