"""What a fetch can fail with. Every error names the address, what happened and what to do.

    FetchError ─┬─ HttpStatusError        .status_code, .response.status_code
                ├─ FetchTimeoutError      also a TimeoutError
                └─ FetchConnectionError   also a ConnectionError

`transient` says whether trying again may help; `retry_after_s` what the server asked for.

Read next: `http.py`.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from urllib.parse import urlsplit

from nightwarden.errors import NodeError


class FetchError(NodeError):
    """A page could not be fetched. `url` is the address asked for."""

    retry_after_s: float | None = None

    def __init__(
        self, message: str, *, url: str = "", code: str | None = None, transient: bool = False
    ) -> None:
        self.url = url
        self.transient = transient
        self._message = message
        super().__init__(message, code=code)

    @property
    def host(self) -> str:
        """The host asked, without port and credentials; empty where there is none."""
        try:
            return urlsplit(self.url).hostname or ""
        except ValueError:
            return ""

    def explain(self, reason: str) -> None:
        """Add why it was not tried again."""
        self.args = (f"{self._message} ({reason})",)


class FetchTimeoutError(FetchError, TimeoutError):
    """There was no whole answer in time."""


class FetchConnectionError(FetchError, ConnectionError):
    """There was no connection, or it broke before the answer was whole."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The part of a response that recognisers of failures look at."""

    status_code: int


class HttpStatusError(FetchError):
    """The server answered, but not with the page."""

    def __init__(
        self,
        message: str,
        *,
        status_code: int = 0,
        url: str = "",
        method: str = "GET",
        retry_after_s: float | None = None,
        transient: bool = False,
    ) -> None:
        super().__init__(message, url=url, transient=transient)
        self.status_code = status_code
        self.method = method
        self.retry_after_s = retry_after_s

    @property
    def response(self) -> Answered:
        """The response, as far as it is kept: its status."""
        return Answered(self.status_code)


def is_certificate_problem(error: BaseException) -> bool:
    """Whether a broken connection goes back to a certificate; trying again does not mend one."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
