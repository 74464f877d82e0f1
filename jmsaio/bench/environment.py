"""Versions and machine of a run, so that its figures can be interpreted later."""

from __future__ import annotations

import os
import platform
import time
from importlib import metadata
from pathlib import Path

from jmsaio.model.version import __version__

#: Packages whose version affects the figures.
_PACKAGES = ("pulsar-client", "anyio", "attrs", "uvloop", "pyspark", "pyarrow")


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
