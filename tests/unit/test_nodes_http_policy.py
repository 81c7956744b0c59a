"""What passes by itself, and how long a server asks to wait: pure, without a clock."""

from __future__ import annotations

import json
import pickle
import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nightwarden.errors import NodeError
from nightwarden.nodes.builtin._charset import decode
from nightwarden.nodes.builtin._http_errors import (
    FetchConnectionError,
    FetchTimeoutError,
    HttpStatusError,
    is_certificate_problem,
)
from nightwarden.nodes.builtin._http_policy import classify, hint, phrase, retry_after
from nightwarden.nodes.builtin.http import _pause

NOW = datetime(2026, 5, 4, 8, 59, 0, tzinfo=UTC)
SAMPLES = Path(__file__).parent.parent / "cases" / "samples"
ROWS = json.loads((SAMPLES / "provider_bodies.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_answers_of_model_providers_are_classified_as_a_careful_reader_would(row: dict) -> None:
    advice = classify(row["status"], row["headers"], row["body"], now=NOW)
    assert advice.transient is row["transient"]
    assert advice.wait_s == row.get("wait_s")


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 529, 599])
def test_statuses_that_pass_by_themselves(status: int) -> None:
    assert classify(status, {}, "", now=NOW).transient


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 410, 422, 451])
def test_statuses_that_do_not_pass_by_themselves(status: int) -> None:
    assert not classify(status, {"Retry-After": "5"}, "", now=NOW).transient


@pytest.mark.parametrize("status", [200, 204, 301, 304])
def test_where_no_json_is_due_a_good_status_is_no_trouble(status: int) -> None:
    assert classify(status, {}, "<html>", now=NOW, json_due=False) == (False, None, "")


@pytest.mark.parametrize(
    ("body", "transient"),
    [
        ('{"error": {"type": "overloaded_error", "message": "Overloaded"}}', True),
        ('{"error": {"code": "503", "message": "x"}}', True),
        ('{"error": {"code": 400, "message": "bad field"}}', False),
        ('{"error": {"type": "invalid_request_error", "message": "bad field"}}', False),
        ('{"error": {"code": 429, "type": "insufficient_quota"}}', False),
        ('{"error": "rate limit reached"}', True),
        ('{"error": null, "choices": [{"text": "hi"}]}', False),
        ('{"candidates": []}', True),
        ('{"candidates": [], "promptFeedback": {"blockReason": "SAFETY"}}', False),
        ("<html>welcome</html>", True),
        ("", True),
        ("[1, 2]", False),
        ("[" * 100_000, True),
    ],
)
def test_an_answer_with_status_200_is_looked_into_where_json_is_due(
    body: str, transient: bool
) -> None:
    assert classify(200, {}, body, now=NOW).transient is transient


def test_a_limit_worded_like_an_empty_purse_passes_if_the_body_says_when() -> None:
    body = '{"error": {"status": "RESOURCE_EXHAUSTED", "message": "You exceeded your current quota"'
    assert not classify(429, {}, body + "}}", now=NOW).transient
    body += ', "details": [{"retryDelay": "17.5s"}]}}'
    assert classify(429, {}, body, now=NOW)[:2] == (True, 17.5)


@pytest.mark.parametrize(
    ("value", "wait_s"),
    [
        ("7", 7.0),
        (" 0 ", 0.0),
        ("1.5", 1.5),
        ("-3", 0.0),
        ("Mon, 04 May 2026 09:00:00 GMT", 60.0),
        ("Mon, 04 May 2026 10:00:00 +0100", 60.0),
        ("Monday, 04-May-26 09:00:00 GMT", 60.0),
        ("Mon May  4 09:00:00 2026", 60.0),
        ("Mon, 04 May 2020 09:00:00 GMT", 0.0),
        ("soon", None),
        ("", None),
        ("inf", None),
        ("nan", None),
    ],
)
def test_retry_after_is_read_in_both_notations(value: str, wait_s: float | None) -> None:
    assert retry_after({"retry-after": value}, now=NOW) == wait_s


