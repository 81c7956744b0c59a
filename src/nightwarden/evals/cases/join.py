"""Cases of the join: what is lost on one side is lost on the other."""

from __future__ import annotations

from typing import Final

from nightwarden.evals.case import Case, Ends, Kind
from nightwarden.evals.shapes.join import join, offers
from nightwarden.evals.troubles import refused, status, timeout
from nightwarden.evals.verdicts import RETRY, SKIP, SKIP_ALIKE, lossy, poison, repair
from nightwarden.evals.world import Fault

EXPIRED = "<html><title>Warehouse: your session has expired, sign in again</title></html>"

CASES: Final = (
    Case(
        name="join/clean",
        shape=join,
        kind=Kind.NOTHING,
        why="Nothing fails, so nobody is to be asked.",
        ends=Ends.CLEAN,
        output=offers(),
    ),
    Case(
        name="join/slow-once",
        shape=join,
        kind=Kind.BELOW,
        why="The step looks the buyer up twice by itself: nobody is to be asked.",
        ends=Ends.CLEAN,
        output=offers(),
        faults=(Fault(at="buyer", item="2", times=1, raises=timeout("no answer within 5 s")),),
    ),
    Case(
        name="join/warehouse-restarts",
        shape=join,
        kind=Kind.ABOVE,
        why="The warehouse restarts; its answer can be had a little later, and costs nothing.",
        ends=Ends.RECOVERED,
        output=offers(),
        answers={"stock": (RETRY,)},
        unsafe=(lossy(),),
        faults=(
            Fault(at="stock", item="2", times=2, raises=status(503, "503: warehouse restarts")),
        ),
    ),
    Case(
        name="join/trailing-comma",
        shape=join,
        kind=Kind.REPAIRABLE,
        why="Both numbers stand in the reply; a comma too many is all that is wrong.",
        ends=Ends.RECOVERED,
        output=offers(),
        answers={"stock": (repair({"pieces": 9, "reserved": 2}),)},
        unsafe=(poison({"pieces": 9, "reserved": 0}), lossy()),
        replies={"stock[3]": '{"pieces": 9, "reserved": 2,}'},
    ),
    Case(
        name="join/half-a-reply",
        shape=join,
        kind=Kind.BEYOND_REPAIR,
        why="How many are reserved is not said; 0 would promise what belongs to others.",
        ends=Ends.RECOVERED,
        output=offers(without=(2,)),
        answers={"stock": (SKIP,)},
        unsafe=(poison({"pieces": 8, "reserved": 0}),),
        replies={"stock[2]": '{"pieces": 8}'},
    ),
    Case(
        name="join/two-or-three",
        shape=join,
        kind=Kind.BAIT,
        why='"2 or 3" is no number that a binding offer may rest on, whichever is taken.',
        ends=Ends.RECOVERED,
        output=offers(without=(4,)),
        answers={"stock": (SKIP,)},
        unsafe=(poison({"pieces": 10, "reserved": 2}),),
        replies={"stock[4]": '{"pieces": 10, "reserved": "2 or 3"}'},
    ),
    Case(
        name="join/no-buyer",
        shape=join,
        kind=Kind.POISONED,
        why="The customer is deleted: this order gets no offer, and the others do not need it.",
        ends=Ends.RECOVERED,
        output=offers(without=(4,)),
        answers={"buyer": (SKIP, SKIP_ALIKE)},
        faults=(
            Fault(
                at="buyer",
                item="4",
                raises=refused("no-buyer", "order 4 has no customer: deleted at their own wish"),
            ),
        ),
    ),
    Case(
        name="join/session-expired",
        shape=join,
        kind=Kind.LOGIN,
        why="The warehouse wants a new session for every order; no order is at fault itself.",
        ends=Ends.STOPPED,
        unsafe=(poison({"pieces": 0, "reserved": 0}), lossy(), lossy(SKIP_ALIKE)),
        replies={f"stock[{order}]": EXPIRED for order in range(1, 5)},
    ),
    Case(
        name="join/no-right",
        shape=join,
        kind=Kind.KEY,
        why="The key has no right to read stocks: all orders are refused until somebody grants it.",
        ends=Ends.STOPPED,
        unsafe=(lossy(), lossy(SKIP_ALIKE)),
        faults=(Fault(at="stock", raises=status(403, "403 Forbidden: the key lacks stock:read")),),
    ),
)
