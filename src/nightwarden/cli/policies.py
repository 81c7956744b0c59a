"""`nightwarden policies list|show`: the shipped policies for steering supervisors.

Read next: `nightwarden/steering/policies/__init__.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from nightwarden.cli.failing import COMPLETED, Usage
from nightwarden.cli.options import Debug, Json
from nightwarden.cli.output import Output

if TYPE_CHECKING:
    from nightwarden.steering.policies import Policy

FORMAT: Final = 1


def list_policies(
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """List the shipped policies."""
    from nightwarden.steering.policies import POLICIES

    out = Output(as_json=json)
    if json:
        out.data({"version": FORMAT, "policies": [_as_json(p) for p in POLICIES.values()]})
    width = max(map(len, POLICIES))
    for policy in POLICIES.values():
        out.say(f"{policy.name:<{width}}  {policy.about}")
    return COMPLETED


def show(
    name: Annotated[str, typer.Argument(metavar="POLICY", help="The policy's name.")],
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001  (seen by main)
) -> int:
    """Show a policy: what wakes it, and what it is told."""
    from nightwarden.spec.durations import duration_text
    from nightwarden.spec.findings import suggestion
    from nightwarden.steering.policies import POLICIES

    policy = POLICIES.get(name)
    if policy is None:
        remedy = suggestion(name, POLICIES, what="policies")
        raise Usage(f"there is no policy {name!r}; {remedy}")
    out = Output(as_json=json)
    if json:
        out.data({"version": FORMAT, **_as_json(policy)})
        return COMPLETED
    out.say(f"{policy.name}, version {policy.version}: {policy.about}")
    pace = f"{duration_text(policy.cooldown_s)} apart, {policy.max_evals} at most"
    turns = "at turn boundaries and " if policy.boundaries else ""
    out.say(f"looks {turns}when one of these holds, {pace}:")
    for monitor in policy.monitors:
        out.say(f"  {monitor.text()}")
    out.say()
    out.text(policy.prompt + "\n")
    return COMPLETED


def _as_json(policy: Policy) -> dict[str, object]:
    return {
        "name": policy.name,
        "policy_version": policy.version,
        "about": policy.about,
        "monitors": [monitor.text() for monitor in policy.monitors],
        "cooldown_s": policy.cooldown_s,
        "max_evals": policy.max_evals,
        "boundaries": policy.boundaries,
        "prompt": policy.prompt,
    }


app = typer.Typer(
    help="The shipped policies for steering.", no_args_is_help=True, rich_markup_mode=None
)
app.command("list")(list_policies)
app.command()(show)
