"""``python -m benchmarks.spark.memory URL``: the peak of memory must not grow with what is read and archived.

Two runs, one with few messages and one with ten times as many, each with a session of its own: they read a queue and
archive it. Told is the peak of the driver, of the JVM, and of the largest Python process of a task.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from benchmarks.__main__ import web_url_of
from benchmarks.catalog import jmsaio_url
from benchmarks.spark.messages import SOURCE
from benchmarks.spark.processes import jvm_of, peak, task_processes
from benchmarks.spark.reading import archive, two_tasks
from benchmarks.spark.session import SessionRun, the_session
from benchmarks.workload import Task, Workload

_ROOT = Path(__file__).resolve().parents[2]
#: What the peak may grow by.
_BOUND = 1.2


@attrs.frozen
class Peaks:
    """The most memory of each kind of process, in MB."""

    driver: float
    jvm: float
    worker: float

    @property
    def total(self) -> float:
        """Of all of them, one worker counted."""
        return self.driver + self.jvm + self.worker


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark.memory", description=__doc__)
    parser.add_argument("url", help="broker, for example pulsar://127.0.0.1:6650")
    parser.add_argument("--web-url", help="its web address (default: port 8080 of the same host)")
    parser.add_argument("--messages", type=int, default=5_000_000, help="messages of the larger run")
    parser.add_argument("--factor", type=int, default=10, help="the smaller run has this part of them")
    parser.add_argument(
        "--heap", default="512m", help="the JVM's heap, which it fills before it collects (default 512m)"
    )
    parser.add_argument("--one", action="store_true", help="measure one run in this process, and print its peaks")
    return parser.parse_args(arguments)


def measure_one(url: str, messages: int, heap: str) -> Peaks:
    """Read and archive that many messages in a session of this process, whose JVM has a heap of that size."""
    workload = Workload(spark_messages=messages)
    extra = {SOURCE: f"bench-memory-{messages}-{time.time_ns()}"}
    targets = [f"{two_tasks.__module__}:{two_tasks.__name__}", f"{archive.__module__}:{archive.__name__}"]
    with SessionRun({"spark.driver.memory": heap}) as run:
        largest = [0]
        with _watching(largest):
            for target in targets:
                run(Task(target, url, "", workload=workload, extra=extra), timeout=3600.0)
        return Peaks(*(each / 2**20 for each in (peak(os.getpid()), peak(jvm_of(the_session())), *largest)))


@contextlib.contextmanager
def _watching(largest: list[int]) -> Iterator[None]:
    """Keep the peak of the largest Python process of a task: it may end before the run does."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.5):
            largest[0] = max(largest[0], *map(peak, task_processes(os.getpid())), 0)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def main(arguments: Sequence[str]) -> int:
    """Measure both runs. Exit status: 0, or 1 when the peak has grown too much."""
    options = parse(arguments)
    if options.one:
        print(json.dumps(attrs.asdict(measure_one(options.url, options.messages, options.heap))))
        return 0
    url = jmsaio_url(options.url, options.web_url or web_url_of(options.url))
    amounts = (options.messages // options.factor, options.messages)
    small, large = (_peaks_of_child(url, messages, options.heap) for messages in amounts)
    for messages, peaks in zip(amounts, (small, large), strict=True):
        each = ", ".join(f"{name} {size:.0f}" for name, size in attrs.asdict(peaks).items())
        print(f"{messages:,} messages: {peaks.total:.0f} MB ({each})")
    ratio = large.total / small.total
    print(f"{ratio:.2f} times the memory; goal <= {_BOUND}: {'met' if ratio <= _BOUND else 'MISSED'}")
    return 0 if ratio <= _BOUND else 1


def _peaks_of_child(url: str, messages: int, heap: str) -> Peaks:
    command = [sys.executable, "-m", "benchmarks.spark.memory", url, "--one", "--messages", str(messages)]
    command += ["--heap", heap]
    done = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return Peaks(**json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
