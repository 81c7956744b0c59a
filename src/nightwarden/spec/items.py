"""The items of an input, read from a file that is no workflow: `items: "@urls.txt"`.

A `.json` file holds one list. Any other holds an item a line; blank lines are none. Where
items are not plainly text, a line of JSON is what it says.

Read next: `inputs.py`.
"""

from __future__ import annotations

import json
from typing import Any, get_origin

from nightwarden.spec.types import Json


def read_items(text: str, name: str, element: Any) -> object:
    """The items in the text of file `name`; what is no list is left for the type check."""
    text = text.removeprefix("\ufeff")
    if name.casefold().endswith(".json"):
        return _parsed(text)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if element in (Any, Json) or get_origin(element) in (dict, list):
        return [_parsed(line) for line in lines]
    return lines


def _parsed(text: str) -> object:
    """What JSON text says; text that is none stands for itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
