"""What an archive is asked for, and what of it the broker stores now. Needs no session of Spark."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import Final

import attrs

from jmsaio.errors import ConfigurationError
from jmsaio.model.destinations import Resolved
from jmsaio.model.partitions import split_partition
from jmsaio.model.wire import WireId
from jmsaio.spark.files import configuration_of
from jmsaio.spark.jobs.manifest import Manifest
from jmsaio.spark.model.places import Place
from jmsaio.spark.options.parse import SourceOptions, Use, parse_options
from jmsaio.spark.planning.batch_planning import Wanted, list_sources, look, plan_batch
from jmsaio.spark.planning.cursor import StreamCursor
from jmsaio.spark.planning.losses import Losses
from jmsaio.spark.planning.offsets import is_trimmed
from jmsaio.spark.planning.plan import Stored, locate, weigh
from jmsaio.spark.planning.ranges import Loss, Range
from jmsaio.transport.base import Transport
from jmsaio.transport.registry import connected
from jmsaio.transport.topics import list_partitions

#: Where tasks note what is lost, in the archive's folder; the underscore hides it from whoever reads the folder.
_LOSSES: Final = "_losses"
#: Where accepted losses stay until a summary tells them.
_UNTOLD: Final = "_untold"
_GONE: Final = "the topic, or the partition, does not exist any more"


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
        consume: subscription that is moved behind what is archived; None: none is. Not with a selector or times, which
            leave out messages.

    Raises:
        ConfigurationError: ``consume`` together with one of these.
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
        """The folder where tasks note what is lost: absolute, since their working directory is another."""
        return (self.folder / _LOSSES).absolute()

    @property
    def untold(self) -> Path:
        """The folder of losses that were accepted, until the summary of a run tells them."""
        return self.folder / _UNTOLD

    def manifest(self) -> Manifest:
        """The manifest of an archive that was not begun yet."""
        return Manifest(
            destination=self.destination, selector=self.selector, since=self.since, until=self.until
        )  # fmt: skip

    def reader_options(self) -> dict[str, str]:
        """The options of the data source that say what is read, but not from where to where."""
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
        destination: what of the archive's destination exists, as ``queue://name`` or ``topic://name``; "" for nothing.
        starts: where it goes on, by topic; topics that are not named start at their oldest message, or by time.
        extents: of each partition that has something, by topic.
        losses: what is gone that should have been archived.
    """

    destination: str
    starts: Mapping[str, Place] = attrs.field(factory=dict)
    extents: tuple[Extent, ...] = ()
    losses: tuple[Loss, ...] = ()

    @property
    def lost(self) -> tuple[str, ...]:
        """What is gone, one sentence each."""
        return tuple(map(str, self.losses))

    def ends(self) -> dict[str, Place]:
        """Where the run ends, by topic."""
        return {extent.topic: extent.end for extent in self.extents}

    def options(self, order: ArchiveOrder) -> dict[str, str]:
        """The options of the data source for the run, but for its end."""
        options = {**order.reader_options(), "destination": self.destination}
        if self.starts:
            options.pop("startingTime", None)  # it would win over offsets; later runs leave out what is earlier
            options["startingOffsets"] = places_json(self.starts)
        return options


def plan_archive(order: ArchiveOrder, archived: Manifest) -> ArchivePlan:
    """Ask the broker what the next run reads.

    Raises:
        ConfigurationError: an option that can't be used.
        DataLossError: messages behind what is archived are gone, and ``fail_on_data_loss``.
        NotFoundError: no such topic.
        TransportError: the broker does not answer.
    """
    return asyncio.run(_plan(order, archived, parse_options(order.reader_options(), Use.READ)))


