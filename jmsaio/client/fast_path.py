"""The fast path of a send: most sends, done without waiting and without an object that nobody needs.

It takes a str or bytes, without a completion listener, where nothing has to be waited for: to the producer's own
destination or to another one, with the producer's settings or with options of its own, in a transaction that has begun
or in none. All else, and all that is refused, takes the long way, ``MessageProducer._send_any``, which has the words
for it too.

What it leaves out, and why the record, the receipt and the errors are the same:

* The message. Nobody else has it; ``jmsaio.codec.plain`` writes what ``encode`` makes of it, or declines.
* The stamp of each send. All but the id is the same for the sends of one producer in one millisecond, with the same
  destination, options and unit of work: the long way's stamp, and what it writes on the wire, are kept for that long,
  and dropped when a setting changes.
* The checks of the options and of the destination. They are made when a stamp is kept; what they refuse is not kept.
  Equal options mean the same, since only classes are taken of which that is true: True equals 1, but is no priority.
* The look-up of the sender, and whether its destination was deleted. It is kept as long, and is as good while the pool
  has it and its topic was not deleted: a temporary destination loses its sender in the turn in which it is deleted.
* The look-up of the transaction. It is the one that was kept while the session's unit of work is the same; one that has
  to begin takes the long way.
* Waiting. There is room, other tasks have run in this millisecond or since the send before, and no send of the session
  waits, which this one would overtake.

A send that declines has changed nothing: no id is used up, and the long way begins from the start.
"""

from __future__ import annotations

from asyncio import _get_running_loop
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs

from jmsaio.client.senders.pending import PendingSend, SendOrigin
from jmsaio.client.senders.pool import PooledSender
from jmsaio.client.senders.settings import Settings, Target
from jmsaio.codec import Stamp
from jmsaio.codec.plain import MAPS, PACKED, PlainWriter
from jmsaio.codec.schemas.writing import SchemaWriter
from jmsaio.errors import JMSError
from jmsaio.model.destinations import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from jmsaio.model.durations import Duration
from jmsaio.model.modes import DeliveryMode

if TYPE_CHECKING:
    from jmsaio.client.runtime.local_transaction import LocalTransaction
    from jmsaio.client.runtime.session import SessionRuntime
    from jmsaio.transport.base import Sender, Transaction

#: In the place of an argument that was not given, where None is a value.
UNSET: Final[Any] = object()

#: The word on the wire for a message with a body of this class.
_WORDS: Final[dict[type, str]] = {str: "text", bytes: "bytes"}

#: Classes of which equal values are the same destination, delivery mode, priority or duration.
_DESTINATIONS: Final = frozenset({Queue, Topic, TemporaryQueue, TemporaryTopic})
_MODES: Final = frozenset({type(None), int, DeliveryMode})
_PRIORITIES: Final = frozenset({type(None), int})
_DURATIONS: Final = frozenset({type(None), int, float})

#: What a send may have of its own: destination, its name as spelled, its namespace if known, delivery mode, priority,
#: time to live, delivery delay; None: as the producer has it.
Varied = tuple[
    Destination | None, str | None, str | None, int | None, int | None, Duration | None, Duration | None
]  # fmt: skip
_UNVARIED: Final[Varied] = (None, None, None, None, None, None, None)
#: Of so many different ones is kept in a millisecond what they have in common.
_MOST_VARIED: Final = 100


@attrs.define(eq=False)
class _Kept:
    """What the sends of one producer in one millisecond have in common that vary from its settings in the same way.

    Attributes:
        now: the millisecond.
        pooled: the sender.
        sender: the same without the pool's part.
        transaction: of the transport, or None.
        origin: for the receipts, with the unit of work.
        numbered: messages have ids.
        stamp: the headers but the id.
        parts: what they write, by class of the body, once there was one; see ``PlainWriter.parts``.
    """

    now: int
    pooled: PooledSender
    sender: Sender
    transaction: Transaction | None
    origin: SendOrigin
    numbered: bool
    stamp: Stamp
    parts: dict[type, Any]


