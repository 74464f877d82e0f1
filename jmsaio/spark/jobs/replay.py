"""Replay of an archive's messages, in the order of each original partition."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import attrs
from pyspark.sql import DataFrame, SparkSession, functions as f

from jmsaio.codec.properties import value_of
from jmsaio.config import Configuration
from jmsaio.errors import ConfigurationError, NotFoundError
from jmsaio.model.destinations import parse_destination_text, resolve, with_kind
from jmsaio.model.headers import FIELDS, HeaderKind
from jmsaio.model.topic_names import split_partition
from jmsaio.selector import Selector
from jmsaio.spark.arrow.records import WRITE_COLUMNS
from jmsaio.spark.jobs.archive import CHECKPOINT, read_archive
from jmsaio.spark.jobs.failures import own_errors
from jmsaio.spark.model.dedup import with_dedup
from jmsaio.spark.options.parse import Use, parse_options
from jmsaio.spark.planning.batch_planning import admin_of, list_sources
from jmsaio.spark.session import located, read_text
from jmsaio.spark.worker import configuration_of
from jmsaio.transport.registry import connected

#: Property of a replayed message: its previous JMSMessageID.
ORIGINAL_ID: Final = "jmsaio_original_id"
#: Headers that a selector can name, besides the time.
_HEADERS: Final = tuple(header.name for header in FIELDS if header.selectable and header.kind is not HeaderKind.TIME)
_Texts = Mapping[str, str | None] | None


@attrs.frozen(kw_only=True)
class ReplayOrder:
    """Replay order: archive, targets and filters."""

    connection: Mapping[str, str]  # options of the data source, including ``url``
    folder: str
    #: Target by archived destination, each with its kind or bare; other messages are sent to their origin.
    mapping: Mapping[str, str] = attrs.field(factory=dict)
    selector: str | None = None
    allow_same: bool = False  # allow sending messages to their origin
    dedup: bool = False  # drop what an earlier replay of the archive has sent; the targets must deduplicate

    def options(self) -> dict[str, str]:
        return {**self.connection, **({"dedup": "columns"} if self.dedup else {})}

    def job(self, archive: str) -> str | None:
        """Return the prefix of the producer names of a deduplicating replay; None for another replay.

        The broker drops messages up to the last number of a producer. So an ``archive`` (a unique id) that can have
        other messages, or another selector, needs other producers: otherwise messages would be lost.
        """
        if not self.dedup:
            return None
        whole = json.dumps([archive, self.selector])
        return f"jmsaio-replay-{hashlib.sha256(whole.encode()).hexdigest()[:16]}"


@attrs.frozen
class ReplayTarget:
    """Target of the messages of one archived destination."""

    source: str
    rows: int
    undecodable: int  # further messages, which can't be sent
    partitions: int  # minimum number that their topic had; 0 for a topic without partitions
    topic: str  # full name of one of their topics or partitions
    target: str = attrs.field(default=attrs.Factory(lambda self: self.source, takes_self=True))


def replay(session: SparkSession, order: ReplayOrder, *, dry_run: bool = False) -> dict[str, Any]:
    """Send the messages of an archive as new ones, at least once; with ``dedup``, once even if it is repeated.

    Each message has its old JMSMessageID in the property ``jmsaio_original_id``, and its original time to live,
    starting now; a delivery time is dropped. Messages of one partition are sent in order, and to the same partition if
    the target has as many. With ``dedup``, that number must not change between two replays, and the broker must
    remember the producers (``brokerDeduplicationProducerInactivityTimeoutMinutes``); ``rows`` of the summary then
    includes messages that the broker drops as duplicates.
    """
    began = time.monotonic()
    configuration = configuration_of(parse_options(order.options(), Use.WRITE))
    with own_errors():
        frame = read_archive(session, order.folder)
        frame = frame if order.selector is None else select_rows(frame, order.selector)
        bad, partitions = f.count("decode_error"), f.coalesce(f.max("partition") + 1, f.lit(0))
        counted = frame.groupBy("destination").agg(f.count("*") - bad, bad, partitions, f.min("topic"))
        rows = counted.orderBy("destination").collect()
        if any(row.destination is None for row in rows):
            raise ConfigurationError(f"{order.folder} has rows without a destination: it is no archive")
        targets = map_targets([ReplayTarget(*row) for row in rows], order.mapping)
        if not order.allow_same:
            check_targets(targets, configuration.system_namespace)
        same = []
        if order.dedup or not dry_run:
            same = asyncio.run(same_partitions(configuration, targets, order.dedup))
        if targets and not dry_run:
            archive = read_text(session, located(order.folder, CHECKPOINT, "metadata")) or order.folder
            _send(session, frame, order, targets, same, order.job(archive))
    return {
        "job": "replay",
        "dry_run": dry_run,
        "deduplicated": order.dedup,
        "folder": order.folder,
        "rows": sum(each.rows for each in targets),
        "undecodable": sum(each.undecodable for each in targets),
        "destinations": [attrs.asdict(each) for each in targets],
        "seconds": round(time.monotonic() - began, 3),
    }


def map_targets(origins: Iterable[ReplayTarget], mapping: Mapping[str, str]) -> list[ReplayTarget]:
    left, targets = dict(mapping), []
    for one in origins:
        kind, _, name = one.source.partition("://")
        target = left.pop(one.source, None) or left.pop(name, None) or one.source
        targets.append(attrs.evolve(one, target=with_kind(target, kind)))
    if left and targets:
        known = ", ".join(each.source for each in targets)
        raise ConfigurationError(f"{', '.join(left)} is not in the archive, which has {known}: map one of these")
    return targets


def check_targets(targets: Iterable[ReplayTarget], namespace: str) -> None:
    targets = list(targets)
    sources = {split_partition(each.topic)[0]: each.source for each in targets}
    for each in targets:
        same = sources.get(resolve(parse_destination_text(each.target), namespace).topics[0])
        if same is not None:
            raise ConfigurationError(
                f"messages of {each.source} would be sent to {same}, from which messages were archived: name another "
                f"by --map-destination {each.source}=OTHER, or allow it by --allow-same"
            )


async def same_partitions(configuration: Configuration, targets: Iterable[ReplayTarget], dedup: bool) -> list[str]:
    """Return the archived destinations whose target has as many partitions or more; check targets for ``dedup``."""
    found = []
    async with connected(configuration) as transport:
        for each in targets:
            resolved = resolve(parse_destination_text(each.target), configuration.system_namespace)
            try:
                topics = await list_sources(transport, resolved)
            except NotFoundError:  # created with the first message
                if dedup:
                    raise ConfigurationError(f"dedup: {each.target} does not exist; create it first") from None
                continue
            if dedup and not (await admin_of(transport).log(topics[0])).deduplication:
                raise ConfigurationError(
                    f"dedup: the broker does not deduplicate {each.target}; switch it on (brokerDeduplicationEnabled, "
                    "or set-deduplication of the namespace or topic), or replay as new"
                )
            if len(topics) >= each.partitions and split_partition(topics[0])[1] >= 0:
                found.append(each.source)
    return found


def _send(
    session: SparkSession, frame: DataFrame, order: ReplayOrder, targets: Sequence[ReplayTarget], same: list[str],
    job: str | None,
) -> None:  # fmt: skip
    topics = sum(max(1, each.partitions) for each in targets)
    tasks = max(1, min(topics, session.sparkContext.defaultParallelism))
    frame = frame.where("decode_error IS NULL")
    if job is None:  # in the order of each original partition
        frame = frame.repartition(tasks, "topic").sortWithinPartitions("topic", "position")
    outgoing = _outgoing(frame if job is None else with_dedup(frame, job), targets, same)
    outgoing.write.format("jms").options(**order.options()).mode("append").save()


def _outgoing(frame: DataFrame, targets: Sequence[ReplayTarget], same: list[str]) -> DataFrame:
    # Without the id of an earlier replay: a map can't have a key twice.
    properties = f.coalesce(f.col("properties"), f.expr("map()").cast("map<string,string>"))
    others = f.map_filter(properties, lambda name, _: name != ORIGINAL_ID)
    moves = f.create_map(*[f.lit(text) for each in targets for text in (each.source, each.target)])
    begin = f.coalesce(f.unix_millis("JMSTimestamp"), f.unix_millis("publish_time"))
    life = f.unix_millis("JMSExpiration") - begin
    changed = {
        "destination": f.element_at(moves, f.col("destination")),
        "partition": f.when(f.col("destination").isin(same), f.col("partition")),
        "properties": f.map_concat(others, f.create_map(f.lit(ORIGINAL_ID), f.col("JMSMessageID"))),
        "time_to_live": f.when(life > 0, life),
    }
    written = {each.name for each in WRITE_COLUMNS}
    return frame.withColumns(changed).drop(*(name for name in frame.columns if name not in written))


def select_rows(frame: DataFrame, selector: str) -> DataFrame:
    Selector(selector)  # raises here, not in a task
    matches = partial(_matches, selector)
    selected = f.udf(matches, "boolean", useArrow=False)  # Spark's functions on Arrow batches need pandas
    columns = [f.col(name) for name in ("properties", "property_types", *_HEADERS)]
    return frame.where(selected(f.unix_millis("JMSTimestamp"), *columns))


def _matches(selector: str, timestamp: int | None, texts: _Texts, words: _Texts, *headers: object) -> bool:
    values = {
        **values_of(texts, words),
        **dict(zip(_HEADERS, headers, strict=True)),
        "JMSTimestamp": timestamp or 0,
    }
    return Selector(selector).matches(values) is True  # compiled once for each process


def values_of(texts: _Texts, words: _Texts) -> dict[str, object]:
    kinds = words or {}
    return {name: value_of(text, kinds.get(name) or "") for name, text in (texts or {}).items() if text is not None}
