"""Signatures and retry hints: supervision.md §3.

row: S3-SIGNATURE
"""

from __future__ import annotations

import datetime as dt
import json
import socket
import sqlite3
import ssl
import subprocess
import urllib.error
from collections import deque
from email.message import Message
from http import HTTPStatus

import httpx2
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwarden.errors import NodeError, RecoverableError, RunError, Suspended
from nightwarden.signatures.signature import retry_after_s, signature_of, with_plugins

NOW = 1_800_000_000.0


class OddError(Exception):
    """An error with whatever attributes a library gives it."""

    def __init__(self, message: str = "odd", **attributes: object) -> None:
        super().__init__(message)
        self.__dict__.update(attributes)


def named(name: str, *bases: type[BaseException], **attributes: object) -> BaseException:
    """An error of a class called `name`."""
    return type(name, bases or (OddError,), {})("x", **attributes)


class Response:
    def __init__(self, status: object, headers: object = None) -> None:
        self.status_code = status
        self.headers = headers or {}


def httpx_error(status: int, headers: dict[str, str] | None = None) -> Exception:
    request = httpx2.Request("GET", "https://api.example.com/")
    response = httpx2.Response(status, request=request, headers=headers or {})
    try:
        response.raise_for_status()
    except httpx2.HTTPStatusError as error:
        return error
    raise AssertionError("no error")


def pydantic_error(value: object) -> Exception:
    class Item(pydantic.BaseModel):
        price: int

    class Order(pydantic.BaseModel):
        rows: list[Item]
        by_key: dict[str, int] = {}

    try:
        Order.model_validate(value)
    except pydantic.ValidationError as error:
        return error
    raise AssertionError("no error")


def urllib_error(status: int, headers: dict[str, str] | None = None) -> Exception:
    message = Message()
    for name, value in (headers or {}).items():
        message[name] = value
    return urllib.error.HTTPError("https://x", status, "no", message, None)


def raised_from(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "signature"),
    [
        (NodeError("page 7 has no main part", code="no-main"), "node:no-main"),
        (RecoverableError("x", candidate_output=1, code="bad_json"), "node:bad_json"),
        (NodeError("x", code="parse:no-main"), "parse:no-main"),
        (NodeError("x"), None),
        (NodeError("x", code=""), None),
        (NodeError("x", code="two words"), None),
        (NodeError("x", code="c" * 65), None),
        (NodeError("x", code="a:b:c"), None),
        (NodeError("x", code=7), None),  # type: ignore[arg-type]
    ],
)
def test_the_code_of_a_nodes_own_error_comes_first(
    error: BaseException, signature: str | None
) -> None:
    assert signature_of(error) == signature


@pytest.mark.parametrize(
    "error",
    [
        httpx_error(451),
        named("HTTPStatusError", http_status=451),
        named("HTTPStatusError", response=Response(451)),
        OddError(status_code=451),
        OddError(status=451),
        OddError(status=HTTPStatus.UNAVAILABLE_FOR_LEGAL_REASONS),
        OddError(status_code="451"),
        OddError(response=OddError(status=451)),
        urllib_error(451),
        named("ClientResponseError", status=451, code="generic"),
        named("RateLimitError", status_code=451, code="insufficient_quota", type="x"),
        named("GoogleAPICallError", code=451),
        named("HttpError", resp=OddError(status=451)),
        OddError(status_code=451, errno=5),
    ],
)
def test_an_http_status_comes_before_any_generic_code(error: BaseException) -> None:
    assert signature_of(error) == "http:451"


@pytest.mark.parametrize("status", [True, 200, 99, 1000, 4.51, float("nan"), "4 51", None, -451])
def test_what_is_no_failing_status_is_no_signature(status: object) -> None:
    assert signature_of(OddError(status_code=status, status=status, http_status=status)) is None
    assert signature_of(OddError(response=Response(status))) is None


@pytest.mark.parametrize(
    ("error", "signature"),
    [
        (
            named(
                "ClientError",
                response={
                    "Error": {"Code": "ThrottlingException", "Message": "slow down"},
                    "ResponseMetadata": {"HTTPStatusCode": 400},
                },
            ),
            "aws:ThrottlingException",
        ),
        (named("APIError", type="overloaded_error", code=None), "provider:overloaded_error"),
        (named("APIError", type="t", code="insufficient_quota"), "provider:insufficient_quota"),
        (OddError(body={"type": "error", "error": {"type": "overloaded_error"}}),
         "provider:overloaded_error"),
        (OddError(sqlstate="23505"), "sqlstate:23505"),
        (OddError(pgcode="40001"), "sqlstate:40001"),
        (OddError(orig=OddError(sqlstate="23505"), code="gkpj"), "sqlstate:23505"),
        (OddError(sqlstate="not one"), None),
        (OddError(code="card_declined"), "code:card_declined"),
        (OddError(code=1006), "code:1006"),
        (subprocess.CalledProcessError(2, "make"), "exit:2"),
    ],
)  # fmt: skip
def test_provider_codes(error: BaseException, signature: str | None) -> None:
    assert signature_of(error) == signature


