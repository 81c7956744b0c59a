"""Secrets in text: supervision.md §4, first three points; masking/secret_forms.py, scanner.py.

row: S4-SECRETS, S4-DOCUMENTS
"""

from __future__ import annotations

import asyncio
import base64
import csv
import html
import io
import json
import pprint
import quopri
import shlex
import textwrap
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, quote_plus, unquote, unquote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwarden.errors import NodeError
from nightwarden.masking.marks import HIDDEN, MASK_PREFIX, mask_of
from nightwarden.masking.redaction import SecretRegistry

CASE = Path(__file__).parents[1] / "cases" / "H06_secret_everywhere"
SECRETS: dict[str, str] = json.loads((CASE / "secrets.json").read_text("utf-8"))
FORBIDDEN: list[str] = json.loads((CASE / "forbidden.json").read_text("utf-8"))
KEY, DOC = SECRETS["PARTNER_KEY"], SECRETS["PARTNER_DOC"]


def registry(**secrets: str) -> SecretRegistry:
    made = SecretRegistry()
    for name, value in secrets.items():
        made.register(name, value)
    return made


def leaks(text: str) -> list[str]:
    return [form for form in FORBIDDEN if form in text]


# The case of a secret everywhere


@pytest.mark.parametrize("form", FORBIDDEN)
def test_no_forbidden_form_survives(form: str) -> None:
    text = f"GET https://api.partner.example/v1?key={form}&page=2 answered 451"
    masked = registry(**SECRETS).mask(text)
    assert leaks(masked) == []
    assert masked.startswith("GET https://api.partner.example/v1?key=")
    assert masked.endswith("&page=2 answered 451")


@pytest.mark.parametrize("form", FORBIDDEN)
def test_what_stands_beside_a_secret_does_not_hide_it(form: str) -> None:
    made = registry(**SECRETS)
    for before in ("", "x", "\\", "%", "&", "{'a': '", "C:\\n", "100%", "Zm9v"):
        for after in ("", "x", "\\", "%41", "'}", "=", "n"):
            assert leaks(made.mask(before + form + after)) == []


def test_all_forms_in_one_text_are_masked_and_the_rest_stays() -> None:
    masked = registry(**SECRETS).mask("".join(f"[{i}:{form}]" for i, form in enumerate(FORBIDDEN)))
    assert leaks(masked) == []
    assert all(f"[{i}:" in masked for i in range(len(FORBIDDEN)))


def test_the_mark_names_the_secret() -> None:
    assert registry(PARTNER_KEY=KEY).mask(f"Bearer {KEY}!") == "Bearer ••••(PARTNER_KEY)!"


def test_the_error_of_the_case_shows_nothing_and_stays_readable() -> None:
    """H06: `the_error_contains`, as a line, a record, a traceback and a recorded value."""
    made = registry(**SECRETS)
    basic = base64.b64encode(f"svc:{KEY}".encode()).decode()
    inputs = {
        "url": f"https://api.partner.example/v1?key={quote(KEY, safe='')}&page=2",
        "headers": {"Authorization": f"Bearer {KEY}", "X": f"Basic {basic}"},
        "options": {"deep": [{"api_key": "plain-other-value"}]},
        "doc": json.loads(DOC),
    }
    try:
        try:
            raise ConnectionError(f"refused for {KEY}")
        except ConnectionError as cause:
            error = RuntimeError(
                f"451 from {inputs['url']} sent {inputs['headers']} and Basic {basic}, "
                f"doc {DOC} {json.loads(DOC)!r} {json.dumps(DOC)} of {inputs!r}"
            )
            error.add_note(f"the key was {KEY}")
            raise error from cause
    except RuntimeError as caught:
        shown = [
            made.describe_error(caught),
            json.dumps(made.redact(inputs), ensure_ascii=False),
            json.dumps(made.redact(inputs)),
            json.dumps(made.mask_value(inputs)[0], ensure_ascii=False),
            made.mask_text("".join(traceback.format_exception(caught))),
        ]
    for text in shown:
        assert leaks(text) == []
        assert "plain-other-value" not in text
        assert "api.partner.example" in text
        assert "page=2" in text
    assert shown[0].startswith("RuntimeError: 451 from https://api.partner.example/v1?key=")


# Any secret, any encoder


def _base64(data: bytes, *, urlsafe: bool, pad: bool, width: int) -> str:
    text = (base64.urlsafe_b64encode if urlsafe else base64.b64encode)(data).decode()
    text = text if pad else text.rstrip("=")
    return "\n".join(textwrap.wrap(text, width)) if width else text


