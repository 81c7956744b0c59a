"""Two hundred real pages: modules of the standard library, as `pydoc` documents them.

    MODULES ──▶ render.py, in one subprocess ──▶ CACHE/cpython-3.13.0-1f…/001.html … 200.html

The list is pinned: every module is part of Python 3.11 to 3.13, and importing it opens no
window, browser or connection. Pages are rendered once for a Python version; a set of pages
is complete or not there.

Read next: `faults.py`, `server.py`.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from nightwarden.errors import RunError

MODULES: Final = tuple(
    """
    abc argparse array asyncio.events asyncio.exceptions asyncio.futures asyncio.locks
    asyncio.protocols asyncio.queues asyncio.runners asyncio.streams asyncio.taskgroups
    asyncio.tasks asyncio.timeouts asyncio.transports base64 bdb binascii bisect cProfile
    calendar cmath cmd code codecs codeop collections collections.abc colorsys compileall
    concurrent.futures concurrent.futures.process concurrent.futures.thread contextlib
    contextvars copy csv dataclasses datetime difflib dis doctest email email.charset
    email.contentmanager email.feedparser email.generator email.header email.headerregistry
    email.message email.mime.application email.mime.audio email.mime.base email.mime.image
    email.mime.message email.mime.multipart email.mime.text email.parser email.policy
    email.utils filecmp fileinput fnmatch fractions ftplib functools gc getopt getpass gettext
    glob graphlib gzip hashlib heapq hmac html.parser http http.client http.cookiejar
    http.cookies http.server imaplib importlib importlib.abc importlib.metadata
    importlib.resources importlib.util inspect ipaddress itertools json json.decoder
    json.encoder linecache locale logging logging.config marshal math mimetypes multiprocessing
    multiprocessing.connection multiprocessing.dummy multiprocessing.managers
    multiprocessing.pool multiprocessing.process multiprocessing.queues
    multiprocessing.shared_memory multiprocessing.synchronize multiprocessing.util netrc
    numbers operator optparse pathlib pdb pickle pickletools pkgutil plistlib poplib posixpath
    pprint pstats py_compile pyclbr queue quopri random re reprlib runpy sched secrets select
    selectors shelve shlex shutil signal smtplib socketserver statistics string struct
    subprocess sys sysconfig tabnanny tarfile tempfile textwrap threading time timeit tokenize
    tomllib trace traceback tracemalloc types unicodedata unittest.async_case unittest.case
    unittest.loader unittest.main unittest.mock unittest.result unittest.runner unittest.suite
    unittest.util urllib.error urllib.parse urllib.request urllib.response urllib.robotparser
    uuid warnings weakref wsgiref.headers wsgiref.simple_server wsgiref.util wsgiref.validate
    xml.dom xml.dom.pulldom xml.etree.ElementInclude xml.etree.ElementPath
    xml.etree.ElementTree xml.parsers.expat xml.sax xml.sax.expatreader xml.sax.handler
    xml.sax.saxutils xml.sax.xmlreader xmlrpc.client zipapp zipfile zlib zoneinfo
    """.split()  # noqa: SIM905  (a list would take two hundred lines)
)
"""Page n documents `MODULES[n - 1]`."""

RENDERER: Final = Path(__file__).with_name("render.py")
RENDER_TIMEOUT_S: Final = 300.0


def page_files(cache_dir: Path) -> tuple[Path, ...]:
    """The files of all pages, in order; rendered if this Python has not done so before.

    Raises `RunError` that names every page which could not be made.
    """
    folder = cache_dir / _edition()
    files = tuple(folder / f"{n:03}.html" for n in range(1, len(MODULES) + 1))
    if not all(file.is_file() for file in files):
        _render(folder, [file.name for file in files])
    return files


def _edition() -> str:
    """Which pages these are: they differ by Python, by list, and by template."""
    parts = ("\n".join(MODULES).encode(), RENDERER.read_bytes())
    key = hashlib.sha256(b"\0".join(parts)).hexdigest()[:10]
    return f"{sys.implementation.name}-{platform.python_version()}-{key}"


def _render(folder: Path, names: list[str]) -> None:
    """Fill `folder`, all or nothing: it is made elsewhere and then takes its name."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=".making-", dir=folder.parent))
    except OSError as error:
        raise RunError(
            f"the demo pages need a folder to lie in: {error}; name one that can be written"
        ) from error
    try:
        _run_renderer(made, dict(zip(names, MODULES, strict=True)))
        shutil.rmtree(folder, ignore_errors=True)
        try:
            made.rename(folder)
        except OSError:
            # Another process was quicker; its pages are the same.
            if not all((folder / name).is_file() for name in names):
                raise
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _run_renderer(folder: Path, wanted: dict[str, str]) -> None:
    # What the caller's environment holds must not reach the pages: some show it.
    keep = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-s", "-W", "ignore", str(RENDERER), str(folder)],
            input=json.dumps(wanted),
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            env={**keep, "PYTHONHASHSEED": "0", "PYTHONUTF8": "1"},
            timeout=RENDER_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise RunError(
            f"rendering the demo pages took more than {RENDER_TIMEOUT_S:.0f} s; "
            "try again when the machine has less to do"
        ) from error
    if done.returncode:
        raise RunError(
            f"some demo pages could not be rendered by {sys.executable}:\n  "
            + "\n  ".join(done.stderr.strip().splitlines()[-20:])
            + "\nA complete Python 3.11 or newer renders them all; `python3 -c 'import MODULE'` "
            "shows what this one lacks"
        )
