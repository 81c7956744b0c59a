"""What a YAML parser's complaint means to whoever wrote the file.

Most complaints come from a few characters YAML gives a meaning of its own: brackets inside
`{ }`, a star, an at sign, a colon, a tab. The remedy then is to quote, and says what.

Read next: `yamltext.py`.
"""

from __future__ import annotations

import re

_BRACKETED = re.compile(r"[$\w][\w$.-]*(?:\[[^\[\]{},]*\]+)+\??")
_SIGNS = re.compile(r"character '([@`%])'")
_ESCAPE = re.compile(r"unknown escape character '(.)'")
_MOST = 200


def explain(error: Exception, text: str) -> tuple[str, str, int | None]:
    """Message, remedy and line (from 1) for an error of the YAML parser."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line = None if mark is None else mark.line + 1
    lines = text.splitlines()
    source = lines[line - 1] if line is not None and line <= len(lines) else ""
    problem = str(getattr(error, "problem", None) or error).splitlines()[0][:_MOST]
    context = str(getattr(error, "context", None) or "")[:_MOST]
    if "\\t" in problem:
        return "a tab stands where YAML wants spaces", "indent with spaces", line
    sign = _SIGNS.search(problem)
    if sign is not None:
        return f"a value cannot begin with {sign[1]}", _quote(_word(source, mark)), line
    bracketed = _BRACKETED.search(source)
    if bracketed is not None and ("flow" in context or "alias" in context):
        where = "inside { } or [ ], brackets of a value have to be quoted"
        return where, _quote(bracketed[0]), line
    if "alias" in context:
        return "a value cannot begin with *", _quote(_word(source, mark)), line
    if "mapping values are not allowed" in problem:
        return "a colon stands where YAML wants none", "put the value in quotes", line
    if "special characters are not allowed" in problem:
        return "the file has characters no text file has", "save it as plain UTF-8 text", line
    opened = getattr(error, "context_mark", None)
    told = _unfinished(context, problem, line if opened is None else opened.line + 1)
    if told is not None:
        return told[0], told[1], line if told[2] is None else told[2]
    message = f"{context}: {problem}" if context else problem
    return message, "correct the file at or above this line", line


def _unfinished(
    context: str, problem: str, begun: int | None
) -> tuple[str, str, int | None] | None:
    """What was begun and does not go on as it has to, with the better line if there is one."""
    since = "" if begun is None else f" begun on line {begun}"
    escape = _ESCAPE.search(problem)
    if escape is not None:
        remedy = "write two backslashes for one, or put the value in single quotes"
        return f"\\{escape[1]} means nothing in double quotes", remedy, None
    if "quoted scalar" in context and "end of stream" in problem:
        return "a quote is opened here and never closed", "close it", begun
    if "parsing a flow" in context:
        close = "}" if "mapping" in context else "]"
        what = "{ }" if "mapping" in context else "[ ]"
        return f"in the {what}{since}, a comma or {close} is expected", "close it, or quote", None
    if "parsing a block" in context:
        message = f"this line does not go on with the entries{since}: its indent is another one"
        return message, "give entries that belong together the same indent", None
    if "simple key" in context:
        return "a key without a colon", "write it as in name: value", begun
    return None


def _word(source: str, mark: object) -> str:
    """What stands at the mark, up to the next blank or bracket."""
    column = getattr(mark, "column", 0)
    start = source.rfind("*", 0, column + 1) if "*" in source[: column + 1] else column
    found = re.match(r"[^\s,{}]+", source[start:])
    return found[0] if found else source.strip()


def _quote(word: str) -> str:
    return f'quote it: "{word}"' if word else "put the value in quotes"
