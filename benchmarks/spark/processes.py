"""CPU time and memory of Spark's processes on this machine, as Linux tells them."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

_TICKS: Final = os.sysconf("SC_CLK_TCK")
#: What the processes that carry out tasks are called, but for those that plan.
_TASKS: Final = "pyspark.worker"
#: Written to ``clear_refs``: the peak of memory starts anew.
_RESET: Final = "5"


def jvm_of(session: SparkSession) -> int:
    """Return the process of a local session's JVM."""
    jvm = session.sparkContext._jvm
    assert jvm is not None
    return int(jvm.java.lang.ProcessHandle.current().pid())


def descendants(process: int) -> Iterator[int]:
    """All processes below a process."""
    parents = {number: _parent(number) for number in _all()}
    found = {process}
    while more := {number for number, parent in parents.items() if parent in found} - found:
        found |= more
        yield from more


def tasks_cpu(session: SparkSession) -> float:
    """CPU seconds that all Python processes of tasks have taken so far, those that ended among them."""
    jvm, total = jvm_of(session), 0.0
    daemons = [number for number in descendants(jvm) if _parent(number) == jvm and _TASKS in _words(number)]
    for daemon in daemons:
        total += sum(_cpu(daemon))
        for number in descendants(daemon):
            with contextlib.suppress(OSError):  # it has just ended, and its parent counts it
                total += cpu_of(number)
    return total


def task_processes(process: int) -> list[int]:
    """Return the Python processes of tasks below a process."""
    return [number for number in descendants(process) if _TASKS in _words(number)]


def cpu_of(process: int) -> float:
    """CPU seconds that a process has taken so far."""
    return _cpu(process)[0]


def reset_peak(process: int) -> None:
    """Let the peak of a process' memory start anew."""
    try:
        Path(f"/proc/{process}/clear_refs").write_text(_RESET)
    except OSError:
        return


def peak(process: int) -> int:
    """Return the peak memory of a process in bytes since its start or ``reset_peak``; 0 once it has ended."""
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    except OSError:
        return 0
    return 0 if found is None else int(found[1]) * 1024


def _all() -> Iterator[int]:
    return (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())


def _fields(process: int) -> list[str]:
    """Return the fields of ``stat`` after the name, from field 3 on."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()


def _words(process: int) -> list[str]:
    """Return the command line of a process; empty once it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_text().split("\0")
    except OSError:
        return []


def _parent(process: int) -> int:
    try:
        return int(_fields(process)[1])
    except OSError:
        return 0


def _cpu(process: int) -> tuple[float, float]:
    """CPU seconds of a process, and of its children that have ended."""
    own, ended = (tuple(map(int, _fields(process)[first : first + 2])) for first in (11, 13))
    return sum(own) / _TICKS, sum(ended) / _TICKS
