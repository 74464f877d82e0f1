"""What a producer adds to its messages: settings, ids, stamps, and destinations resolved for its senders."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import attrs

from jmsaio.codec import Stamp
from jmsaio.errors import IllegalArgumentError, InvalidDestinationError, UnsupportedOperationError
from jmsaio.model.arguments import check_flag, check_int, shown, wrong_type
from jmsaio.model.destinations import Destination, Queue, as_destination, resolve
from jmsaio.model.durations import milliseconds
from jmsaio.model.modes import DeliveryMode
from jmsaio.transport.sending import sends_by_group

if TYPE_CHECKING:
    from jmsaio.client.runtime.connection import ConnectionRuntime
    from jmsaio.client.runtime.local_transaction import LocalTransaction
    from jmsaio.client.senders.pool import PooledSender
    from jmsaio.model.schema import Schema


#: Maximum number of resolved destinations per producer.
_MOST = 1000


@attrs.frozen
class Target:
    """A destination, resolved for a sender.

    Attributes:
        topic: full Pulsar topic.
        queue_subscription: the subscription created with the first sender to a queue; None for a topic.
        by_group: whether each batch holds messages of one group id.
    """

    destination: Destination
    topic: str
    queue_subscription: str | None
    by_group: bool


@attrs.define(eq=False, repr=False)
class Targets:
    """Resolves the destinations that a producer sends to, and finds their senders.

    Args:
        connection: the producer's connection.
        own: see the attribute.
        transacted: whether each send is part of a transport's transaction.
        schema: the schema of all its messages, or None.

    Attributes:
        own: the producer's destination; None if each send names one.
    """

    _connection: ConnectionRuntime
    own: Target | None
    _transacted: bool = False
    _schema: Schema | None = None
    _others: dict[tuple[type, str, str | None], Target] = attrs.field(factory=dict, init=False)  # as spelled

    def default(self) -> Target:
        """Return the producer's destination. Raises UnsupportedOperationError if it has none."""
        if self.own is None:
            raise UnsupportedOperationError("the producer has no destination; call send(destination, message)")
        return self.own

    def other(self, destination: Any) -> Target:
        """Return the target of a send that names its destination.

        Raises:
            UnsupportedOperationError: the producer has a destination.
            InvalidDestinationError: not a destination, a virtual one, or a deleted temporary one.
        """
        if self.own is not None:
            raise UnsupportedOperationError(
                f"the producer sends to {self.own.destination!r}; create one without destination for others"
            )
        key = None
        if isinstance(destination, Destination):
            key = (type(destination), destination.name, destination._namespace)
        found = None if key is None else self._others.get(key)
        if found is None:
            found = target_for(destination, self._connection)
            if key is not None and len(self._others) < _MOST:
                self._others[key] = found
        self._connection.temporaries.check_not_deleted(found.topic, found.destination)
        return found

    def pooled(self, target: Target) -> PooledSender | None:
        """Return the pool's entry of a target's sender, None if it has to be opened; see ``SenderPool.use``."""
        return self._connection.senders.use(
            target.topic, target.queue_subscription, self._transacted, self._schema, target.by_group
        )

    async def open(self, target: Target) -> None:
        """Open the sender of a target. Raises and can be cancelled as ``SenderPool.open``."""
        self._connection.temporaries.check_not_deleted(target.topic, target.destination)
        senders = self._connection.senders
        await senders.open(target.topic, target.queue_subscription, self._transacted, self._schema, target.by_group)


def target_for(destination: Any, connection: ConnectionRuntime) -> Target:
    """Resolve a destination for a sender.

    Raises:
        InvalidDestinationError: not a destination, or a virtual one, which can only be consumed.
        ConfigurationError: the destination has an unknown option.
    """
    known = as_destination(destination)
    connection.check_options(known)
    config = connection.configuration
    resolved = resolve(known, config.system_namespace)
    if resolved.virtual:
        raise InvalidDestinationError(f"{known!r} stands for several topics; send to one of them instead")
    subscription = None
    if isinstance(known, Queue):
        subscription = config.queue_subscription(resolved.subscription)
    return Target(known, resolved.topics[0], subscription, sends_by_group(config, known))


