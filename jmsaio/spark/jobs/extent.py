"""Archive orders, and the part of their messages that the broker stores. Needs no Spark session."""

from __future__ import annotations

import asyncio
import json
import re
import zlib
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import Final

import attrs

from jmsaio.errors import ConfigurationError
from jmsaio.model.destinations import Resolved
from jmsaio.model.partitions import split_partition
from jmsaio.model.temporary_names import JOB_PREFIX
from jmsaio.model.wire import WireId
from jmsaio.spark.jobs.manifest import Manifest
from jmsaio.spark.model.places import Place
from jmsaio.spark.options.parse import SourceOptions, Use, parse_options
from jmsaio.spark.planning.batch_planning import list_sources, look, plan_batch, source_of
from jmsaio.spark.planning.cursor import StreamCursor
from jmsaio.spark.planning.losses import Losses
from jmsaio.spark.planning.offsets import is_trimmed
from jmsaio.spark.planning.plan import Stored, locate, weigh
from jmsaio.spark.planning.ranges import Loss, Range
from jmsaio.spark.worker import connected_by
from jmsaio.transport.base import Transport
from jmsaio.transport.topics import list_partitions

#: Folder where tasks record losses, in the archive's folder; the underscore hides it from readers of the folder.
_LOSSES: Final = "_losses"
#: Folder where accepted losses are kept until a summary reports them.
_UNREPORTED: Final = "_untold"
_GONE: Final = "the topic, or the partition, no longer exists"


def subscription_of(folder: Path) -> str:
    """Return the default subscription of the archive in a folder.

    It is unique on this machine; the same path on another machine has the same subscription.
    """
    whole = folder.resolve()
    readable = re.sub(r"[^\w.-]", "-", whole.name, flags=re.ASCII)
    return f"{JOB_PREFIX}{readable}-{zlib.crc32(str(whole).encode()):08x}"


@attrs.frozen(kw_only=True)
class ArchiveOrder:
    """Archive order: destination, filters and folder.

    Attributes:
        connection: connection options of the data source, including ``url``.
        destination: ``queue://name`` or ``topic://name``; also several: ``multi:``, ``regex:``.
        folder: folder of the archive, on a file system that the driver and all workers share.
        selector: selector that messages must match; None: all match.
        since: publish time of the first messages, in ISO 8601 or ms since the epoch; None: from the oldest message.
        until: publish time from which messages are left out, likewise; None: up to the newest message.
        fail_on_data_loss: fail if messages that should follow the archived ones no longer exist; if False, continue.
        consume: subscription to move past the archived messages, or None. Not with a selector or times, which leave
            out messages.

    Raises:
        ConfigurationError: ``consume`` is set together with one of these.
    """

    connection: Mapping[str, str]
    destination: str
    folder: Path
    selector: str | None = None
    since: str | None = None
    until: str | None = None
    fail_on_data_loss: bool = True
    consume: str | None = None

    def __attrs_post_init__(self) -> None:
        filters = [name for name in ("selector", "since", "until") if getattr(self, name) is not None]
        if self.consume is not None and filters:
            raise ConfigurationError(
                f"consume would acknowledge messages that {filters[0]} leaves out of the archive: archive all, or "
                "consume nothing"
            )

    @property
    def losses(self) -> Path:
        """Folder where tasks record losses: absolute, since their working directory differs."""
        return (self.folder / _LOSSES).absolute()

    @property
    def unreported(self) -> Path:
        """Folder of accepted losses, until the summary of a run reports them."""
        return self.folder / _UNREPORTED

    def manifest(self) -> Manifest:
        """Create the manifest of a new archive."""
        return Manifest(
            destination=self.destination, selector=self.selector, since=self.since, until=self.until
        )  # fmt: skip

    def reader_options(self) -> dict[str, str]:
        """Return the options of the data source, except for start and end."""
        filters = {"selector": self.selector, "endingTime": self.until, "startingTime": self.since}
        losses = {"failOnDataLoss": "true"}
        if not self.fail_on_data_loss:
            losses = {"failOnDataLoss": "false", "dataLossFolder": str(self.losses)}
        return {
            **self.connection,
            "destination": self.destination,
            "body": "raw",
            **losses,
            **{name: text for name, text in filters.items() if text},
        }


@attrs.frozen(kw_only=True)
class Extent:
    """Part of one partition that a run reads.

    Attributes:
        topic: full name of the partition.
        start: the first message.
        end: the first message that is not read.
        entries: number of entries, if the broker reports it; a batch of messages counts as one.
        bytes: approximate number of bytes.
    """

    topic: str
    start: Place
    end: Place
    entries: int
    bytes: int


@attrs.frozen
class ArchivePlan:
    """Plan of a run.

    Attributes:
        destination: existing part of the archive's destination, as ``queue://name`` or ``topic://name``; "" if there is
            none.
        starts: start by topic; topics not named start at their oldest message, or by time.
        extents: what to read of each partition with new messages, by topic.
        losses: messages to archive that no longer exist.
    """

    destination: str
    starts: Mapping[str, Place] = attrs.field(factory=dict)
    extents: tuple[Extent, ...] = ()
    losses: tuple[Loss, ...] = ()

    @property
    def lost(self) -> tuple[str, ...]:
        """Losses, one sentence each."""
        return tuple(map(str, self.losses))

    def ends(self) -> dict[str, Place]:
        """Return the end of the run, by topic."""
        return {extent.topic: extent.end for extent in self.extents}

    def options(self, order: ArchiveOrder) -> dict[str, str]:
        """Return the options of the data source for the run, without its end."""
        options = {**order.reader_options(), "destination": self.destination}
        if self.starts:
            options.pop("startingTime", None)  # it would override offsets; rows before it are filtered
            options["startingOffsets"] = places_json(self.starts)
        return options


