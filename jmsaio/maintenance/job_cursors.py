"""Subscriptions that jobs created to record their progress: they keep messages until they are deleted."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Final

import attrs

from jmsaio.config import Configuration
from jmsaio.errors import ConfigurationError, IllegalStateError, JMSError, NotFoundError
from jmsaio.maintenance.dead_letters import REDRIVE_CURSOR, letter_topics, require_admin
from jmsaio.model.destinations import Queue, Topic, resolve
from jmsaio.model.topic_names import JOB_PREFIX
from jmsaio.transport.administration import Admin
from jmsaio.transport.base import Transport
from jmsaio.transport.subscriptions import list_partitions

_LEFT: Final = "without it the next redrive sends letters again; delete it by its name (--subscription)"


@attrs.frozen(kw_only=True)
class JobCursor:
    """A subscription created by a job.

    Attributes:
        topic: full name of its topic; for partitions, the name of the whole.
        backlog: number of entries that it keeps.
        consumers: number of connected consumers.
    """

    topic: str
    subscription: str
    backlog: int
    consumers: int


def check_name(subscription: str) -> None:
    """Raise ConfigurationError for a subscription that no job created, whose name lacks ``jmsaio-spark-``."""
    if not subscription.startswith(JOB_PREFIX):
        raise ConfigurationError(
            f"subscription {subscription} was not made by a job: only names that begin with {JOB_PREFIX} are deleted"
        )


async def find_job_cursors(admin: Admin, topics: Iterable[str], subscription: str | None = None) -> list[JobCursor]:
    """Find the subscriptions that jobs created on topics, or only one; partitions are named as a whole.

    Raises:
        ConfigurationError: no job creates a subscription with that name.
        NotFoundError: a topic does not exist.
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

    Returns None for each deleted subscription, the reason for each other one. Raises ConfigurationError if no job
    created one of them; nothing was deleted then. Cancelling leaves the subscriptions that were not deleted yet.
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


async def clean_up(
    transport: Transport,
    configuration: Configuration,
    destination: Queue | Topic,
    *,
    of: str | None = None,
    subscription: str | None = None,
    dry_run: bool = False,
) -> dict[str, Any]:
    """Delete subscriptions created by jobs, with their backlog; a subscription with consumers is kept.

    Args:
        of: name of a subscription: clean its dead letter topics instead of the destination.
        subscription: only this one; None: all whose name begins with ``jmsaio-spark-``, except
            ``jmsaio-spark-redrive``, which records sent dead letters.
        dry_run: only find them.

    Returns:
        The summary: ``cursors``, each with its ``state`` and the reason: ``found``, ``deleted``, ``kept`` or, if it is
        only deleted by name, ``left``.

    Raises:
        ConfigurationError: no job creates a subscription with that name, or there is no administration.
        NotFoundError: a topic does not exist.

    Cancelling leaves the subscriptions that were not deleted yet.
    """
    began, admin = time.monotonic(), require_admin(transport)
    topics = await letter_topics(admin, resolve(destination, configuration.system_namespace), of)
    found = await find_job_cursors(admin, topics, subscription)
    left = [one for one in found if subscription is None and one.subscription == REDRIVE_CURSOR]
    wanted = [one for one in found if one not in left]
    results = dict.fromkeys(wanted) if dry_run else await delete_job_cursors(admin, wanted)
    states: list[tuple[JobCursor, str, str | None]] = [
        (one, "found" if dry_run else "deleted" if error is None else "kept", None if error is None else str(error))
        for one, error in results.items()
    ]
    return {
        "job": "cleanup",
        "dry_run": dry_run,
        "destination": str(destination),
        "deleted": 0 if dry_run else sum(error is None for error in results.values()),
        "kept": sum(error is not None for error in results.values()),
        "cursors": [
            {**attrs.asdict(one), "state": state, "reason": reason}
            for one, state, reason in (*states, *((one, "left", _LEFT) for one in left))
        ],
        "seconds": round(time.monotonic() - began, 3),
    }
