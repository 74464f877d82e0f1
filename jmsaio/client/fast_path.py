"""The fast path of a send: most sends, done without waiting and without an object that nobody needs.

It takes a str or bytes to the producer's own destination, with the producer's own settings, without a completion
listener and outside of a transaction, where nothing has to be waited for. All else, and all that is refused, takes the
long way, ``MessageProducer._send_any``, which has the words for it too.

What it leaves out, and why the record, the receipt and the errors are the same:

* The message. Nobody else has it; ``jmsaio.codec.plain`` writes what ``encode`` makes of it, or declines.
* The stamp of each send. All but the id is the same for the sends of one producer in one millisecond: the long way's
  stamp, and what it writes on the wire, are kept for that long, and dropped when a setting changes.
* The look-up of the sender. It is kept as long, and is as good while the pool has it and its topic was not deleted.
* The unit of work. There is none outside of a transaction.
* Waiting. There is room, and the long way has let other tasks run in this millisecond.

A send that declines has changed nothing: no id is used up, and the long way begins from the start.
"""

from __future__ import annotations

from asyncio import _get_running_loop
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from jmsaio.client.senders.pending import PendingSend, SendOrigin
from jmsaio.client.senders.pool import PooledSender
from jmsaio.client.senders.settings import Settings
from jmsaio.codec import Stamp
from jmsaio.codec.plain import MAPS, PACKED, PlainWriter

if TYPE_CHECKING:
    from jmsaio.client.runtime.local_transaction import LocalTransaction
    from jmsaio.client.runtime.session import SessionRuntime
    from jmsaio.transport.base import Sender


@attrs.frozen(eq=False)
class _Kept:
    """What the sends of one producer in one millisecond have in common.

    Attributes:
        now: the millisecond.
        pooled: the sender.
        sender: the same without the pool's part.
        origin: for the receipts.
        numbered: messages have ids.
        text: what the stamp writes for a text.
        data: what it writes for bytes.
        event_time: as in ``OutgoingRecord``.
        deliver_at: likewise.
        priority: likewise.
    """

    now: int
    pooled: PooledSender
    sender: Sender
    origin: SendOrigin
    numbered: bool
    text: tuple[Any, Any]
    data: tuple[Any, Any]
    event_time: int
    deliver_at: int | None
    priority: int


@attrs.define(eq=False, kw_only=True)
class PlainSends(Settings):
    """The part of a producer that takes the fast path."""

    _runtime: SessionRuntime
    _transacting: LocalTransaction | None
    _prefix: str
    _sequence: int = 0
    _wall: Callable[[], float] = attrs.field(init=False)  # seconds since the epoch, by the transport's clock
    _plain: PlainWriter[Any] = attrs.field(init=False)

    @_wall.default
    def _transports_clock(self) -> Callable[[], float]:
        return self._runtime.connection.transport.clock.now

    @_plain.default
    def _as_the_transport_asks(self) -> PlainWriter[Any]:
        return PACKED if self._runtime.connection.transport.capabilities.packed else MAPS

    def _send_plain(self, body: object, properties: Mapping[str, object] | None) -> PendingSend | None:
        """Send a body at once; None: take the long way, nothing was sent.

        Raises as ``Sender.send``.
        """
        kind, runtime, now = type(body), self._runtime, int(self._wall() * 1000)
        sends, loop = runtime.sends, _get_running_loop()
        if now != sends.turn or runtime.closing or self._closed or loop is not runtime.home.loop:
            return None
        kept = self._kept
        if kept is None or kept.now != now or not kept.pooled.in_pool:
            kept = self._keep(now)
            if kept is None:
                return None
        sender, plain = kept.sender, self._plain
        if sender.full or sender.deleted:
            return None
        if kind is str:
            try:
                payload = body.encode()  # type: ignore[attr-defined]  # a str
            except UnicodeEncodeError:
                return None
            parts = kept.text
        elif kind is bytes:
            payload, parts = body, kept.data
        else:
            return None
        written = plain.none if properties is None else plain.properties(properties)
        if written is None:
            return None
        message_id = None
        if kept.numbered:
            self._sequence = sequence = self._sequence + 1
            message_id = f"{self._prefix}{sequence}"
        wire = plain.write(parts, message_id, written)
        record = plain.kind(payload, wire, None, kept.event_time, kept.deliver_at, kept.priority)
        send = PendingSend(loop=loop)
        send.message_id, send.origin = message_id, kept.origin
        sender.send(record, send)
        sends.add(send)
        return send

    def _keep(self, now: int) -> _Kept | None:
        """What the sends of this millisecond have in common; None: they take the long way."""
        target, runtime, plain = self._target, self._runtime, self._plain
        if target is None or self._transacting is not None:
            return None
        pooled = runtime.connection.senders.use(target.topic, target.queue_subscription, False)
        if pooled is None:
            return None
        stamp = self._stamp_at(now, None, self._delivery_mode, self._priority, self._time_to_live, self._delivery_delay)
        self._kept = kept = _Kept(
            now, pooled, pooled.sender, SendOrigin(runtime.sends, None, target.destination, stamp.timestamp),
            not self._disable_message_id, plain.parts("text", stamp), plain.parts("bytes", stamp), stamp.event_time,
            stamp.deliver_at, stamp.priority,
        )  # fmt: skip
        return kept

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
