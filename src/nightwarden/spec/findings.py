"""Collecting what is wrong, so that one pass over a file reports everything.

Loading never stops at the first mistake: each step adds to one `Findings` and goes on with
what it could make sense of. What it could not is left out, so that one mistake is one line.

Read next: `load.py`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from nightwarden.errors import Problem, SpecError

_SHOWN = 12


class Findings:
    """Problems of one workflow, in the order found; `report()` sorts them by line."""

    def __init__(self, file: str = "") -> None:
        self.file = file
        self._found: list[Problem] = []

    def error(
        self,
        rule: str,
        message: str,
        remedy: str = "",
        *,
        line: int | None = None,
        node: str = "",
        slot: str = "",
    ) -> None:
        """Something that keeps the workflow from running."""
        self._found.append(
            Problem(
                rule=rule,
                message=message,
                remedy=remedy,
                file=self.file,
                line=line,
                node=node,
                slot=slot,
            )
        )

    def warn(
        self,
        rule: str,
        message: str,
        remedy: str = "",
        *,
        line: int | None = None,
        node: str = "",
        slot: str = "",
    ) -> None:
        """Something its author should know; the workflow runs all the same."""
        self.error(rule, message, remedy, line=line, node=node, slot=slot)
        self._found[-1] = replace(self._found[-1], severity="warning")

    def extend(self, problems: Iterable[Problem]) -> None:
        """Take over problems another step has found."""
        self._found.extend(problems)

    def relocate(self, place: Callable[[Problem], Problem | None]) -> None:
        """Move each problem to where its author can mend it; None drops it, as said before."""
        moved = [place(problem) for problem in self._found]
        self._found = [problem for problem in moved if problem is not None]

    def charge(self, owners: Mapping[str, tuple[str, str]]) -> None:
        """Name the author's node and slot where a problem names one the author never wrote."""
        for i, problem in enumerate(self._found):
            if problem.node in owners:
                node, slot = owners[problem.node]
                self._found[i] = replace(problem, node=node, slot=slot)

    @property
    def failed(self) -> bool:
        """Whether anything found keeps the workflow from running."""
        return any(problem.severity == "error" for problem in self._found)

    def report(self) -> tuple[Problem, ...]:
        """Everything found, once each, by file and line; what has no line comes last."""
        unique = dict.fromkeys(self._found)
        return tuple(sorted(unique, key=self._order))

    def _order(self, problem: Problem) -> tuple[bool, str, bool, int]:
        elsewhere = problem.file != self.file
        return elsewhere, problem.file, problem.line is None, problem.line or 0

    def raise_errors(self) -> None:
        """Raise `SpecError` with all errors, if there is one."""
        errors = [p for p in self.report() if p.severity == "error"]
        if errors:
            raise SpecError(errors)


def strictly(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """The same problems with warnings made errors: what `validate --strict` means."""
    return tuple(replace(problem, severity="error") for problem in problems)


def nearest(word: str, options: Iterable[str]) -> str | None:
    """The option the author most likely meant, or None. Case does not count."""
    by_folded = {option.casefold(): option for option in options}
    found = difflib.get_close_matches(word.casefold(), list(by_folded), n=1, cutoff=0.6)
    return by_folded[found[0]] if found else None


def suggestion(word: str, options: Iterable[str], *, what: str) -> str:
    """A remedy for a name that is not known: the nearest one, or what there is."""
    known = list(dict.fromkeys(options))
    near = nearest(word, known)
    if near is not None:
        return f"did you mean {near!r}?"
    if not known:
        return f"there are no {what} here"
    shown = ", ".join(known[:_SHOWN]) + (", …" if len(known) > _SHOWN else "")
    return f"{what}: {shown}"