def _csv(secret: str) -> str:
    out = io.StringIO()
    csv.writer(out).writerow(["a", secret, "b"])
    return out.getvalue()


ENCODERS: dict[str, Callable[[str], str]] = {
    "as it is": lambda s: s,
    "percent, nothing safe": lambda s: quote(s, safe=""),
    "percent, path": quote,
    "percent, form": quote_plus,
    "percent, lower case": lambda s: "".join(
        c if c.isascii() and c.isalnum() else "".join(f"%{b:02x}" for b in c.encode()) for c in s
    ),
    "percent, everything": lambda s: "".join(f"%{b:02X}" for b in s.encode()),
    "percent, twice": lambda s: quote(quote(s, safe=""), safe=""),
    "hexadecimal": lambda s: s.encode().hex(),
    "hexadecimal, upper case": lambda s: s.encode().hex().upper(),
    "JSON": json.dumps,
    "JSON, not ASCII": lambda s: json.dumps(s, ensure_ascii=False),
    "JSON in JSON": lambda s: json.dumps(json.dumps({"k": s})),
    "JSON in JSON in JSON": lambda s: json.dumps(json.dumps(json.dumps([s]))),
    "JSON, slashes escaped": lambda s: json.dumps(s).replace("/", "\\/"),
    "HTML": html.escape,
    "HTML, twice": lambda s: html.escape(html.escape(s)),
    "HTML, numbers": lambda s: "".join(f"&#{ord(c)};" for c in s),
    "HTML, hexadecimal": lambda s: "".join(f"&#x{ord(c):X};" for c in s),
    "XML in ASCII": lambda s: html.escape(s).encode("ascii", "xmlcharrefreplace").decode(),
    "repr": repr,
    "repr of bytes": lambda s: repr(s.encode()),
    "repr of repr": lambda s: repr(repr(s)),
    "repr of a dict": lambda s: repr({"k": [s]}),
    "pretty-printed": lambda s: pprint.pformat({"k": s}, width=20),
    "shell": shlex.quote,
    "shell in shell": lambda s: shlex.quote(f"echo {shlex.quote(s)}"),
    "unicode_escape": lambda s: s.encode("unicode_escape").decode(),
    "backslashreplace": lambda s: s.encode("ascii", "backslashreplace").decode(),
    "JavaScript, everything": lambda s: "".join(f"\\x{b:02x}" for b in s.encode()),
    "CSV": _csv,
    "quoted-printable": lambda s: quopri.encodestring(s.encode()).decode(),
    "JSON in a query": lambda s: quote(json.dumps({"k": s})),
    "query in JSON": lambda s: json.dumps(quote(s)),
    "JSON in HTML": lambda s: html.escape(json.dumps([s])),
    "HTML in JSON": lambda s: json.dumps(html.escape(s)),
    "HTML in a query": lambda s: quote(html.escape(s)),
    "JSON in shell": lambda s: shlex.quote(json.dumps({"k": s})),
    "JSON in base64": lambda s: base64.b64encode(json.dumps({"k": s, "z": 1}).encode()).decode(),
    "UTF-16 in base64": lambda s: base64.b64encode(f"a:{s}".encode("utf-16-le")).decode(),
    "base64 in a query": lambda s: quote(base64.b64encode(s.encode()).decode(), safe=""),
    "UTF-8 taken for Latin-1": lambda s: s.encode().decode("latin-1"),
}

AWKWARD = "\"'\\/+=%&<> :;@#?$`{}[]()!~^|*,._-\n\té€ßд漢😀"
secret_texts = (
    st.text(st.sampled_from("abcXYZ0189nrtux" + AWKWARD), min_size=8, max_size=40)
    .map(str.strip)
    .filter(lambda s: len("".join(s.split())) >= 6)
)
surroundings = st.lists(
    st.sampled_from(["x", " ", "?key=", "&a=1", "\\", "%", '"', "'", "{", "n", "C:\\n", "5", "é"]),
    max_size=3,
).map("".join)


@given(
    secret=secret_texts,
    encoder=st.sampled_from(sorted(ENCODERS)),
    before=surroundings,
    after=surroundings,
)
def test_no_encoder_hides_a_secret(secret: str, encoder: str, before: str, after: str) -> None:
    encoded = ENCODERS[encoder](secret)
    masked = registry(K=secret).mask(f"{before}{encoded}{after}")
    assert MASK_PREFIX in masked
    assert encoded.strip() not in masked
    for decode in (str, unquote, unquote_plus, html.unescape):
        assert secret not in decode(masked)


