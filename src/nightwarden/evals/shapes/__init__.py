"""The reference shapes, small: each a workflow whose steps call the world of a case.

    pages     addresses ─[*]▶ page ─▶ entry ─[]▶ table          fan-out, a reply to read
    poster    describe ─▶ paint ─▶ check ─▶ upscale ─▶ publish ─▶ notify    costly, one effect
    nightly   documents ─▶ pieces (streams) ─▶ vector ─▶ stored ─[]▶ counted ─[]▶ night
    join      orders ─▶ buyer, stock ─▶ offer ─[]▶ offers
    loop      loop ⇄ add, more ─▶ closing
    nested    shops ─▶ shelves (fan out again) ─▶ price ─[]▶ shop ─[]▶ prices

Read next: `pages.py`.
"""

from nightwarden.evals.shapes.join import join
from nightwarden.evals.shapes.loop import loop
from nightwarden.evals.shapes.nested import nested
from nightwarden.evals.shapes.nightly import nightly
from nightwarden.evals.shapes.pages import pages
from nightwarden.evals.shapes.poster import poster

__all__ = ["join", "loop", "nested", "nightly", "pages", "poster"]
