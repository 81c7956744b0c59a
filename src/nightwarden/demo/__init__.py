"""Something real to try the engine on: two hundred web pages served from this machine.

    with DemoSite(cache_dir) as site:
        nightwarden.run(example("pages.yaml"), inputs={"urls": site.urls}, …)

Nothing here knows the engine. Read next: `pages.py`, `faults.py`, `server.py`.
"""

from __future__ import annotations

from pathlib import Path

from nightwarden.demo.faults import FAULTS, Fault, Kind
from nightwarden.demo.pages import MODULES
from nightwarden.demo.server import DemoSite
from nightwarden.errors import RunError

__all__ = ["FAULTS", "MODULES", "DemoSite", "Fault", "Kind", "example"]


def example(name: str) -> Path:
    """The example of that name: shipped in the package, or lying in the checkout.

    Raises `RunError` when it is in neither.
    """
    shipped = Path(__file__).parent / "examples" / name
    in_checkout = Path(__file__).parents[3] / "examples" / name
    for path in (shipped, in_checkout):
        if path.is_file():
            return path
    raise RunError(f"the example {name!r} is not there; install the package again")