async def _plan(order: ArchiveOrder, archived: Manifest, options: SourceOptions) -> ArchivePlan:
    configuration = configuration_of(options)
    wanted = Wanted.by(options, configuration)
    whole = wanted.source
    async with connected(configuration) as transport:
        source = await _without_gone(transport, whole, archived)
        stores = await look(transport, await list_sources(transport, source))
        kept = await _kept(transport, order, archived.ends(), stores)
        starts, losses = locate_all(archived.ends(), stores, kept)
        Losses(order.fail_on_data_loss).tell_all(losses)
        wanted = attrs.evolve(wanted, source=source, data_loss_folder=None)
        if starts:
            wanted = attrs.evolve(wanted, starting=starts, starting_time=None)
        ranges = await plan_batch(transport, wanted)
        stores = await look(transport, dict.fromkeys(each.topic for each in ranges))
    return ArchivePlan(_text(order, whole, source), starts, tuple(extents_of(ranges, stores)), tuple(losses))


async def _without_gone(transport: Transport, source: Resolved, archived: Manifest) -> Resolved:
    """The topics of a destination without those that were archived once and do not exist any more."""
    if transport.admin is None or source.pattern is not None:
        return source
    known = {split_partition(part.topic)[0] for part in archived.parts}
    there = [topic for topic in source.topics if topic not in known or await list_partitions(transport.admin, topic)]
    return attrs.evolve(source, topics=tuple(there))


async def _kept(
    transport: Transport, order: ArchiveOrder, ends: Mapping[str, Place], stores: Mapping[str, Stored]
) -> Container[str]:
    """The topics of which the subscription has kept what is not archived."""
    if order.consume is None or transport.admin is None:
        return ()
    trimmed = [topic for topic, end in ends.items() if topic in stores and end < stores[topic].first]
    known = await StreamCursor(transport.admin, order.consume, shared=False).kept(trimmed)
    marks = {topic: (await transport.admin.cursor(topic, order.consume)).mark_delete for topic in known}
    return {topic for topic, mark in marks.items() if not is_ahead(mark, ends[topic])}


def is_ahead(mark: WireId | None, end: Place) -> bool:
    """Whether a subscription has acknowledged entries behind what is archived.

    Time to live, a backlog quota or consumers do that. The archive moves it only behind what its manifest counts, and
    the broker moves it from the end of a ledger that it deletes to before the first entry of the next one.

    Args:
        mark: the last entry that is acknowledged; None before the first one of a ledger.
        end: of the archive.
    """
    return mark is not None and Place(mark.ledger, mark.entry) >= end


def _text(order: ArchiveOrder, whole: Resolved, left: Resolved) -> str:
    """The destination of an order, or what is left of it."""
    if left == whole:
        return order.destination
    if not left.topics:
        return ""
    return f"{order.destination.partition('://')[0]}://multi:{','.join(left.topics)}"


def locate_all(
    ends: Mapping[str, Place], stores: Mapping[str, Stored], kept: Container[str]
) -> tuple[dict[str, Place], list[Loss]]:
    """Where an archive goes on, and what is gone behind what it has.

    Args:
        ends: where it ended, by topic.
        stores: what each topic stores.
        kept: topics of which a subscription keeps what is not archived: what was deleted of them had been archived.
    """
    starts: dict[str, Place] = {}
    losses = []
    for topic, end in ends.items():
        if topic not in stores:
            losses.append(Loss(topic, end, None, _GONE))
            continue
        starts[topic], loss = locate(topic, end, stores[topic])
        if loss is not None and end.ledger > stores[topic].ledgers[-1].id:  # a topic made anew: all of it is new
            starts[topic] = stores[topic].first
            loss = attrs.evolve(loss, found=starts[topic])
        if loss is not None and not (topic in kept and is_trimmed(loss, stores[topic])):
            losses.append(loss)
    return starts, losses


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
            bytes=sum(weigh(each, stores[topic].ledgers) for each in parts if topic in stores),
        )
        for topic, parts in sorted(by_topic.items())
    ]


def places_json(places: Mapping[str, Place]) -> str:
    """Places as the data source reads them."""
    return json.dumps({topic: str(place) for topic, place in places.items()})
