"""The report on an archive in Markdown, as HTML, and as a picture."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

from jmsaio.cli.common.output import printable
from jmsaio.cli.spark.letter_table import escape_markdown, markdown_table

Summary = Mapping[str, Any]
#: Maximum number of lines in a table, of bars in a panel of the picture, and of characters of a bar's label.
_LINES, _BARS, _LABEL = 400, 40, 36
# Pixels of the picture.
_WIDTH, _LEFT, _RIGHT, _STEP, _BAR, _TITLE = 760, 270, 640, 20, 12, 40
#: Length of a period in the text of a day, such as 2026-01-31.
_PERIODS: Final = {"day": 10, "month": 7, "year": 4}
#: Characters that XML does not allow, except those that are escaped for the terminal.
_NO_XML: Final = re.compile("[\ufffe\uffff]")
_STYLE: Final = (
    "body{font-family:sans-serif;max-width:60em;margin:2em auto}table{border-collapse:collapse}"
    "th,td{border:1px solid #ccc;padding:.2em .6em;text-align:left;overflow-wrap:anywhere}"
)


def _title(summary: Summary) -> str:
    return printable(f"Archive of {summary['destination']}")


def _facts(summary: Summary) -> list[str]:
    """Return the totals, and the filters of the archive, as sentences."""
    facts = [f"{summary['rows']} messages with {summary['bytes']} bytes of bodies, archived in {summary['runs']} runs."]
    if summary["first"] is not None:
        facts.append(f"Published {summary['first']} to {summary['last']} (UTC).")
    facts += [f"Archived with {name} {summary[name]}." for name in ("selector", "since", "until") if summary[name]]
    if summary["undecodable"]:
        facts.append(f"{summary['undecodable']} messages can't be decoded completely.")
    return [printable(fact) for fact in facts]


def _tables(summary: Summary) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield the title and the lines of each table. The first line is the head; an empty table has no other."""
    period, days = _periods(summary["days"], _LINES)
    sizes = [summary["sizes"]] if summary["sizes"] else []
    gaps = [[gap] for gap in (*summary["problems"], *(f"lost: {each}" for each in summary["lost"]))]
    letters = [list(row.values()) for row in summary["dead_letters"]]
    largest = [list(row.values()) for row in summary["largest"]]
    types = [list(row.values()) for row in summary["types"]]
    for title, head, rows in (
        (f"Messages per {period}", [period, "messages", "bytes"], days),
        ("Types", ["JMSType", "body_type", "messages", "bytes"], types),
        ("Sizes", ["smallest", "lower quartile", "median", "upper quartile", "largest"], sizes),
        ("Largest messages", ["bytes", "JMSMessageID", "JMSType", "topic", "position"], largest),
        ("Gaps", ["gap"], gaps),
        ("Dead letters", ["origin", "messages", "bytes"], letters),
    ):
        more = f" (the first {_LINES} of {len(rows)})" if len(rows) > _LINES else ""
        yield title + more, [head, *([_text(each) for each in row] for row in rows[:_LINES])]


def _text(value: object) -> str:
    return "" if value is None else printable(str(value))


def _periods(days: Sequence[Summary], most: int) -> tuple[str, list[tuple[str | None, int, int]]]:
    """Return messages and bytes per day, month or year: the first of which there are at most ``most``, else years."""
    period = next((one for one in _PERIODS if len({_in_period(row, one) for row in days}) <= most), "year")
    messages, sizes = Counter[str | None](), Counter[str | None]()
    for row in days:
        messages[_in_period(row, period)] += row["messages"]
        sizes[_in_period(row, period)] += row["bytes"]
    return period, [(key, count, sizes[key]) for key, count in messages.items()]


def _in_period(row: Summary, period: str) -> str | None:
    day: str | None = row["day"]
    return None if day is None else day[: _PERIODS[period]]


def markdown(summary: Summary) -> str:
    """Write the report in Markdown."""
    parts = [f"# {escape_markdown(_title(summary))}", *map(escape_markdown, _facts(summary))]
    for title, lines in _tables(summary):
        parts += [f"## {title}", markdown_table(lines) if len(lines) > 1 else "None."]
    return "\n\n".join(parts) + "\n"


def html(summary: Summary) -> str:
    """Write the report, with the picture, as an HTML page that needs no other file."""
    title = escape(_title(summary))
    head = f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{title}</title>'
    parts = [f"{head}<style>{_STYLE}</style></head>\n<body>\n<h1>{title}</h1>"]
    parts += [f"<p>{escape(fact)}</p>" for fact in _facts(summary)]
    parts.append(svg(summary))
    for name, (header, *lines) in _tables(summary):
        parts.append(f"<h2>{escape(name)}</h2>")
        rows = [_row("th", header), *(_row("td", line) for line in lines)]
        parts.append("\n".join(["<table>", *rows, "</table>"]) if lines else "<p>None.</p>")
    return "\n".join([*parts, "</body>\n</html>\n"])


def _row(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"


def svg(summary: Summary) -> str:
    """Draw the report as SVG: bars for messages and bytes per day, month or year, types, and dead letters."""
    period, days = _periods(summary["days"], _BARS)
    types = [(" ".join(filter(None, (row["JMSType"], row["body_type"]))), row["messages"]) for row in summary["types"]]
    letters = [(row["origin"].removeprefix("persistent://"), row["messages"]) for row in summary["dead_letters"]]
    parts, y = [f'<text x="10" y="24" font-size="16">{_xml(_title(summary))}</text>'], 30
    for title, bars in (
        (f"messages per {period}", [(key or "unknown", messages) for key, messages, _ in days]),
        (f"bytes per {period}", [(key or "unknown", size) for key, _, size in days]),
        ("messages by type", types),
        ("dead letters by origin", letters),
    ):
        if bars:
            parts += _panel(title, bars[:_BARS], y)
            y += _TITLE + _STEP * len(bars[:_BARS])
    y += 10
    size = f'viewBox="0 0 {_WIDTH} {y}" width="{_WIDTH}" height="{y}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="13" fill="#222">'
    return "\n".join([head, f'<rect width="{_WIDTH}" height="{y}" fill="#fff"/>', *parts, "</svg>\n"])


def _panel(title: str, bars: Sequence[tuple[str, int]], top: int) -> Iterator[str]:
    end = max(1, *(value for _, value in bars))
    yield f'<text x="10" y="{top + 28}" font-weight="bold">{title}</text>'
    for number, (label, value) in enumerate(bars):
        y = top + _TITLE + _STEP * number
        width = (_RIGHT - _LEFT) * value / end
        yield f'<text x="{_LEFT - 10}" y="{y + 11}" text-anchor="end">{_xml(printable(label)[-_LABEL:])}</text>'
        yield f'<rect x="{_LEFT}" y="{y}" width="{width:.1f}" height="{_BAR}" fill="#4c8bc4"/>'
        yield f'<text x="{_RIGHT + 10}" y="{y + 11}">{value}</text>'


def _xml(text: str) -> str:
    return escape(_NO_XML.sub("\ufffd", text))


def _json(summary: Summary) -> str:
    return json.dumps(summary, ensure_ascii=False) + "\n"


#: Functions that write a report, by the ending of a file's name.
WRITERS: Final[Mapping[str, Callable[[Summary], str]]] = {"md": markdown, "html": html, "svg": svg, "json": _json}
