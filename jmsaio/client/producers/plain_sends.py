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

from asyncio import get_running_loop
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs

from jmsaio.client.lifetime.stats import SendCounts
from jmsaio.client.producers.stamper import SendSettings, Stamper, Targets
from jmsaio.client.senders.pending import PendingSend, SendOrigin
from jmsaio.client.senders.pool import PooledSender
from jmsaio.codec import Stamp
from jmsaio.codec.plain import MAPS, PACKED, PlainWriter
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
class _Common:
    """Common values of a producer's sends in one millisecond that deviate from its settings in the same way.

    Attributes:
        now: the millisecond.
        settings: the producer's settings.
        pooled: the sender's entry in the pool.
        transaction: the transport's transaction, or None.
        origin: origin of the receipts, with the unit of work.
        numbered: whether messages have ids.
        stamp: the headers except the id.
        parts: the wire form of the headers, by class of the body, created on first use; see ``PlainWriter.parts``.
    """

    now: int
    settings: SendSettings
    pooled: PooledSender
    sender: Sender
    transaction: Transaction | None
    origin: SendOrigin
    numbered: bool
    stamp: Stamp
    parts: dict[type, Any]


@attrs.define(eq=False, repr=False)
class PlainSends:
    """The fast path of a producer.

    Args:
        runtime: the producer's session.
        transacting: its local transaction, or None.
        targets: the producer's destinations.
        stamper: its settings and message ids.
        counts: its counters.

    Attributes:
        writer: writes records of str and bytes in the form that the transport reads.
    """

    _runtime: SessionRuntime
    _transacting: LocalTransaction | None
    _targets: Targets
    _stamper: Stamper
    _counts: SendCounts
    writer: PlainWriter[Any, Any] = attrs.field(init=False)
    _stopped: bool = attrs.field(default=False, init=False)
    _common: _Common | None = attrs.field(default=None, init=False)  # of sends with the producer's settings
    _varied: dict[Varied, _Common] = attrs.field(factory=dict, init=False)  # of sends with their own options
    _varied_at: int = attrs.field(default=0, init=False)  # millisecond of the cached varied sends

    @writer.default
    def _as_the_transport_asks(self) -> PlainWriter[Any, Any]:
        return PACKED if self._runtime.connection.transport.capabilities.packed else MAPS

    def send_varied(
        self, destination_or_body: Any, body: Any, properties: Mapping[str, object] | None, mode: Any, level: Any,
        lives: Any, delayed: Any,
    ) -> PendingSend | None:  # fmt: skip
        """Send as ``send`` does, with an optional destination and options of this send."""
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
        return self.send(body, properties, (destination, name, namespace, mode, level, lives, delayed))

    def send(
        self, body: object, properties: Mapping[str, object] | None, varied: Varied = _UNVARIED
    ) -> PendingSend | None:
        """Send a body at once. None: nothing was sent, use the general path.

        Raises as ``Sender.send``.
        """
        kind = type(body)
        if kind is not str and kind is not bytes:
            return None
        runtime, stamper = self._runtime, self._stamper
        try:
            loop = get_running_loop()
        except RuntimeError:
            return None
        sends, now = runtime.sends, int(stamper.wall() * 1000)
        if (
            runtime.closing or self._stopped or loop is not runtime.affinity.loop or (now != sends.turn and sends.alone)
            or sends.lines
        ):  # fmt: skip
            return None
        common = self._common if varied is _UNVARIED else self._varied.get(varied)
        if (
            common is None or common.now != now or common.settings is not stamper.settings or not common.pooled.in_pool
            or (self._transacting is not None and self._transacting.work is not common.origin.work)
        ):  # fmt: skip
            common = self._keep(now, varied)
            if common is None:
                return None
        sender, writer = common.sender, self.writer
        parts = common.parts.get(kind)
        if parts is None:
            parts = common.parts[kind] = writer.parts(_WORDS[kind], common.stamp)
        if sender.full or sender.outdated:
            return None
        payload = body
        if kind is str:
            try:
                payload = body.encode()  # type: ignore[attr-defined]  # a str
            except UnicodeEncodeError:
                return None
        written = writer.none if properties is None else writer.properties(properties)
        if written is None:
            return None
        message_id = None
        if common.numbered:
            stamper.sequence = sequence = stamper.sequence + 1
            message_id = f"{stamper.prefix}{sequence}"
        record = writer.write(payload, parts, message_id, written)  # type: ignore[arg-type]  # bytes
        send = PendingSend(loop=loop)
        send.message_id, send.origin = message_id, common.origin
        sender.send(record, send, common.transaction)
        sends.count += 1
        counts = self._counts
        counts.sent += 1
        counts.bytes += len(payload)  # type: ignore[arg-type]  # bytes
        sends.turn = now
        if not sends.alone:
            sends.begin_turn(loop)
        return send

    def _keep(self, now: int, varied: Varied) -> _Common | None:
        """Cache the common values of such sends in this millisecond. None: they use the general path."""
        destination, _, _, *options = varied
        runtime, transacting, settings = self._runtime, self._transacting, self._stamper.settings
        if transacting is not None and transacting.to_begin:
            return None
        work = None if transacting is None else transacting.work
        try:
            target = self._targets.own if destination is None else self._targets.other(destination)
            checked = settings.options(*options)
        except JMSError:  # the general path raises it, or an earlier error
            return None
        if target is None:
            return None
        pooled = self._targets.pooled(target)
        if pooled is None:
            return None
        stamp = self._stamper.stamp(now, None, settings, checked)
        self._counts.last_activity = now
        common = _Common(
            now, settings, pooled, pooled.sender, None if work is None else work.handle,
            SendOrigin(runtime.sends, work, target.destination, stamp.timestamp, self._counts),
            not settings.disable_message_id, stamp, {},
        )  # fmt: skip
        if varied is _UNVARIED:
            self._common = common
        else:
            if len(self._varied) >= _MOST_VARIED or self._varied_at != now:  # only variants of the same millisecond
                self._varied.clear()
                self._varied_at = now
            self._varied[varied] = common
        return common

    def stop(self) -> None:
        """Decline all further sends."""
        self._stopped = True
