"""What a producer adds to its messages: settings, ids, stamps, resolved destinations; and the fast path of a send.

The fast path, ``Stamper.send``, handles most sends without waiting and without creating intermediate objects: a str or
bytes without a completion listener, to the producer's destination, with the producer's settings, in a transaction that
has begun or in none. Everything else, including invalid calls, uses the general path, ``MessageProducer._send_any``,
which raises the errors.

What it omits, and why the record, the receipt and the errors are the same:

* The message. The caller never has it; ``jmsaio.codec.encode`` writes the same as ``encode``, or declines.
* The stamp of each send. Except for the id, it is equal for a producer's sends in one millisecond and unit of work. The
  general path's stamp and its wire form are cached for that millisecond, and dropped when a setting changes.
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

import enum
from asyncio import get_running_loop
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import attrs

from jmsaio.client.lifetime.stats import SendCounts
from jmsaio.client.senders.pending import PendingSend, SendOrigin
from jmsaio.client.senders.pool import PooledSender, Target
from jmsaio.codec import Stamp
from jmsaio.codec.encode import MAPS, PACKED, PlainWriter
from jmsaio.errors import IllegalArgumentError, InvalidDestinationError, UnsupportedOperationError
from jmsaio.model.arguments import check_flag, check_int, shown, wrong_type
from jmsaio.model.destinations import Destination, Queue, as_destination, resolve
from jmsaio.model.durations import Duration, milliseconds
from jmsaio.model.modes import DeliveryMode
from jmsaio.transport.sending import sends_by_group

if TYPE_CHECKING:
    from jmsaio.client.runtime.connection import ConnectionRuntime
    from jmsaio.client.runtime.session import SessionRuntime
    from jmsaio.model.schema import Schema
    from jmsaio.transport.base import Sender, Transaction

#: Maximum number of resolved destinations per producer.
_MOST = 1000


@attrs.define(eq=False, repr=False)
class Targets:
    """Resolves the destinations that a producer sends to; ``own`` is None if each send names one."""

    _connection: ConnectionRuntime
    own: Target | None
    _transacted: bool = False
    schema: Schema | None = None
    _others: dict[tuple[type, str, str | None], Target] = attrs.field(factory=dict, init=False)  # as spelled

    def default(self) -> Target:
        if self.own is None:
            raise UnsupportedOperationError("the producer has no destination; call send(destination, message)")
        return self.own

    def other(self, destination: Any) -> Target:
        if self.own is not None:
            raise UnsupportedOperationError(
                f"the producer sends to {self.own.destination!r}; create one without destination for others"
            )
        key = None
        if isinstance(destination, Destination):
            key = (type(destination), destination.name, destination._namespace)
        found = None if key is None else self._others.get(key)
        if found is None:
            found = target_for(destination, self._connection, self._transacted, self.schema)
            if key is not None and len(self._others) < _MOST:
                self._others[key] = found
        self._connection.temporaries.check_not_deleted(found.topic, found.destination)
        return found

    async def open(self, target: Target) -> None:
        """Open the sender of a target. Raises and can be cancelled as ``SenderPool.open``."""
        self._connection.temporaries.check_not_deleted(target.topic, target.destination)
        await self._connection.senders.open(target)


def target_for(
    destination: Any, connection: ConnectionRuntime, transacted: bool = False, schema: Schema | None = None
) -> Target:
    """Resolve a destination for a sender; refuse a virtual one, which can only be consumed."""
    known = as_destination(destination)
    connection.check_options(known)
    config = connection.configuration
    resolved = resolve(known, config.system_namespace)
    if resolved.virtual:
        raise InvalidDestinationError(f"{known!r} stands for several topics; send to one of them instead")
    subscription = config.queue_subscription(resolved.subscription) if isinstance(known, Queue) else None
    return Target(known, resolved.topics[0], subscription, transacted, schema, sends_by_group(config, known))


_DELIVERY_MODES: Final = "DeliveryMode.PERSISTENT or DeliveryMode.NON_PERSISTENT"


def _checked_mode(mode: DeliveryMode) -> int:
    if not isinstance(mode, DeliveryMode):
        if not isinstance(mode, int) or isinstance(mode, bool):
            raise wrong_type(mode, "delivery_mode", _DELIVERY_MODES)
        if mode not in (1, 2) or isinstance(mode, enum.Enum):
            raise IllegalArgumentError(f"delivery_mode must be {_DELIVERY_MODES}, not {shown(mode)}")
    return int(mode)


#: Converts each setting from what applications give; raises IllegalArgumentError for an invalid value.
_CONVERT: Final[dict[str, Callable[[Any], Any]]] = {
    "delivery_mode": _checked_mode,
    "priority": lambda value: check_int(value, "priority", 0, 9),
    "time_to_live": lambda value: milliseconds(value, "time_to_live"),
    "delivery_delay": lambda value: milliseconds(value, "delivery_delay"),
    "disable_message_id": lambda value: check_flag(value, "disable_message_id"),
    "disable_message_timestamp": lambda value: check_flag(value, "disable_message_timestamp"),
}


R = TypeVar("R")


@attrs.frozen
class SendSettings:
    """The settings with which a producer sends; durations in milliseconds, a time to live of 0 means forever."""

    delivery_mode: int = 2
    priority: int = 4
    time_to_live: int = 0
    delivery_delay: int = 0
    disable_message_id: bool = False
    disable_message_timestamp: bool = False

    def changed(self, **given: Any) -> SendSettings:
        """Return these settings with some changed; durations in seconds. Raises IllegalArgumentError."""
        return attrs.evolve(self, **{name: _CONVERT[name](value) for name, value in given.items()})

    def options(self, mode: Any, priority: Any, time_to_live: Any, delay: Any) -> tuple[int, int, int, int]:
        """Return a send's options, None meaning the setting; durations in milliseconds. Raises as ``changed``."""
        return (
            self.delivery_mode if mode is None else _checked_mode(mode),
            self.priority if priority is None else check_int(priority, "priority", 0, 9),
            self.time_to_live if time_to_live is None else milliseconds(time_to_live, "time_to_live"),
            self.delivery_delay if delay is None else milliseconds(delay, "delivery_delay"),
        )


