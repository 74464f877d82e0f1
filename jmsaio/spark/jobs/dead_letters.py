"""Dead letters of many topics: a report computed by Spark."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import attrs
from pyspark.sql import Column, DataFrame, SparkSession, functions as f

from jmsaio.config import Configuration
from jmsaio.errors import ConfigurationError
from jmsaio.maintenance.dead_letters import REDRIVE_COUNT, REDRIVE_CURSOR, letter_topics, require_admin
from jmsaio.model.destinations import parse_destination_text, resolve
from jmsaio.model.wire import REAL_SUBSCRIPTION, REAL_TOPIC
from jmsaio.spark.jobs.failures import own_errors
from jmsaio.spark.options.parse import Use, parse_options
from jmsaio.spark.options.values import time_text
from jmsaio.spark.worker import call_broker
from jmsaio.transport.base import Transport

#: Samples per group.
_SAMPLES: Final = 3
#: Maximum characters of a sample's body.
_BODY: Final = 200
_COLUMNS: Final = ("topic", "position", "publish_time", "JMSMessageID", "JMSType", "properties", "payload")
_PARTITION: Final = "-partition-[0-9]{1,9}$"


@attrs.frozen(kw_only=True)
class ReportOrder:
    """Dead letters to report."""

    connection: Mapping[str, str]  # options of the data source, including ``url``
    destination: str  # also with ``multi:`` and ``regex:``
    of: str | None = None  # as in ``TransferRequest``
    properties: Sequence[str] = ()  # names of properties that groups are split by
    selector: str | None = None
    #: Leave out what the subscription at the end of the name, else a redrive's, else ``jms-queue`` has acknowledged.
    pending: bool = False
    bodies: bool = False  # include the first 200 characters of text bodies in samples
    groups: int = 100  # maximum number; those with the most dead letters are reported


def report_dead_letters(session: SparkSession, order: ReportOrder) -> dict[str, Any]:
    """Count dead letters by origin, subscription, JMSType and chosen properties.

    The summary has totals, and the groups, largest first. The time of a dead letter is when it became one, by the clock
    of the client that moved it. ``bytes`` counts the bodies, ``redriven`` the dead letters that were sent to their
    origin before and failed again. Samples are the oldest dead letters.
    """
    began = time.monotonic()
    with own_errors():
        topics: list[str] = []
        subscription = None
        if order.of is not None or order.pending:
            find = partial(find_letters, order=order)
            topics, subscription = call_broker(parse_options(order.connection, Use.WRITE), find)
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
        "groups": [describe_group(row.asDict(recursive=True), order.properties, now) for row in rows],
        "letters_of_other_groups": letters - sum(row.letters for row in rows),
        "seconds": round(time.monotonic() - began, 3),
    }


async def find_letters(
    transport: Transport, configuration: Configuration, *, order: ReportOrder
) -> tuple[list[str], str | None]:  # fmt: skip
    """Return the topics to report on, empty if the destination is sufficient, and the subscription of a redrive."""
    admin = require_admin(transport)
    resolved = resolve(parse_destination_text(order.destination), configuration.system_namespace)
    topics = await letter_topics(admin, resolved, order.of)
    named = topics if order.of is not None else []
    if not order.pending or (order.of is None and resolved.subscription is not None):
        return named, None
    own = [topic for topic in topics if REDRIVE_CURSOR in (await admin.stats(topic)).subscriptions]
    if not own:
        return named, None
    if own != topics:
        reason = f"{', '.join(own)} has a subscription {REDRIVE_CURSOR}, and other topics have none: report them apart"
        raise ConfigurationError(reason, key="pending")
    return topics, REDRIVE_CURSOR


def describe_group(group: Mapping[str, Any], chosen: Sequence[str], now: int) -> dict[str, Any]:
    """Describe a row of ``group_letters`` for the summary; its times and ``now`` are in ms since the epoch."""
    times = {name: group[name] for name in ("first", "last")}
    ages = [None if at is None else round(max(0, now - at) / 1000) for at in times.values()]
    return {
        **{name: group[name] for name in ("origin", "subscription", "type")},
        "properties": {name: group[f"p{index}"] for index, name in enumerate(chosen)},
        **{name: group[name] for name in ("letters", "bytes", "redriven")},
        **{name: time_text(at) for name, at in times.items()},
        **dict(zip(("oldest_age", "newest_age"), ages, strict=True)),
        "samples": list(group["samples"] or ()),
    }


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
    """Group dead letters by ``origin``, ``subscription``, ``type``, and the chosen properties ``p0``, ``p1`` ..."""
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