def test_an_error_of_sqlite_has_its_name() -> None:
    db = sqlite3.connect(":memory:")
    db.execute("create table t (a unique)")
    with pytest.raises(sqlite3.IntegrityError) as caught:
        db.execute("insert into t values (1), (1)")
    db.close()
    assert signature_of(caught.value) == "sqlite:SQLITE_CONSTRAINT_UNIQUE"


@pytest.mark.parametrize(
    ("error", "signature"),
    [
        (OSError(110, "Connection timed out"), "errno:110"),
        (FileNotFoundError(2, "No such file", "a.csv"), "errno:2"),
        (ConnectionRefusedError(111, "refused"), "errno:111"),
        (socket.gaierror(-2, "Name or service not known"), "errno:-2"),
        (urllib.error.URLError(ConnectionRefusedError(111, "refused")), "errno:111"),
        (OSError("words only"), None),
        (OSError(True, "x"), None),
    ],
)
def test_the_systems_error_number(error: BaseException, signature: str | None) -> None:
    assert signature_of(error) == signature


def test_a_failed_handshake_says_why() -> None:
    error = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] bad")
    error.reason = "CERTIFICATE_VERIFY_FAILED"
    assert signature_of(error) == "ssl:CERTIFICATE_VERIFY_FAILED"


@pytest.mark.parametrize(
    "error",
    [
        TimeoutError(),
        TimeoutError("timeout after 10 s"),
        httpx2.ReadTimeout("slow"),
        httpx2.ConnectTimeout("slow"),
        httpx2.PoolTimeout("slow"),
        named("APITimeoutError"),
        named("ServerTimeoutError"),
        named("MyTimeout", TimeoutError),
        subprocess.TimeoutExpired("make", 5),
    ],
)
def test_any_time_out_is_one_kind(error: BaseException) -> None:
    assert signature_of(error) == "timeout"


def test_a_connection_that_could_not_be_made_is_one_kind() -> None:
    for error in (httpx2.ConnectError("x"), ConnectionError("x"), named("APIConnectionError")):
        assert signature_of(error) == "connect"


@pytest.mark.parametrize(
    ("value", "signature"),
    [
        ({"rows": [{"price": 1}, {"price": "x"}]}, "validation:rows.*.price/int_parsing"),
        ({"rows": [{}]}, "validation:rows.*.price/missing"),
        ({}, "validation:rows/missing"),
        ({"rows": [], "by_key": {"a b@c.example": "x"}}, "validation:by_key.*/int_parsing"),
        (7, "validation:model_type"),
    ],
)
def test_a_violation_is_told_by_path_and_rule(value: object, signature: str) -> None:
    assert signature_of(pydantic_error(value)) == signature


def test_the_same_violation_at_another_index_has_the_same_signature() -> None:
    first = pydantic_error({"rows": [{"price": "x"}]})
    later = pydantic_error({"rows": [{"price": 1}] * 17 + [{"price": "y"}]})
    assert signature_of(first) == signature_of(later)


def test_violations_of_other_validators() -> None:
    jsonschema = named(
        "ValidationError", absolute_path=deque(["rows", 3, "price"]), validator="minimum"
    )
    assert signature_of(jsonschema) == "validation:rows.*.price/minimum"
    rust = named(
        "ValidationError", instance_path=["rows", 3], schema_path=["properties", "rows", "type"]
    )
    assert signature_of(rust) == "validation:rows.*/type"
    fast = named("JsonSchemaValueException", path=["data", "a"], rule="required")
    assert signature_of(fast) == "validation:data.a/required"


@pytest.mark.parametrize(
    "error",
    [
        ValueError("HTTP 451 for https://x"),
        RuntimeError("timeout"),
        KeyError("errno"),
        AssertionError(),
        SystemExit(404),
        KeyboardInterrupt(),
        RunError("x"),
        Suspended("x"),
        json.JSONDecodeError("bad", "{", 0),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
    ],
)
def test_a_plain_exception_has_no_signature(error: BaseException) -> None:
    assert signature_of(error) is None


@given(st.text(), st.text())
def test_a_signature_never_comes_from_message_text(one: str, other: str) -> None:
    assert signature_of(ValueError(one)) is None
    assert signature_of(OddError(one, status=451)) == signature_of(OddError(other, status=451))