def plan_archive(order: ArchiveOrder, archived: Manifest) -> ArchivePlan:
    """Plan the next run from the state of the broker.

    Raises:
        ConfigurationError: an option is invalid.
        DataLossError: messages after the archived ones no longer exist, and ``fail_on_data_loss`` is set.
        NotFoundError: a topic does not exist.
        TransportError: the broker does not answer.
    """
    return asyncio.run(_plan(order, archived, parse_options(order.reader_options(), Use.READ)))


async def _plan(order: ArchiveOrder, archived: Manifest, options: SourceOptions) -> ArchivePlan:
    async with connected_by(options) as (transport, configuration):
        whole = source_of(options, configuration)
        source = await _without_gone(transport, whole, archived)
        stores = await look(transport, await list_sources(transport, source))
        kept = await _kept(transport, order, archived.ends(), stores)
        starts, losses = locate_all(archived.ends(), stores, kept)
        Losses(order.fail_on_data_loss).report_all(losses)
        options = attrs.evolve(options, data_loss_folder=None)
        if starts:
            options = attrs.evolve(options, starting_offsets=starts, starting_time=None)
        ranges = await plan_batch(transport, source, options)
        stores = await look(transport, dict.fromkeys(each.topic for each in ranges))
    return ArchivePlan(_text(order, whole, source), starts, tuple(extents_of(ranges, stores)), tuple(losses))


async def _without_gone(transport: Transport, source: Resolved, archived: Manifest) -> Resolved:
    """Remove the topics of a destination that were archived once and no longer exist."""
    if transport.admin is None or source.pattern is not None:
        return source
    known = {split_partition(part.topic)[0] for part in archived.parts}
    there = [topic for topic in source.topics if topic not in known or await list_partitions(transport.admin, topic)]
    return attrs.evolve(source, topics=tuple(there))


async def _kept(
    transport: Transport, order: ArchiveOrder, ends: Mapping[str, Place], stores: Mapping[str, Stored]
) -> Container[str]:
    """Return the topics whose subscription has kept everything that is not archived."""
    if order.consume is None or transport.admin is None:
        return ()
    trimmed = [topic for topic, end in ends.items() if topic in stores and end < stores[topic].first]
    known = await StreamCursor(transport.admin, order.consume, shared=False).kept(trimmed)
    marks = {topic: (await transport.admin.cursor(topic, order.consume)).mark_delete for topic in known}
    return {topic for topic, mark in marks.items() if not is_ahead(mark, ends[topic])}


def is_ahead(mark: WireId | None, end: Place) -> bool:
    """Return True if a subscription has acknowledged entries after the archived ones.

    Time to live, a backlog quota or consumers do that. The archive moves it only to the end of what its manifest
    counts; the broker moves it from the end of a ledger that it deletes to before the first entry of the next one.

    Args:
        mark: the last acknowledged entry; None before the first one of a ledger.
    """
    return mark is not None and Place(mark.ledger, mark.entry) >= end


def _text(order: ArchiveOrder, whole: Resolved, left: Resolved) -> str:
    """Return the text of an order's destination, or of its existing part."""
    if left == whole:
        return order.destination
    if not left.topics:
        return ""
    return f"{order.destination.partition('://')[0]}://multi:{','.join(left.topics)}"


def locate_all(
    ends: Mapping[str, Place], stores: Mapping[str, Stored], kept: Container[str]
) -> tuple[dict[str, Place], list[Loss]]:
    """Return the starts of an archive's next run, and the lost messages after the archived ones.

    Args:
        ends: previous ends, by topic.
        stores: what each topic stores.
        kept: topics whose subscription keeps what is not archived: what was deleted had been archived.
    """
    starts: dict[str, Place] = {}
    losses = []
    for topic, end in ends.items():
        if topic not in stores:
            losses.append(Loss(topic, end, None, _GONE))
            continue
        starts[topic], loss = locate(topic, end, stores[topic])
        if loss is not None and end.ledger > stores[topic].ledgers[-1].id:  # a recreated topic: all of it is new
            starts[topic] = stores[topic].first
            loss = attrs.evolve(loss, found=starts[topic])
        if loss is not None and not (topic in kept and is_trimmed(loss, stores[topic])):
            losses.append(loss)
    return starts, losses


def extents_of(ranges: Iterable[Range], stores: Mapping[str, Stored]) -> list[Extent]:
    """Combine the ranges of tasks by partition.

    Args:
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
            bytes=sum(weigh(each, stores[topic].ledgers) for each in parts if topic in stores),
        )
        for topic, parts in sorted(by_topic.items())
    ]


def places_json(places: Mapping[str, Place]) -> str:
    """Return places as JSON for the data source."""
    return json.dumps({topic: str(place) for topic, place in places.items()})
