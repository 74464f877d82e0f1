"""Clocks of one measurement: wall time, CPU time of the whole process, context switches."""

from __future__ import annotations

import resource
import time
from collections.abc import Sequence
from types import TracebackType

from benchmarks.statistics import percentile

#: Result of one measurement: value by metric name with its unit.
Metrics = dict[str, float]


class Meter:
    """Meter of a ``with`` block, or of the time from ``start`` to ``stop``.

    CPU time includes all threads of the process, also native ones.
    """

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Set all clocks to zero."""
        self._usage = resource.getrusage(resource.RUSAGE_SELF)
        self._cpu = time.process_time()
        self._wall = time.perf_counter()
        self.seconds = 0.0
        self.cpu_seconds = 0.0
        self.voluntary_switches = 0

    def stop(self) -> None:
        """Read all clocks."""
        self.seconds = time.perf_counter() - self._wall
        self.cpu_seconds = time.process_time() - self._cpu
        usage = resource.getrusage(resource.RUSAGE_SELF)
        self.voluntary_switches = usage.ru_nvcsw - self._usage.ru_nvcsw

    def __enter__(self) -> Meter:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def metrics(self, count: int) -> Metrics:
        """Return rate and cost of each of ``count`` (1 or more) operations between start and stop."""
        return {
            "per_second": count / self.seconds,
            "wall_us": self.seconds / count * 1e6,
            "cpu_us": self.cpu_seconds / count * 1e6,
            "switches": self.voluntary_switches / count,
        }


def latency_metrics(latencies: Sequence[float], lateness: Sequence[float], meter: Meter) -> Metrics:
    """Return percentiles of ``latencies`` (seconds) in milliseconds, the sender's lateness, and CPU load in percent.

    The p50 to p99 cover the time from the call of send until the receiver has the text. A sender that falls behind its
    rate would hide waiting time (coordinated omission); ``late_p99_ms`` shows it.
    """
    ordered, late = sorted(latencies), sorted(lateness)
    return {
        "p50_ms": percentile(ordered, 0.50) * 1e3,
        "p90_ms": percentile(ordered, 0.90) * 1e3,
        "p99_ms": percentile(ordered, 0.99) * 1e3,
        "max_ms": ordered[-1] * 1e3,
        "late_p99_ms": percentile(late, 0.99) * 1e3,
        "cpu_percent": meter.cpu_seconds / meter.seconds * 100,
        "cpu_us": meter.cpu_seconds / len(ordered) * 1e6,
    }