class ProducerSettings(Generic[R]):
    """The settings of a producer, as attributes and as JMS's methods; ``R`` is what the setters return.

    An invalid value raises IllegalArgumentError.
    """

    __slots__ = ()

    def _current(self) -> SendSettings:
        raise NotImplementedError

    def _change(self, **given: Any) -> R:
        raise NotImplementedError

    @property
    def delivery_mode(self) -> DeliveryMode:
        """The delivery mode of messages whose send names none; initially PERSISTENT."""
        return DeliveryMode(self._current().delivery_mode)

    @delivery_mode.setter
    def delivery_mode(self, mode: DeliveryMode) -> None:
        self._change(delivery_mode=mode)

    def get_delivery_mode(self) -> DeliveryMode:
        """Return ``delivery_mode``."""
        return self.delivery_mode

    def set_delivery_mode(self, mode: DeliveryMode) -> R:
        """Set ``delivery_mode``."""
        return self._change(delivery_mode=mode)

    @property
    def priority(self) -> int:
        """The priority of messages whose send names none, 0 to 9; initially 4."""
        return self._current().priority

    @priority.setter
    def priority(self, priority: int) -> None:
        self._change(priority=priority)

    def get_priority(self) -> int:
        """Return ``priority``."""
        return self.priority

    def set_priority(self, priority: int) -> R:
        """Set ``priority``."""
        return self._change(priority=priority)

    @property
    def time_to_live(self) -> float:
        """The time to live in seconds, up to 10 years; initially 0, which means forever."""
        return self._current().time_to_live / 1000

    @time_to_live.setter
    def time_to_live(self, value: Duration) -> None:
        self._change(time_to_live=value)

    def get_time_to_live(self) -> float:
        """Return ``time_to_live``."""
        return self.time_to_live

    def set_time_to_live(self, value: Duration) -> R:
        """Set ``time_to_live``, in seconds."""
        return self._change(time_to_live=value)

    @property
    def delivery_delay(self) -> float:
        """The delivery delay in seconds, up to 10 years; initially 0."""
        return self._current().delivery_delay / 1000

    @delivery_delay.setter
    def delivery_delay(self, value: Duration) -> None:
        self._change(delivery_delay=value)

    def get_delivery_delay(self) -> float:
        """Return ``delivery_delay``."""
        return self.delivery_delay

    def set_delivery_delay(self, value: Duration) -> R:
        """Set ``delivery_delay``, in seconds."""
        return self._change(delivery_delay=value)

    @property
    def disable_message_id(self) -> bool:
        """Whether messages are sent without JMSMessageID; initially False."""
        return self._current().disable_message_id

    @disable_message_id.setter
    def disable_message_id(self, value: bool) -> None:
        self._change(disable_message_id=value)

    def get_disable_message_id(self) -> bool:
        """Return ``disable_message_id``."""
        return self.disable_message_id

    def set_disable_message_id(self, value: bool) -> R:
        """Set ``disable_message_id``."""
        return self._change(disable_message_id=value)

    @property
    def disable_message_timestamp(self) -> bool:
        """Whether messages are sent without JMSTimestamp; initially False."""
        return self._current().disable_message_timestamp

    @disable_message_timestamp.setter
    def disable_message_timestamp(self, value: bool) -> None:
        self._change(disable_message_timestamp=value)

    def get_disable_message_timestamp(self) -> bool:
        """Return ``disable_message_timestamp``."""
        return self.disable_message_timestamp

    def set_disable_message_timestamp(self, value: bool) -> R:
        """Set ``disable_message_timestamp``."""
        return self._change(disable_message_timestamp=value)


#: Default of an argument for which None is a value.
UNSET: Final[Any] = object()

#: Message type on the wire, by class of the body.
_WORDS: Final[dict[type, str]] = {str: "text", bytes: "bytes"}


@attrs.frozen(eq=False)
class _Common:
    """Common values of a producer's sends in one millisecond."""

    settings: SendSettings
    pooled: PooledSender
    sender: Sender
    transaction: Transaction | None
    origin: SendOrigin
    numbered: bool  # whether messages have ids
    stamp: Stamp  # except the id
    parts: dict[type, Any]  # the stamp's wire form, by class of the body, created on first use


