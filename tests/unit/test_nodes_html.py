"""html.Extract: what is the main part of a page, and what is none."""

from __future__ import annotations

import json
import pydoc
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from nightwarden.errors import NodeError, RecoverableError
from nightwarden.nodes.builtin._page import Page
from nightwarden.nodes.builtin.html import Article, extract, plain_text

PROSE = "The kettle stands on the stove and hums while the water slowly comes to the boil. "
MENU = "".join(f'<a href="/{n}">Category number {n}</a> ' for n in range(60))


def page_of(html: str, **fields: object) -> Page:
    given = {
        "url": "https://shop.test/a",
        "final_url": "https://shop.test/b/c",
        "status": 200,
        "content_type": "text/html",
        "text": html,
    }
    return Page(**(given | fields))


def test_the_sample_page_is_read_as_a_careful_reader_reads_it(samples: Path) -> None:
    article = extract((samples / "article.html").read_text(encoding="utf-8"))
    expected = json.loads((samples / "expected.json").read_text(encoding="utf-8"))["article.html"]
    assert [word for word in expected["text_has"] if word not in article.body] == []
    assert [word for word in expected["text_lacks"] if word in article.body] == []
    assert article.title == "Kettles"
    assert article.body.split("\n") == [
        "Kettles",
        "First part of the text",
        "Second part of the text",
        "1\t2",
        "3",
    ]


def test_the_first_main_counts_however_short() -> None:
    assert extract("<main>yes</main><main>no, and much longer</main>").body == "yes"


def test_main_as_text_of_a_script_is_no_main() -> None:
    assert extract("<script>'<main>no</main>'</script><main>yes</main>").body == "yes"


@pytest.mark.parametrize(
    "html",
    [
        "<div role=main>{}</div>",
        "<article>{}</article>",
        "<div id=content>{}</div>",
        '<div class="col entry-content">{}</div>',
        "<div itemprop=articleBody>{}</div>",
    ],
)
def test_the_main_part_is_found_by_what_sites_call_it(html: str) -> None:
    text = PROSE * 4
    page = f"<html><body><div>Side remark</div>{html.format(text)}<div>{MENU}</div></body></html>"
    assert extract(page).body == text.strip()


def test_several_articles_of_like_length_are_a_list_not_the_main_part() -> None:
    items = "".join(f"<article><h2>Item {n}</h2><p>{PROSE * 2}</article>" for n in range(3))
    body = extract(f"<body>{items}</body>").body
    assert all(f"Item {n}" in body for n in range(3))


def test_an_article_with_short_comments_as_articles_is_the_main_part() -> None:
    page = f"<article><p>{PROSE * 5}</article><article>me too</article>"
    assert "me too" not in extract(page).body


@pytest.mark.parametrize(
    "unwanted",
    [
        "<!-- skip me -->",
        "<script>skip me</script>",
        "<style>skip me</style>",
        "<noscript>skip me</noscript>",
        "<template>skip me</template>",
        "<nav>skip me</nav>",
        "<footer>skip me</footer>",
        "<aside>skip me</aside>",
        "<button>skip me</button>",
        "<select><option>skip me</select>",
        "<textarea>skip me</textarea>",
        "<svg><title>skip me</title></svg>",
        "<dialog open>skip me</dialog>",
        "<p hidden>skip me</p>",
        "<p aria-hidden=true>skip me</p>",
        '<p style="color: red; DISPLAY : none">skip me</p>',
        '<p style="visibility:hidden">skip me</p>',
        '<div class="cookieConsent">skip me <button>OK</button></div>',
        "<div role=alertdialog>skip me</div>",
    ],
)
def test_what_one_does_not_read_there_is_no_text(unwanted: str) -> None:
    assert extract(f"<main>Before {unwanted}<p>After</main>").body == "Before\nAfter"


@pytest.mark.parametrize("name", ["cookie-banner", "js-consent", "gdprNotice", "CookieBar"])
def test_consent_banners_are_known_by_name_outside_the_main_part(name: str) -> None:
    page = f'<body><div id="{name}">We value your privacy.</div><p>{PROSE * 4}</p></body>'
    assert "privacy" not in extract(page).body