_DELIVERY_MODES: Final = "DeliveryMode.PERSISTENT or DeliveryMode.NON_PERSISTENT"


def _checked_mode(mode: DeliveryMode) -> int:
    """Return the number of a delivery mode; the number itself is accepted, too. Raises IllegalArgumentError."""
    if not isinstance(mode, DeliveryMode):
        if not isinstance(mode, int) or isinstance(mode, bool):
            raise wrong_type(mode, "delivery_mode", _DELIVERY_MODES)
        if mode not in (1, 2) or isinstance(mode, enum.Enum):
            raise IllegalArgumentError(f"delivery_mode must be {_DELIVERY_MODES}, not {shown(mode)}")
    return int(mode)


def _checked_flag(value: bool, name: str) -> bool:
    check_flag(value, name)
    return value


def _checked_priority(priority: int) -> int:
    check_int(priority, "priority", 0, 9)
    return priority


#: Converts each setting from what applications give; raises IllegalArgumentError for an invalid value.
_CONVERT: Final[dict[str, Callable[[Any], Any]]] = {
    "delivery_mode": _checked_mode,
    "priority": _checked_priority,
    "time_to_live": lambda value: milliseconds(value, "time_to_live"),
    "delivery_delay": lambda value: milliseconds(value, "delivery_delay"),
    "disable_message_id": lambda value: _checked_flag(value, "disable_message_id"),
    "disable_message_timestamp": lambda value: _checked_flag(value, "disable_message_timestamp"),
}


@attrs.frozen
class SendSettings:
    """The settings with which a producer sends.

    Attributes:
        delivery_mode: number of the delivery mode.
        priority: 0 to 9.
        time_to_live: milliseconds; 0: forever.
        delivery_delay: milliseconds.
        disable_message_id: whether messages have no id.
        disable_message_timestamp: whether messages have no time stamp.
    """

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
            self.priority if priority is None else _checked_priority(priority),
            self.time_to_live if time_to_live is None else milliseconds(time_to_live, "time_to_live"),
            self.delivery_delay if delay is None else milliseconds(delay, "delivery_delay"),
        )


@attrs.define(eq=False, repr=False)
class Stamper:
    """Creates the stamps of one producer's messages.

    Args:
        connection: the producer's connection.
        transacting: the session's local transaction, or None.
        prefix: start of its message ids.

    Attributes:
        prefix: see above.
        wall: returns the seconds since the epoch, by the transport's clock.
        settings: the producer's settings.
        sequence: number in the last message id.
    """

    _connection: ConnectionRuntime
    _transacting: LocalTransaction | None
    prefix: str
    wall: Callable[[], float] = attrs.field(init=False)
    settings: SendSettings = attrs.field(factory=SendSettings, init=False)
    sequence: int = attrs.field(default=0, init=False)

    @wall.default
    def _transports_clock(self) -> Callable[[], float]:
        return self._connection.transport.clock.now

    def change(self, **given: Any) -> None:
        """Change settings; see ``SendSettings.changed``."""
        self.settings = self.settings.changed(**given)

    def next_id(self) -> str:
        """Return an unused message id."""
        self.sequence = sequence = self.sequence + 1
        return f"{self.prefix}{sequence}"

    def stamp(self, now: int, message_id: str | None, settings: SendSettings, options: tuple[int, ...]) -> Stamp:
        """Return the stamp of a send at ``now`` (ms) with the options of ``SendSettings.options``."""
        mode, level, lives, delayed = options
        shown_time = 0 if settings.disable_message_timestamp else now
        due = now + delayed
        # As Stamp(...), without its keywords: every send on the general path creates one.
        return tuple.__new__(Stamp, (
            message_id, self._connection.connection_id, shown_time, shown_time, due, due if delayed else None,
            now + lives if lives else 0, level, mode,
            None if self._transacting is None else self._transacting.work.sticky_key,
            self._connection.configuration.system_namespace,
        ))  # fmt: skip
