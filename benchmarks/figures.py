"""The figures that the guide shows: jmsaio and its peers, taken from reports and kept in a small file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import attrs

from benchmarks.report import Report
from benchmarks.statistics import Spread, paired_ratios, spread

#: Facts of a report's environment that are kept.
_FACTS = ("jmsaio", "python", "pulsar-client", "cores")


@attrs.frozen
class Pair:
    """Two rows that are compared.

    Attributes:
        label: what the chart calls the comparison.
        row: name of the row of jmsaio.
        reference: name of the row it is compared with.
        metric: what is compared.
    """

    label: str
    row: str
    reference: str
    metric: str = "per_second"


#: What is shown, by the title of its part of the chart.
PARTS = {
    "Rate: longer is better": (
        Pair("send_async / raw pulsar-client", "send.jmsaio", "send.raw"),
        Pair("send_async / floor", "send.jmsaio", "send.floor"),
        Pair("1,000 workers / raw pulsar-client", "send.jmsaio-workers", "send.raw"),
        Pair("1,000 workers / floor", "send.jmsaio-workers", "send.floor"),
        Pair("receive / raw pulsar-client", "receive.jmsaio", "receive.raw"),
        Pair("receive / floor", "receive.jmsaio", "receive.floor"),
        Pair("embedded broker / bare loop", "embedded.through", "embedded.bare"),
    ),
    "Rate on the transport wire: longer is better": (
        Pair("wire: send_async / raw pulsar-client", "send.wire", "send.raw"),
        Pair("wire: send_async / Java", "send.wire", "send.java"),
        Pair("wire: 1,000 workers / raw pulsar-client", "send.wire-workers", "send.raw"),
        Pair("wire: receive / raw pulsar-client", "receive.wire", "receive.raw"),
        Pair("wire: receive / Java", "receive.wire", "receive.java"),
        Pair("wire: listener / raw pulsar-client", "receive.wire-listener", "receive.raw"),
    ),
    "Transactions: longer is better": (
        Pair("transactions, one after another / Java", "transaction.wire", "transaction.java"),
        Pair("transactions in 50 sessions / Java", "transaction.wire-50", "transaction.java-50"),
        Pair("transactions of 100 messages / Java", "transaction.wire-messages", "transaction.java-messages"),
    ),
    "Latency and CPU of a message: shorter is better": (
        Pair("latency at 1,000/s / raw pulsar-client", "latency.jmsaio", "latency.raw", "p50_ms"),
        Pair("CPU at 1,000/s / raw pulsar-client", "latency.jmsaio", "latency.raw", "cpu_us"),
        Pair("layer: send_async / bare loop", "layer.send", "layer.bare-send", "cpu_us"),
        Pair("layer: 1,000 workers / bare loop", "layer.workers", "layer.bare-send", "cpu_us"),
        Pair("layer: receive / bare loop", "layer.receive", "layer.bare-receive", "cpu_us"),
        Pair("layer: listener / bare loop", "layer.listener", "layer.bare-receive", "cpu_us"),
    ),
    "Latency and CPU on the transport wire: shorter is better": (
        Pair("wire: latency at 1,000/s / raw", "latency.wire", "latency.raw", "p50_ms"),
        Pair("wire: CPU at 1,000/s / raw", "latency.wire", "latency.raw", "cpu_us"),
        Pair("wire: send_async / layer", "send.wire", "layer.send", "cpu_us"),
        Pair("wire: receive / layer", "receive.wire", "layer.receive", "cpu_us"),
    ),
    "CPU of a message on uvloop: shorter is better": (
        Pair("layer: send_async / asyncio", "layer.send-uvloop", "layer.send", "cpu_us"),
        Pair("layer: 1,000 workers / asyncio", "layer.workers-uvloop", "layer.workers", "cpu_us"),
        Pair("layer: receive / asyncio", "layer.receive-uvloop", "layer.receive", "cpu_us"),
        Pair("layer: listener / asyncio", "layer.listener-uvloop", "layer.listener", "cpu_us"),
    ),
    "Spark, rows a second: longer is better": (
        Pair("one task / loop by hand", "spark.read-one", "spark.loop-columns"),
        Pair("one task on wire / on pulsar-client", "spark.read-wire", "spark.read-one"),
        Pair("two tasks / one task", "spark.read-two", "spark.read-one"),
        Pair("three columns / all columns", "spark.three", "spark.read-one"),
        Pair("three without properties / all columns", "spark.three-raw", "spark.read-one"),
        Pair("1,000 rows of 10 topics / of one", "spark.topics-10", "spark.topics-1"),
        Pair("1,000 rows of 100 topics / of one", "spark.topics-100", "spark.topics-1"),
        Pair("1,000 rows of 100 partitions / of one topic", "spark.partitions-100", "spark.topics-1"),
        Pair("write, one task / raw send_async", "spark.write", "spark.send-raw"),
    ),
}


@attrs.frozen
class Compared:
    """Figures of a pair.

    Attributes:
        ratio: ratio of row to reference; each is taken inside a round.
        row: median of the row itself, in the unit of the pair's metric.
        reference: median of the reference itself.
    """

    ratio: Spread
    row: float
    reference: float


@attrs.frozen
class Figures:
    """What was measured.

    Attributes:
        facts: versions and machine.
        loop: event loop of the asyncio rows.
        load: load average before the measurements.
        pairs: figures of all rounds by the label of their pair, in the order of ``PARTS``.
    """

    facts: dict[str, str]
    loop: str
    load: Spread
    pairs: dict[str, Compared]

    def parts(self) -> Iterator[tuple[str, dict[Pair, Compared]]]:
        """Title and measured pairs of each part that has any."""
        for title, pairs in PARTS.items():
            found = {pair: self.pairs[pair.label] for pair in pairs if pair.label in self.pairs}
            if found:
                yield title, found


def figures_of(reports: Sequence[Report]) -> Figures:
    """Return the figures of one or several runs; a ratio is taken inside each round of a run.

    Raises ValueError without a ratio to show, and for runs on different loops.
    """
    loops = sorted({report.loop for report in reports})
    pairs = {pair.label: found for part in PARTS.values() for pair in part if (found := _compared(reports, pair))}
    load = spread(sample.load for report in reports for sample in report.samples)
    if not pairs or load is None:
        raise ValueError("the reports have no ratio to show; measure with a broker, or --only '^(layer|embedded)'")
    if len(loops) > 1:
        raise ValueError(f"the reports are of different event loops, {' and '.join(loops)}; give those of one")
    facts = {name: reports[-1].environment.get(name, "") for name in _FACTS}
    return Figures(facts, loops[0], load, pairs)


def _compared(reports: Sequence[Report], pair: Pair) -> Compared | None:
    """Return the figures of a pair in all rounds, or None where it was not measured."""

    def values(report: Report, name: str) -> dict[int, float]:
        found = (sample for sample in report.samples if sample.scenario == name and pair.metric in sample.metrics)
        return {sample.round: sample.metrics[pair.metric] for sample in found}

    rounds = [(values(report, pair.row), values(report, pair.reference)) for report in reports]
    ratio = spread(ratio for row, reference in rounds for ratio in paired_ratios(row, reference))
    if ratio is None:
        return None
    row, reference = (median(value for run in rounds for value in run[side].values()) for side in (0, 1))
    return Compared(ratio, row, reference)


def write_figures(figures: Figures, file: Path) -> None:
    """Keep figures in a file. Raises OSError."""
    data = attrs.asdict(figures)
    for values in (data["load"], *(pair["ratio"] for pair in data["pairs"].values())):
        values |= {name: round(values[name], 2) for name in ("median", "low", "high")}
    for pair in data["pairs"].values():
        pair |= {name: round(pair[name], 2) for name in ("row", "reference")}
    lines = [f"  {json.dumps(label)}: {json.dumps(values)}" for label, values in data.pop("pairs").items()]
    head = [f" {json.dumps(name)}: {json.dumps(value)}," for name, value in data.items()]
    text = "\n".join(["{", *head, ' "pairs": {', ",\n".join(lines), " }", "}"])
    file.write_text(f"{text}\n", encoding="utf-8")


def read_figures(file: Path) -> Figures:
    """Read what ``write_figures`` wrote. Raises OSError."""
    data = json.loads(file.read_text(encoding="utf-8"))
    pairs = {
        label: Compared(**values | {"ratio": Spread(**values["ratio"])}) for label, values in data["pairs"].items()
    }
    return Figures(data["facts"], data["loop"], Spread(**data["load"]), pairs)
