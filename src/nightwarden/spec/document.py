"""A workflow file as plain data, with the line on which each part of it stands.

YAML as people write it and JSON as programs do become the same thing: dicts with text keys,
lists, text, numbers, booleans, None. What neither can say is reported here and left out.

    text ──▶ yamltext.py / jsontext.py ──▶ Document ──▶ shape.py

Read next: `shape.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from nightwarden.spec.findings import Findings

LONGEST = 8_000_000
"""Characters a file may have: a hundred thousand inputs fit, a disk image does not."""
DEEPEST = 100
"""How deep mappings and lists may be nested."""
LARGEST = 500_000
"""How many values a file may have once its aliases are written out."""
LINES_DEEPEST = 6
"""Deeper than this, values are found on the line of what they are in."""

Path = tuple[str | int, ...]


def doubled(path: Path) -> str:
    """The rule a key that stands twice in the mapping at `path` breaks."""
    return "C192" if path == ("supervisors",) else "duplicate-key"


@dataclass(frozen=True, slots=True)
class Document:
    """Plain data and lines, by the path of a value: `("nodes", "page", "url")`."""

    data: object
    lines: Mapping[Path, int] = field(default_factory=dict)

    def line(self, *path: str | int) -> int | None:
        """The line of the value at `path`, or of the innermost value around it."""
        for end in range(len(path), -1, -1):
            found = self.lines.get(path[:end])
            if found is not None:
                return found
        return None


def read_document(text: str, findings: Findings, format: str | None = None) -> Document | None:
    """Parse a file. `format` is `"yaml"`, `"json"`, or None to go by the file's name and text.

    None when it cannot be parsed at all; why is in `findings`.
    """
    from nightwarden.spec.jsontext import read_json  # noqa: PLC0415  (only the one that is needed)
    from nightwarden.spec.yamltext import read_yaml  # noqa: PLC0415

    text = text.removeprefix("\ufeff")
    if len(text) > LONGEST:
        findings.error(
            "too-large",
            f"the file has {len(text):,} characters; at most {LONGEST:,} are read",
            "keep data in files of their own and read them with a step",
        )
        return None
    if format not in (None, "yaml", "json"):
        raise ValueError(f"format is 'yaml', 'json' or None, not {format!r}")
    is_json = format == "json" or (format is None and looks_like_json(text, findings.file))
    return (read_json if is_json else read_yaml)(text, findings)


def looks_like_json(text: str, file: str) -> bool:
    """Whether a file is JSON: by its name, or by how it begins."""
    name = file.casefold()
    if name.endswith((".yaml", ".yml")):
        return False
    return name.endswith(".json") or bool(re.match(r'\s*\{\s*["}]', text))