def test_a_section_about_cookies_is_no_consent_banner() -> None:
    page = (
        f'<main><h1>HTTP</h1><section id="cookie-objects"><h2>Cookies</h2>{PROSE}</section></main>'
    )
    assert "Cookies" in extract(page).body


def test_blocks_stand_on_lines_of_their_own_and_inline_markup_does_not_part_words() -> None:
    page = "<main><h1>A <i>b</i>c</h1><ul><li>one<li>two</ul>x<br>y<div>p<div>q</div>r</div></main>"
    assert extract(page).body.split("\n") == ["A bc", "one", "two", "x", "y", "p", "q", "r"]


def test_preformatted_text_keeps_its_blanks_and_lines() -> None:
    assert extract("<main>see  <pre>if x:\n    y\n</pre></main>").body == "see\nif x:\n    y"


def test_cells_are_parted_by_tabs() -> None:
    table = "<main><table><tr><th>n<th>sq<tr><td>2<td> 4 </table></main>"
    assert extract(table).body == "n\tsq\n2\t4"


def test_deep_nesting_is_no_trouble() -> None:
    assert extract(f"<main>{'<div><b>' * 3000}deep</main>").body == "deep"


@pytest.mark.parametrize("module", ["json", "textwrap", "http.cookies"])
def test_pages_laid_out_in_tables_have_their_whole_text_as_main_part(module: str) -> None:
    html = pydoc.HTMLDoc()
    thing = pydoc.locate(module)
    page = html.page(pydoc.describe(thing), html.document(thing, module))
    article = extract(page)
    assert module in article.title
    assert len(article.body) > 2_000
    assert "|" not in article.body.split("\n")[0]


def test_a_page_made_of_blocks_is_told_from_its_furniture() -> None:
    blocks = "".join(
        f"<p>{PROSE}Sentence {n} goes on about kettles, cups and pans.</p>" for n in range(8)
    )
    menu = "".join(f"<li><a href=/{n}>Link {n}</a>" for n in range(30))
    page = (
        f"<html><body><div class=menu><ul>{menu}</ul></div>"
        f"<div class=story><h1>Kettles</h1>{blocks}</div></body></html>"
    )
    body = extract(page).body
    assert "Sentence 7" in body
    assert "Link 29" not in body


@pytest.mark.parametrize(
    ("html", "why"),
    [
        (f"<body><header>Shop</header><nav>{MENU}</nav><p>Welcome!</p></body>", "navigation"),
        (f"<body><div>{MENU}</div></body>", "navigation"),
        ("<html><body><main></main><script>render()</script></body></html>", "0 characters"),
        ("<main><h1>Log in</h1><form><input type=password></form></main>", "login form"),
        ("<body><form>Name <input name=n> Password <input type=password></form></body>", "login"),
    ],
)
def test_a_page_without_a_main_part_is_our_own_rule(html: str, why: str) -> None:
    """dependencies.md: "no main part" is our own rule, raised as RecoverableError."""
    with pytest.raises(RecoverableError, match="has no main part") as caught:
        extract(page_of(html))
    assert caught.value.code == "no-main"
    assert why in str(caught.value)
    assert "https://shop.test/b/c" in str(caught.value)


def test_a_failure_carries_a_candidate_of_the_declared_type() -> None:
    with pytest.raises(RecoverableError) as caught:
        extract(page_of("<title>Shop</title><body><p>Welcome!</p></body>"))
    candidate = caught.value.candidate_output
    shape = TypeAdapter(Article)
    repaired = shape.validate_json(json.dumps(candidate), strict=True)
    assert repaired == Article(title="Shop", body="Welcome!", url="https://shop.test/b/c")


def test_how_much_text_an_unmarked_page_needs_can_be_set() -> None:
    assert extract("<body><p>Welcome!</p></body>", min_chars=5).body == "Welcome!"


