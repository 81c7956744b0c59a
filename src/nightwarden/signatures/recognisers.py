"""The built-in recognisers: each knows one family of errors by its attributes and classes.

No library is imported: an error is known by the attributes it has, so that every HTTP client,
SDK and driver that follows the custom of its family is covered. An attribute that raises, or
holds anything but a short code, counts as missing.

Read next: `signature.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeGuard

from nightwarden.errors import NightwardenError, NodeError

Recogniser = Callable[[BaseException], str | None]
"""Tells the signature of an error it knows, None for any other."""

_CODE = re.compile(r"[A-Za-z0-9_.\-]{1,64}")
_NODE_CODE = re.compile(r"[a-z][a-z0-9_-]{0,31}:[A-Za-z0-9_.\-]{1,64}")
_SQLSTATE = re.compile(r"[0-9A-Z]{5}")
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_\-]{0,40}")
_MOST_STEPS = 6


def attribute(holder: object, name: str) -> object:
    """`holder.name`, or None where there is none or reading it raises."""
    try:
        return getattr(holder, name, None)
    except BaseException:  # a property of the author's; nothing is awaited here
        return None


def node_code(error: BaseException) -> str | None:
    """The code a step's own error carries."""
    code = attribute(error, "code") if isinstance(error, NodeError) else None
    if not isinstance(code, str):
        return None
    if _NODE_CODE.fullmatch(code):
        return code
    return _kind("node", code)


def http_status(error: BaseException) -> str | None:
    """`http:451` from the response, the error itself, or urllib's `code`."""
    for holder, name in _status_places(error):
        status = _status(attribute(holder, name))
        if status is not None:
            return f"http:{status}"
    return None


def _status_places(error: BaseException) -> Iterator[tuple[object, str]]:
    response = attribute(error, "response")
    if response is not None and not isinstance(response, Mapping):
        yield from ((response, name) for name in ("status_code", "status"))
    yield from ((error, name) for name in ("status_code", "http_status", "status"))
    if _class_names(error) & {"HTTPError", "GoogleAPICallError", "APIError", "HttpError"}:
        yield error, "code"
        yield attribute(error, "resp"), "status"


def _status(value: object) -> int | None:
    if isinstance(value, str) and len(value) == 3 and value.isascii() and value.isdigit():
        value = int(value)
    # Redirects nobody follows are failures too; a response of 200 is not what went wrong.
    return value if _is_number(value) and 300 <= value <= 599 else None


def provider_code(error: BaseException) -> str | None:
    """What the provider calls the error: AWS, model providers, databases."""
    return _aws(error) or _sql(error) or _sql(attribute(error, "orig")) or _model(error)


def _aws(error: BaseException) -> str | None:
    response = attribute(error, "response")
    inner = response.get("Error") if isinstance(response, Mapping) else None
    return _kind("aws", inner.get("Code")) if isinstance(inner, Mapping) else None


def _sql(error: object) -> str | None:
    for name in ("sqlstate", "pgcode"):
        state = attribute(error, name)
        if isinstance(state, str) and _SQLSTATE.fullmatch(state):
            return f"sqlstate:{state}"
    return _kind("sqlite", attribute(error, "sqlite_errorname"))


def _model(error: BaseException) -> str | None:
    body = attribute(error, "body")
    inner = body.get("error", body) if isinstance(body, Mapping) else None
    if isinstance(inner, Mapping):
        for name in ("type", "code"):
            found = _kind("provider", inner.get(name))
            if found:
                return found
    if _class_names(error) & {"APIError", "APIStatusError", "APIResponseValidationError"}:
        return _kind("provider", attribute(error, "code")) or _kind(
            "provider", attribute(error, "type")
        )
    return None


def system_error(error: BaseException) -> str | None:
    """The system's error number, or why a TLS handshake failed."""
    reason = attribute(error, "reason")
    if "SSLError" in _class_names(error) and isinstance(reason, str):
        found = _kind("ssl", reason)
        if found:
            return found
    for candidate in (error, reason):
        number = attribute(candidate, "errno") if isinstance(candidate, OSError) else None
        if _is_number(number) and number and abs(number) < 100_000:
            return f"errno:{number}"
    return None


def timeout(error: BaseException) -> str | None:
    """Any error one of whose classes is named as a time-out."""
    endings = ("Timeout", "TimeoutError", "TimeoutException", "TimedOut", "TimeoutExpired")
    return "timeout" if any(name.endswith(endings) for name in _class_names(error)) else None


def connection(error: BaseException) -> str | None:
    """Any error of a connection that could not be made or was lost."""
    names = {
        "ConnectError", "ConnectionError", "ClientConnectionError", "APIConnectionError",
        "RemoteProtocolError", "ReadError", "WriteError", "ProtocolError",
    }  # fmt: skip
    return "connect" if _class_names(error) & names else None


def validation(error: BaseException) -> str | None:
    """Path and rule of the first violation; list indexes and other data in the path become `*`."""
    if not any(n.endswith(("ValidationError", "ValueException")) for n in _class_names(error)):
        return None
    listing = attribute(error, "errors")
    if callable(listing):
        first = listing()[0]
        return _violation(first.get("loc"), first.get("type"))
    if attribute(error, "validator") is not None:
        path = attribute(error, "absolute_path") or attribute(error, "path")
        return _violation(path, attribute(error, "validator"))
    schema = attribute(error, "schema_path")
    if isinstance(schema, Sequence) and not isinstance(schema, str) and schema:
        return _violation(attribute(error, "instance_path"), schema[-1])
    return _violation(attribute(error, "path"), attribute(error, "rule"))


def _violation(path: object, rule: object) -> str | None:
    if not isinstance(rule, str) or not _CODE.fullmatch(rule):
        return None
    steps = [] if path is None or isinstance(path, str) else list(path)  # type: ignore[call-overload]
    shown = ".".join(_step(step) for step in steps[:_MOST_STEPS])
    return f"validation:{shown}/{rule}" if shown else f"validation:{rule}"


def _step(step: object) -> str:
    return step if isinstance(step, str) and _FIELD.fullmatch(step) else "*"


def exit_status(error: BaseException) -> str | None:
    """How a child process ended."""
    code = attribute(error, "returncode")
    return f"exit:{code}" if _is_number(code) and abs(code) < 100_000 else None


def own_code(error: BaseException) -> str | None:
    """The `code` any other error carries. `SystemExit` has one too, but it is no category."""
    if isinstance(error, NightwardenError | SystemExit):
        return None
    return _kind("code", attribute(error, "code"))


def _kind(kind: str, code: object) -> str | None:
    if _is_number(code):
        code = str(code)
    return f"{kind}:{code}" if isinstance(code, str) and _CODE.fullmatch(code) else None


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _class_names(error: BaseException) -> frozenset[str]:
    return frozenset(kind.__name__ for kind in type(error).__mro__)
