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
* Waiting. There is room, and other tasks have run in this millisecond or since the send before.

A send that declines has changed nothing: no id is used up, and the long way begins from the start.
"""

from __future__ import annotations

from asyncio import _get_running_loop
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

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


#: The word on the wire for a message with a body of this class.
_WORDS: Final[dict[type, str]] = {str: "text", bytes: "bytes"}


@attrs.define(eq=False)
class _Kept:
    """What the sends of one producer in one millisecond have in common.

    Attributes:
        now: the millisecond.
        pooled: the sender.
        sender: the same without the pool's part.
        origin: for the receipts.
        numbered: messages have ids.
        stamp: the headers but the id.
        parts: what they write, by class of the body, once there was one; see ``PlainWriter.parts``.
    """

    now: int
    pooled: PooledSender
    sender: Sender
    origin: SendOrigin
    numbered: bool
    stamp: Stamp
    parts: dict[type, tuple[Any, Any]]


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
        kind = type(body)
        if kind is not str and kind is not bytes:
            return None
        runtime, loop, now = self._runtime, _get_running_loop(), int(self._wall() * 1000)
        sends = runtime.sends
        if runtime.closing or self._closed or loop is not runtime.home.loop or (now != sends.turn and sends.alone):
            return None
        kept = self._kept
        if kept is None or kept.now != now or not kept.pooled.in_pool:
            kept = self._keep(now)
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
        wire = plain.write(parts, message_id, written)
        _, _, _, event_time, _, deliver_at, _, priority, _, _, _ = kept.stamp
        record = plain.kind(payload, wire, None, event_time, deliver_at, priority)
        send = PendingSend(loop=loop)
        send.message_id, send.origin = message_id, kept.origin
        sender.send(record, send)
        sends.add(send)
        sends.turn = now
        if not sends.alone:
            sends.begin_turn(loop)
        return send

    def _keep(self, now: int) -> _Kept | None:
        """What the sends of this millisecond have in common; None: they take the long way."""
        target, runtime = self._target, self._runtime
        if target is None or self._transacting is not None:
            return None
        pooled = runtime.connection.senders.use(target.topic, target.queue_subscription, False)
        if pooled is None:
            return None
        stamp = self._stamp_at(now, None, self._delivery_mode, self._priority, self._time_to_live, self._delivery_delay)
        self._kept = kept = _Kept(
            now, pooled, pooled.sender, SendOrigin(runtime.sends, None, target.destination, stamp.timestamp),
            not self._disable_message_id, stamp, {},
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
