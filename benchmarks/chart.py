"""``python -m benchmarks.chart [REPORT...]``: the guide's chart and table of figures.

With reports (``python -m benchmarks --json-file``) it takes their figures first and keeps them in ``figures.json``.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from benchmarks.figures import Compared, Figures, Pair, figures_of, read_figures, write_figures
from benchmarks.report import read_json
from benchmarks.scenario import METRICS

_ROOT = Path(__file__).parents[1]
FIGURES = _ROOT / "benchmarks" / "figures.json"
CHART = _ROOT / "jmsaio" / "guide" / "benchmark.svg"
GUIDE = _ROOT / "jmsaio" / "guide" / "benchmark.md"
#: Lines around the generated part of the guide.
BEGIN = "<!-- figures: written by python -m benchmarks.chart -->"
END = "<!-- end of the figures -->"

# Pixels of the picture.
_WIDTH, _LEFT, _RIGHT, _STEP, _BAR, _TITLE = 920, 280, 580, 24, 12, 34
#: Units and digits of the metrics.
_METRICS = {metric.key: metric for metric in METRICS.values()}


def chart(figures: Figures) -> str:
    """Return the picture as SVG: a bar for the median of each ratio, a line from the smallest to the largest."""
    parts: list[str] = []
    y = 10
    for title, pairs in figures.parts():
        parts += _part(title, pairs, y)
        y += _TITLE + _STEP * len(pairs) + 10
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y}" width="{_WIDTH}" height="{y}"',
            ' font-family="sans-serif" font-size="13" fill="#222">',
            "<title>jmsaio beside its peers</title>",
            f'<rect width="{_WIDTH}" height="{y}" fill="#fff"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _part(title: str, pairs: dict[Pair, Compared], top: int) -> Iterable[str]:
    end = max(1.0, math.ceil(2 * max(found.ratio.high for found in pairs.values())) / 2)

    def x(value: float) -> float:
        return round(_LEFT + (_RIGHT - _LEFT) * value / end, 1)

    bottom = top + _TITLE + _STEP * len(pairs)
    yield f'<text x="10" y="{top + 18}" font-weight="bold">{escape(title)}</text>'
    for number, (pair, found) in enumerate(pairs.items()):
        ratio = found.ratio
        y = top + _TITLE + _STEP * number
        middle = y + _BAR / 2
        yield f'<text x="{_LEFT - 10}" y="{y + 11}" text-anchor="end">{escape(pair.label)}</text>'
        yield f'<rect x="{_LEFT}" y="{y}" width="{x(ratio.median) - _LEFT:.1f}" height="{_BAR}" fill="#4c8bc4"/>'
        yield f'<path d="M{x(ratio.low)} {middle}H{x(ratio.high)}" stroke="#222"/>'
        yield f'<text x="{_RIGHT + 10}" y="{y + 11}">{_numbers(pair, found)}</text>'
    yield f'<path d="M{x(1)} {top + 24}V{bottom - 4}" stroke="#c44" stroke-dasharray="4 3"/>'
    yield f'<text x="{x(1)}" y="{top + 20}" text-anchor="middle" fill="#c44">1</text>'


def _numbers(pair: Pair, found: Compared) -> str:
    ratio = found.ratio
    values = " : ".join(_absolute(pair, found))
    return f"{ratio.median:.2f} ({ratio.low:.2f} to {ratio.high:.2f}), {values}"


def _absolute(pair: Pair, found: Compared) -> tuple[str, str]:
    """Return the medians of row and reference with their unit."""
    metric = _METRICS[pair.metric]
    row, reference = (f"{value:,.{metric.digits}f} {metric.unit}" for value in (found.row, found.reference))
    return row, reference


def table(figures: Figures) -> str:
    """Return the chart and its figures in Markdown."""
    facts, load = figures.facts, figures.load
    lines = ["![Ratios of jmsaio to its peers; the table below has the same figures](benchmark.svg)"]
    for title, pairs in figures.parts():
        lines += [
            "",
            f"| {title} | ratio | smallest | largest | rounds | jmsaio | peer |",
            "|---|---|---|---|---|---|---|",
        ]
        lines += [_line(pair, found) for pair, found in pairs.items()]
    measured = f"{facts['python']}, pulsar-client {facts['pulsar-client']}, {figures.loop}, {facts['cores']} cores"
    return "\n".join([*lines, "", f"Measured with {measured}, at a load of {load.low:.1f} to {load.high:.1f}."])


def _line(pair: Pair, found: Compared) -> str:
    ratio = found.ratio
    numbers = f"{ratio.median:.2f} | {ratio.low:.2f} | {ratio.high:.2f} | {ratio.count}"
    return f"| {pair.label} | {numbers} | {' | '.join(_absolute(pair, found))} |"


def guide(text: str, figures: Figures) -> str:
    """Return the guide's text with the part between the two lines rewritten. Raises ValueError without those lines."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the guide lacks the lines {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n\n{table(figures)}\n\n{END}{after}"


def main(reports: Sequence[str]) -> int:
    """Write the chart and the guide's table. Exit status: 0, or 2 for reports that can't be used."""
    try:
        if reports:
            write_figures(figures_of([read_json(report) for report in reports]), FIGURES)
        figures = read_figures(FIGURES)
        CHART.write_text(chart(figures), encoding="utf-8")
        GUIDE.write_text(guide(GUIDE.read_text(encoding="utf-8"), figures), encoding="utf-8")
    except (ValueError, OSError) as error:
        print(f"benchmarks.chart: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