@attrs.define(eq=False, kw_only=True)
class PlainSends(Settings):
    """The part of a producer that takes the fast path."""

    _runtime: SessionRuntime
    _transacting: LocalTransaction | None
    _prefix: str
    _schema: SchemaWriter | None = None  # of all its messages; they take the long way
    _sequence: int = 0
    _varied_at: int = 0  # the millisecond of what is kept of varied sends
    _transacted: bool = attrs.field(init=False)  # each send is part of a transaction of the transport
    _wall: Callable[[], float] = attrs.field(init=False)  # seconds since the epoch, by the transport's clock
    _plain: PlainWriter[Any, Any] = attrs.field(init=False)

    @_transacted.default
    def _is_transacted(self) -> bool:
        return self._transacting is not None and self._transacting.real

    @_wall.default
    def _transports_clock(self) -> Callable[[], float]:
        return self._runtime.connection.transport.clock.now

    @_plain.default
    def _as_the_transport_asks(self) -> PlainWriter[Any, Any]:
        return PACKED if self._runtime.connection.transport.capabilities.packed else MAPS

    def _send_varied(
        self, destination_or_body: Any, body: Any, properties: Mapping[str, object] | None, mode: Any, level: Any,
        lives: Any, delayed: Any,
    ) -> PendingSend | None:  # fmt: skip
        """As ``_send_plain``, for a send that may have a destination and options of its own."""
        destination = name = namespace = None
        if body is UNSET:
            body = destination_or_body
        elif type(destination_or_body) in _DESTINATIONS:
            destination = destination_or_body
            name, namespace = destination.name, destination._namespace
        else:
            return None
        if (
            type(body) not in _WORDS or type(mode) not in _MODES or type(level) not in _PRIORITIES
            or type(lives) not in _DURATIONS or type(delayed) not in _DURATIONS
        ):  # fmt: skip
            return None
        return self._send_plain(body, properties, (destination, name, namespace, mode, level, lives, delayed))

    def _send_plain(
        self, body: object, properties: Mapping[str, object] | None, varied: Varied = _UNVARIED
    ) -> PendingSend | None:
        """Send a body at once; None: take the long way, nothing was sent.

        Raises as ``Sender.send``.
        """
        kind = type(body)
        if kind is not str and kind is not bytes:
            return None
        runtime, loop, now = self._runtime, _get_running_loop(), int(self._wall() * 1000)
        sends = runtime.sends
        if (
            runtime.closing or self._closed or loop is not runtime.home.loop or (now != sends.turn and sends.alone)
            or sends.lines
        ):  # fmt: skip
            return None
        kept = self._kept if varied is _UNVARIED else self._kept_varied.get(varied)
        if (
            kept is None or kept.now != now or not kept.pooled.in_pool
            or (self._transacting is not None and self._transacting.work is not kept.origin.work)
        ):  # fmt: skip
            kept = self._keep(now, varied)
            if kept is None:
                return None
        sender, plain = kept.sender, self._plain
        parts = kept.parts.get(kind)
        if parts is None:
            parts = kept.parts[kind] = plain.parts(_WORDS[kind], kept.stamp)
        if sender.full or sender.deleted:
            return None
        payload = body
        if kind is str:
            try:
                payload = body.encode()  # type: ignore[attr-defined]  # a str
            except UnicodeEncodeError:
                return None
        written = plain.none if properties is None else plain.properties(properties)
        if written is None:
            return None
        message_id = None
        if kept.numbered:
            self._sequence = sequence = self._sequence + 1
            message_id = f"{self._prefix}{sequence}"
        record = plain.write(payload, parts, message_id, written, kept.stamp)  # type: ignore[arg-type]  # bytes
        send = PendingSend(loop=loop)
        send.message_id, send.origin = message_id, kept.origin
        sender.send(record, send, kept.transaction)
        sends.count += 1
        sends.turn = now
        if not sends.alone:
            sends.begin_turn(loop)
        return send

    def _keep(self, now: int, varied: Varied) -> _Kept | None:
        """What such sends of this millisecond have in common; None: they take the long way."""
        destination, _, _, *options = varied
        if self._schema is not None:
            return None
        runtime, transacting, work, transaction = self._runtime, self._transacting, None, None
        if transacting is not None:
            if transacting.to_begin:
                return None
            work = transacting.work
            transaction = work.handle
        try:
            target = self._target if destination is None else self._other_target(destination)
            checked = self._options(*options)
        except JMSError:  # the long way raises it, or what is wrong before it
            return None
        if target is None:
            return None
        pooled = runtime.connection.senders.use(target.topic, target.queue_subscription, self._transacted)
        if pooled is None:
            return None
        stamp = self._stamp_at(now, None, *checked)
        kept = _Kept(
            now, pooled, pooled.sender, transaction,
            SendOrigin(runtime.sends, work, target.destination, stamp.timestamp),
            not self._disable_message_id, stamp, {},
        )  # fmt: skip
        if varied is _UNVARIED:
            self._kept = kept
        else:
            self._keep_varied(varied, kept)
        return kept

    def _keep_varied(self, varied: Varied, kept: _Kept) -> None:
        """Keep it beside the others of the same millisecond."""
        others = self._kept_varied
        if len(others) >= _MOST_VARIED or self._varied_at != kept.now:
            others.clear()
            self._varied_at = kept.now
        others[varied] = kept

    def _stamp_at(self, now: int, message_id: str | None, mode: int, level: int, lives: int, delayed: int) -> Stamp:
        """The stamp of a send at ``now``; all times are milliseconds."""
        shown = 0 if self._disable_message_timestamp else now
        due = now + delayed
        connection = self._runtime.connection
        # As Stamp(...), without its keywords: every send on the long way creates one.
        return tuple.__new__(Stamp, (
            message_id, connection.connection_id, shown, shown, due, due if delayed else None,
            now + lives if lives else 0, level, mode,
            None if self._transacting is None else self._transacting.work.sticky_key,
            connection.configuration.system_namespace,
        ))  # fmt: skip

    def _other_target(self, destination: Any) -> Target:
        """The target of a send to a destination of its own; see ``MessageProducer``."""
        raise NotImplementedError
