"""What an archive is asked for, and what of it the broker stores now. Needs no session of Spark."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import attrs

from jmsaio.errors import DataLossError
from jmsaio.spark.files import configuration_of
from jmsaio.spark.jobs.manifest import Manifest
from jmsaio.spark.model.places import Place
from jmsaio.spark.options.parse import SourceOptions, Use, parse_options
from jmsaio.spark.planning.batch_planning import Wanted, look, plan_batch
from jmsaio.spark.planning.plan import Stored
from jmsaio.spark.planning.ranges import Range
from jmsaio.transport.registry import connected


@attrs.frozen(kw_only=True)
class ArchiveOrder:
    """What is archived where.

    Attributes:
        connection: the options of the data source that name the broker: ``url`` and connection options.
        destination: ``queue://name`` or ``topic://name``, also of several: ``multi:``, ``regex:``.
        folder: of the archive; on a file system that the driver and all workers share.
        selector: only messages that it selects; None: all.
        since: publish time of the first messages, in ISO 8601 or ms since the epoch; None: from the oldest on.
        until: publish time of the first messages that are left out, likewise; None: up to the last.
        fail_on_data_loss: fail when messages are gone that should follow what is archived already; else go on.
    """

    connection: Mapping[str, str]
    destination: str
    folder: Path
    selector: str | None = None
    since: str | None = None
    until: str | None = None
    fail_on_data_loss: bool = True

    def manifest(self) -> Manifest:
        """The manifest of an archive that was not begun yet."""
        return Manifest(
            destination=self.destination, selector=self.selector, since=self.since, until=self.until
        )  # fmt: skip

    def options(self, archived: Manifest, ends: Mapping[str, Place] | None = None) -> dict[str, str]:
        """The options of the data source for the next run.

        Args:
            archived: what is there.
            ends: where the run ends, by topic; topics that are not named end with their last message.
        """
        filters = {"selector": self.selector, "endingTime": self.until}
        starts = archived.ends()
        if starts:
            filters["startingOffsets"] = _offsets(starts)
        else:
            filters["startingTime"] = self.since  # it would win over offsets; later runs leave out what is earlier
        if ends:
            filters["endingOffsets"] = _offsets(ends)
        return {
            **self.connection,
            "destination": self.destination,
            "body": "raw",
            "failOnDataLoss": str(self.fail_on_data_loss).lower(),
            **{name: text for name, text in filters.items() if text},
        }


@attrs.frozen(kw_only=True)
class Extent:
    """What a run reads of one partition.

    Attributes:
        topic: its full name.
        start: the first message.
        end: the first message that is not read.
        entries: how many entries lie between, where the broker tells; a batch of messages is one.
        bytes: about how many bytes they have.
    """

    topic: str
    start: Place
    end: Place
    entries: int
    bytes: int


@attrs.frozen
class ArchivePlan:
    """What a run reads.

    Attributes:
        extents: of each partition that has something, by topic.
        lost: what is gone that should have been archived, one sentence each.
    """

    extents: tuple[Extent, ...]
    lost: tuple[str, ...] = ()

    def ends(self) -> dict[str, Place]:
        """Where the run ends, by topic."""
        return {extent.topic: extent.end for extent in self.extents}


def plan_archive(order: ArchiveOrder, archived: Manifest) -> ArchivePlan:
    """Ask the broker what the next run reads.

    Raises:
        ConfigurationError: an option that can't be used.
        DataLossError: messages behind what is archived are gone, and ``fail_on_data_loss``.
        NotFoundError: no such topic.
        TransportError: the broker does not answer.
    """
    try:
        strict = attrs.evolve(order, fail_on_data_loss=True)
        return ArchivePlan(tuple(asyncio.run(_look(parse_options(strict.options(archived), Use.READ)))))
    except DataLossError as loss:
        if order.fail_on_data_loss:
            raise
        extents = asyncio.run(_look(parse_options(order.options(archived), Use.READ)))
        return ArchivePlan(tuple(extents), (str(loss),))


async def _look(options: SourceOptions) -> list[Extent]:
    configuration = configuration_of(options)
    async with connected(configuration) as transport:
        ranges = await plan_batch(transport, Wanted.by(options, configuration))
        stores = await look(transport, dict.fromkeys(each.topic for each in ranges))
    return extents_of(ranges, stores)


def extents_of(ranges: Iterable[Range], stores: Mapping[str, Stored]) -> list[Extent]:
    """The ranges of tasks put together by partition.

    Args:
        ranges: of a batch.
        stores: what each topic stores.
    """
    by_topic: dict[str, list[Range]] = {}
    for each in ranges:
        by_topic.setdefault(each.topic, []).append(each)
    return [
        Extent(
            topic=topic,
            start=min(each.start for each in parts),
            end=max(each.end for each in parts),
            entries=sum(each.entries() for each in parts),
            bytes=sum(_bytes(each, stores.get(topic)) for each in parts),
        )
        for topic, parts in sorted(by_topic.items())
    ]


def _bytes(part: Range, store: Stored | None) -> int:
    """By the mean size of the entries of each ledger."""
    ledgers = {} if store is None else {ledger.id: ledger for ledger in store.ledgers if ledger.entries}
    sizes = [
        ledgers[run.ledger].bytes * (run.stop - run.first) / ledgers[run.ledger].entries
        for run in part.runs()
        if run.ledger in ledgers
    ]
    return round(sum(sizes))


def _offsets(places: Mapping[str, Place]) -> str:
    return json.dumps({topic: str(place) for topic, place in places.items()})
