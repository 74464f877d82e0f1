"""Subscriptions that jobs created to record their progress: they keep messages until they are deleted."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

import attrs

from jmsaio.config import Configuration
from jmsaio.errors import ConfigurationError, JMSError, NotFoundError
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


async def delete_job_cursor(admin: Admin, cursor: JobCursor) -> str | None:
    """Delete a subscription without consumers; return the reason if it is kept.

    The broker also refuses if a consumer has connected meanwhile. Raises ConfigurationError if no job created it.
    """
    check_name(cursor.subscription)
    if cursor.consumers:
        return f"it has {cursor.consumers} consumers"
    gone: list[str] = []
    try:
        for topic in await list_partitions(admin, cursor.topic):
            with suppress(NotFoundError):  # a job creates it only if it has work
                await admin.delete_subscription(topic, cursor.subscription)
                gone.append(topic)
    except JMSError as error:
        return f"{error}; it is deleted already on {', '.join(gone)}" if gone else str(error)
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
    cursors: list[dict[str, Any]] = []
    for cursor in await find_job_cursors(admin, topics, subscription):
        state, reason = "found", None
        if subscription is None and cursor.subscription == REDRIVE_CURSOR:
            state, reason = "left", _LEFT
        elif not dry_run:
            reason = await delete_job_cursor(admin, cursor)
            state = "deleted" if reason is None else "kept"
        cursors.append({**attrs.asdict(cursor), "state": state, "reason": reason})
    states = [each["state"] for each in cursors]
    return {
        "job": "cleanup",
        "dry_run": dry_run,
        "destination": str(destination),
        "deleted": states.count("deleted"),
        "kept": states.count("kept"),
        "cursors": cursors,
        "seconds": round(time.monotonic() - began, 3),
    }
