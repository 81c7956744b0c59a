"""Where secrets come from, and log records: supervision.md §4.

row: S4-DOCUMENTS
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from functools import partial

import pytest

from nightwarden.errors import NodeError
from nightwarden.masking.marks import FIELD
from nightwarden.masking.redaction import SecretRegistry
from nightwarden.runtime.log_masking import MaskingLogFilter, masked_logging
from nightwarden.runtime.secrets import SecretResolver

KEY = "zk-live/7Qm2+Zt9aB=="


def resolver(given: dict[str, str] | None = None, **environment: str) -> SecretResolver:
    return SecretResolver(SecretRegistry(), given, environment=environment)


# Resolving


def test_a_secret_is_masked_before_anybody_has_it() -> None:
    secrets = resolver({"K": KEY})
    assert secrets.registry.mask(KEY) == KEY
    assert secrets.secret("K") == KEY
    assert secrets.registry.mask(f"Bearer {KEY}") == "Bearer ••••(K)"


def test_what_is_given_comes_before_the_environment() -> None:
    environment = {"K": "plain-one", "NIGHTWARDEN_SECRET_K": "prefixed-one"}
    assert resolver({"K": "given-one"}, **environment).secret("K") == "given-one"
    assert resolver({}, **environment).secret("K") == "prefixed-one"
    assert resolver(None, K="plain-one").secret("K") == "plain-one"


def test_a_name_no_shell_allows_is_looked_up_with_underscores() -> None:
    assert resolver(None, NIGHTWARDEN_SECRET_PARTNER_KEY="v-1").secret("partner-key") == "v-1"
    assert resolver(None, partner_key="v-2").secret("partner.key") == "v-2"


def test_a_missing_secret_says_what_to_set() -> None:
    with pytest.raises(NodeError) as caught:
        resolver().secret("PARTNER_KEY")
    assert caught.value.code == "secret-missing"
    assert str(caught.value) == (
        "secret 'PARTNER_KEY' is not set: set NIGHTWARDEN_SECRET_PARTNER_KEY (or PARTNER_KEY)"
        " in the environment, or pass it with secrets={…}"
    )


def test_an_empty_secret_counts_as_missing_and_says_where_it_is_empty() -> None:
    with pytest.raises(NodeError, match="is empty in NIGHTWARDEN_SECRET_K"):
        resolver({"K": ""}, NIGHTWARDEN_SECRET_K=" ").secret("K")


def test_preloading_registers_what_is_there_and_names_what_is_not() -> None:
    secrets = resolver({"A": "value-of-a", "S": "abc12"})
    assert secrets.preload(["A", "B", "S"]) == ("B",)
    assert secrets.registry.mask("value-of-a") == "••••(A)"
    assert "secret S" in secrets.registry.warnings[0]


def test_the_environment_of_the_process_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTWARDEN_SECRET_OWN", "from-process-1")
    assert SecretResolver(SecretRegistry()).secret("OWN") == "from-process-1"


# Log records


@pytest.fixture
def registry() -> SecretRegistry:
    made = SecretRegistry()
    made.register("K", KEY)
    return made


@pytest.fixture
def library() -> Iterator[logging.Logger]:
    """A logger of somebody else's, restored afterwards."""
    logger = logging.getLogger("somebody.else")
    before = logger.handlers[:], logger.level, logger.propagate
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    yield logger
    logger.handlers[:], logger.propagate = before[0], before[2]
    logger.setLevel(before[1])


def handler(logger: logging.Logger, form: str = "%(message)s") -> io.StringIO:
    stream = io.StringIO()
    made = logging.StreamHandler(stream)
    made.setFormatter(logging.Formatter(form))
    logger.addHandler(made)
    return stream


def test_message_and_arguments_of_a_record_are_masked(
    registry: SecretRegistry, library: logging.Logger
) -> None:
    out = handler(library)
    with masked_logging(registry):
        library.info("GET %s with %r", f"https://h/?k={KEY}&page=2", {"Authorization": KEY})
    assert out.getvalue() == "GET https://h/?k=••••(K)&page=2 with {'Authorization': '••••(K)'}\n"


def test_a_traceback_is_masked_and_the_raw_exception_reaches_no_handler(
    registry: SecretRegistry, library: logging.Logger
) -> None:
    out = handler(library)
    seen: list[logging.LogRecord] = []
    library.addFilter(lambda record: seen.append(record) or True)
    with masked_logging(registry):
        try:
            try:
                raise KeyError(KEY)
            except KeyError as inner:
                raise ValueError(f"bad {KEY}") from inner
        except ValueError:
            library.exception("failed with %s", KEY)
    library.filters.clear()
    assert KEY not in out.getvalue()
    assert "ValueError: bad ••••(K)" in out.getvalue()
    assert "failed with ••••(K)" in out.getvalue()
    assert seen[0].exc_info is None


