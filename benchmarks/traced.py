"""The embedded broker's row with OpenTelemetry's SDK, which records spans and metrics and exports none."""

from __future__ import annotations

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider

from benchmarks.meter import Metrics
from benchmarks.scenarios import through
from benchmarks.workload import Task
from jmsaio.otel import OpenTelemetry


async def traced(task: Task) -> Metrics:
    """Send and receive as ``embedded.through`` does, with tracing."""
    return await through(task, OpenTelemetry(TracerProvider(), MeterProvider()))
