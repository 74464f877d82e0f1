"""Which dead letter topics a redrive goes through, where each is acknowledged, and up to where."""

from __future__ import annotations

import itertools
import uuid
from typing import Final

import attrs

from jmsaio.config import Configuration
from jmsaio.errors import ConfigurationError, InvalidDestinationError, NotFoundError
from jmsaio.maintenance.dead_letters import find_dead_letter_topics
from jmsaio.maintenance.redrive import Redriven, RedriveOrder, redrive
from jmsaio.model.destinations import Queue, Resolved, Topic, resolve
from jmsaio.model.temporary_names import JOB_PREFIX, SUBSCRIPTION_PREFIX
from jmsaio.model.wire import WireId
from jmsaio.selector import Selector
from jmsaio.transport.administration import Admin
from jmsaio.transport.base import Transport
from jmsaio.transport.clock import LoopTimers
from jmsaio.transport.subscriptions import precreate
from jmsaio.transport.together import together
from jmsaio.transport.topics import list_partitions, list_topics

#: The subscription of a dead letter topic that had none of a queue: it knows what was redriven.
REDRIVE_CURSOR: Final = f"{JOB_PREFIX}redrive"


@attrs.frozen(kw_only=True)
class RedriveRequest:
    """Which dead letters are sent where.

    Attributes:
        destination: the dead letters. Those of a queue are taken from its subscription, ``jms-queue`` or the one that
            the name ends with (``name:subscription``); where a redrive has made a subscription of its own, and the name
            ends with none, from that one.
        of: the name of a subscription: ``destination`` is where messages failed, and the dead letters are those of this
            subscription. None: ``destination`` has the dead letters.
        selector, max_redrives, dry_run: as ``RedriveOrder``.
        to: where all are sent to; None: each goes to where it comes from.
    """

    destination: Queue | Topic
    of: str | None = None
    selector: str | None = None
    to: Queue | Topic | None = None
    max_redrives: int = 3
    dry_run: bool = False


async def redrive_all(transport: Transport, configuration: Configuration, request: RedriveRequest) -> list[Redriven]:
    """Send dead letters again, all topics and partitions at the same time; see ``redrive`` and ``plan_redrive``."""
    orders = await plan_redrive(transport, configuration, request)
    return await together(redrive(transport, configuration, order) for order in orders)


async def plan_redrive(
    transport: Transport, configuration: Configuration, request: RedriveRequest
) -> list[RedriveOrder]:
    """One order for each topic without partitions, or partition, that has dead letters.

    Args:
        transport: client of the broker.
        configuration: of the transport.
        request: what is wanted.

    Raises:
        ConfigurationError: there is no administration.
        InvalidDestinationError: ``to`` stands for several topics.
        InvalidSelectorError: the selector is none.
        NotFoundError: there is no such topic, or no such subscription.
        TransportError: the broker does not answer.

    Cancelling changes nothing, but the subscription of the queue ``to`` may have been made.
    """
    if request.selector is not None:
        Selector(request.selector)
    admin = require_admin(transport)
    resolved = resolve(request.destination, configuration.system_namespace)
    target = None if request.to is None else await _target(transport, configuration, request.to, request.dry_run)
    orders = []
    for topic in await _partitions(admin, await letter_topics(admin, resolved, request.of)):
        name, durable, exists = await _subscription(admin, configuration, resolved, request, topic)
        end = await transport.end(topic)
        if end is None or (exists and await _is_done(admin, topic, name, end)):
            continue
        orders.append(RedriveOrder(
            topic=topic, subscription=name, durable=durable, end=end, selector=request.selector, to=target,
            max_redrives=request.max_redrives, dry_run=request.dry_run,
        ))  # fmt: skip
    return orders


def require_admin(transport: Transport) -> Admin:
    """The administration of a broker.

    Raises:
        ConfigurationError: it is switched off.
    """
    if transport.admin is None:
        reason = "subscriptions are listed by the administration only; set jms.usePulsarAdmin=true and webServiceUrl"
        raise ConfigurationError(reason, key="jms.usePulsarAdmin")
    return transport.admin


async def letter_topics(admin: Admin, resolved: Resolved, of: str | None) -> list[str]:
    """The full names of the topics that a destination has, or of its dead letter topics for the subscription ``of``.

    Raises:
        NotFoundError: it has no dead letter topic.
        TransportError: the broker does not answer.
    """
    if of is None:
        return await list_topics(admin, resolved)
    topics = await find_dead_letter_topics(admin, resolved, of)
    if not topics:
        raise NotFoundError(
            f"{resolved.visible_name} has no topic with dead letters of the subscription {of}: check both names; where "
            "a policy names a dead letter topic, give that as the destination"
        )
    return topics


async def _partitions(admin: Admin, topics: list[str]) -> list[str]:
    found = [await list_partitions(admin, topic) for topic in topics]
    missing = [topic for topic, names in zip(topics, found, strict=True) if not names]
    if missing:
        raise NotFoundError(f"topic {', '.join(missing)} does not exist: check its name")
    return list(itertools.chain(*found))


async def _target(transport: Transport, configuration: Configuration, to: Queue | Topic, dry_run: bool) -> str:
    resolved = resolve(to, configuration.system_namespace)
    if resolved.virtual:
        raise InvalidDestinationError(f"{to} stands for several topics; name one to send to")
    (topic,) = resolved.topics
    if isinstance(to, Queue) and not dry_run:
        name = resolved.subscription or configuration.queue_subscription_name
        await precreate(transport, configuration, topic, name, LoopTimers(transport.clock))
    return topic


async def _subscription(
    admin: Admin, configuration: Configuration, resolved: Resolved, request: RedriveRequest, topic: str
) -> tuple[str, bool, bool]:
    """The name of the subscription, whether it outlives the redrive, and whether it is there already."""
    known = (await admin.stats(topic)).subscriptions
    named = None if request.of is not None else resolved.subscription
    # A subscription that a queue got later has every letter, also those that were sent.
    if named is None and REDRIVE_CURSOR in known:
        return REDRIVE_CURSOR, True, True
    queue = named or configuration.queue_subscription_name
    if (isinstance(request.destination, Queue) or request.of is not None) and queue in known:
        return queue, True, True
    if named is not None:
        raise NotFoundError(f"{topic} has no subscription {named}, which {request.destination} names")
    if request.dry_run:
        return f"{SUBSCRIPTION_PREFIX}{uuid.uuid4()}", False, False
    return REDRIVE_CURSOR, True, False


async def _is_done(admin: Admin, topic: str, name: str, end: WireId) -> bool:
    """Whether everything up to the end is acknowledged."""
    done = (await admin.cursor(topic, name)).mark_delete
    return done is not None and (end.ledger, end.entry) <= (done.ledger, done.entry)