@given(
    secret=secret_texts,
    before=st.binary(max_size=7),
    after=st.binary(max_size=5),
    urlsafe=st.booleans(),
    pad=st.booleans(),
    width=st.sampled_from([0, 8, 20, 76]),
)
def test_base64_is_found_at_any_alignment(
    secret: str, before: bytes, after: bytes, urlsafe: bool, pad: bool, width: int
) -> None:
    data = before + secret.encode() + after
    encoded = _base64(data, urlsafe=urlsafe, pad=pad, width=width)
    masked = registry(K=secret).mask(f"Authorization: Basic {encoded} sent")
    assert mask_of("K") in masked
    assert masked.endswith(" sent")
    rest = masked.split(MASK_PREFIX)[0][len("Authorization: Basic ") :]
    # What stands before the mark holds the neighbours' bytes and at most bits of the first.
    assert len("".join(rest.split())) * 6 // 8 <= len(before)


@given(
    secret=secret_texts.filter(lambda s: not s.isdigit()),
    at=st.floats(0, 1),
    gap=st.sampled_from(
        ["\n", "\r\n", " ", "\r\n ", "\n\t", "\\n", "%0A", "<br>", "'\n '", "\u200b"]
    ),
)
def test_a_secret_split_over_lines_is_found(secret: str, at: float, gap: str) -> None:
    cut = 1 + int(at * (len(secret) - 2))
    split = secret[:cut] + gap + secret[cut:]
    assert MASK_PREFIX in registry(K=secret).mask(f"a {split} b")


def test_an_escape_broken_over_two_lines_is_found() -> None:
    assert registry(K=KEY).mask("k=zk-live%2\r\n F7Qm2%2BZt9aB%3D%3D%2\n2x&p=2") == "k=••••(K)&p=2"


def test_a_mixture_of_encodings_in_one_secret_is_found() -> None:
    mixed = 'zk-live%2f7Qm2\\u002bZt9aB&#61;=\\"x'
    assert registry(K=KEY).mask(f"<{mixed}>") == "<••••(K)>"


def test_an_encoding_nobody_thought_of_hides_the_whole_text() -> None:
    """If masking itself fails, everything is hidden."""
    odd = "".join(f"\\u{ord(c):04x}" for c in "".join(f"&#{ord(c)};" for c in KEY))
    assert registry(K=KEY).mask(f"before {odd} after") == HIDDEN


# Text without a secret


@given(st.text(max_size=300))
def test_text_without_a_secret_is_the_very_same_object(text: str) -> None:
    made = registry(A="Vb3kQ9-xT7/rW2+pL==", B='{"user": "u-82741", "pass": "qpzm\\u00e9-77123"}')
    assert made.mask(text) is text


@pytest.mark.parametrize(
    "text",
    [
        "HTTP 451 for https://api.partner.example/v1?page=2",
        "100% of C:\\new\\table — &amp; so on …",
        "zk-live is a prefix, 7Qm2 a part; Zt9aB==",
        "",
        "\ud800 half a surrogate",
        "\\" * 3_000,
        "%25" * 3_000,
        "&amp;" * 3_000 + "\n" * 3_000,
    ],
)
def test_near_misses_and_escapes_without_end_stay_as_they_are(text: str) -> None:
    assert registry(**SECRETS).mask(text) is text


def test_without_secrets_nothing_is_looked_at() -> None:
    text = "zk-live/7Qm2"
    assert SecretRegistry().mask(text) is text
    assert not SecretRegistry().contains(text)


def test_masking_twice_changes_nothing_more() -> None:
    made = registry(PARTNER_KEY=KEY, PARTNER="PARTNER_", S="secret")
    once = made.mask(f"{KEY} and secret")
    assert made.mask(once) == once


def test_a_mark_written_by_somebody_else_protects_no_secret() -> None:
    assert KEY not in registry(K=KEY).mask(f"••••({KEY})")


# Short secrets, several secrets


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("pin a1b2!", "pin ••••(P)!"),
        ("a1b2", "••••(P)"),
        ("xa1b2 a1b2x a1b2_ 3a1b2", "xa1b2 a1b2x a1b2_ 3a1b2"),
        ("?p=%2Fa1b2&q", "?p=%2F••••(P)&q"),
        ('"line\\na1b2"', '"line\\n••••(P)"'),
        ("a1\nb2", "a1\nb2"),
    ],
)
def test_a_short_secret_is_masked_only_as_a_whole_word(text: str, masked: str) -> None:
    assert registry(P="a1b2").mask(text) == masked


def test_a_short_secret_with_awkward_characters_is_found_escaped() -> None:
    assert registry(P='a"b').mask('{\\"a\\\\\\"b\\"} a%22b a&quot;b') == (
        '{\\"••••(P)\\"} ••••(P) ••••(P)'
    )