def test_a_node_error_without_code_takes_the_signature_of_its_cause() -> None:
    assert signature_of(raised_from(NodeError("refused"), httpx_error(451))) == "http:451"
    coded = raised_from(NodeError("refused", code="refused"), httpx_error(451))
    assert signature_of(coded) == "node:refused"


def test_another_wrapper_hides_the_signature_of_what_it_wraps() -> None:
    assert signature_of(raised_from(RuntimeError("mine"), httpx_error(451))) is None
    implicit = NodeError("x")
    implicit.__context__ = httpx_error(451)
    assert signature_of(implicit) is None


def test_a_group_has_the_signature_its_members_agree_on() -> None:
    agreed = ExceptionGroup("g", [OddError(status=451), urllib_error(451)])
    assert signature_of(agreed) == "http:451"
    assert signature_of(ExceptionGroup("g", [OddError(status=451), ValueError("x")])) is None
    assert signature_of(ExceptionGroup("g", [OddError(status=451), OddError(status=500)])) is None


def test_errors_that_cause_one_another_end() -> None:
    first, second = NodeError("a"), NodeError("b")
    first.__cause__, second.__cause__ = second, first
    assert signature_of(first) is None
    assert retry_after_s(first, NOW) is None


class RaisingError(Exception):
    """Each attribute anybody might ask for raises something else."""

    @property
    def response(self) -> object:
        raise SystemExit

    @property
    def status_code(self) -> object:
        raise KeyboardInterrupt

    @property
    def code(self) -> object:
        raise RuntimeError("no")

    @property
    def retry_after(self) -> object:
        raise GeneratorExit


def test_odd_attributes_never_break_a_signature() -> None:
    assert signature_of(RaisingError()) is None
    assert retry_after_s(RaisingError(), NOW) is None
    for odd in (True, float("nan"), "x" * 10_000, "a b", "", [], {}, b"x", object(), "é", "a\nb"):
        assert signature_of(OddError(code=odd, sqlstate=odd, body=odd, type=odd)) is None


def test_a_recogniser_that_raises_or_talks_nonsense_is_passed_over() -> None:
    def raising(error: BaseException) -> str | None:
        raise SystemExit

    def nonsense(error: BaseException) -> str | None:
        return "http:451 for https://x?key=secret"

    asked = with_plugins([raising, nonsense, lambda error: "acme:quota"])
    assert signature_of(ValueError("x"), asked) == "acme:quota"
    assert signature_of(ValueError("x"), [raising, nonsense]) is None


def test_a_plug_in_comes_after_the_nodes_own_code_and_before_the_rest() -> None:
    asked = with_plugins([lambda error: "acme:quota"])
    assert signature_of(NodeError("x", code="no-main"), asked) == "node:no-main"
    assert signature_of(OddError(status=451), asked) == "acme:quota"


# How long an error asks to wait


def http_date(seconds: float) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (httpx_error(429, {"Retry-After": "7"}), 7.0),
        (httpx_error(503, {"retry-after": "0"}), 0.0),
        (httpx_error(503, {"Retry-After": http_date(NOW + 90)}), 90.0),
        (httpx_error(503, {"Retry-After": http_date(NOW - 90)}), 0.0),
        (httpx_error(503, {"Retry-After": "Friday, 15-Jan-27 08:01:00 GMT"}), 60.0),
        (httpx_error(429, {"Retry-After-Ms": "1500", "Retry-After": "9"}), 1.5),
        (urllib_error(429, {"Retry-After": "12"}), 12.0),
        (OddError(retry_after=3.5), 3.5),
        (OddError(retry_after_s=4, retry_after=9), 4.0),
        (OddError(retry_after=dt.timedelta(minutes=2)), 120.0),
        (OddError(headers={"Retry-After": "5"}), 5.0),
        (raised_from(RuntimeError("mine"), httpx_error(429, {"Retry-After": "7"})), 7.0),
        (OddError(retry_after=-5), 0.0),
        (httpx_error(503), None),
        (ValueError("Retry-After: 5"), None),
        (OddError(retry_after=True), None),
        (OddError(retry_after=float("nan")), None),
        (OddError(retry_after=float("inf")), None),
        (OddError(retry_after="soon"), None),
        (OddError(retry_after=10**400), None),
        (OddError(headers={"Retry-After": "Foo, 99 Bar 2027 99:99:99 GMT"}), None),
        (OddError(headers={"Retry-After": "Fri, 99 Jan 2027 99:99:99 GMT"}), None),
        (OddError(headers=7), None),
    ],
)
def test_how_long_an_error_asks_to_wait(error: BaseException, seconds: float | None) -> None:
    assert retry_after_s(error, NOW) == seconds
