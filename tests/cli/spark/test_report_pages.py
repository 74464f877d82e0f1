"""The report on an archive in Markdown, as HTML, and as a picture."""

from __future__ import annotations

import datetime
import json
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest

from jmsaio.cli.spark.report_pages import WRITERS, html, markdown, svg

SUMMARY: dict[str, Any] = {
    "destination": "queue://orders", "selector": "a < 1", "since": None, "until": None, "runs": 2, "rows": 5,
    "bytes": 90, "undecodable": 1, "first": "2026-01-30T00:00:00.000Z", "last": "2026-01-31T00:00:00.000Z",
    "days": [
        {"day": "2026-01-30", "messages": 1, "bytes": 10}, {"day": "2026-01-31", "messages": 4, "bytes": 80},
    ],
    "types": [
        {"JMSType": "tea", "body_type": "text", "messages": 4, "bytes": 80},
        {"JMSType": None, "body_type": None, "messages": 1, "bytes": 10},
    ],
    "sizes": [1, 2, 3, 4, 80],
    "largest": [{"bytes": 80, "JMSMessageID": "ID:1", "JMSType": None, "topic": "t", "position": "1:2"}],
    "dead_letters": [{"origin": "persistent://public/default/failed", "messages": 3, "bytes": 60}],
    "problems": ["t: 1 rows are there twice"], "lost": ["1:0 is gone"],
}  # fmt: skip
EMPTY: dict[str, Any] = {
    **SUMMARY, "selector": None, "rows": 0, "bytes": 0, "undecodable": 0, "first": None, "last": None, "problems": [],
    "lost": [], **{part: [] for part in ("days", "types", "sizes", "largest", "dead_letters")},
}  # fmt: skip


def test_markdown_has_a_table_for_each_part() -> None:
    assert (
        markdown(SUMMARY)
        == """\
# Archive of queue://orders

5 messages with 90 bytes of bodies, archived in 2 runs.

Published 2026-01-30T00:00:00.000Z to 2026-01-31T00:00:00.000Z (UTC).

Archived with selector a \\< 1.

1 messages can't be decoded completely.

## Messages per day

| day | messages | bytes |
| --- | --- | --- |
| 2026-01-30 | 1 | 10 |
| 2026-01-31 | 4 | 80 |

## Types

| JMSType | body\\_type | messages | bytes |
| --- | --- | --- | --- |
| tea | text | 4 | 80 |
|  |  | 1 | 10 |

## Sizes

| smallest | lower quartile | median | upper quartile | largest |
| --- | --- | --- | --- | --- |
| 1 | 2 | 3 | 4 | 80 |

## Largest messages

| bytes | JMSMessageID | JMSType | topic | position |
| --- | --- | --- | --- | --- |
| 80 | ID:1 |  | t | 1:2 |

## Gaps

| gap |
| --- |
| t: 1 rows are there twice |
| lost: 1:0 is gone |

## Dead letters

| origin | messages | bytes |
| --- | --- | --- |
| persistent://public/default/failed | 3 | 60 |
"""
    )


def test_an_empty_archive_has_nothing_in_each_part() -> None:
    text = markdown(EMPTY)
    assert text.startswith(
        "# Archive of queue://orders\n\n0 messages with 0 bytes of bodies, archived in 2 runs.\n\n## "
    )
    assert text.count("\n\nNone.") == 6
    assert "Published" not in text
    assert ElementTree.fromstring(svg(EMPTY)).findall(f"{SVG}text") != []


SVG = "{http://www.w3.org/2000/svg}"


def drawn(text: str) -> dict[str, dict[str, tuple[float, str]]]:
    """The bars of a picture by panel and label: width and number."""
    picture = ElementTree.fromstring(text)
    found: dict[str, dict[str, tuple[float, str]]] = {}
    bars: list[float] = [float(each.attrib["width"]) for each in picture.findall(f"{SVG}rect")][1:]
    title, label = "", None
    for each in picture.findall(f"{SVG}text")[1:]:
        if each.get("font-weight"):
            title = each.text or ""
            found[title] = {}
        elif each.get("text-anchor"):
            label = each.text
        else:
            found[title][label or ""] = (bars.pop(0), each.text or "")
    assert bars == []
    return found


def test_the_picture_has_bars_in_proportion() -> None:
    assert drawn(svg(SUMMARY)) == {
        "messages per day": {"2026-01-30": (92.5, "1"), "2026-01-31": (370.0, "4")},
        "bytes per day": {"2026-01-30": (46.2, "10"), "2026-01-31": (370.0, "80")},
        "messages by type": {"tea text": (370.0, "4"), "": (92.5, "1")},
        "dead letters by origin": {"public/default/failed": (370.0, "3")},
    }


@pytest.mark.parametrize(
    ("count", "step", "period", "bars"), [(39, 1, "day", 39), (300, 1, "month", 10), (60, 30, "year", 5)]
)
def test_many_days_become_months_or_years_in_the_picture(count: int, step: int, period: str, bars: int) -> None:
    start = datetime.date(2026, 1, 1)
    days = [str(start + datetime.timedelta(days=number * step)) for number in range(count)]
    rows = [{"day": day, "messages": 1, "bytes": 2} for day in (None, *days)]
    found = drawn(svg({**SUMMARY, "days": rows}))
    counts = {label: int(number) for label, (_, number) in found[f"messages per {period}"].items()}
    assert counts.pop("unknown") == 1
    assert (len(counts), sum(counts.values())) == (bars, count)


def test_bars_and_lines_beyond_the_maximum_are_left_out() -> None:
    types = [{"JMSType": f"{number}", "body_type": "text", "messages": 1, "bytes": 1} for number in range(500)]
    summary = {**SUMMARY, "types": types}
    assert len(drawn(svg(summary))["messages by type"]) == 40
    assert "## Types (the first 400 of 500)\n" in markdown(summary)
    assert "| 399 | text |" in markdown(summary)
    assert "| 400 | text |" not in markdown(summary)


class Page(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


EVIL = "<script>&\x1b[31m\uffff|`x`"


def test_nothing_of_a_message_becomes_markup() -> None:
    summary = {
        **SUMMARY, "types": [{"JMSType": EVIL, "body_type": "text", "messages": 1, "bytes": 1}],
        "dead_letters": [{"origin": EVIL, "messages": 1, "bytes": 1}], "destination": f"queue://{EVIL}",
    }  # fmt: skip
    page = Page(html(summary))
    assert "script" not in page.tags
    assert "<script>&\\x1b[31m\uffff|`x`" in page.texts
    assert "<script>&\\x1b[31m\ufffd|`x` text" in drawn(svg(summary))["messages by type"]
    assert "| \\<script\\>&\\\\x1b\\[31m\uffff\\|\\`x\\` | text |" in markdown(summary)


def test_a_page_has_the_tables_and_the_picture_and_loads_nothing() -> None:
    page = Page(html(SUMMARY))
    assert (page.tags.count("svg"), page.tags.count("table"), page.tags.count("h2")) == (1, 6, 6)
    assert {"script", "link", "img"} & set(page.tags) == set()
    assert {"5 messages with 90 bytes of bodies, archived in 2 runs.", "persistent://public/default/failed"} <= set(
        page.texts
    )
    assert Page(html(EMPTY)).texts.count("None.") == 6


def test_json_is_the_summary() -> None:
    assert json.loads(WRITERS["json"](SUMMARY)) == SUMMARY