def test_a_record_without_a_secret_stays_untouched(
    registry: SecretRegistry, library: logging.Logger
) -> None:
    seen: list[logging.LogRecord] = []
    library.addHandler(_Keeping(seen))
    with masked_logging(registry):
        try:
            raise ValueError("plain")
        except ValueError:
            library.exception("n=%d", 5, extra={"row": 7})
    assert (seen[0].msg, seen[0].args) == ("n=%d", (5,))
    assert seen[0].exc_info is not None
    assert vars(seen[0])["row"] == 7


def test_what_extra_puts_in_is_masked_too(
    registry: SecretRegistry, library: logging.Logger
) -> None:
    out = handler(library, "%(message)s %(url)s %(api_key)s %(ok)s")
    with masked_logging(registry):
        library.info("x", extra={"url": f"?k={KEY}", "api_key": "plain-other-value", "ok": "yes"})
    assert out.getvalue() == f"x ?k=••••(K) {FIELD} yes\n"


def test_a_handler_added_later_gets_masked_records(
    registry: SecretRegistry, library: logging.Logger
) -> None:
    with masked_logging(registry):
        out = handler(library)
        library.warning("late %s", KEY)
    assert out.getvalue() == "late ••••(K)\n"


def test_arguments_that_do_not_fit_show_no_secret(
    registry: SecretRegistry, library: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    out = handler(library)
    with masked_logging(registry):
        library.warning("one %s", KEY, KEY)
    assert KEY not in out.getvalue() + capsys.readouterr().err
    assert "••••(K)" in out.getvalue()


def test_an_argument_whose_str_raises_hides_the_record(registry: SecretRegistry) -> None:
    class Odd:
        def __str__(self) -> str:
            raise RuntimeError(KEY)

        __repr__ = __str__

    record = logging.LogRecord("n", 20, "p", 1, "x %s", (Odd(),), None)
    assert MaskingLogFilter(registry).filter(record)
    assert record.getMessage() == "••••(hidden)"


def test_the_stack_of_a_record_is_masked(registry: SecretRegistry) -> None:
    record = logging.LogRecord("n", 20, "p", 1, "x", (), None, sinfo=f"Stack: {KEY}")
    MaskingLogFilter(registry).filter(record)
    assert record.stack_info == "Stack: ••••(K)"


def test_blocks_may_overlap_and_leave_nothing_behind(library: logging.Logger) -> None:
    factory = logging.getLogRecordFactory()
    first, second = SecretRegistry(), SecretRegistry()
    first.register("A", "value-of-a-1")
    second.register("B", "value-of-b-2")
    out = handler(library)
    one, two = masked_logging(first), masked_logging(second)
    one.__enter__()
    two.__enter__()
    library.info("value-of-a-1 value-of-b-2")
    one.__exit__(None, None, None)
    library.info("value-of-a-1 value-of-b-2")
    two.__exit__(None, None, None)
    library.info("value-of-a-1")
    assert out.getvalue().splitlines() == [
        "••••(A) ••••(B)",
        "value-of-a-1 ••••(B)",
        "value-of-a-1",
    ]
    assert logging.getLogRecordFactory() is factory
    assert not library.handlers[-1].filters


def test_a_factory_another_library_set_meanwhile_is_left_in_place(
    registry: SecretRegistry, library: logging.Logger
) -> None:
    before = logging.getLogRecordFactory()
    out = handler(library)
    try:
        with masked_logging(registry):
            ours = logging.getLogRecordFactory()
            logging.setLogRecordFactory(partial(ours))
            library.info(KEY)
        theirs = logging.getLogRecordFactory()
        assert theirs is not before
        with masked_logging(registry):
            library.info(KEY)
        assert logging.getLogRecordFactory() is theirs
        library.info("after")
    finally:
        logging.setLogRecordFactory(before)
    assert out.getvalue() == "••••(K)\n••••(K)\nafter\n"


class _Keeping(logging.Handler):
    def __init__(self, seen: list[logging.LogRecord]) -> None:
        super().__init__()
        self._seen = seen

    def emit(self, record: logging.LogRecord) -> None:
        self._seen.append(record)


def test_logging_to_a_closed_stream_still_shows_no_secret(
    registry: SecretRegistry, library: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = io.StringIO()
    library.addHandler(logging.StreamHandler(stream))
    stream.close()
    with masked_logging(registry):
        library.error("lost %s", KEY)
    assert KEY not in capsys.readouterr().err
