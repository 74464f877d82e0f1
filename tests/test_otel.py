"""Spans and metrics of messages, with OpenTelemetry's real SDK and its exporters in memory, on both brokers."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import jmsaio
from jmsaio import AcknowledgeMode
from jmsaio.model.messages.tracing import Tracing
from jmsaio.otel import OpenTelemetry
from jmsaio.testing import embedded_broker
from tests.client.helpers import text

Name = Callable[[str], str]


class Collected:
    """What a connection with ``tracing`` exported."""

    def __init__(self) -> None:
        self._spans, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._spans))
        self.tracer = provider.get_tracer("tests")
        self.tracing: Tracing = OpenTelemetry(provider, MeterProvider([self._reader]))

    def spans(self, operation: str) -> list[ReadableSpan]:
        return [span for span in self._spans.get_finished_spans() if span.name.split()[0] == operation]

    def span(self, operation: str) -> ReadableSpan:
        [found] = self.spans(operation)
        return found

    def points(self, metric: str) -> list[Any]:
        data = self._reader.get_metrics_data()
        assert data is not None
        every = [
            each for resource in data.resource_metrics for scope in resource.scope_metrics for each in scope.metrics
        ]
        return [point for each in every if each.name == metric for point in each.data.data_points]


@pytest.fixture
def collected() -> Collected:
    return Collected()


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def place(span: ReadableSpan) -> tuple[int, int]:
    context = span.get_span_context()
    assert context is not None
    return context.trace_id, context.span_id


def parent(span: ReadableSpan) -> tuple[int, int] | None:
    return None if span.parent is None else (span.parent.trace_id, span.parent.span_id)


def links(span: ReadableSpan) -> list[tuple[int, int]]:
    return [(link.context.trace_id, link.context.span_id) for link in span.links]


def own(message: jmsaio.Message | None) -> set[str]:
    """The names of a message's properties, without those that JMS adds."""
    assert message is not None
    return {name for name in message.properties if not name.startswith("JMSX")}


async def test_a_message_is_followed_from_its_sender_to_its_block(url: str, name: Name, collected: Collected) -> None:
    queue = jmsaio.Queue(name("orders"))
    async with jmsaio.connect(url, tracing=collected.tracing) as connection, connection.create_session() as session:
        producer, consumer = await session.create_producer(queue), await session.create_consumer(queue)
        with collected.tracer.start_as_current_span("checkout") as outer:
            receipt = await producer.send("one", properties={"amount": 3})
        async with consumer.process(10) as message:
            inside = trace.get_current_span().get_span_context()
            assert message.get_int_property("amount") == 3
            assert message.get_string_property("traceparent") is not None
    send, receive, process, ack = (collected.span(each) for each in ("send", "receive", "process", "ack"))
    assert [span.kind for span in (send, receive, process, ack)] == [
        SpanKind.PRODUCER, SpanKind.CLIENT, SpanKind.CONSUMER, SpanKind.CLIENT
    ]  # fmt: skip
    context = outer.get_span_context()
    assert parent(send) == (context.trace_id, context.span_id)
    assert parent(process) == place(send) and links(process) == [place(send)]
    assert (inside.trace_id, inside.span_id) == place(process)
    assert parent(receive) is None and links(receive) == [place(send)]
    assert parent(ack) == place(process) and links(ack) == [place(send)]
    found = attributes(process)
    assert found["messaging.system"] == "jms" and found["messaging.operation.type"] == "process"
    assert found["messaging.destination.name"] == queue.name
    assert found["messaging.destination.subscription.name"] == "jms-queue"
    assert found["messaging.message.id"] == attributes(send)["messaging.message.id"] == receipt.jms_message_id
    assert "messaging.jms.redelivered" not in found
    assert ("server.address" in found) is url.startswith("pulsar:")


async def test_a_listener_runs_in_a_span_of_its_message_and_what_it_sends_follows(
    url: str, name: Name, collected: Collected
) -> None:
    orders, bills = jmsaio.Queue(name("orders")), jmsaio.Queue(name("bills"))
    async with jmsaio.connect(url, tracing=collected.tracing) as connection, connection.create_session() as session:
        producer, anywhere = await session.create_producer(orders), await session.create_producer()
        consumer, last = await session.create_consumer(orders), await connection.create_session()
        await producer.send(jmsaio.TextMessage("one"))

        async def bill(message: jmsaio.Message) -> None:
            await anywhere.send(bills, f"bill for {text(message)}")

        consumer.set_message_listener(bill)
        found = await (await last.create_consumer(bills)).receive(10)
        assert text(found) == "bill for one"
    first, second = sorted(collected.spans("send"), key=lambda span: span.start_time or 0)
    process = collected.span("process")
    assert parent(process) == place(first) and parent(second) == place(process)
    assert links(collected.span("receive")) == [place(second)]  # a listener's message was not asked for
    points = collected.points("messaging.client.consumed.messages")
    names = ("messaging.destination.name", "messaging.operation.name")
    consumed = [(*map(point.attributes.get, names), point.value) for point in points]
    assert sorted(consumed) == sorted([(orders.name, "process", 1), (bills.name, "receive", 1)])


