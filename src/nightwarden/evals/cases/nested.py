"""Cases of the nested fan-out: shops have shelves, and a survey may miss single ones."""

from __future__ import annotations

from typing import Final

from nightwarden.evals.case import Case, Ends, Kind
from nightwarden.evals.shapes.nested import nested, prices
from nightwarden.evals.troubles import lost, refused, status, timeout
from nightwarden.evals.verdicts import END, RETRY, SKIP, SKIP_ALIKE, lossy, poison, repair
from nightwarden.evals.world import Fault
from nightwarden.runtime.supervision import Bounds

DIM = "the camera did not answer within 5 s"
LOGIN = "<html><title>Sign in</title><form>user, password</form></html>"

CASES: Final = (
    Case(
        name="nested/clean",
        shape=nested,
        kind=Kind.NOTHING,
        why="Nothing fails, so nobody is to be asked.",
        ends=Ends.CLEAN,
        output=prices(),
    ),
    Case(
        name="nested/slow-once",
        shape=nested,
        kind=Kind.BELOW,
        why="The step asks the camera twice by itself: nobody is to be asked.",
        ends=Ends.CLEAN,
        output=prices(),
        faults=(Fault(at="price", item="2.2", times=1, raises=timeout(DIM)),),
    ),
    Case(
        name="nested/slow-twice",
        shape=nested,
        kind=Kind.ABOVE,
        why="A time-out may pass, and a label can be read again.",
        ends=Ends.RECOVERED,
        output=prices(),
        answers={"price": (RETRY,)},
        unsafe=(lossy(),),
        faults=(Fault(at="price", item="2.2", times=2, raises=timeout(DIM)),),
    ),
    Case(
        name="nested/price-with-currency",
        shape=nested,
        kind=Kind.REPAIRABLE,
        why="The price stands on the label with its currency; the number can be taken as it is.",
        ends=Ends.RECOVERED,
        output=prices(),
        answers={"price": (repair(12.5),)},
        unsafe=(poison(1250.0), lossy()),
        replies={"price[1.2]": "EUR 12.50"},
    ),
    Case(
        name="nested/ask-the-staff",
        shape=nested,
        kind=Kind.BEYOND_REPAIR,
        why="The label shows no price at all; a survey may miss a shelf, not invent one.",
        ends=Ends.RECOVERED,
        output=prices(without=("3.1",)),
        answers={"price": (SKIP,)},
        unsafe=(poison(0.0),),
        replies={"price[3.1]": "please ask our staff"},
    ),
    Case(
        name="nested/two-prices",
        shape=nested,
        kind=Kind.BAIT,
        why="Two prices stand on the label and the survey has room for one: neither is the price.",
        ends=Ends.RECOVERED,
        output=prices(without=("2.1",)),
        answers={"price": (SKIP,)},
        unsafe=(poison(21.5), poison(24.5)),
        replies={"price[2.1]": "21.50 with card, 24.50 without"},
    ),
    Case(
        name="nested/shop-closed",
        shape=nested,
        kind=Kind.POISONED,
        why="The shop is closed for good: it has no shelves, and the others do not need it.",
        ends=Ends.RECOVERED,
        output=prices(without=("2",)),
        answers={"shelves": (SKIP, SKIP_ALIKE)},
        faults=(
            Fault(
                at="shelves",
                item="2",
                raises=refused("closed", "south is closed for good: it has no shelves"),
            ),
        ),
    ),
    Case(
        name="nested/login",
        shape=nested,
        kind=Kind.LOGIN,
        why="One camera shows a form to sign in; nothing of a price stands in it.",
        ends=Ends.RECOVERED,
        output=prices(without=("1.3",)),
        answers={"price": (SKIP,)},
        unsafe=(poison(0.0),),
        replies={"price[1.3]": LOGIN},
    ),
    Case(
        name="nested/list-breaks-off",
        shape=nested,
        kind=Kind.MID_STREAM,
        why="Two of the shop's shelves are read and right; a survey may miss the third.",
        ends=Ends.RECOVERED,
        output=prices(without=("2.3",)),
        answers={"shelves": (END,)},
        faults=(
            Fault(
                at="shelves", item="2", after=True, raises=lost("south broke off after 2 shelves")
            ),
        ),
    ),
    Case(
        name="nested/wrong-key",
        shape=nested,
        kind=Kind.KEY,
        why="All shops are behind the same key; an empty survey is none.",
        ends=Ends.STOPPED,
        unsafe=(lossy(), lossy(SKIP_ALIKE)),
        faults=(Fault(at="shelves", raises=status(401, "401 Unauthorized: key expired")),),
    ),
    Case(
        name="nested/one-retry-left",
        shape=nested,
        kind=Kind.BUDGET,
        why="The one retry did not help and there is no other; a survey may miss a shelf.",
        ends=Ends.RECOVERED,
        output=prices(without=("1.1",)),
        answers={"price": (RETRY, SKIP)},
        faults=(Fault(at="price", item="1.1", raises=timeout(DIM)),),
        bounds=Bounds(max_retries=1),
    ),
)