@attrs.define(eq=False, repr=False)
class Stamper:
    """Stamps one producer's messages, and sends plain bodies on the fast path."""

    _runtime: SessionRuntime
    _targets: Targets
    prefix: str  # begins its message ids
    settings: SendSettings = attrs.field(factory=SendSettings, init=False)
    counts: SendCounts = attrs.field(factory=SendCounts, init=False)
    sequence: int = attrs.field(default=0, init=False)  # number in the last message id
    wall: Callable[[], float] = attrs.field(init=False)  # seconds since the epoch, by the transport's clock
    writer: PlainWriter[Any, Any] = attrs.field(init=False)
    _stopped: bool = attrs.field(init=False)
    _now: int = attrs.field(default=0, init=False)  # millisecond of the cached values
    _common: _Common | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        connection = self._runtime.connection
        self.wall = connection.transport.clock.now
        self.writer = PACKED if connection.transport.capabilities.packed else MAPS
        self._stopped = self._targets.schema is not None or connection.tracing is not None

    def change(self, **given: Any) -> None:
        self.settings = self.settings.changed(**given)

    def next_id(self) -> str:
        self.sequence = sequence = self.sequence + 1
        return f"{self.prefix}{sequence}"

    def stamp(self, now: int, message_id: str | None, settings: SendSettings, options: tuple[int, ...]) -> Stamp:
        """Return the stamp of a send at ``now`` (ms) with the options of ``SendSettings.options``."""
        mode, level, lives, delayed = options
        connection, transaction = self._runtime.connection, self._runtime.transaction
        shown_time = 0 if settings.disable_message_timestamp else now
        due = now + delayed
        # As Stamp(...), without its keywords: every send on the general path creates one.
        return tuple.__new__(Stamp, (
            message_id, connection.connection_id, shown_time, shown_time, due, due if delayed else None,
            now + lives if lives else 0, level, mode,
            None if transaction is None else transaction.work.sticky_key,
            connection.configuration.system_namespace,
        ))  # fmt: skip

    def send(
        self, destination_or_body: Any, body: Any = UNSET, properties: Mapping[str, object] | None = None,
        mode: Any = None, level: Any = None, lives: Any = None, delayed: Any = None,
    ) -> PendingSend | None:  # fmt: skip
        """Send a body at once; None: nothing was sent, use the general path. Raises as ``Sender.send``."""
        kind = type(destination_or_body)
        if (
            body is not UNSET or mode is not None or level is not None or lives is not None or delayed is not None
            or (kind is not str and kind is not bytes)
        ):  # fmt: skip
            return None
        runtime = self._runtime
        try:
            loop = get_running_loop()
        except RuntimeError:
            return None
        sends, now = runtime.sends, int(self.wall() * 1000)
        if (
            runtime.closing or self._stopped or loop is not runtime.affinity.loop or (now != sends.turn and sends.alone)
            or sends.lines
        ):  # fmt: skip
            return None
        common, local = self._common, runtime.transaction
        if (
            common is None or self._now != now or common.settings is not self.settings or not common.pooled.in_pool
            or (local is not None and local.work is not common.origin.work)
        ):  # fmt: skip
            common = self._cache(now)
            if common is None:
                return None
        sender, writer = common.sender, self.writer
        parts = common.parts.get(kind)
        if parts is None:
            parts = common.parts[kind] = writer.parts(_WORDS[kind], common.stamp)
        if sender.full or sender.outdated:
            return None
        payload = destination_or_body
        if kind is str:
            try:
                payload = payload.encode()
            except UnicodeEncodeError:
                return None
        written = writer.none if properties is None else writer.properties(properties)
        if written is None:
            return None
        message_id = None
        if common.numbered:
            self.sequence = sequence = self.sequence + 1
            message_id = f"{self.prefix}{sequence}"
        record = writer.write(payload, parts, message_id, written)
        send = PendingSend(loop=loop)
        send.message_id, send.origin = message_id, common.origin
        sender.send(record, send, common.transaction)
        sends.passed(loop, now)
        self.counts.sent += 1
        self.counts.bytes += len(payload)
        return send

    def _cache(self, now: int) -> _Common | None:
        """Cache the common values of the sends in this millisecond. None: they use the general path."""
        runtime, local, settings = self._runtime, self._runtime.transaction, self.settings
        target = self._targets.own
        pooled = None if target is None else runtime.connection.senders.use(target)
        if target is None or pooled is None or (local is not None and local.to_begin):
            return None
        work = None if local is None else local.work
        stamp = self.stamp(now, None, settings, settings.options(None, None, None, None))
        self.counts.last_activity = self._now = now
        self._common = common = _Common(
            settings, pooled, pooled.sender, None if work is None else work.handle,
            SendOrigin(runtime.sends, work, target.destination, stamp.timestamp, self.counts),
            not settings.disable_message_id, stamp, {},
        )  # fmt: skip
        return common

    def stop(self) -> None:
        self._stopped = True