async def test_a_failure_and_a_redelivery_are_seen(url: str, name: Name, collected: Collected) -> None:
    queue = jmsaio.Queue(name("fails"))
    async with jmsaio.connect(url, tracing=collected.tracing) as connection, connection.create_session() as session:
        producer, consumer = await session.create_producer(queue), await session.create_consumer(queue)
        await producer.send("one")
        with pytest.raises(ZeroDivisionError):
            async with consumer.process(10):
                raise ZeroDivisionError("not today")
        async with consumer.process(10):
            pass
    failed, repeated = collected.spans("process")
    assert failed.status.status_code is StatusCode.ERROR
    assert attributes(failed)["error.type"] == "builtins.ZeroDivisionError"
    assert attributes(repeated)["messaging.jms.redelivered"] is True
    assert attributes(repeated)["messaging.jms.delivery_count"] == 2
    assert parent(collected.span("nack")) == place(failed)
    counts = {
        point.attributes.get("error.type"): point.count for point in collected.points("messaging.process.duration")
    }
    assert counts == {"builtins.ZeroDivisionError": 1, None: 1}


async def test_a_refused_send_a_failed_one_and_a_cancelled_one_end_their_spans(collected: Collected) -> None:
    with embedded_broker() as broker:
        async with (
            jmsaio.connect(broker.url, tracing=collected.tracing, producer={"sendTimeoutMs": 500}) as connection,
            connection.create_session() as session,
        ):
            producer = await session.create_producer(jmsaio.Queue("refused"))
            with pytest.raises(jmsaio.MessageTooLargeError):
                await producer.send(bytes(200_000_000))
            with broker.faults.outage():
                cancelled = await producer.send_async("two")
                cancelled.cancel()
                with pytest.raises(jmsaio.SendError):
                    await producer.send("three")
    types = [attributes(span).get("error.type") for span in collected.spans("send")]
    assert types == ["jmsaio.MessageTooLargeError", "asyncio.exceptions.CancelledError", "jmsaio.SendError"]
    assert {span.status.status_code for span in collected.spans("send")} == {StatusCode.ERROR}
    assert sum(point.value for point in collected.points("messaging.client.sent.messages")) == 3


async def test_metrics_count_messages_and_leave_out_names_of_temporary_queues(
    url: str, name: Name, collected: Collected
) -> None:
    queue = jmsaio.Queue(name("counted"))
    async with jmsaio.connect(url, tracing=collected.tracing) as connection:
        session = await connection.create_session(AcknowledgeMode.CLIENT)
        temporary = await session.create_temporary_queue()
        producer = await session.create_producer()
        consumers = [await session.create_consumer(each) for each in (queue, temporary)]
        for _ in range(3):
            await producer.send(queue, "counted")
        await producer.send(temporary, "private")
        for consumer, count in zip(consumers, (3, 1), strict=True):
            for _ in range(count):
                assert await consumer.receive(10) is not None
        await session.acknowledge()
        await session.close()
    sent = {point.attributes.get("messaging.destination.name"): point.value
            for point in collected.points("messaging.client.sent.messages")}  # fmt: skip
    consumed = {point.attributes.get("messaging.destination.name"): point.value
                for point in collected.points("messaging.client.consumed.messages")}  # fmt: skip
    assert sent == consumed == {queue.name: 3, None: 1}
    durations = {point.attributes["messaging.operation.name"] for point in
                 collected.points("messaging.client.operation.duration")}  # fmt: skip
    assert durations == {"send", "receive"}
    assert {span.name for span in collected.spans("send")} == {f"send {queue.name}", "send temporary queue"}
    batch = [span for span in collected.spans("ack") if "messaging.batch.message_count" in attributes(span)]
    assert [attributes(span)["messaging.batch.message_count"] for span in batch] == [3]
    assert [len(links(span)) for span in batch] == [3]


async def test_the_messages_object_and_its_other_properties_stay_as_they_are(
    url: str, name: Name, collected: Collected
) -> None:
    """A received message, whose properties are read-only, is forwarded in the span that handles it."""
    queue, onward = jmsaio.Queue(name("forward")), jmsaio.Queue(name("onward"))
    async with jmsaio.connect(url, tracing=collected.tracing) as connection, connection.create_session() as session:
        producer, consumer = await session.create_producer(queue), await session.create_consumer(queue)
        message = jmsaio.MapMessage({"a": 1}, properties={"colour": "red"})
        await producer.send(message)
        assert dict(message.properties) == {"colour": "red"}
        async with consumer.process(10) as received:
            await (await session.create_producer(onward)).send(received)
        last = await (await session.create_consumer(onward)).receive(10)
        assert own(last) == {"colour", "traceparent"}
    first, second = collected.spans("send")
    assert parent(second) == place(collected.span("process"))
    assert last is not None
    assert str(last.properties["traceparent"]).startswith("00-{:032x}-{:016x}-".format(*place(second)))
    assert place(first)[0] == place(second)[0]


async def test_without_tracing_nothing_is_added(url: str, name: Name) -> None:
    queue = jmsaio.Queue(name("plain"))
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        producer, consumer = await session.create_producer(queue), await session.create_consumer(queue)
        await asyncio.gather(producer.send("text"), producer.send(jmsaio.TextMessage("object")))
        for _ in range(2):
            message = await consumer.receive(10)
            assert own(message) == set()


def test_without_opentelemetry_the_import_says_what_to_install() -> None:
    code = "import sys; sys.modules['opentelemetry'] = None; import jmsaio; import jmsaio.otel"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.strip().endswith("ImportError: jmsaio.otel needs OpenTelemetry: pip install 'jmsaio[otel]'")