def test_a_short_or_empty_secret_comes_with_a_warning() -> None:
    made = registry(SHORT="abc12", EMPTY="  ", LONG="abcdefgh12")
    assert [line.split(":")[0] for line in made.warnings] == ["secret SHORT", "secret EMPTY"]
    assert "whole word" in made.warnings[0]
    assert "abc12" not in " ".join(made.warnings)


def test_a_number_is_not_found_in_two_columns_of_a_table() -> None:
    assert registry(P="123456").mask("12 3456 | 1,23456") == "12 3456 | 1,23456"
    assert registry(P="123456").mask("id=123456;") == "id=••••(P);"


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_text_at_all_can_be_a_secret(secret: str, around: str) -> None:
    made = registry(K=secret)
    masked = made.mask(f"{around} {secret} {around}")
    assert HIDDEN not in masked
    if secret.strip():
        assert mask_of("K") in masked


def test_words_run_together_are_not_a_secret_of_single_letters() -> None:
    assert registry(P="a b c d e f").mask("abcdef a b c d e f") == "abcdef ••••(P)"
    assert registry(P='a"b"c"d"e').mask("abcde") == "abcde"


def test_the_longer_of_two_secrets_is_masked_first() -> None:
    made = registry(SHORT="hunter22", LONG="hunter22-extended")
    assert made.mask("a hunter22-extended b hunter22 c") == "a ••••(LONG) b ••••(SHORT) c"


def test_overlapping_secrets_leave_nothing_of_either() -> None:
    made = registry(A="abcdef123456", B="123456ghijkl")
    masked = made.mask("x abcdef123456ghijkl y")
    assert masked == "x ••••(A) y"


def test_one_value_under_two_names_keeps_the_first() -> None:
    assert registry(A="same-value-1", B="same-value-1").mask("same-value-1") == "••••(A)"


def test_a_name_is_reduced_to_harmless_characters() -> None:
    assert registry(**{'a b"<x>/é': "some-secret-9"}).mask("some-secret-9") == "••••(a_b_x_)"


def test_contains_finds_a_secret_in_bytes_too() -> None:
    made = registry(K=KEY)
    assert made.contains(json.dumps({"k": KEY}).encode())
    assert not made.contains(b'{"k": 1}')


