"""Subscriptions that jobs made to know how far they came: they keep messages until they are deleted."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from jmsaio.errors import ConfigurationError, IllegalStateError, JMSError, NotFoundError
from jmsaio.model.temporary_names import JOB_PREFIX
from jmsaio.transport.administration import Admin
from jmsaio.transport.topics import list_partitions


@attrs.frozen(kw_only=True)
class JobCursor:
    """One such subscription.

    Attributes:
        topic: full name of its topic; of the whole, where that has partitions.
        subscription: its name.
        backlog: how many entries it keeps.
        consumers: how many consumers are connected.
    """

    topic: str
    subscription: str
    backlog: int
    consumers: int


def check_name(subscription: str) -> None:
    """Refuse a subscription that no job made.

    Raises:
        ConfigurationError: its name does not begin with ``jmsaio-spark-``.
    """
    if not subscription.startswith(JOB_PREFIX):
        raise ConfigurationError(
            f"subscription {subscription} was not made by a job: only names that begin with {JOB_PREFIX} are deleted"
        )


async def find_job_cursors(admin: Admin, topics: Iterable[str], subscription: str | None = None) -> list[JobCursor]:
    """The subscriptions that jobs made on topics.

    Args:
        admin: of the broker.
        topics: full names, of the whole where a topic has partitions.
        subscription: only this one; None: all of them.

    Raises:
        ConfigurationError: no job makes a subscription of that name.
        NotFoundError: no such topic.
        TransportError: the broker does not answer.

    Cancelling changes nothing.
    """
    if subscription is not None:
        check_name(subscription)
    found = []
    for topic in topics:
        for name, stats in (await admin.stats(topic)).subscriptions.items():
            if name.startswith(JOB_PREFIX) and subscription in (None, name):
                found.append(
                    JobCursor(topic=topic, subscription=name, backlog=stats.backlog, consumers=stats.consumers)
                )
    return sorted(found, key=lambda one: (one.topic, one.subscription))


async def delete_job_cursors(admin: Admin, cursors: Iterable[JobCursor]) -> dict[JobCursor, JMSError | None]:
    """Delete subscriptions without consumers; the broker refuses, too, if one has connected meanwhile.

    Args:
        admin: of the broker.
        cursors: as found.

    Returns:
        For each that was deleted None, for each that was not the reason.

    Raises:
        ConfigurationError: one was not made by a job; nothing was deleted.

    Cancelling leaves those behind that were not deleted yet.
    """
    wanted = list(cursors)
    for one in wanted:
        check_name(one.subscription)
    return {one: await _delete(admin, one) for one in wanted}


async def _delete(admin: Admin, one: JobCursor) -> JMSError | None:
    if one.consumers:
        return IllegalStateError(f"it has {one.consumers} consumers")
    gone: list[str] = []
    try:
        for topic in await list_partitions(admin, one.topic):
            try:
                await admin.delete_subscription(topic, one.subscription)
                gone.append(topic)
            except NotFoundError:
                pass  # a job makes it only where it has something to do
    except JMSError as error:
        return JMSError(f"{error}; it is deleted already on {', '.join(gone)}") if gone else error
    return None
