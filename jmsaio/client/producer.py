"""MessageProducer: its settings, and sends: stamping, the send window, futures and completion listeners."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Never, TypedDict, Unpack, overload

import attrs

from jmsaio.client.callbacks import callback_context
from jmsaio.client.callbacks.callback_context import CallbackKind
from jmsaio.client.callbacks.completion import CompletionListener, check_listener
from jmsaio.client.lifetime.scope import AsyncClosing
from jmsaio.client.lifetime.stats import ProducerStats
from jmsaio.client.runtime.stamping import UNSET, ProducerSettings, SendSettings, Stamper, Targets
from jmsaio.client.senders.pending import PendingSend, Receipt, SendOrigin, TracedSend, call_trace
from jmsaio.client.senders.pool import Target
from jmsaio.codec import Stamp, encode, stamp_sent, with_sticky_key
from jmsaio.codec.properties import write as write_properties
from jmsaio.codec.schemas.writing import SchemaWriter
from jmsaio.errors import IllegalArgumentTypeError, ObjectClosedError
from jmsaio.model.destinations import Destination
from jmsaio.model.durations import Duration
from jmsaio.model.messages.kinds import Sendable, outgoing, write_back
from jmsaio.model.messages.message import Message
from jmsaio.model.messages.properties import Property
from jmsaio.model.messages.tracing import Tracing
from jmsaio.model.modes import DeliveryMode
from jmsaio.model.public import created_by, public
from jmsaio.model.wire import OutgoingRecord

if TYPE_CHECKING:
    from jmsaio.client.runtime.session import SessionRuntime
    from jmsaio.transport.base import Sender, Transaction

_log = logging.getLogger(__name__)


class SendOptions(TypedDict, total=False):
    """Options of one message; None, or a missing key, means the producer's setting.

    Attributes:
        properties: set on the message before it is sent.
        delivery_mode: DeliveryMode.
        priority: 0 to 9.
        time_to_live: seconds, 0 forever.
        delivery_delay: seconds.
    """

    properties: Mapping[str, Property] | None
    delivery_mode: DeliveryMode | None
    priority: int | None
    time_to_live: Duration | None
    delivery_delay: Duration | None


@public
@created_by("session.create_producer")
@attrs.define(eq=False, kw_only=True)
class MessageProducer(ProducerSettings[None], AsyncClosing):
    """Sends messages to one destination, or to any if created without one. Many tasks can use it at once.

    Created by ``session.create_producer``; ``async with`` closes it. Its settings raise ObjectClosedError once it is
    closed (Jakarta Messaging 3.1, 7.4 Setting message delivery options).
    """

    _runtime: SessionRuntime
    _targets: Targets
    _stamper: Stamper
    _schema: SchemaWriter | None  # schema of all its messages
    _closed: bool = attrs.field(default=False, init=False)
    _now: int = attrs.field(default=0, init=False)  # milliseconds; time of the last send on the general path

    @overload
    async def send(self, message: Sendable, /, **options: Unpack[SendOptions]) -> Receipt: ...
    @overload
    async def send(self, destination: Destination, message: Sendable, /, **options: Unpack[SendOptions]) -> Receipt: ...
    async def send(
        self,
        destination_or_message: Any,
        message: Any = UNSET,
        /,
        *java: Never,
        properties: Mapping[str, Property] | None = None,
        delivery_mode: DeliveryMode | None = None,
        priority: int | None = None,
        time_to_live: Duration | None = None,
        delivery_delay: Duration | None = None,
    ) -> Receipt:
        """Send a message and wait until the broker confirms it.

        ``send(message)`` on a producer with a destination, ``send(destination, message)`` on one without.

        Args:
            destination_or_message: see above.
            message: a message, including messages of other libraries, or a body: str, bytes, dict, list.
            properties: set on the message before it is sent.
            delivery_mode: DeliveryMode; default the producer's.
            priority: 0 to 9; default the producer's.
            time_to_live: seconds, 0 forever; default the producer's.
            delivery_delay: seconds; default the producer's.
            java: nothing; Java's arguments get an answer.

        Returns:
            The receipt, with the message's ids.

        Raises:
            UnsupportedOperationError: destination given twice, or not at all.
            InvalidDestinationError: no destination, a virtual one, or a deleted temporary one.
            MessageFormatError: not a message, and not a body that a message type can hold.
            MessageTooLargeError, SendError, SendInDoubtError, OperationTimeoutError: see ``jmsaio.errors``.
            IllegalArgumentError: an impossible delivery mode, priority, duration or property name.
            ObjectClosedError: the producer is closed.

        Cancelling: it is unknown whether the message was sent; the producer stays usable.
        """
        if java:
            raise IllegalArgumentTypeError(
                "the options of a send are keywords: send(message, delivery_mode=DeliveryMode.PERSISTENT, priority=4, "
                "time_to_live=60), with seconds"
            )
        send = self._stamper.send(
            destination_or_message, message, properties, delivery_mode, priority, time_to_live, delivery_delay
        )
        if send is None:
            options = (delivery_mode, priority, time_to_live, delivery_delay)
            send = await self._send_any(destination_or_message, message, properties, options, UNSET)
        return await send

    publish = send  # its name in JMS 1.1

    @overload
    async def send_async(
        self,
        message: Sendable,
        /,
        *,
        completion_listener: CompletionListener = ...,
        **options: Unpack[SendOptions],
    ) -> asyncio.Future[Receipt]: ...
    @overload
    async def send_async(
        self,
        destination: Destination,
        message: Sendable,
        /,
        *,
        completion_listener: CompletionListener = ...,
        **options: Unpack[SendOptions],
    ) -> asyncio.Future[Receipt]: ...
    async def send_async(
        self,
        destination_or_message: Any,
        message: Any = UNSET,
        /,
        *,
        properties: Mapping[str, Property] | None = None,
        delivery_mode: DeliveryMode | None = None,
        priority: int | None = None,
        time_to_live: Duration | None = None,
        delivery_delay: Duration | None = None,
        completion_listener: CompletionListener = UNSET,
    ) -> asyncio.Future[Receipt]:
        """Send a message; return a future once the message has a place in the send window.

        The message's content is copied at once, so the object can be changed or sent again right away. Once per
        millisecond a call lets other tasks run, so that a loop of sends does not block them.

        Args:
            completion_listener: called with the outcome by the session's callback worker, in order of the sends: an
                object with the plain or coroutine functions ``on_completion(message)`` and ``on_exception(message,
                error)``. None or anything else raises IllegalArgumentError.

        Otherwise as ``send``. Errors of the call itself are raised here; later failures fail the future.

        Cancelling while it waits for room: the message was not sent. Cancelling the future only hides the outcome.
        """
        if completion_listener is UNSET:
            send = self._stamper.send(
                destination_or_message, message, properties, delivery_mode, priority, time_to_live, delivery_delay
            )
            if send is not None:
                return send
        options = (delivery_mode, priority, time_to_live, delivery_delay)
        return await self._send_any(destination_or_message, message, properties, options, completion_listener)

    async def _send_any(
        self, destination_or_message: Any, message: Any, properties: Mapping[str, Property] | None,
        options: tuple[Any, Any, Any, Any], completion_listener: Any, settings: SendSettings | None = None,
    ) -> PendingSend:  # fmt: skip
        """Send on the general path, which raises the errors of invalid sends; ``settings`` replace the producer's."""
        runtime = self._runtime
        runtime.affinity.check()
        loop = runtime.affinity.loop
        if self._closed or (runtime.closing and runtime.refuses()):
            raise ObjectClosedError("the producer is closed; create a new one")
        if completion_listener is not UNSET:
            check_listener(completion_listener)
        target, given, sent, foreign = self._outgoing(destination_or_message, message, properties)
        stamp = self._stamp(settings or self._stamper.settings, options)
        schema, aside = self._schema, None
        if schema is not None and (aside := schema.aside(sent._body())) is not None:
            schema = attrs.evolve(schema, write=_later)
        record, tracing = encode(sent, stamp, schema), runtime.connection.tracing
        send = PendingSend(loop=loop) if tracing is None else self._traced(tracing, target, sent, record)
        sends, local, transaction = runtime.sends, runtime.transaction, None
        pooled = runtime.connection.senders.use(target)
        sender = None if pooled is None else pooled.sender
        try:
            if (
                sender is None or sender.full or local is not None or self._now != sends.turn
                or target.topic in sends.lines or aside is not None
            ):  # fmt: skip
                sender, transaction = await self._prepare(target, record, aside)
            work = None if local is None else local.work
            if work is not None and work.sticky_key is not None and work.sticky_key != stamp.sticky_key:
                record = with_sticky_key(record, work.sticky_key)
            send.message_id = stamp.message_id
            send.origin = SendOrigin(sends, work, target.destination, stamp.timestamp, self._stamper.counts)
            sender.send(record, send, transaction)
        except BaseException as error:
            if isinstance(send, TracedSend):
                call_trace(send.trace.failed, error)
            raise
        sends.passed(loop, sends.turn)
        self._stamper.counts.add(len(record.payload or b""), self._now)
        stamp_sent(sent, stamp, target.destination)
        self._report(sent, given if foreign else None, completion_listener, send)
        return send

    def _outgoing(
        self, destination_or_message: Any, message: Any, properties: Mapping[str, Property] | None
    ) -> tuple[Target, Any, Message, bool]:
        """Return the target of a send, the object given, its message, and whether that is a copy of a foreign one."""
        if message is UNSET:
            target, given = self._targets.default(), destination_or_message
        else:
            target, given = self._targets.other(destination_or_message), message
        sent, foreign = outgoing(given, log_left_out, has_schema=self._schema is not None)
        if properties is not None:
            sent._put_properties(properties)
        return target, given, sent, foreign

    def _traced(self, tracing: Tracing, target: Target, sent: Message, record: OutgoingRecord) -> TracedSend:
        trace = tracing.at(target.destination, self._runtime.connection.broker).sending(sent)
        write_properties(trace.context, record.properties)
        return TracedSend(self._runtime.affinity.loop, trace)

    def _report(self, sent: Message, foreign: Any, listener: Any, send: PendingSend) -> None:
        if foreign is not None:
            write_back(foreign, sent._headers())
        if listener is not UNSET:
            self._runtime.completions.expect(sent if foreign is None else foreign, listener, self, send)

    async def _prepare(
        self, target: Target, record: OutgoingRecord, aside: Callable[[], bytes] | None
    ) -> tuple[Sender, Transaction | None]:
        """Return a sender with room and the current transaction, both read in the same turn of the loop.

        Before, ``aside`` writes the record's payload in a thread.
        """
        sends, lets_others = self._runtime.sends, self._now != self._runtime.sends.turn
        sends.turn = self._now
        async with sends.lines.turn(target.topic):
            if lets_others and sends.blocks_others():  # a loop of sends lets other tasks run each millisecond
                await asyncio.sleep(0)
            if aside is not None:
                record.payload = await self._runtime.affinity.loop.run_in_executor(None, aside)
            return await self._ready(target)

    async def _ready(self, target: Target) -> tuple[Sender, Transaction | None]:
        local = self._runtime.transaction
        while True:
            if self._closed or self._runtime.refuses():
                raise ObjectClosedError("the producer was closed while the message waited for room; it was not sent")
            pooled = self._runtime.connection.senders.use(target)
            if pooled is None:
                await self._targets.open(target)
            elif pooled.sender.full:
                await pooled.sender.ready()
            elif local is not None and local.to_begin:
                await local.begin()
            else:
                return pooled.sender, None if local is None else local.work.handle

    def _stamp(self, settings: SendSettings, options: tuple[Any, Any, Any, Any]) -> Stamp:
        stamper, checked = self._stamper, settings.options(*options)
        self._now = now = int(stamper.wall() * 1000)
        return stamper.stamp(now, None if settings.disable_message_id else stamper.next_id(), settings, checked)

    def _next_message_id(self) -> str:
        return self._stamper.next_id()

    @property
    def destination(self) -> Destination | None:
        """The destination, or None if each send names one. Raises ObjectClosedError, as all settings do."""
        self._check_open()
        return None if self._targets.own is None else self._targets.own.destination

    def get_destination(self) -> Destination | None:
        """Return ``destination``."""
        return self.destination

    def _current(self) -> SendSettings:
        self._check_open()
        return self._stamper.settings

    def _change(self, **given: Any) -> None:
        self._check_open()
        self._stamper.change(**given)

    def stats(self) -> ProducerStats:
        """Return what the producer has sent so far, in numbers."""
        counts = self._stamper.counts
        pending = counts.sent - counts.confirmed - counts.in_doubt - counts.failed
        own = None if self._targets.own is None else self._targets.own.destination
        return ProducerStats(destination=own, in_flight=pending, **attrs.asdict(counts))

    @property
    def closed(self) -> bool:
        """Whether the producer was closed."""
        return self._closed

    async def close(self) -> None:
        """Wait up to ``close_timeout`` seconds for pending sends and their completion listeners. Idempotent.

        Raises:
            IllegalStateError: called from a completion listener of this producer.
            OperationTimeoutError: a send had no outcome in time; the producer is closed nevertheless.

        Cancelling: the producer is closed, the sends continue.
        """
        callback_context.refuse("close of a producer", self, (CallbackKind.COMPLETION,))
        if self._closed:
            return
        if self._runtime.affinity.forked:
            self._closed = True  # its pending sends belong to the parent
            return
        self._runtime.affinity.check()
        self._closed = True
        self._stamper.stop()
        self._runtime.children.pop(self, None)
        if self._runtime.closing:
            return  # the session waits once for the sends of all its producers
        if self._runtime.sends.count or len(self._runtime.completions):
            await self._runtime.settle_sends(self._runtime.close_timeout)

    def _check_open(self) -> None:
        self._runtime.affinity.check_process()
        if self._closed or self._runtime.refuses():
            raise ObjectClosedError("the producer is closed; create a new one")

    def __repr__(self) -> str:
        own = self._targets.own
        where = "any destination" if own is None else repr(own.destination)
        return f"<MessageProducer to {where} {'closed' if self._closed else 'open'}>"


def _later(body: object) -> bytes:
    """Return the payload of a body that a thread writes later."""
    return b""


def log_left_out(what: str, error: Exception) -> None:
    """Log which part of another library's message can't be read and is therefore not sent."""
    _log.warning("%s of the message of another library can't be read and is not sent: %r", what, error)