def test_secrets_registered_from_many_threads_are_all_masked() -> None:
    made = SecretRegistry()
    values = [f"thread-secret-{i:03d}-x" for i in range(80)]

    def work(part: list[str]) -> None:
        for value in part:
            made.register(f"S{value[14:17]}", value)
            assert value not in made.mask(f"<{value}>")

    threads = [threading.Thread(target=work, args=(values[i::4],)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert "thread-secret" not in made.mask(" ".join(values))


# Secrets that are documents


@pytest.mark.parametrize(
    "dump",
    [
        json.dumps,
        lambda d: json.dumps(d, separators=(",", ":")),
        lambda d: json.dumps(d, indent=2, sort_keys=True),
        lambda d: json.dumps(d, ensure_ascii=False),
        repr,
        lambda d: pprint.pformat(d, width=20),
        lambda d: base64.b64encode(b"svc:" + json.dumps(d).encode()).decode(),
        lambda d: quote(json.dumps(d, separators=(",", ":"))),
        lambda d: "&".join(f"{k}={quote(v)}" for k, v in d.items()),
        lambda d: "\n".join(f"{k}: {v}" for k, v in d.items()),
    ],
)
def test_a_json_secret_is_found_printed_in_any_way(dump: Callable[[object], str]) -> None:
    document = {"user": "importer-7", "nested": 'tok-é"\\-4711', "pass": 'h"unter\\2 é'}
    made = registry(DOC=json.dumps(document))
    masked = made.mask(dump(document))
    assert "(DOC)" in masked
    for value in document.values():
        assert value not in masked
        assert json.dumps(value)[1:-1] not in masked
        assert quote(value) not in masked


def test_each_text_of_a_json_secret_is_masked_alone() -> None:
    document = {"a": ["first-leaf"], "b": {"c": {"d": "deep-leaf!"}}, "port": 5432}
    masked = registry(D=json.dumps(document)).mask("first-leaf, deep-leaf!, 5432")
    assert masked == "••••(D), ••••(D), 5432"


def test_common_words_in_a_json_secret_are_not_masked_everywhere() -> None:
    made = registry(D='{"env": "prod", "id": "x", "pass": "abcd", "pin": 48213}')
    assert made.mask("prod x on abcd, pin 48213") == "prod x on ••••(D), pin ••••(D)"


@pytest.mark.parametrize(
    ("secret", "parts", "kept"),
    [
        (
            "postgresql://me:p%40ss-w0rd@db.example:5432/x",
            ["p%40ss-w0rd", "p@ss-w0rd"],
            "db.example",
        ),
        ("https://t0ken-abcdef@git.example/r.git", ["t0ken-abcdef"], "git.example"),
        ("https://x.example/a?token=tk-998877&page=2", ["tk-998877"], "page=2"),
        (
            "https://hooks.example/services/T00/B00/XyZ123abc",
            ["/services/T00/B00/XyZ123abc"],
            "T00",
        ),
        ("host=db.example user=me password='p ss\\'w'", ["p ss\\'w", "p ss'w"], "host=db.example"),
        ("Server=db.example;User Id=me;Password=Abc;123", ["Abc"], "db.example"),
        ("AccountName=acme;AccountKey=aGVsbG8td29ybGQ=;X=1", ["aGVsbG8td29ybGQ="], "acme"),
        ("svc-user:pa55-w0rd", ["pa55-w0rd"], "svc-user"),
        ('API_KEY=k-123-456\nexport DB_PASSWORD="pw 77 x"\n', ["k-123-456", "pw 77 x"], "DB_"),
        (base64.b64encode(b'{"key": "inner-value-1"}').decode(), ["inner-value-1"], "key"),
        (json.dumps({"dsn": "mysql://u:deep-pass-1@h/db"}), ["deep-pass-1"], "mysql"),
    ],
)
def test_the_secret_parts_of_a_url_dsn_or_file_are_masked_alone(
    secret: str, parts: list[str], kept: str
) -> None:
    made = registry(S=secret)
    assert made.mask(secret) == "••••(S)" or secret not in made.mask(secret)
    for part in parts:
        assert made.mask(f"<{part}>") == "<••••(S)>"
    assert made.mask(f"{kept} answered 500") == f"{kept} answered 500"


def test_a_private_key_is_found_by_its_body_and_by_each_line() -> None:
    lines = [base64.b64encode(bytes([i]) * 48).decode() for i in range(1, 5)]
    pem = "-----BEGIN PRIVATE KEY-----\n" + "\n".join(lines) + "\n-----END PRIVATE KEY-----\n"
    made = registry(PEM=pem)
    for text in (pem, json.dumps(pem), "".join(lines), "\n".join(lines), lines[2], repr(lines)):
        masked = made.mask(text)
        assert not any(line in masked for line in lines)


# Fragments somebody else has cut


@pytest.mark.parametrize(
    "text",
    [
        "input_value='tk-4f9a8b7c6d5e...0192837465', input_type=str",
        "{'api': 'tk-4f9a8b7c6d5e…",
        "value tk-4f9a8b7c6d5e4f3a2b",
        "…37465564738 is odd",
    ],
)
def test_a_token_cut_by_somebody_else_leaves_no_fragment(text: str) -> None:
    token = "tk-4f9a8b7c6d5e4f3a2b10192837465564738"
    masked = registry(T=token).mask(text.replace("0192837465'", "37465564738'"))
    assert "••••(T)" in masked
    assert "4f9a8b" not in masked
    assert "564738" not in masked


def test_an_ellipsis_beside_something_else_stays() -> None:
    made = registry(T="tk-4f9a8b7c6d5e4f3a2b10192837465564738")
    assert made.mask("loading... tk-4f9 …done...") == "loading... tk-4f9 …done..."


def test_how_a_timeout_interrupts_a_step_is_no_part_of_the_line() -> None:
    """supervision.md §2: the most useful cause first; machinery is no cause."""
    registry = SecretRegistry()
    try:
        try:
            raise asyncio.CancelledError
        except asyncio.CancelledError as inner:
            raise TimeoutError from inner
    except TimeoutError as error:
        outer = NodeError("timeout after 2 s")
        outer.__cause__ = error
    assert registry.describe_error(outer) == "timeout after 2 s"
    assert registry.describe_error(asyncio.CancelledError()) == "CancelledError"


@pytest.mark.parametrize(
    ("inner", "outer", "line"),
    [
        (
            LookupError("no value for y, z"),
            NodeError("'y + z': no value for y, z"),
            "'y + z': no value for y, z",
        ),
        (LookupError("x"), NodeError("at most 3"), "at most 3 ← LookupError: x"),
        (
            OSError("connection refused"),
            NodeError("no page"),
            "no page ← OSError: connection refused",
        ),
    ],
)
def test_what_a_wrapper_quotes_is_not_said_again(
    inner: Exception, outer: Exception, line: str
) -> None:
    outer.__cause__ = inner
    assert SecretRegistry().describe_error(outer) == line
