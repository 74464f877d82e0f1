"""The destinations of a producer, resolved for its senders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from jmsaio.errors import InvalidDestinationError, UnsupportedOperationError
from jmsaio.model.destinations import Destination, Queue, as_destination, resolve
from jmsaio.transport.sending import sends_by_group

if TYPE_CHECKING:
    from jmsaio.client.runtime.connection import ConnectionRuntime
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
