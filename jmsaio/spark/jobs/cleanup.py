"""Deletion of subscriptions created by jobs. Needs no Spark session."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final

import attrs

from jmsaio.errors import JMSError
from jmsaio.maintenance.dead_letters import REDRIVE_CURSOR, letter_topics, require_admin
from jmsaio.maintenance.job_cursors import JobCursor, delete_job_cursors, find_job_cursors
from jmsaio.model.destinations import resolve
from jmsaio.spark.model.destination_text import parse_destination_text
from jmsaio.spark.options.parse import Use, parse_options
from jmsaio.spark.worker import connected_by

_LEFT: Final = "without it the next redrive sends letters again; delete it by its name (--subscription)"


@attrs.frozen(kw_only=True)
class CleanupOrder:
    """Subscriptions to delete.

    Attributes:
        connection: connection options of the data source, including ``url``.
        destination: ``queue://name`` or ``topic://name``; also several: ``multi:``, ``regex:``.
        of: name of a subscription: clean its dead letter topics instead of the destination.
        subscription: only this one; None: all whose name begins with ``jmsaio-spark-``, except
            ``jmsaio-spark-redrive``, which records sent dead letters.
    """

    connection: Mapping[str, str]
    destination: str
    of: str | None = None
    subscription: str | None = None


def clean_up(order: CleanupOrder, *, dry_run: bool = False) -> dict[str, Any]:
    """Delete subscriptions created by jobs, with their backlog; a subscription with consumers is kept.

    Args:
        order: subscriptions to delete.
        dry_run: only find them.

    Returns:
        The summary: ``cursors``, each with its ``state`` and the reason: ``found``, ``deleted``, ``kept`` or, if it is
        only deleted by name, ``left``.

    Raises:
        ConfigurationError: no job creates a subscription with that name, or there is no administration.
        NotFoundError: a topic does not exist.
        TransportError: the broker does not answer.
    """
    began = time.monotonic()
    results, left = asyncio.run(_clean_up(order, dry_run))
    described = [_describe(one, error, dry_run) for one, error in results.items()]
    return {
        "job": "cleanup",
        "dry_run": dry_run,
        "destination": order.destination,
        "deleted": 0 if dry_run else sum(error is None for error in results.values()),
        "kept": sum(error is not None for error in results.values()),
        "cursors": [*described, *({**attrs.asdict(one), "state": "left", "reason": _LEFT} for one in left)],
        "seconds": round(time.monotonic() - began, 3),
    }


async def _clean_up(
    order: CleanupOrder, dry_run: bool
) -> tuple[dict[JobCursor, JMSError | None], list[JobCursor]]:  # fmt: skip
    """Return the result for each subscription, and the subscriptions that are only deleted by name."""
    async with connected_by(parse_options(order.connection, Use.WRITE)) as (transport, configuration):
        resolved = resolve(parse_destination_text(order.destination), configuration.system_namespace)
        admin = require_admin(transport)
        topics = await letter_topics(admin, resolved, order.of)
        found = await find_job_cursors(admin, topics, order.subscription)
        left = [one for one in found if order.subscription is None and one.subscription == REDRIVE_CURSOR]
        wanted = [one for one in found if one not in left]
        return dict.fromkeys(wanted) if dry_run else await delete_job_cursors(admin, wanted), left


def _describe(one: JobCursor, error: JMSError | None, dry_run: bool) -> dict[str, Any]:
    state = "found" if dry_run else "deleted" if error is None else "kept"
    return {**attrs.asdict(one), "state": state, "reason": None if error is None else str(error)}
