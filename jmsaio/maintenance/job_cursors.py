"""Subscriptions that jobs created to record their progress: they keep messages until they are deleted."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from jmsaio.errors import ConfigurationError, IllegalStateError, JMSError, NotFoundError
from jmsaio.model.temporary_names import JOB_PREFIX
from jmsaio.transport.administration import Admin
from jmsaio.transport.topics import list_partitions


@attrs.frozen(kw_only=True)
class JobCursor:
    """A subscription created by a job.

    Attributes:
        topic: full name of its topic; for partitions, the name of the whole.
        subscription: name of the subscription.
        backlog: number of entries that it keeps.
        consumers: number of connected consumers.
    """

    topic: str
    subscription: str
    backlog: int
    consumers: int


def check_name(subscription: str) -> None:
    """Reject a subscription that no job created.

    Raises:
        ConfigurationError: its name does not begin with ``jmsaio-spark-``.
    """
    if not subscription.startswith(JOB_PREFIX):
        raise ConfigurationError(
            f"subscription {subscription} was not made by a job: only names that begin with {JOB_PREFIX} are deleted"
        )


async def find_job_cursors(admin: Admin, topics: Iterable[str], subscription: str | None = None) -> list[JobCursor]:
    """Find the subscriptions that jobs created on topics.

    Args:
        admin: admin client of the broker.
        topics: full names of topics; for partitions, the name of the whole.
        subscription: only this one; None: all of them.

    Raises:
        ConfigurationError: no job creates a subscription with that name.
        NotFoundError: a topic does not exist.
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
    """Delete subscriptions without consumers; the broker also refuses if one has connected meanwhile.

    Args:
        admin: admin client of the broker.
        cursors: subscriptions as found.

    Returns:
        None for each deleted subscription, the reason for each other one.

    Raises:
        ConfigurationError: a subscription was not created by a job; nothing was deleted.

    Cancelling leaves the subscriptions that were not deleted yet.
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
                pass  # a job creates it only if it has work
    except JMSError as error:
        return JMSError(f"{error}; it is deleted already on {', '.join(gone)}") if gone else error
    return None
