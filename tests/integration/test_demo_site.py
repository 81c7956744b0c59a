"""The demo site serves two hundred real pages and breaks as its table says (nightwarden.demo)."""

from __future__ import annotations

import http.client
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from nightwarden.demo import FAULTS, MODULES, DemoSite, Fault, Kind
from nightwarden.demo.faults import spoil
from nightwarden.demo.pages import RENDERER, page_files
from nightwarden.errors import RunError

PATIENCE_S = 0.3
"""How long the tests wait for a page that never comes."""


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rendered once for all tests."""
    folder = tmp_path_factory.mktemp("pages")
    page_files(folder)
    return folder


@pytest.fixture
def site(cache: Path) -> Iterator[DemoSite]:
    with DemoSite(cache) as site:
        yield site


@pytest.fixture
def clean_site(cache: Path) -> Iterator[DemoSite]:
    with DemoSite(cache, faults=False) as site:
        yield site


def ask(
    site: DemoSite, path: str, method: str = "GET", timeout_s: float = 10.0
) -> tuple[int, str, dict[str, str]]:
    """Status, text, headers (lower-case) of one request on a connection of its own."""
    connection = http.client.HTTPConnection(urlsplit(site.address).netloc, timeout=timeout_s)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        body = response.read().decode()
        return response.status, body, {k.lower(): v for k, v in response.getheaders()}
    finally:
        connection.close()


def pages_with(kind: Kind) -> list[int]:
    return [n for n, fault in FAULTS.items() if fault.kind is kind]


def test_there_are_two_hundred_different_pages(clean_site: DemoSite) -> None:
    assert len(set(MODULES)) == 200
    assert len(clean_site.urls) == 200
    assert clean_site.urls[0] == f"{clean_site.address}/p/1"
    texts = {ask(clean_site, f"/p/{n}")[1] for n in range(1, 201)}
    assert len(texts) == 200


def test_a_clean_site_serves_every_page_whole(clean_site: DemoSite) -> None:
    for number, name in enumerate(MODULES, start=1):
        status, text, headers = ask(clean_site, f"/p/{number}")
        assert status == 200
        assert headers["content-type"] == "text/html; charset=utf-8"
        assert f"<title>{name} – The Python library</title>" in text
        assert "<main " in text
        assert text.endswith("</html>\n")


def test_pages_show_nothing_of_the_machine_they_were_rendered_on(cache: Path) -> None:
    home, prefix = str(Path.home()), sys.base_prefix
    for file in page_files(cache):
        text = file.read_text(encoding="utf-8")
        assert prefix == "/usr" or prefix not in text, file
        assert home == "/" or f"{home}/" not in text, file
        assert " at 0x7" not in text, file


def test_the_site_listens_on_the_loopback_only(site: DemoSite) -> None:
    assert urlsplit(site.address).hostname == "127.0.0.1"


def test_the_index_links_to_every_page(site: DemoSite) -> None:
    status, text, _ = ask(site, "/")
    assert status == 200
    assert text.count('<a href="/p/') == 200


@pytest.mark.parametrize(
    "path",
    ["/p/0", "/p/201", "/p/x", "/p/", "/p/-1", "/p/1_0", "/p/" + 5_000 * "9", "/x/p/1", "/q"],
)
def test_there_is_nothing_else(site: DemoSite, path: str) -> None:
    assert ask(site, path)[0] == 404


def test_only_reading_is_allowed(site: DemoSite) -> None:
    status, _, headers = ask(site, "/p/1", method="DELETE")
    assert (status, headers["allow"]) == (405, "GET, HEAD")


def test_a_head_request_gets_the_length_alone(clean_site: DemoSite) -> None:
    status, text, headers = ask(clean_site, "/p/1", method="HEAD")
    assert (status, text) == (200, "")
    assert int(headers["content-length"]) == len(ask(clean_site, "/p/1")[1].encode())


def test_a_connection_carries_several_requests(clean_site: DemoSite) -> None:
    connection = http.client.HTTPConnection(urlsplit(clean_site.address).netloc, timeout=10)
    connection.connect()
    first = connection.sock
    for number in (1, 2, 3):
        connection.request("GET", f"/p/{number}")
        assert connection.getresponse().read().endswith(b"</html>\n")
    assert connection.sock is first
    connection.close()


def test_every_kind_of_fault_is_in_the_table() -> None:
    assert {fault.kind for fault in FAULTS.values()} == set(Kind)


def test_a_page_without_a_fault_is_fine_on_the_faulty_site(site: DemoSite) -> None:
    for number in set(range(1, 201)) - set(FAULTS):
        assert ask(site, f"/p/{number}")[0] == 200


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(Kind.BUSY, (429, "1")), (Kind.UNAVAILABLE, (503, None)), (Kind.LOCKED, (401, None))],
)
def test_a_refusal_has_its_status(
    site: DemoSite, kind: Kind, expected: tuple[int, str | None]
) -> None:
    for number in pages_with(kind):
        status, text, headers = ask(site, f"/p/{number}")
        assert (status, headers.get("retry-after")) == expected
        assert str(status) in text


@pytest.mark.parametrize("kind", [Kind.BUSY, Kind.UNAVAILABLE, Kind.RESET])
def test_a_passing_fault_heals_after_its_number_of_requests(site: DemoSite, kind: Kind) -> None:
    for number in pages_with(kind):
        times = FAULTS[number].times
        assert times == 1, "within the step's own retries"
        try:
            status = ask(site, f"/p/{number}")[0]
        except OSError:
            status = None
        assert status != 200
        assert ask(site, f"/p/{number}")[0] == 200
        assert site.requests(number) == 2


@pytest.mark.parametrize("kind", [Kind.LOCKED, Kind.TRUNCATED, Kind.LOGIN])
def test_a_fault_for_good_never_heals(kind: Kind) -> None:
    for number in pages_with(kind):
        assert FAULTS[number].times is None
        assert FAULTS[number].holds(1_000)


def test_a_reset_page_resets_the_connection(site: DemoSite) -> None:
    (number,) = pages_with(Kind.RESET)
    with pytest.raises(ConnectionResetError):
        ask(site, f"/p/{number}")


def test_a_hanging_page_outlasts_two_requests_and_then_comes(site: DemoSite) -> None:
    (number,) = pages_with(Kind.HANG)
    for _ in range(2):
        with pytest.raises(TimeoutError):
            ask(site, f"/p/{number}", timeout_s=PATIENCE_S)
    status, text, _ = ask(site, f"/p/{number}")
    assert status == 200
    assert text.endswith("</html>\n")


def test_a_truncated_page_ends_before_its_announced_length(
    site: DemoSite, clean_site: DemoSite
) -> None:
    (number,) = pages_with(Kind.TRUNCATED)
    whole = ask(clean_site, f"/p/{number}")[1].encode()
    with pytest.raises(http.client.IncompleteRead) as caught:
        ask(site, f"/p/{number}")
    assert caught.value.partial == whole[: len(whole) // 2]


def test_a_soup_page_is_broken_markup_with_its_text_whole(
    site: DemoSite, clean_site: DemoSite
) -> None:
    (number,) = pages_with(Kind.SOUP)
    status, soup, _ = ask(site, f"/p/{number}")
    assert status == 200
    for missing in ("<!DOCTYPE", "<html", "</main>", "</p>", "</span>"):
        assert missing not in soup
    assert MODULES[number - 1] in soup
    for line in ("<h1>", "</h1>"):
        assert line in soup
    clean = ask(clean_site, f"/p/{number}")[1]
    assert words(soup)[:200] == words(clean)[:200]


def test_a_cut_page_breaks_off_inside_a_tag(site: DemoSite, clean_site: DemoSite) -> None:
    (number,) = pages_with(Kind.CUT)
    status, cut, headers = ask(site, f"/p/{number}")
    whole = ask(clean_site, f"/p/{number}")[1]
    assert status == 200
    assert int(headers["content-length"]) == len(cut.encode()), "complete as far as HTTP goes"
    assert whole.startswith(cut)
    assert cut.rfind("<") > cut.rfind(">")


def test_a_login_page_has_no_main_part(site: DemoSite) -> None:
    (number,) = pages_with(Kind.LOGIN)
    status, text, _ = ask(site, f"/p/{number}")
    assert status == 200
    assert "<main" not in text
    assert 'type="password"' in text


def test_other_faults_leave_the_page_as_it_is() -> None:
    for kind in set(Kind) - {Kind.SOUP, Kind.CUT, Kind.LOGIN}:
        assert spoil("<p>text</p>", kind) == "<p>text</p>"


def test_faults_can_be_chosen(cache: Path) -> None:
    with DemoSite(cache, faults={2: Fault(kind=Kind.BUSY, times=3)}) as site:
        assert [ask(site, "/p/2")[0] for _ in range(4)] == [429, 429, 429, 200]
        assert ask(site, "/p/88")[0] == 200


def test_the_site_stops_though_a_client_still_waits(cache: Path) -> None:
    (number,) = pages_with(Kind.HANG)
    with DemoSite(cache) as site:
        port = urlsplit(site.address).port
        waiting = socket.create_connection(("127.0.0.1", port or 0), timeout=10)
        waiting.sendall(f"GET /p/{number} HTTP/1.1\r\n\r\n".encode())
        # The next answer shows that the request before it has been taken up.
        assert ask(site, "/p/1")[0] == 200
    assert waiting.recv(1) == b""
    waiting.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port or 0), timeout=10)


def test_what_is_no_request_is_hung_up_on(site: DemoSite) -> None:
    port = urlsplit(site.address).port or 0
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(b"x" * 200_000)
        assert rest(client) == b""
    assert ask(site, "/p/1")[0] == 200


def test_pages_are_rendered_once(cache: Path) -> None:
    before = [file.stat().st_mtime_ns for file in page_files(cache)]
    assert [file.stat().st_mtime_ns for file in page_files(cache)] == before


def test_a_page_that_is_gone_is_rendered_again(tmp_path: Path, cache: Path) -> None:
    folder = page_files(cache)[0].parent
    copy = tmp_path / folder.name
    copy.mkdir()
    for file in folder.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    (copy / "100.html").unlink()
    files = page_files(tmp_path)
    assert files[99].read_bytes() == (folder / "100.html").read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == [folder.name], "nothing half-made is left"


def test_a_page_that_cannot_be_made_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nightwarden.demo.pages.MODULES", ("textwrap", "no_such_module_at_all"))
    with pytest.raises(RunError, match="no_such_module_at_all: ModuleNotFoundError"):
        page_files(tmp_path)
    assert list(tmp_path.iterdir()) == [], "no set of pages that lacks one"


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(RunError, match="need a folder"):
        page_files(file / "pages")


def test_a_module_that_greets_or_leaves_does_not_spoil_the_others(tmp_path: Path) -> None:
    (tmp_path / "leaves.py").write_text("import sys\nprint('hello')\nsys.exit(3)\n")
    done = subprocess.run(
        [sys.executable, str(RENDERER), str(tmp_path)],
        input='{"1.html": "leaves", "2.html": "textwrap"}',
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == "leaves: SystemExit: 3\n"
    assert "<h1>" in (tmp_path / "2.html").read_text()


def rest(client: socket.socket) -> bytes:
    """What comes before the other side hangs up, by a farewell or a reset."""
    received = b""
    try:
        while chunk := client.recv(1_000):
            received += chunk
    except ConnectionError:
        pass
    return received


def words(page: str) -> list[str]:
    """The words of a page between its tags."""
    text, inside = "", False
    for char in page:
        inside = char == "<" or (inside and char != ">")
        text += " " if inside or char == ">" else char
    return text.replace("&amp;", "&").split()
