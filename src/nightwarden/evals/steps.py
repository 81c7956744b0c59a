"""Making steps of functions, as a case wants them: its promises, its words.

What a step's docstring says is what a supervisor is told the step is for, so a case may say it
otherwise; and what a step promises (`retry_safe`, `idempotent_by`) is often the point of a case.

Read next: `shapes/__init__.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import nightwarden as nw
from nightwarden.evals.case import Case

Step = Callable[..., Any]


def step(case: Case, function: Callable[..., Any], **promises: Any) -> Step:
    """The function as a node, called `shape.Name`; the case's promises and purpose come first.

    Nothing in the name says that it is an evaluation: a model is to answer as it would.
    """
    name = function.__name__
    function.__doc__ = case.purposes.get(name, function.__doc__)
    kind = f"{case.shape_name}.{name.title()}"
    made: Step = nw.node(type=kind, **{**promises, **case.promises.get(name, {})})(function)
    return made
