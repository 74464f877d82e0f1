"""The fast path of a send: handles most sends without waiting and without creating intermediate objects.

It handles a str or bytes without a completion listener, if nothing has to be waited for: to the producer's destination
or another one, with the producer's settings or options of this send, in a transaction that has begun or in none.
Everything else, including invalid calls, uses the general path, ``MessageProducer._send_any``, which raises the errors.

What it omits, and why the record, the receipt and the errors are the same:

* The message. The caller never has it; ``jmsaio.codec.plain`` writes the same as ``encode``, or declines.
* The stamp of each send. Except for the id, it is equal for a producer's sends in one millisecond that have the same
  destination, options and unit of work. The general path's stamp and its wire form are cached for that millisecond,
  and dropped when a setting changes.
* The checks of options and destination. They are made when a stamp is cached; refused values are never cached. Only
  classes are accepted whose equal values have the same meaning: True equals 1, but is not a priority.
* The look-up of the sender, and whether its destination was deleted. It is cached as long, and is valid while the
  pool holds the sender and the topic was not deleted: a temporary destination loses its sender in the same turn of
  the loop in which it is deleted.
* The look-up of the transaction. The cached one is valid while the session's unit of work is the same; a transaction
  that has yet to begin uses the general path.
* Waiting. The send window has room, other tasks have run in this millisecond or since the previous send, and no send
  of the session waits, which this one would overtake.

A send that declines has changed nothing: no id is consumed, and the general path starts from the beginning.
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

#: Default of an argument for which None is a value.
UNSET: Final[Any] = object()

#: Message type on the wire, by class of the body.
_WORDS: Final[dict[type, str]] = {str: "text", bytes: "bytes"}

#: Classes whose equal values are the same destination, delivery mode, priority or duration.
_DESTINATIONS: Final = frozenset({Queue, Topic, TemporaryQueue, TemporaryTopic})
_MODES: Final = frozenset({type(None), int, DeliveryMode})
_PRIORITIES: Final = frozenset({type(None), int})
_DURATIONS: Final = frozenset({type(None), int, float})

#: Values that one send can set for itself: destination, its name as spelled, its namespace if known, delivery mode,
#: priority, time to live, delivery delay. None: the producer's value.
Varied = tuple[
    Destination | None, str | None, str | None, int | None, int | None, Duration | None, Duration | None
]  # fmt: skip
_UNVARIED: Final[Varied] = (None, None, None, None, None, None, None)
#: Maximum number of variants cached per millisecond.
_MOST_VARIED: Final = 100


@attrs.define(eq=False)
class _Kept:
    """Common values of a producer's sends in one millisecond that deviate from its settings in the same way.

    Attributes:
        now: the millisecond.
        pooled: the sender's entry in the pool.
        sender: the sender itself.
        transaction: the transport's transaction, or None.
        origin: origin of the receipts, with the unit of work.
        numbered: whether messages have ids.
        stamp: the headers except the id.
        parts: the wire form of the headers, by class of the body, created on first use; see ``PlainWriter.parts``.
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
    """The fast path of a producer."""

    _runtime: SessionRuntime
    _transacting: LocalTransaction | None
    _prefix: str
    _schema: SchemaWriter | None = None  # schema of all its messages; they use the general path
    _sequence: int = 0
    _varied_at: int = 0  # millisecond of the cached varied sends
    _transacted: bool = attrs.field(init=False)  # whether each send is part of a transport's transaction
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
        """Send as ``_send_plain``, with an optional destination and options of this send."""
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
        """Send a body at once. None: nothing was sent, use the general path.

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
        """Cache the common values of such sends in this millisecond. None: they use the general path."""
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
        except JMSError:  # the general path raises it, or an earlier error
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
        """Cache the values along with the other variants of the same millisecond."""
        others = self._kept_varied
        if len(others) >= _MOST_VARIED or self._varied_at != kept.now:
            others.clear()
            self._varied_at = kept.now
        others[varied] = kept

    def _stamp_at(self, now: int, message_id: str | None, mode: int, level: int, lives: int, delayed: int) -> Stamp:
        """Return the stamp of a send at ``now``; all times are milliseconds."""
        shown = 0 if self._disable_message_timestamp else now
        due = now + delayed
        connection = self._runtime.connection
        # As Stamp(...), without its keywords: every send on the general path creates one.
        return tuple.__new__(Stamp, (
            message_id, connection.connection_id, shown, shown, due, due if delayed else None,
            now + lives if lives else 0, level, mode,
            None if self._transacting is None else self._transacting.work.sticky_key,
            connection.configuration.system_namespace,
        ))  # fmt: skip

    def _other_target(self, destination: Any) -> Target:
        """Return the target of a send that names its destination; see ``MessageProducer``."""
        raise NotImplementedError
