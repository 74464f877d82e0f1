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

from jmsaio.bench.catalog import own_scenarios
from jmsaio.bench.child import require_loop
from jmsaio.bench.drawing import require_matplotlib, write_plot
from jmsaio.bench.meter import Metrics
from jmsaio.bench.report import Report, Sample, write_json
from jmsaio.bench.scenario import Scenario
from jmsaio.bench.workload import Task, Workload
from jmsaio.model.arguments import shown
from jmsaio.model.version import __version__

#: Packages whose version affects the figures.
_PACKAGES = ("pulsar-client", "anyio", "attrs", "uvloop", "pyspark", "pyarrow")


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
#: Function that runs a task, given its timeout in seconds and the directory of child processes.
Measure = Callable[[Task, float, "str | os.PathLike[str] | None"], Metrics]


class MeasurementError(Exception):
    """A child process failed, returned no result, or took too long."""


def run(
    url: str | None = None,
    *,
    rounds: int | None = None,
    smoke: bool = False,
    only: str | None = None,
    loop: str = "asyncio",
    workload: Workload | None = None,
    json_file: str | os.PathLike[str] | None = None,
    plot_file: str | os.PathLike[str] | None = None,
    progress: Listener | None = None,
    scenarios: Sequence[Scenario] | None = None,
    directory: str | os.PathLike[str] | None = None,
    carry_out: Measure | None = None,
) -> Report:
    """Measure jmsaio's own rows, which need no checkout, on the embedded broker and on the broker at ``url``.

    Blocks until the run ends, a few minutes with the default amounts; call it from a thread in an asyncio program.

    Args:
        url: URL for ``jmsaio.connect`` of a broker to measure besides the embedded one; None: only the embedded one.
        rounds: number of interleaved measurements per row; default 5, with ``smoke`` 1.
        smoke: use amounts too small for meaningful figures; shows that every row runs.
        only: regular expression; rows whose name it does not match anywhere are left out.
        loop: event loop, ``asyncio`` or ``uvloop`` (``pip install 'jmsaio[uvloop]'``).
        workload: amounts; default is the documented workload.
        json_file: file to write the report to.
        plot_file: file to write a plot to (needs matplotlib: ``pip install 'jmsaio[bench]'``).
        progress: called before each measurement.
        scenarios: other rows to measure instead; ``url`` is not used then.
        directory: working directory of child processes; default: the current one.
        carry_out: runs each task, and raises MeasurementError on failure; default: ``measure``.

    Raises:
        ValueError: ``only`` matches no row or is not a regular expression, or ``rounds`` is below 1.
        ImportError: ``plot_file`` is given and matplotlib is not installed, or uvloop likewise; nothing was measured.
        OSError: a file can't be written.
    """
    chosen = select(own_scenarios(url) if scenarios is None else scenarios, only)
    for each in {loop, *(scenario.loop or loop for scenario in chosen)}:
        require_loop(each)
    if plot_file is not None:
        require_matplotlib("the plot")
    count = (1 if smoke else 5) if rounds is None else rounds
    if count < 1:
        raise ValueError(f"rounds must be at least 1, not {count}")
    amounts = workload if workload is not None else Workload.smoke() if smoke else Workload()
    samples: list[Sample] = []
    for number, order in enumerate(interleaved(chosen, count)):
        for scenario in order:
            if progress is not None:
                progress(Progress(len(samples), count * len(chosen), number, scenario))
            samples.append(_sample(scenario, number, amounts, loop, directory, carry_out or measure))
    if progress is not None:
        progress(Progress(len(samples), count * len(chosen), count - 1, None))
    report = Report(environment(), amounts, loop, tuple(chosen), tuple(samples))
    if json_file is not None:
        write_json(report, json_file)
    if plot_file is not None:
        write_plot(report, plot_file)
    return report


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


def _sample(
    scenario: Scenario,
    number: int,
    workload: Workload,
    loop: str,
    directory: str | os.PathLike[str] | None,
    carry_out: Measure,
) -> Sample:
    load, pace = load_average(), yardstick()
    topic = f"bench-{scenario.name.replace('.', '-')}-{time.time_ns()}"
    task = Task(scenario.target, scenario.url, topic, scenario.loop or loop, workload, scenario.extra)
    try:
        if scenario.prepare is not None:
            carry_out(attrs.evolve(task, target=scenario.prepare), scenario.timeout, directory)
        return Sample(number, scenario.name, load, pace, carry_out(task, scenario.timeout, directory))
    except MeasurementError as error:
        return Sample(number, scenario.name, load, pace, failure=str(error))


def measure(task: Task, timeout: float, directory: str | os.PathLike[str] | None = None) -> Metrics:
    """Run ``task`` in a child process, within ``timeout`` seconds. Raises MeasurementError."""
    with tempfile.TemporaryDirectory(prefix="jmsaio-bench-") as folder:
        result = Path(folder, "result.json")
        try:
            done = subprocess.run(
                [sys.executable, "-m", "jmsaio.bench.child", str(result)],
                input=json.dumps(task.to_json()),
                capture_output=True,
                text=True,
                timeout=timeout,
                cwd=directory,
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
