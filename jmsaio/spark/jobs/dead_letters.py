"""A report on dead letters: numbers by origin and kind, ages, and samples. Changes nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import attrs
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from jmsaio.errors import ConfigurationError
from jmsaio.maintenance.dead_letters import REAL_SUBSCRIPTION, REDRIVE_COUNT
from jmsaio.maintenance.redrive_planning import REDRIVE_CURSOR, letter_topics, require_admin
from jmsaio.model.destinations import resolve
from jmsaio.model.wire import REAL_TOPIC
from jmsaio.spark.files import configuration_of
from jmsaio.spark.jobs.failures import own_errors
from jmsaio.spark.model.destination_text import parse_destination_text
from jmsaio.spark.options.parse import Use, parse_options
from jmsaio.transport.registry import connected

#: Samples per group.
_SAMPLES: Final = 3
#: Maximum characters of a sample's body.
_BODY: Final = 200
_COLUMNS: Final = ("topic", "position", "publish_time", "JMSMessageID", "JMSType", "properties", "payload")
_PARTITION: Final = "-partition-[0-9]{1,9}$"


@attrs.frozen(kw_only=True)
class ReportOrder:
    """Dead letters to report.

    Attributes:
        connection: connection options of the data source, including ``url``.
        destination: ``queue://name`` or ``topic://name`` with the dead letters; also ``multi:`` and ``regex:``.
        of: name of a subscription: ``destination`` is where messages failed, and the dead letters are those of this
            subscription. None: ``destination`` has the dead letters.
        properties: names of properties that groups are also split by.
        selector: selector that dead letters must match; None: all match.
        pending: leave out what the queue's subscription has acknowledged: the one at the end of the name, else the one
            created by a redrive, else ``jms-queue``.
        bodies: include the first 200 characters of text bodies in samples.
        groups: maximum number of groups; those with the most dead letters are reported.
    """

    connection: Mapping[str, str]
    destination: str
    of: str | None = None
    properties: Sequence[str] = ()
    selector: str | None = None
    pending: bool = False
    bodies: bool = False
    groups: int = 100


def report_dead_letters(session: SparkSession, order: ReportOrder) -> dict[str, Any]:
    """Count dead letters by origin, subscription, JMSType and chosen properties.

    Args:
        session: a session with ``format("jms")`` registered.
        order: dead letters to report.

    Returns:
        The summary: totals, and the groups, largest first. The time of a dead letter is when it became one, by the
        clock of the client that moved it. ``bytes`` counts the bodies, ``redriven`` the dead letters that were sent to
        their origin before and failed again. Samples are the oldest dead letters.

    Raises:
        ConfigurationError: an option is invalid.
        NotFoundError: a topic does not exist.
        TransportError: the broker failed.
    """
    began = time.monotonic()
    with own_errors():
        topics, subscription = asyncio.run(_letters(order))
        frame = session.read.format("jms").options(**_options(order, topics, subscription)).load()
        grouped = group_letters(frame, order)
        sums = [f.coalesce(f.sum(name), f.lit(0)) for name in ("letters", "bytes", "redriven")]
        largest = f.max_by(f.struct("*"), f.struct("letters", -f.col("first")), order.groups)
        ((letters, size, redriven, found),) = grouped.agg(*sums, largest).collect()
    rows = sorted(found or (), key=lambda row: (-row.letters, row.first or 0))
    now = round(time.time() * 1000)
    return {
        "job": "dlq report",
        "destination": order.destination,
        "topics": topics,
        "letters": letters,
        "bytes": size,
        "redriven": redriven,
        "groups": [describe_group(row, order.properties, now) for row in rows],
        "letters_of_other_groups": letters - sum(row.letters for row in rows),
        "seconds": round(time.monotonic() - began, 3),
    }


async def _letters(order: ReportOrder) -> tuple[list[str], str | None]:
    """Return the full names of the topics with dead letters, and the subscription that a redrive created there.

    The topics are empty if the destination is sufficient; the subscription is None if it is not used.
    """
    if order.of is None and not order.pending:
        return [], None
    configuration = configuration_of(parse_options(order.connection, Use.WRITE))
    resolved = resolve(parse_destination_text(order.destination), configuration.system_namespace)
    async with connected(configuration) as transport:
        admin = require_admin(transport)
        topics = await letter_topics(admin, resolved, order.of)
        asked_for = topics if order.of is not None else []
        if not order.pending or (order.of is None and resolved.subscription is not None):
            return asked_for, None
        own = [topic for topic in topics if REDRIVE_CURSOR in (await admin.stats(topic)).subscriptions]
    if not own:
        return asked_for, None
    if own != topics:
        reason = f"{', '.join(own)} has a subscription {REDRIVE_CURSOR}, and other topics have none: report them apart"
        raise ConfigurationError(reason, key="pending")
    return topics, REDRIVE_CURSOR


def _options(order: ReportOrder, topics: Sequence[str], subscription: str | None) -> dict[str, str]:
    columns = [*_COLUMNS, "text"] if order.bodies else [*_COLUMNS]
    ending = "" if subscription is None else f":{subscription}"
    return {
        **order.connection,
        "destination": f"queue://multi:{','.join(topics)}{ending}" if topics else order.destination,
        "body": "both" if order.bodies else "raw",
        "columns": ",".join(columns),
        **({"view": "pending"} if order.pending else {}),
        **({} if order.selector is None else {"selector": order.selector}),
    }


def group_letters(frame: DataFrame, order: ReportOrder) -> DataFrame:
    """Group dead letters by ``origin``, ``subscription``, ``type``, and ``p0``, ``p1`` ... for the chosen properties.

    Args:
        frame: dead letters, with the columns of this report.
        order: determines the properties, and whether samples have bodies.
    """
    wire, real = f.col("properties"), f.col("properties")[REAL_TOPIC]
    keys = {
        "origin": f.regexp_replace(real, _PARTITION, ""),
        "subscription": f.coalesce(wire[REAL_SUBSCRIPTION], _subscription(real)),
        "type": f.col("JMSType"),
        **{f"p{index}": wire[name] for index, name in enumerate(order.properties)},
    }
    batch = f.col("position.batch")
    sample = {
        "id": f.col("JMSMessageID"),
        "topic": f.col("topic"),
        "position": f.concat_ws(":", "position.ledger", "position.entry", f.when(batch > 0, batch)),
        **({"body": f.substring("text", 1, _BODY)} if order.bodies else {}),
    }
    published = f.unix_millis("publish_time")
    return frame.groupBy(*[key.alias(name) for name, key in keys.items()]).agg(
        f.count("*").alias("letters"),
        f.coalesce(f.sum(f.octet_length("payload")), f.lit(0)).alias("bytes"),
        f.count_if(wire[REDRIVE_COUNT].try_cast("int") > 0).alias("redriven"),
        f.min(published).alias("first"),
        f.max(published).alias("last"),
        f.min_by(
            f.struct(*[one.alias(name) for name, one in sample.items()]),
            f.struct("publish_time", "topic", "position"),
            _SAMPLES,
        ).alias("samples"),
    )


def _subscription(real: Column) -> Column:
    """Extract the subscription from a topic's name: ``<origin>-<subscription>-DLQ``; NULL for another name."""
    base = f.regexp_replace("topic", _PARTITION, "")
    rest = f.substr(base, f.length(real) + f.lit(2), f.length(base) - f.length(real) - f.lit(len("--DLQ")))
    named = f.regexp_replace(rest, "^partition-[0-9]{1,9}-", "")
    return f.when(base.startswith(f.concat(real, f.lit("-"))) & base.endswith("-DLQ"), named)


def describe_group(row: Row, properties: Sequence[str], now: int) -> dict[str, Any]:
    """Describe a group for the summary.

    Args:
        row: row of ``group_letters``.
        properties: the chosen properties.
        now: current time in ms since the epoch.
    """
    return {
        "origin": row.origin,
        "subscription": row.subscription,
        "type": row.type,
        "properties": {name: row[f"p{index}"] for index, name in enumerate(properties)},
        "letters": row.letters,
        "bytes": row.bytes,
        "redriven": row.redriven,
        "first": _iso(row.first),
        "last": _iso(row.last),
        "oldest_age": _age(row.first, now),
        "newest_age": _age(row.last, now),
        "samples": [each.asDict() for each in row.samples or ()],
    }


def _age(milliseconds: int | None, now: int) -> int | None:
    """Return the seconds since a time."""
    return None if milliseconds is None else round(max(0, now - milliseconds) / 1000)


def _iso(milliseconds: int | None) -> str | None:
    if milliseconds is None:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
