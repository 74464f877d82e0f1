"""``OpenTelemetry``: spans and metrics of messages by OpenTelemetry's semantic conventions for messaging.

.. code-block:: python

    async with jmsaio.connect(tracing=jmsaio.otel.OpenTelemetry()) as connection:
        ...

It needs ``jmsaio[otel]``. The context of a send travels in string properties of the message (``traceparent`` and
``tracestate`` by default), as OpenTelemetry's Java agent writes and reads them for JMS.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlsplit

import attrs

from jmsaio.model.destinations import Destination, Queue, TemporaryQueue, TemporaryTopic
from jmsaio.model.messages.message import Message
from jmsaio.model.version import __version__
from jmsaio.model.wire import ReceivedRecord

try:
    from opentelemetry import metrics, propagate, trace
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode
except ImportError as error:
    raise ImportError("jmsaio.otel needs OpenTelemetry: pip install 'jmsaio[otel]'") from error

#: The names of properties are Java identifiers; OpenTelemetry's Java agent writes a hyphen in a field like this.
_DASH: Final = "__dash__"
_SCHEMA: Final = "https://opentelemetry.io/schemas/1.36.0"
#: Bounds of the histograms, in seconds, as the conventions recommend.
_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
#: Type of each operation in the conventions.
_TYPES: Final = {"send": "send", "receive": "receive", "process": "process", "ack": "settle", "nack": "settle"}


class OpenTelemetry:
    """Traces the connections that it is passed to (``connect(tracing=...)``), and counts their messages.

    ============ ======== ==================================================================================
    span         kind     parent and links
    ============ ======== ==================================================================================
    ``send``     PRODUCER the current span; it ends with the broker's confirmation
    ``receive``  CLIENT   the current span; linked to the message's ``send``
    ``process``  CONSUMER the message's ``send``; it is the current span in a listener, or in a ``process`` block
    ``ack``      CLIENT   the current span; linked to the ``send`` of each message; ``nack`` returns messages
    ============ ======== ==================================================================================

    The metrics are ``messaging.client.sent.messages``, ``messaging.client.consumed.messages``,
    ``messaging.client.operation.duration`` and ``messaging.process.duration``.

    Args:
        tracer_provider: creates the tracer; default: the global one.
        meter_provider: creates the meter; default: the global one.
    """

    def __init__(
        self,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
    ) -> None:
        self.tracer = trace.get_tracer("jmsaio", __version__, tracer_provider, _SCHEMA)
        meter = metrics.get_meter("jmsaio", __version__, meter_provider, _SCHEMA)
        self.sent = meter.create_counter(
            "messaging.client.sent.messages", "{message}", "Messages that producers tried to send"
        )
        self.consumed = meter.create_counter(
            "messaging.client.consumed.messages", "{message}", "Messages that were delivered to the application"
        )
        self.duration = meter.create_histogram(
            "messaging.client.operation.duration", "s", "Duration of sends and receives",
            explicit_bucket_boundaries_advisory=_BOUNDS,
        )  # fmt: skip
        self.process = meter.create_histogram(
            "messaging.process.duration", "s", "Duration of the handling of a message",
            explicit_bucket_boundaries_advisory=_BOUNDS,
        )  # fmt: skip

    def at(self, destination: Destination, server: str, subscription: str | None = None) -> Endpoint:
        """Return the trace of a destination; called by connections."""
        common: dict[str, str | int] = {"messaging.system": "jms"}
        temporary = isinstance(destination, TemporaryQueue | TemporaryTopic)
        if not temporary:  # a metric with a value for each temporary destination would never stop growing
            common["messaging.destination.name"] = destination.name
        if subscription is not None:
            common["messaging.destination.subscription.name"] = subscription
        parts = urlsplit(server)
        if parts.hostname is not None and parts.scheme != "memory":
            common["server.address"] = parts.hostname
            if parts.port is not None:
                common["server.port"] = parts.port
        kind = "queue" if isinstance(destination, Queue) else "topic"
        return Endpoint(self, common, f"temporary {kind}" if temporary else destination.name, temporary)


@attrs.frozen(eq=False)
class Endpoint:
    """The messages of one destination, or of one consumer. Created by ``OpenTelemetry.at``.

    ``common`` has the attributes of all spans and metrics; ``name`` is the destination in names of spans.
    """

    telemetry: OpenTelemetry
    common: Mapping[str, str | int]
    name: str
    temporary: bool

    def sending(self, message: Message) -> Sending:
        """Start the span of a send."""
        attributes = self._attributes("send", message)
        span = self.telemetry.tracer.start_span(f"send {self.name}", kind=SpanKind.PRODUCER, attributes=attributes)
        carrier: dict[str, str] = {}
        propagate.inject(carrier, trace.set_span_in_context(span))
        context = {name.replace("-", _DASH): text for name, text in carrier.items()}
        return Sending(self, span, context)

    def receiving(self) -> Callable[[Message], None]:
        """Return a function that records a receive, from now until it is called."""
        wall, begin, measured = time.time_ns(), time.perf_counter(), self.measured("receive")

        def received(message: Message) -> None:
            span = self.telemetry.tracer.start_span(
                f"receive {self.name}", kind=SpanKind.CLIENT, attributes=self._attributes("receive", message),
                links=_links([_context(message.get_string_property)]), start_time=wall,
            )  # fmt: skip
            span.end()
            self.telemetry.consumed.add(1, measured)
            self.telemetry.duration.record(time.perf_counter() - begin, measured)

        return received

    @contextmanager
    def processing(self, message: Message, pushed: bool = False) -> Iterator[None]:
        """Surround the handling of a message with a span, which continues the trace of its sender."""
        context, begin = _context(message.get_string_property), time.perf_counter()
        measured = self.measured("process")
        if pushed:  # otherwise the receive has counted it
            self.telemetry.consumed.add(1, dict(measured))
        with self.telemetry.tracer.start_as_current_span(
            f"process {self.name}", context, SpanKind.CONSUMER, self._attributes("process", message), _links([context]),
            set_status_on_exception=True,
        ) as span:  # fmt: skip
            try:
                yield
            except Exception as error:
                measured["error.type"] = name = _error_type(error)
                span.set_attribute("error.type", name)
                raise
            finally:
                self.telemetry.process.record(time.perf_counter() - begin, measured)

    def settled(self, operation: str, records: Sequence[ReceivedRecord]) -> None:
        """Record a span for messages that were settled together."""
        attributes = self._attributes(operation)
        if len(records) > 1:
            attributes["messaging.batch.message_count"] = len(records)
        links = _links([_context(record.properties.get) for record in records])
        name = f"{operation} {self.name}"
        self.telemetry.tracer.start_span(name, kind=SpanKind.CLIENT, attributes=attributes, links=links).end()

    def measured(self, operation: str) -> dict[str, str | int]:
        """Return the attributes of a measured value: those with few different values."""
        return {
            **self.common,
            "messaging.operation.name": operation,
            "messaging.operation.type": _TYPES[operation],
        }

    def _attributes(self, operation: str, message: Message | None = None) -> dict[str, str | int | bool]:
        found: dict[str, str | int | bool] = {**self.measured(operation)}
        if self.temporary:
            found["messaging.destination.temporary"] = True
        if message is None:
            return found
        if operation != "send" and message.jms_message_id is not None:
            found["messaging.message.id"] = message.jms_message_id
        if message.jms_correlation_id is not None:
            found["messaging.message.conversation_id"] = message.jms_correlation_id
        if message.jms_redelivered:
            found["messaging.jms.redelivered"] = True
            found["messaging.jms.delivery_count"] = message.get_int_property("JMSXDeliveryCount")
        return found


@attrs.define(eq=False)
class Sending:
    """A send whose outcome is not known yet; ``context`` has the properties that carry its context."""

    endpoint: Endpoint
    span: Span
    context: Mapping[str, str]
    _begin: float = attrs.field(factory=time.perf_counter, init=False)

    def sent(self, message_id: str | None) -> None:
        """End the span of a confirmed message."""
        if message_id is not None:
            self.span.set_attribute("messaging.message.id", message_id)
        self._end(self.endpoint.measured("send"))

    def failed(self, error: BaseException) -> None:
        """End the span of a message that was not sent, or perhaps not."""
        name = _error_type(error)
        self.span.set_attribute("error.type", name)
        self.span.set_status(Status(StatusCode.ERROR, str(error)))
        self._end({**self.endpoint.measured("send"), "error.type": name})

    def _end(self, measured: Mapping[str, str | int]) -> None:
        self.span.end()
        self.endpoint.telemetry.sent.add(1, measured)
        self.endpoint.telemetry.duration.record(time.perf_counter() - self._begin, measured)


def _context(text_of: Callable[[str], str | None]) -> Context:
    """Return the context that a message carries, with the current one as its base."""
    carrier = {}
    for name in propagate.get_global_textmap().fields:
        text = text_of(name.replace("-", _DASH))
        if text is not None:
            carrier[name] = text
    return propagate.extract(carrier)


def _links(contexts: Sequence[Context]) -> list[Link]:
    current = trace.get_current_span().get_span_context()
    found = [trace.get_current_span(context).get_span_context() for context in contexts]
    return [Link(each) for each in found if each.is_valid and each != current]


def _error_type(error: BaseException) -> str:
    return f"{type(error).__module__}.{type(error).__qualname__}"
