"""The results of a run: samples with their environment, a summary of each row, and the JSON file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import attrs

from benchmarks.goals import GOALS, REFERENCES
from benchmarks.scenario import METRICS, Block, Goal, Scenario
from benchmarks.statistics import Spread, paired_ratios, spread
from benchmarks.workload import Workload

#: Version of the JSON file's layout.
FORMAT = 1


@attrs.frozen
class Sample:
    """One measurement.

    Attributes:
        round: number of the round, from 0.
        load: the machine's load average (1 minute) just before.
        yardstick_ms: milliseconds of a fixed piece of work just before.
        metrics: figures by name with unit; empty after a failure.
        failure: reason of the failure, or None.
    """

    round: int
    scenario: str
    load: float
    yardstick_ms: float
    metrics: dict[str, float] = attrs.field(factory=dict)
    failure: str | None = None


@attrs.frozen
class Ratio:
    """Paired ratios of a row to a reference row.

    Attributes:
        metric: compared metric; None: the main metric of the group.
    """

    reference: str
    values: Spread
    goal: Goal | None
    metric: str | None = None

    @property
    def name(self) -> str:
        """Reference, followed by the metric unless it is the main one."""
        return self.reference if self.metric is None else f"{self.reference}:{self.metric}"


@attrs.frozen
class Row:
    """Summary of one row.

    Attributes:
        value: main figure.
        cpu_us: CPU microseconds per message, or None.
        ratios: paired ratios to each reference measured in the same run.
        goal: the goal for the main figure itself, or None.
        details: medians of all metrics.
    """

    scenario: Scenario
    value: Spread
    cpu_us: Spread | None
    ratios: tuple[Ratio, ...]
    goal: Goal | None
    details: dict[str, float]


@attrs.frozen
class Report:
    """A whole run.

    Attributes:
        environment: versions and machine.
        workload: amounts of the run.
        loop: event loop of the asyncio rows.
        scenarios: the rows, in table order.
        samples: all measurements, including failed ones.
    """

    environment: dict[str, str]
    workload: Workload
    loop: str
    scenarios: tuple[Scenario, ...]
    samples: tuple[Sample, ...]

    def rows(self) -> list[Row]:
        """Return one summary for each row that has a measurement."""
        rows = [self._row(scenario) for scenario in self.scenarios]
        return [row for row in rows if row is not None]

    def groups(self) -> dict[Block, list[Row]]:
        """Return the summaries by group, in table order, without groups that have none."""
        rows = self.rows()
        found = {group: [row for row in rows if row.scenario.group is group] for group in Block}
        return {group: rows for group, rows in found.items() if rows}

    def failures(self) -> list[Sample]:
        """Return the measurements that failed."""
        return [sample for sample in self.samples if sample.failure is not None]

    def missed(self) -> list[Goal]:
        """Return the goals of measured rows that were not reached."""
        missed = []
        for row in self.rows():
            if row.goal is not None and not row.goal.is_met(row.value.median):
                missed.append(row.goal)
            missed += [r.goal for r in row.ratios if r.goal is not None and not r.goal.is_met(r.values.median)]
        return missed

    def load(self) -> Spread | None:
        """Return the load average before the measurements."""
        return spread(sample.load for sample in self.samples)

    def yardstick(self) -> Spread | None:
        """Return the milliseconds of the fixed piece of work; a wide spread indicates a machine of varying speed."""
        return spread(sample.yardstick_ms for sample in self.samples)

    def _by_round(self, name: str, key: str) -> dict[int, float]:
        return {s.round: s.metrics[key] for s in self.samples if s.scenario == name and key in s.metrics}

    def _row(self, scenario: Scenario) -> Row | None:
        key = METRICS[scenario.group].key
        values = self._by_round(scenario.name, key)
        value = spread(values.values())
        if value is None:
            return None
        names = {name for s in self.samples if s.scenario == scenario.name for name in s.metrics}
        details = {name: spread(self._by_round(scenario.name, name).values()) for name in sorted(names)}
        return Row(
            scenario,
            value,
            details.get("cpu_us"),
            tuple(self._ratios(scenario, values, key)),
            find_goal(scenario.name, None),
            {name: found.median for name, found in details.items() if found is not None},
        )

    def _ratios(self, scenario: Scenario, values: dict[int, float], key: str) -> list[Ratio]:
        ratios = []
        for reference in dict.fromkeys((*REFERENCES[scenario.group], *scenario.references)):
            found = spread(paired_ratios(values, self._by_round(reference, key)))
            if reference != scenario.name and found is not None:
                ratios.append(Ratio(reference, found, find_goal(scenario.name, reference)))
        for goal in GOALS:
            if goal.scenario == scenario.name and goal.metric is not None and goal.reference is not None:
                own, other = (self._by_round(name, goal.metric) for name in (scenario.name, goal.reference))
                found = spread(paired_ratios(own, other))
                if found is not None:
                    ratios.append(Ratio(goal.reference, found, goal, goal.metric))
        return ratios


def find_goal(scenario: str, reference: str | None) -> Goal | None:
    """Return the goal of a row for its main figure (itself, or against a reference row), or None."""
    wanted = (scenario, reference, None)
    return next((goal for goal in GOALS if (goal.scenario, goal.reference, goal.metric) == wanted), None)


def write_json(report: Report, file: str | os.PathLike[str]) -> None:
    """Write ``report`` with all samples and the summary to ``file``. Raises OSError."""
    data = {
        "format": FORMAT,
        "environment": report.environment,
        "workload": attrs.asdict(report.workload),
        "loop": report.loop,
        "scenarios": [{**attrs.asdict(scenario), "group": scenario.group.name} for scenario in report.scenarios],
        "samples": [attrs.asdict(sample) for sample in report.samples],
        "summary": [_summary(row) for row in report.rows()],
    }
    Path(file).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def read_json(file: str | os.PathLike[str]) -> Report:
    """Read a file that ``write_json`` wrote. Raises OSError, and ValueError for another layout."""
    data: dict[str, Any] = json.loads(Path(file).read_text(encoding="utf-8"))
    if data.get("format") != FORMAT:
        raise ValueError(f"{os.fspath(file)} is not a benchmark report of format {FORMAT}")
    return Report(
        data["environment"],
        Workload(**data["workload"]),
        data["loop"],
        tuple(_scenario(item) for item in data["scenarios"]),
        tuple(Sample(**item) for item in data["samples"]),
    )


def _scenario(item: dict[str, Any]) -> Scenario:
    return Scenario(**{**item, "group": Block[item["group"]], "references": tuple(item.get("references", ()))})


def _summary(row: Row) -> dict[str, object]:
    metric = METRICS[row.scenario.group]
    return {
        "scenario": row.scenario.name,
        "metric": metric.key,
        **attrs.asdict(row.value),
        "details": row.details,
        "ratios": {ratio.name: attrs.asdict(ratio.values) for ratio in row.ratios},
    }
