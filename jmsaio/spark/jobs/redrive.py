"""Redrive of dead letters to their origins: one task for each topic or partition with dead letters."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import attrs
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from jmsaio.errors import JMSError
from jmsaio.maintenance.redrive import Redriven, RedriveOrder, redrive, summarize
from jmsaio.maintenance.redrive_planning import RedriveRequest, plan_redrive, redrive_all
from jmsaio.spark.files import configuration_of
from jmsaio.spark.jobs.failures import own_errors
from jmsaio.spark.model.destination_text import parse_destination_text
from jmsaio.spark.options.parse import SourceOptions, Use, parse_options
from jmsaio.spark.worker import forget, worker
from jmsaio.transport.registry import connected


@attrs.frozen(kw_only=True)
class RedriveJob:
    """Dead letters to redrive, and their target.

    Attributes:
        connection: connection options of the data source, including ``url``.
        destination: ``queue://name`` or ``topic://name`` with the dead letters; also ``multi:`` and ``regex:``.
        of: name of a subscription: ``destination`` is where messages failed, and the dead letters are those of this
            subscription. None: ``destination`` has the dead letters.
        selector: selector that dead letters must match; None: all match.
        to: destination of all dead letters; None: each one's origin.
        max_redrives: skip dead letters that were already redriven this many times.
    """

    connection: Mapping[str, str]
    destination: str
    of: str | None = None
    selector: str | None = None
    to: str | None = None
    max_redrives: int = 3

    def request(self, *, dry_run: bool) -> RedriveRequest:
        """Return the request without the connection.

        Raises:
            InvalidDestinationError: a destination is invalid.
        """
        return RedriveRequest(
            destination=parse_destination_text(self.destination),
            of=self.of,
            selector=self.selector,
            to=None if self.to is None else parse_destination_text(self.to),
            max_redrives=self.max_redrives,
            dry_run=dry_run,
        )


def redrive_letters(session: SparkSession, job: RedriveJob) -> dict[str, Any]:
    """Send dead letters to their origins, at least once; see ``jmsaio.maintenance.redrive``.

    Dead letters that are added during the redrive are ignored.

    Args:
        session: any session.
        job: dead letters to redrive, and their target.

    Returns:
        The summary; ``left``, ``unseen`` and ``errors`` are empty if everything was sent.

    Raises:
        InvalidSelectorError: the selector is invalid.
        NotFoundError: a topic or the subscription does not exist.
        TransportError: the broker does not answer; nothing was sent.
    """
    began = time.monotonic()
    options = parse_options(job.connection, Use.WRITE)
    orders = asyncio.run(_plan(options, job.request(dry_run=False)))
    outcomes: list[Redriven] = []
    if orders:
        send = f.udf(partial(_redrive_one, options, tuple(orders)), "string", useArrow=False).asNondeterministic()
        with own_errors():
            rows = session.range(0, len(orders), 1, len(orders)).select(send("id")).collect()
        outcomes = [Redriven(**json.loads(row[0])) for row in rows]
    return _summary(job, outcomes, began, dry_run=False)


def describe_redrive(job: RedriveJob) -> dict[str, Any]:
    """Describe what ``redrive_letters`` would send. Needs no session and sends nothing.

    Raises:
        As ``redrive_letters``.
    """
    began = time.monotonic()
    outcomes = asyncio.run(_look(parse_options(job.connection, Use.WRITE), job.request(dry_run=True)))
    return _summary(job, outcomes, began, dry_run=True)


async def _plan(options: SourceOptions, request: RedriveRequest) -> list[RedriveOrder]:
    configuration = configuration_of(options)
    async with connected(configuration) as transport:
        return await plan_redrive(transport, configuration, request)


async def _look(options: SourceOptions, request: RedriveRequest) -> list[Redriven]:
    configuration = configuration_of(options)
    async with connected(configuration) as transport:
        return await redrive_all(transport, configuration, request)


def _redrive_one(options: SourceOptions, orders: Sequence[RedriveOrder], number: int) -> str:
    """Redrive one topic in a task. An error is part of the result: another task can have sent something."""
    order = orders[number]
    try:
        here = worker(options.connection, partial(configuration_of, options))
        outcome = here.run(redrive(here.transport, here.configuration, order))
    except JMSError as error:
        text = f"{order.topic}: {error}"
        outcome = Redriven(topic=order.topic, sent={}, not_selected=0, left={}, errors=(text,), complete=False)
    if outcome.errors and not outcome.complete:  # the connection can be lost
        forget(options.connection)
    return json.dumps(attrs.asdict(outcome))


def _summary(job: RedriveJob, outcomes: Iterable[Redriven], began: float, *, dry_run: bool) -> dict[str, Any]:
    return {
        "job": "dlq redrive",
        "dry_run": dry_run,
        "destination": job.destination,
        **summarize(outcomes),
        "seconds": round(time.monotonic() - began, 3),
    }
