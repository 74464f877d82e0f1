"""Planning of a redrive: its dead letter topics, their subscriptions, and their ends."""

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

#: Subscription of a dead letter topic without a queue's one: it records what was redriven.
REDRIVE_CURSOR: Final = f"{JOB_PREFIX}redrive"


@attrs.frozen(kw_only=True)
class RedriveRequest:
    """Dead letters to redrive, and their target.

    Attributes:
        destination: the dead letters. A queue's subscription is ``jms-queue``, or the one that the name ends with
            (``name:subscription``); if the name has none and a redrive has created its own subscription, that one is
            used.
        of: name of a subscription: ``destination`` is where messages failed, and the dead letters are those of this
            subscription. None: ``destination`` has the dead letters.
        selector, max_redrives, dry_run: see ``RedriveOrder``.
        to: target of all dead letters; None: each one's origin.
    """

    destination: Queue | Topic
    of: str | None = None
    selector: str | None = None
    to: Queue | Topic | None = None
    max_redrives: int = 3
    dry_run: bool = False


async def redrive_all(transport: Transport, configuration: Configuration, request: RedriveRequest) -> list[Redriven]:
    """Redrive dead letters of all topics and partitions concurrently; see ``redrive`` and ``plan_redrive``."""
    orders = await plan_redrive(transport, configuration, request)
    return await together(redrive(transport, configuration, order) for order in orders)


async def plan_redrive(
    transport: Transport, configuration: Configuration, request: RedriveRequest
) -> list[RedriveOrder]:
    """Return one order for each topic without partitions, or partition, that has dead letters.

    Args:
        transport: client of the broker.
        configuration: configuration of the transport.
        request: dead letters to redrive, and their target.

    Raises:
        ConfigurationError: there is no administration.
        InvalidDestinationError: ``to`` stands for several topics.
        InvalidSelectorError: the selector is invalid.
        NotFoundError: a topic or the subscription does not exist.
        TransportError: the broker does not answer.

    Cancelling changes nothing, except that the subscription of the queue ``to`` can exist already.
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
    """Return the administration of a broker.

    Raises:
        ConfigurationError: it is switched off.
    """
    if transport.admin is None:
        reason = "subscriptions are listed by the administration only; set jms.usePulsarAdmin=true and webServiceUrl"
        raise ConfigurationError(reason, key="jms.usePulsarAdmin")
    return transport.admin


async def letter_topics(admin: Admin, resolved: Resolved, of: str | None) -> list[str]:
    """Return the full names of a destination's topics, or of its dead letter topics for the subscription ``of``.

    Raises:
        NotFoundError: the destination has no dead letter topic.
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
    """Return the name of the subscription, whether it outlives the redrive, and whether it exists already."""
    known = (await admin.stats(topic)).subscriptions
    named = None if request.of is not None else resolved.subscription
    # A queue's subscription that was created later has every dead letter, including sent ones.
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
    """Return True if everything up to the end is acknowledged."""
    done = (await admin.cursor(topic, name)).mark_delete
    return done is not None and (end.ledger, end.entry) <= (done.ledger, done.entry)
