"""Execution of rows in interleaved rounds, each measurement in a child process."""

from __future__ import annotations

import json
import os
import platform
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path

import attrs

from benchmarks.meter import Metrics
from benchmarks.report import Report, Sample
from benchmarks.scenario import Scenario
from benchmarks.workload import Task, Workload
from jmsaio.model.arguments import shown
from jmsaio.model.version import __version__

#: Packages whose version affects the figures.
_PACKAGES = ("pulsar-client", "anyio", "attrs", "uvloop", "pyspark", "pyarrow")
#: Root of the checkout, where child processes find ``benchmarks``.
ROOT = Path(__file__).resolve().parents[1]

#: Maximum characters of a failed child's error output that are kept.
_KEPT_OUTPUT = 2_000


@attrs.frozen
class Progress:
    """Progress of a run, reported before each measurement.

    Attributes:
        done: measurements finished.
        total: measurements in all.
        round: number of the round, from 0.
        scenario: the next row, or None at the end.
    """

    done: int
    total: int
    round: int
    scenario: Scenario | None


#: Function called with the progress of a run.
Listener = Callable[[Progress], None]
#: Function that runs a task, given its timeout in seconds.
Measure = Callable[[Task, float], Metrics]


class MeasurementError(Exception):
    """A child process failed, returned no result, or took too long."""


def run(
    scenarios: Sequence[Scenario], rounds: int, workload: Workload, loop: str, progress: Listener, carry_out: Measure
) -> Report:
    """Measure rows in interleaved rounds. Blocks until the run ends, a few minutes with the default amounts.

    Args:
        scenarios: the rows, in table order.
        rounds: number of measurements per row.
        workload: amounts.
        loop: event loop of rows that don't name theirs, ``asyncio`` or ``uvloop``.
        progress: called before each measurement, and at the end.
        carry_out: runs each task, and raises MeasurementError on failure.
    """
    samples: list[Sample] = []
    for number, order in enumerate(interleaved(scenarios, rounds)):
        for scenario in order:
            progress(Progress(len(samples), rounds * len(scenarios), number, scenario))
            samples.append(_sample(scenario, number, workload, loop, carry_out))
    progress(Progress(len(samples), rounds * len(scenarios), rounds - 1, None))
    return Report(environment(), workload, loop, tuple(scenarios), tuple(samples))


def select(scenarios: Sequence[Scenario], only: str | None) -> list[Scenario]:
    """Return the rows whose name matches ``only`` anywhere. Raises ValueError without a match or if it is invalid."""
    if only is None:
        return list(scenarios)
    try:
        pattern = re.compile(only)
    except re.error as error:
        raise ValueError(f"{shown(only)} is not a regular expression: {error}") from error
    chosen = [scenario for scenario in scenarios if pattern.search(scenario.name)]
    if not chosen:
        names = ", ".join(scenario.name for scenario in scenarios)
        raise ValueError(f"no row matches {shown(only)}; there are: {names}")
    return chosen


def interleaved(scenarios: Sequence[Scenario], rounds: int) -> list[list[Scenario]]:
    """Return the rows of each round, shuffled differently in each, but in the same way in every run.

    In a fixed order, each row would always follow the same row and be affected by it (a broker that is still writing).
    """
    orders = []
    for number in range(rounds):
        order = list(scenarios)
        random.Random(number).shuffle(order)
        orders.append(order)
    return orders


def _sample(scenario: Scenario, number: int, workload: Workload, loop: str, carry_out: Measure) -> Sample:
    load, pace = load_average(), yardstick()
    topic = f"bench-{scenario.name.replace('.', '-')}-{time.time_ns()}"
    task = Task(scenario.target, scenario.url, topic, scenario.loop or loop, workload, scenario.extra)
    try:
        if scenario.prepare is not None:
            carry_out(attrs.evolve(task, target=scenario.prepare), scenario.timeout)
        return Sample(number, scenario.name, load, pace, carry_out(task, scenario.timeout))
    except MeasurementError as error:
        return Sample(number, scenario.name, load, pace, failure=str(error))


def measure(task: Task, timeout: float) -> Metrics:
    """Run ``task`` in a child process, within ``timeout`` seconds. Raises MeasurementError."""
    with tempfile.TemporaryDirectory(prefix="jmsaio-bench-") as folder:
        result = Path(folder, "result.json")
        try:
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.child", str(result)],
                input=json.dumps(task.to_json()),
                capture_output=True,
                text=True,
                timeout=timeout,
                cwd=ROOT,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise MeasurementError(f"{task.target}: no result within {timeout:g} s") from error
        if done.returncode != 0 or not result.exists():
            raise MeasurementError(
                f"{task.target}: exit status {done.returncode}\n{done.stderr.strip()[-_KEPT_OUTPUT:]}"
            )
        metrics: Metrics = json.loads(result.read_text(encoding="utf-8"))
        return metrics


def environment() -> dict[str, str]:
    """Return what affects the figures: versions of jmsaio, Python, packages and kernel; processor and cores."""
    facts = {
        "jmsaio": __version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": _processor(),
        "cores": str(os.cpu_count() or 0),
    }
    for package in _PACKAGES:
        try:
            facts[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            facts[package] = "not installed"
    return facts


def load_average() -> float:
    """Return the load average of the last minute."""
    return os.getloadavg()[0]


def yardstick() -> float:
    """Measure the milliseconds of a fixed piece of work, about 30 on a machine of 2024.

    If a virtual machine receives less processor time than the load average shows, this grows.
    """
    begin = time.perf_counter()
    total = 0
    for number in range(500_000):
        total += number
    return (time.perf_counter() - begin) * 1e3


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
