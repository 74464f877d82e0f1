"""One connection to a broker: frames, requests and their answers, keep-alive."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import Any, Final, NamedTuple, Protocol, cast

import attrs

from jmsaio.errors import BrokerUnavailableError, JMSError, OperationTimeoutError, ProtocolError, TransportError
from jmsaio.protocol import handshake
from jmsaio.protocol.commands import ANSWERS, Command, decode_command, encode_command
from jmsaio.protocol.framing import MAX_MESSAGE_SIZE, PADDING, Frame, Framing
from jmsaio.protocol.handshake import Identity
from jmsaio.protocol.messages import Delivery, SendReceipt, read_message, read_receipt
from jmsaio.transport.causes import cause_of
from jmsaio.transport.pulsar.wire.connections.answers import error_of

_log = logging.getLogger(__name__)
#: Bytes that wait for the network before writing pauses.
_HIGH_WATER: Final = 4 * 1024 * 1024
#: Bytes of a frame that does not wait for others.
_LARGE: Final = 32 * 1024
_PONG: Final = encode_command(Command.PONG)
_PING: Final = encode_command(Command.PING)


@attrs.frozen
class Address:
    """Where to connect."""

    broker: str  # URL of the broker that is meant, ``pulsar://host:port``
    through: str = ""  # URL of the proxy to connect to, which passes everything on to that broker; "" without one
    slot: int = 0  # number of the connection, if there are several to one broker


class Part(Protocol):
    """What a connection reports to a producer or consumer on it."""

    def ended(self, error: JMSError, assigned: str) -> None:
        """End on this connection: it was lost, or the broker closed it, and might name the next broker."""

    def migrated(self, cluster: str) -> None:
        """Use another cluster, by its service URL: its topic has moved. Its end here follows."""


class ProducerPart(Part, Protocol):
    """What a connection reports to a producer besides."""

    def stored(self, receipt: SendReceipt) -> None:
        """Process the broker's receipt. Raises ProtocolError if an earlier batch has none."""

    def refused(self, sequence: int, error: JMSError) -> None: ...


class ConsumerPart(Part, Protocol):
    """What a connection reports to a consumer besides."""

    @property
    def topic(self) -> str: ...

    def arrived(self, delivery: Delivery, frame: Frame) -> None: ...

    def announce(self) -> None:
        """Report what arrived; called once after the entries that came together."""

    def activated(self, active: bool) -> None:
        """Note whether it is the one consumer of its subscription that receives."""


class _Request(NamedTuple):
    answer: Command  # that the broker sends unless it sends ERROR
    future: asyncio.Future[dict[str, Any]]
    queued: Callable[[], object] | None  # see ``Connection.request``


