"""A worker whose metrics Prometheus scrapes: ``python prometheus.py URL``, then http://localhost:9464/metrics."""

import asyncio
import sys

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import start_http_server

import jmsaio
from jmsaio.otel import OpenTelemetry


async def work(url: str, tracing: OpenTelemetry) -> None:
    """Handle orders until cancelled."""
    async with (
        jmsaio.connect(url, tracing=tracing) as connection,
        connection.create_session() as session,
        session.create_producer(session.create_queue("bills")) as bills,
        session.create_consumer(session.create_queue("orders")) as orders,
    ):
        while True:
            try:
                async with orders.process() as order:
                    await bills.send(f"{int(order.text or '')} EUR")
            except ValueError as error:
                print("returned for redelivery:", error)


async def main() -> None:
    start_http_server(9464)
    provider = MeterProvider([PrometheusMetricReader()])  # in prometheus_client's registry, which the server shows
    await work(sys.argv[1], OpenTelemetry(meter_provider=provider))


if __name__ == "__main__":
    asyncio.run(main())
