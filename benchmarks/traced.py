"""The embedded broker's row with OpenTelemetry's SDK, which records spans and metrics and exports none."""

from __future__ import annotations

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider

from jmsaio.bench.meter import Metrics
from jmsaio.bench.scenarios import through
from jmsaio.bench.workload import Task
from jmsaio.otel import OpenTelemetry


async def traced(task: Task) -> Metrics:
    """Send and receive as ``embedded.through`` does, with tracing."""
    return await through(task, OpenTelemetry(TracerProvider(), MeterProvider()))
