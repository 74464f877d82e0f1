"""Benchmarks: throughput, latency, CPU time and memory of jmsaio, in child processes and interleaved rounds.

``run`` measures everything that needs only an installed jmsaio; ``python -m benchmarks`` in a checkout adds the peers.
rich and matplotlib are imported only when a table or a plot is requested.
"""

from __future__ import annotations

from jmsaio.bench.child import require_loop
from jmsaio.bench.drawing import require_matplotlib, write_plot
from jmsaio.bench.report import Report, read_json, write_json
from jmsaio.bench.runner import Progress, run
from jmsaio.bench.table import render_table
from jmsaio.bench.workload import Workload

__all__ = [
    "Progress",
    "Report",
    "Workload",
    "read_json",
    "render_table",
    "require_loop",
    "require_matplotlib",
    "run",
    "write_json",
    "write_plot",
]