@pytest.mark.parametrize(
    ("html", "how"),
    [
        (f"<html><body><main>{PROSE}<p cla", "inside a tag"),
        (f"<html><body><main>{PROSE}</", "inside a tag"),
        (f"<main>{PROSE}</main><script>let x = '<a>'", "inside <script>"),
        (f"<main>{PROSE}</main><!-- then", "inside a comment"),
        ("<html><head><title>Ket", "inside <title>"),
    ],
)
def test_a_page_that_ends_in_the_middle_is_cut_off_and_repairable(html: str, how: str) -> None:
    with pytest.raises(RecoverableError, match=how) as caught:
        extract(html)
    assert caught.value.code == "cut-off"
    assert set(caught.value.candidate_output) == {"title", "body", "url", "links", "language"}


@pytest.mark.parametrize(
    "html",
    [
        "<main>1 < 2</main>",
        "<main>yes</main><script><!-- x </script>",
        "<main>yes</main><script>'<script>'</script>",
        "<main>yes",
    ],
)
def test_signs_of_an_end_that_are_none_do_not_matter(html: str) -> None:
    assert extract(html).body


def test_a_careful_author_can_ask_for_the_closing_tag() -> None:
    assert extract("<html><main>yes</main></HTML>\n", require_end=True).body == "yes"
    with pytest.raises(RecoverableError, match="no closing </html>"):
        extract("<html><main>yes</main>", require_end=True)


@pytest.mark.parametrize(
    ("page", "code"),
    [
        ("", "empty-page"),
        (" \n\t", "empty-page"),
        ("just words, 1 < 2", "not-html"),
        ('{"a": 1}', "not-html"),
        ("https://shop.test/", "not-html"),
        (page_of('{"a": 1}', content_type="application/json"), "not-html"),
        (page_of("", content_type="image/png", content=b"\x89"), "not-html"),
    ],
)
def test_what_is_no_page_is_a_clear_error(page: Page | str, code: str) -> None:
    with pytest.raises(NodeError) as caught:
        extract(page)
    assert caught.value.code == code
    assert not isinstance(caught.value, RecoverableError)


def test_links_are_absolute_each_once_and_those_of_the_main_part() -> None:
    page = page_of(
        "<nav><a href=/menu>m</a></nav><main><a href=d#top>1</a><a href='../e'>2</a><a href=d>3</a>"
        "<a href='mailto:x@y.test'>4</a><a href='javascript:0'>5</a><a href='http://[x'>6</a>"
        "<a href=' https://other.test/ '>7</a></main>"
    )
    assert extract(page).links == (
        "https://shop.test/b/d",
        "https://shop.test/e",
        "https://other.test/",
    )


def test_links_follow_the_base_a_page_declares() -> None:
    page = page_of("<base href='https://cdn.test/x/'><main><a href=y>1</a></main>")
    assert extract(page).links == ("https://cdn.test/x/y",)


@pytest.mark.parametrize(
    ("head", "title"),
    [
        ("<title> Kettles &amp;\n cups </title>", "Kettles & cups"),
        ("<meta property=og:title content=Pans>", "Big kettle"),
    ],
)
def test_the_title_is_the_pages_own_or_its_first_heading(head: str, title: str) -> None:
    assert extract(f"{head}<main><h1>Big <b>kettle</b></h1></main>").title == title


def test_the_title_of_a_picture_is_not_the_pages() -> None:
    picture = "<svg><g><title>Arrow</title></g></svg>"
    assert extract(f"<main>{picture}<h1>Kettles</h1></main>").title == "Kettles"
    assert extract(f"<main>{picture}no heading</main>").title == ""


def test_the_language_is_what_the_page_says() -> None:
    assert extract("<html lang='de-AT'><main>Servus</main>").language == "de-at"


def test_plain_text_takes_markup_out_of_fragments() -> None:
    assert plain_text("<b>Sale</b> – half&nbsp;price &amp; more") == "Sale – half price & more"
    assert plain_text("Pots & pans") == "Pots & pans"
    assert plain_text(None) == ""
