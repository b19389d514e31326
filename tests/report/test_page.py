"""The page: valid HTML that shows every text as it is, and needs nothing from outside."""

import re

import html5lib
import pytest
from rich.table import Column, Table

from budgetreg.figures.page import PageImage, PagePart, PageTable, Section, html, page_table

ODD = "<script>x</script> & \"quoted\" 'single' {{ 7 * 7 }} \x1b[31m \udcff </td></table>"
SHOWN = "<script>x</script> & \"quoted\" 'single' {{ 7 * 7 }} \\x1b[31m \\udcff </td></table>"


def page(*sections: Section) -> str:
    return html("title", "1.2", sections).decode()


def whole(text: str) -> Section:
    """Return a section with a text in every place where one can be."""
    grid = PageTable(text, (text, "number"), (((text, "1"),),), (False, True), (text,))
    picture = PageImage("data:,", 1, 1, text, (text,), (text,))
    return Section(text, text, (text,), (text,), (PagePart(text, (text,), (text,), (picture,), (grid,), folded=True),))


def elements(content: str) -> list[tuple[str, str, str]]:
    """Return name, text and alternative text of all elements; the parser raises if the page is no valid HTML."""
    tree = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(content)
    return [
        (element.tag, "".join(element.itertext()), element.get("alt", ""))
        for element in tree.iter()
        if isinstance(element.tag, str)
    ]


@pytest.mark.parametrize("sections", [1, 2])
def test_text_that_looks_like_html_is_shown_and_adds_no_element(sections: int) -> None:
    odd, plain = (elements(page(*[whole(text)] * sections)) for text in (ODD, "PLAIN"))
    assert odd == [(tag, text.replace("PLAIN", SHOWN), alt.replace("PLAIN", SHOWN)) for tag, text, alt in plain]
    assert sum(text == SHOWN for _, text, _ in odd) >= 8 * sections
    assert ("img", "", f"{SHOWN}. The tables of this section hold its numbers.") in odd


def test_the_page_asks_for_nothing_from_outside() -> None:
    content = page(whole("plain"))
    assert not re.findall(r"""(?:src|href|action|data)\s*=\s*["'](?!#|data:)""", content)
    assert not re.findall(r"@import|url\(|<script|http:|https:", content)


def test_every_name_on_the_page_is_unique() -> None:
    names = re.findall(r'\bid="([^"]+)"', page(whole("a"), whole("a"), whole("a")))
    assert len(names) == len(set(names)) > 6


def test_long_tables_are_closed_at_first() -> None:
    def table(rows: int) -> PageTable:
        return PageTable("long", ["number"], [[[str(row)] for row in range(rows)]], [True])

    for tables, closed in (((table(60),), False), ((table(61),), True), ((table(31), table(30)), True)):
        content = page(Section("t", "k", parts=[PagePart("p", tables=tables)]))
        assert content.count("<details>") == closed
        assert content.count("</details>") == closed


def test_a_table_of_a_command_keeps_its_rows_groups_and_notes() -> None:
    table = Table("k", Column("learner"), Column("error", justify="right"), title="here", caption="one\ntwo")
    for cells in (("1", "a", "0.1"), ("2", "b", "0.2")):
        table.add_row(*cells, end_section=True)
    grid = page_table(table, notes=["first"])
    assert grid == PageTable(
        "here",
        ["k", "learner", "error"],
        [[["1", "a", "0.1"]], [["2", "b", "0.2"]]],
        [False, False, True],
        ["first", "one", "two"],
        named_by=1,
    )
    assert '<th scope="row">b</th>' in page(Section("t", "k", parts=[PagePart("p", tables=[grid])]))
