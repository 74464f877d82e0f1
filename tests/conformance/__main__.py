"""``python -m tests.conformance [pytest's options]``: runs the checklist and prints its score by group and broker.

With ``--wire``, Pulsar is reached over that transport, with transactions of its own.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from tests.conformance.exclusions import EXCLUDED
from tests.conformance.kit import checklist

BROKERS = ("memory", "pulsar")


class Score:
    """Collects what each line's tests came to, by broker; a test without a broker counts for both."""

    def __init__(self) -> None:
        self.results: dict[str, dict[str, bool]] = {broker: {} for broker in BROKERS}
        self.native: list[str] = []
        self._tests: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Remember which lines each test keeps, and where."""
        for item in session.items:
            keys = tuple(key for mark in item.iter_markers("tck") for key in mark.args)
            callspec = getattr(item, "callspec", None)
            broker = callspec.params.get("broker_kind") if callspec is not None else None
            native = item.get_closest_marker("not_emulated") is not None
            if broker == "wire" and (native or session.config.option.wire):
                broker = "pulsar"
                self.native += keys if native else ()
            if broker != "wire":  # which has a part of the others
                self._tests[item.nodeid] = (keys, (broker,) if broker is not None else BROKERS)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A line is kept when every test of it passes, set-up and tear-down included."""
        keys, brokers = self._tests.get(report.nodeid, ((), ()))
        for broker in brokers:
            results = self.results[broker]
            for key in keys:
                results[key] = results.get(key, True) and report.passed


def render(score: Score) -> Table:
    """Lines kept of those that apply, by group."""
    table = Table(title="Jakarta Messaging TCK, methods that concern a client library")
    for heading in ("group", "lines", "apply", "embedded", "Pulsar"):
        table.add_column(heading, justify="left" if heading == "group" else "right")
    totals: Counter[str] = Counter()
    groups: dict[str, list[str]] = defaultdict(list)
    for line in checklist():
        groups[line.group].append(line.key)
    for group, keys in groups.items():
        apply = [key for key in keys if key not in EXCLUDED]
        row = {"lines": len(keys), "apply": len(apply)}
        row |= {broker: sum(score.results[broker].get(key, False) for key in apply) for broker in BROKERS}
        totals.update(row)
        table.add_row(group, *(str(number) for number in row.values()))
    table.add_section()
    table.add_row("all", *(str(totals[name]) for name in ("lines", "apply", *BROKERS)))
    return table


def main(arguments: list[str]) -> int:
    """Exit status: pytest's."""
    score = Score()
    # The score is collected where the tests run, so in this process.
    status = pytest.main([str(Path(__file__).parent), "-q", *arguments, "-n0"], plugins=[score])
    console = Console()
    console.print(render(score))
    console.print(f"on Pulsar with enableTransaction=true alone: {', '.join(score.native)}")
    reasons = Counter(reason.value for reason, _ in EXCLUDED.values())
    for text, number in reasons.items():
        console.print(f"does not apply: {number} lines: {text}")
    return int(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