def test_a_date_to_retry_after_is_relative_to_the_servers_own_clock() -> None:
    headers = {
        "RETRY-AFTER": "Mon, 04 May 2026 12:00:30 GMT",
        "date": "Mon, 04 May 2026 12:00:00 GMT",
    }
    assert retry_after(headers, now=NOW) == 30


def test_every_status_has_words() -> None:
    assert phrase(401) == "401 Unauthorized"
    assert phrase(529) == "529"
    assert hint(401) == "the server wants credentials"
    assert hint(418) == "the server refused the request"
    assert hint(599) == "the server failed"


def test_back_off_doubles_and_never_undercuts_what_the_server_asked_for() -> None:
    for attempt, longest in ((1, 0.5), (2, 1.0), (5, 8.0), (500, 60.0)):
        assert longest / 2 <= _pause(attempt, 0.5, None) <= longest
    assert 7 <= _pause(1, 0.5, 7) <= 7.7
    assert 100 <= _pause(1, 0.5, 100) <= 101


def test_a_status_error_shows_its_status_where_recognisers_look() -> None:
    error = HttpStatusError("no", status_code=401, url="https://user:pw@host.test:81/x?page=2")
    assert (error.status_code, error.response.status_code, error.method) == (401, 401, "GET")
    assert error.host == "host.test"
    assert (error.code, error.retry_after_s) == (None, None)


@pytest.mark.parametrize(
    ("error", "base"),
    [
        (HttpStatusError("no", status_code=503, url="u", retry_after_s=3), NodeError),
        (FetchTimeoutError("late", url="u", transient=True), TimeoutError),
        (FetchConnectionError("gone", url="u"), ConnectionError),
    ],
)
def test_fetch_errors_are_what_they_say_and_cross_processes(error: Exception, base: type) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert isinstance(copy, base)
    assert (str(copy), vars(copy)) == (str(error), vars(error))


def test_a_wrong_certificate_is_told_from_a_broken_connection() -> None:
    broken = ConnectionResetError("reset")
    assert not is_certificate_problem(broken)
    broken.__cause__ = ssl.SSLCertVerificationError("self-signed")
    assert is_certificate_problem(broken)


@pytest.mark.parametrize(
    ("data", "declared", "text", "encoding"),
    [
        ("é".encode(), None, "é", "utf-8"),
        (b"\xef\xbb\xbfx", "latin-1", "x", "utf-8"),
        ("é".encode("utf-16"), "utf-8", "é", "utf-16"),
        ("é€".encode("cp1252"), "iso-8859-1", "é€", "cp1252"),
        ("é".encode(), "us-ascii", "é", "utf-8"),
        (b'<?xml version="1.0" encoding="us-ascii"?>\xe9', None, None, "cp1252"),
        ("я".encode("koi8-r"), "KOI8-R", "я", "koi8-r"),
        (b'<meta charset="koi8-r">' + "я".encode("koi8-r"), None, None, "koi8-r"),
        (b"<?xml version='1.0' encoding='koi8-r'?>" + "я".encode("koi8-r"), None, None, "koi8-r"),
        ("é".encode(), "no-such-charset", "é", "utf-8"),
        ("é".encode(), "hex", "é", "utf-8"),
        (b"\xe9", None, "é", "cp1252"),
        (b"", "utf-8", "", "utf-8"),
    ],
)
def test_the_encoding_is_the_declared_one_if_it_fits_the_bytes(
    data: bytes, declared: str | None, text: str | None, encoding: str
) -> None:
    decoded = decode(data, declared=declared)
    assert decoded.encoding == encoding
    assert text is None or decoded.text == text


def test_undecodable_bytes_are_replaced_never_an_error() -> None:
    decoded = decode(b"a\xff\x00\xfe", declared="utf-8")
    assert decoded.text.startswith("a")
    assert decode(b"a\x81b", declared="cp1252").text == "a\ufffdb"


def test_text_without_any_declaration_is_told_by_its_bytes() -> None:
    russian = "Съешь же ещё этих мягких французских булок, да выпей чаю. " * 5
    assert decode(russian.encode("cp1251")).text == russian


def test_an_address_without_a_host_has_none() -> None:
    assert FetchConnectionError("gone", url="http://[::1").host == ""
