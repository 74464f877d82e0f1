"""A report with made-up figures."""

import pytest

from benchmarks.report import Report, Sample
from benchmarks.scenario import Block, Scenario
from benchmarks.workload import Workload


@pytest.fixture
def report() -> Report:
    """Two send rows and a latency row, two rounds, one failure."""
    rows = (
        Scenario("send.raw", "raw", Block.SEND, "benchmarks.raw:send", "pulsar://b:6650"),
        Scenario("send.jmsaio", "ours", Block.SEND, "benchmarks.scenarios:futures", "pulsar://b:6650"),
        Scenario("latency.raw", "raw latency", Block.LATENCY, "benchmarks.raw:latency", "pulsar://b:6650"),
        Scenario("idle.consumers", "idle", Block.IDLE, "benchmarks.scenarios:idle_consumers", "memory:"),
        Scenario("send.java", "never measured", Block.SEND, "benchmarks.java_peer:send", "pulsar://b:6650"),
    )
    samples = (
        Sample(0, "send.raw", 0.5, 30.0, {"per_second": 10_000.0, "cpu_us": 50.0}),
        Sample(0, "send.jmsaio", 0.5, 30.0, {"per_second": 30_000.0, "cpu_us": 20.0}),
        Sample(1, "send.jmsaio", 0.7, 30.0, {"per_second": 20_000.0, "cpu_us": 22.0}),
        Sample(1, "send.raw", 0.7, 30.0, {"per_second": 5_000.0, "cpu_us": 60.0}),
        Sample(0, "latency.raw", 0.5, 30.0, {"p50_ms": 9.0, "p99_ms": 17.0, "cpu_us": 100.0}),
        Sample(0, "idle.consumers", 0.6, 30.0, {"kb_each": 25.0}),
        Sample(1, "idle.consumers", 0.6, 30.0, failure="module:function: exit status 1"),
    )
    return Report({"python": "CPython 3.11"}, Workload(messages=10), "asyncio", rows, samples)