class Connection(asyncio.Protocol):
    """A connection that a broker has accepted. Opened by the pool.

    After ``keep_alive`` seconds of silence the broker is asked, and after twice as many it is given up.
    """

    def __init__(
        self, address: Address, keep_alive: float, challenged: Callable[[Connection], None],
        ended: Callable[[Connection], None] = lambda connection: None,
    ) -> None:  # fmt: skip
        self.address = address
        self.error: JMSError | None = None
        self.max_message_size = MAX_MESSAGE_SIZE
        self.producers: dict[int, ProducerPart] = {}
        self.consumers: dict[int, ConsumerPart] = {}
        self._keep_alive = keep_alive
        self._challenged = challenged
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._framing = Framing()
        self._numbers = count(1)  # ids of requests
        self._requests: dict[int, _Request] = {}  # that have no answer
        # CONNECTED has no request id, and can come before ``create_connection`` returns.
        self._accepted: asyncio.Future[None] = self._loop.create_future()
        self._answered: asyncio.Future[None] = self._loop.create_future()  # the first PING
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._out: list[bytes] = []
        self._calls: deque[Callable[[], object]] = deque()
        self._scheduled = False
        self._paused = False
        self._arrived: dict[ConsumerPart, None] = {}
        self._heard = self._asked = self._loop.time()
        self._identity = Identity()
        self._timer: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        state = "open" if self.error is None else "lost"
        parts = len(self.producers) + len(self.consumers)
        return f"<Connection {self.address.broker}, {state}, {parts} producers and consumers>"

    async def speak(self) -> None:
        """Wait until the broker answers a PING, which needs no CONNECT before. The caller bounds the time.

        Raises ProtocolError if this is no broker, or uses TLS and the connection does not; BrokerUnavailableError.
        """
        self.write(_PING)
        await self._answered

    async def introduce(self, identity: Identity) -> None:
        """Send CONNECT, and wait until the broker accepts this client. The caller bounds the time.

        Raises JMSSecurityError if it refuses the credentials, or as ``speak``.
        """
        if identity.data and self._transport.get_extra_info("ssl_object") is None:
            await self.speak()  # otherwise a port with TLS would get credentials that anyone can read
        self._identity = identity
        proxied = self.address.broker.partition("://")[2] if self.address.through else ""
        self.write(handshake.connect_frame(identity, proxied))
        await self._accepted
        self._timer = self._loop.call_later(self._keep_alive, self._check_alive)

    def respond(self, identity: Identity) -> None:
        self._identity = identity
        self.write(handshake.response_frame(identity))

    def close(self, error: JMSError) -> None:
        """Close the connection at once; everything on it ends with ``error``. Idempotent."""
        self._end(error)
        self._transport.abort()

    async def aclose(self, error: JMSError, timeout: float) -> None:
        """Close as ``close``, and wait until the socket is closed as well, for up to ``timeout`` seconds."""
        self.close(error)
        await asyncio.wait({self._gone}, timeout=max(0.0, timeout))

    # asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass
        self._transport.set_write_buffer_limits(high=_HIGH_WATER)

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone.set_result(None)
        why = "closed by the broker" if exc is None else cause_of(exc)
        error = BrokerUnavailableError(f"the connection to {self.address.broker} broke: {why}")
        error.__cause__ = exc
        self._end(error)

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._schedule()

    def data_received(self, data: bytes) -> None:
        self._heard = self._loop.time()
        try:
            for frame in self._framing.feed(data):
                self._read(frame)
        except ProtocolError as error:
            self.close(error)
        arrived, self._arrived = self._arrived, {}
        for consumer in arrived:
            consumer.announce()

    # the way out

    def write(self, data: bytes) -> None:
        """Write a frame. The frames of one turn of the loop leave in one system call, a large one ends it at once."""
        self._out.append(data)
        if len(data) >= _LARGE:  # the broker works on it meanwhile
            self._send()
        else:
            self._schedule()

    def at_next_turn(self, call: Callable[[], object]) -> None:
        """Have a function called in the loop's next turn; what it writes leaves in this turn."""
        self._calls.append(call)
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        try:
            for _ in range(len(self._calls)):
                self._calls.popleft()()
        finally:
            self._scheduled = False
            if self._calls:
                self._schedule()
        self._send()

    def _send(self) -> None:
        if self._out and not self._paused and self.error is None:
            out, self._out = self._out, []
            self._transport.write(b"".join(out) if len(out) > 1 else out[0])

    def start_request(self, command: Command, **fields: Any) -> asyncio.Future[dict[str, Any]]:
        """Send a request; return the future of its answer's fields. Raises the error of a lost connection."""
        return self.start_framed(command, lambda number: encode_command(command, request_id=number, **fields))

    def start_framed(
        self, command: Command, make: Callable[[int], bytes], queued: Callable[[], object] | None = None
    ) -> asyncio.Future[dict[str, Any]]:
        """Send a request as ``start_request``; ``make`` returns its frame for a request id."""
        if self.error is not None:
            raise self.error
        future = self._loop.create_future()
        number = next(self._numbers)
        self._requests[number] = _Request(ANSWERS[command], future, queued)
        future.add_done_callback(lambda _: self._requests.pop(number, None))
        self.write(make(number))
        return future

    def send_request(self, command: Command, **fields: Any) -> None:
        """Send a request whose answer does not matter, unless the connection is lost."""
        if self.error is None:
            self.start_request(command, **fields).cancel()

    async def request(
        self, what: str, timeout: float, command: Command, *, queued: Callable[[], object] | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Send a request, and return the fields of its answer. Cancelling ignores it; it might have been carried out.

        ``queued`` is called when the broker makes a producer wait for exclusive access, however long that takes: then
        ``timeout`` no longer applies. Raises TransportError, OperationTimeoutError or BrokerUnavailableError.
        """
        try:
            async with asyncio.timeout(timeout) as limit:
                answer = await self.start_framed(
                    command, lambda number: encode_command(command, request_id=number, **fields),
                    None if queued is None else partial(_wait_on, limit, queued),
                )  # fmt: skip
        except TimeoutError:
            raise OperationTimeoutError(f"{what}: no answer within {timeout:g} s") from None
        if "error" in answer or "error_code" in answer:
            raise self.error_of(what, answer)
        return answer

    def error_of(self, what: str, fields: dict[str, Any]) -> JMSError:
        """Create the error of an answer; ``what`` is the operation, the start of its text."""
        number = fields.get("error", fields.get("error_code", 0))
        words = fields.get("message") or fields.get("error_message") or ""
        return error_of(what, number, self._identity.hidden_in(words))

    # the way in

    def _read(self, frame: Frame) -> None:
        kind = frame.kind
        if not self._accepted.done() and kind not in (Command.PING, Command.PONG):
            self._shake_hands(kind, decode_command(kind, frame.data, frame.command, frame.rest))
        elif kind == Command.MESSAGE:
            delivery = read_message(frame)
            consumer = self.consumers.get(delivery.consumer_id)
            if consumer is not None:  # else it is closed, and the broker redelivers what it has sent
                consumer.arrived(delivery, frame)
                self._arrived[consumer] = None
        elif kind == Command.SEND_RECEIPT:
            receipt = read_receipt(frame)
            producer = self.producers.get(receipt.producer_id)
            if producer is not None:
                producer.stored(receipt)
        elif kind == Command.PING:
            if not self._paused:  # a broker that reads nothing needs no answer
                self.write(_PONG)
        elif kind == Command.PONG:
            if not self._answered.done():
                self._answered.set_result(None)
        else:
            self._read_command(kind, decode_command(kind, frame.data, frame.command, frame.rest))

    def _read_command(self, command: int, fields: dict[str, Any]) -> None:
        consumer = self.consumers.get(fields.get("consumer_id", 0))
        match command:
            case Command.CONNECTED | Command.AUTH_CHALLENGE:
                self._shake_hands(command, fields)
            case Command.SEND_ERROR:
                if (producer := self.producers.get(fields["producer_id"])) is not None:
                    producer.refused(fields["sequence_id"], self.error_of("send", fields))
            case Command.CLOSE_PRODUCER:
                self._close_part("producer", self.producers.pop(fields["producer_id"], None), fields)
            case Command.CLOSE_CONSUMER:
                self._close_part("consumer", self.consumers.pop(fields["consumer_id"], None), fields)
            case Command.REACHED_END_OF_TOPIC:
                if consumer is not None:
                    _log.info("topic %s is terminated; nothing follows what is stored", consumer.topic)
            case Command.ACTIVE_CONSUMER_CHANGE:
                if consumer is not None:
                    consumer.activated(fields["is_active"])
            case Command.TOPIC_MIGRATED:
                parts: Mapping[int, Part] = self.consumers if fields["resource_type"] else self.producers
                part, cluster = parts.get(fields["resource_id"]), self._url(fields)
                if part is not None and cluster:
                    part.migrated(cluster)
            case _:
                self._read_answer(command, fields)

    def _read_answer(self, command: int, fields: dict[str, Any]) -> None:
        """Process an answer, unless nobody awaits it any more.

        The first answer to a producer that waits for exclusive access says so, and another one follows.
        """
        number = fields.get("request_id")
        if number is None:
            if command != Command.ACK_RESPONSE:  # to an ACK without an id
                raise ProtocolError(f"the broker sends {Command(command).name}, which is a client's command")
            return
        request = self._requests.get(number)
        if request is None:
            return
        if command not in (request.answer, Command.ERROR):
            names = request.answer.name, Command(command).name
            raise ProtocolError(f"request {number} expects {names[0]}, and the broker answers {names[1]}")
        if fields.get("producer_ready", True):
            del self._requests[number]
            if not request.future.done():
                request.future.set_result(fields)
        elif request.queued is not None:
            request.queued()

    def _shake_hands(self, command: int, fields: dict[str, Any]) -> None:
        """Process what the broker sends before it has accepted this client, and later challenges."""
        accepted = self._accepted.done()
        if self.error is not None:
            return  # refused
        if command == Command.AUTH_CHALLENGE:
            self._challenged(self)
        elif command == Command.CONNECTED and not accepted:
            self.max_message_size = fields.get("max_message_size", MAX_MESSAGE_SIZE)
            if self.max_message_size < 1:
                raise ProtocolError(f"the broker sends a max_message_size of {self.max_message_size} bytes")
            self._framing.set_max(self.max_message_size + PADDING)
            self._accepted.set_result(None)
        elif command == Command.ERROR and not accepted:
            self.close(self.error_of(f"connect to {self.address.broker}", fields))
        else:
            state = "accepted" if accepted else "not accepted yet"
            raise ProtocolError(f"the broker sends {Command(command).name} where the connection is {state}")

    def _close_part(self, what: str, part: Part | None, fields: dict[str, Any]) -> None:
        if part is not None:
            assigned = "" if self.address.through else self._url(fields, "assigned_")  # out of reach behind a proxy
            part.ended(TransportError(f"the broker closed the {what}", "Disconnected"), assigned)

    def _url(self, fields: dict[str, Any], prefix: str = "") -> str:
        tls = self.address.broker.startswith("pulsar+ssl:")
        return fields.get(f"{prefix}broker_service_url{'_tls' if tls else ''}") or ""

    def _check_alive(self) -> None:
        interval, now = self._keep_alive, self._loop.time()
        if self._heard < self._asked:
            silent = now - self._heard
            self.close(BrokerUnavailableError(f"the broker at {self.address.broker} was silent for {silent:.0f} s"))
            return
        due = self._heard + interval
        if due <= now:
            self.write(_PING)
            self._asked, due = now, now + interval
        self._timer = self._loop.call_at(due, self._check_alive)

    def _end(self, error: JMSError) -> None:
        if self.error is not None:
            return
        self.error = error
        if self._timer is not None:
            self._timer.cancel()
        waiting: list[asyncio.Future[Any]] = [each.future for each in self._requests.values()]
        self._requests.clear()
        for future in (self._accepted, self._answered, *waiting):
            if not future.done():
                future.set_exception(error)
                future.exception()  # whoever asked might have given up
        parts: list[Part] = [*self.producers.values(), *self.consumers.values()]
        self.producers.clear()
        self.consumers.clear()
        for part in parts:
            part.ended(error, "")
        self._ended(self)


def without_end(limit: asyncio.Timeout) -> None:
    """Let what waits within a time limit wait on, unless the limit is over."""
    if not limit.expired():
        limit.reschedule(None)


def _wait_on(limit: asyncio.Timeout, queued: Callable[[], object]) -> None:
    without_end(limit)
    queued()
