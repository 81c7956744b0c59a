"""`python -m nightwarden` is `nightwarden`."""

from __future__ import annotations

from nightwarden.cli.main import entry

if __name__ == "__main__":
    entry()
