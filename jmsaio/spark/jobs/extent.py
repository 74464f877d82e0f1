"""Archive orders, and the part of their messages that the broker stores. Needs no Spark session."""

from __future__ import annotations

import re
import zlib
from collections.abc import Container, Iterable, Mapping
from functools import partial
from typing import Final

import attrs

from jmsaio.config import Configuration
from jmsaio.errors import ConfigurationError
from jmsaio.model.topic_names import JOB_PREFIX
from jmsaio.model.wire import WireId
from jmsaio.spark.jobs.manifest import Manifest
from jmsaio.spark.model.folder import AnyPath
from jmsaio.spark.model.places import Place
from jmsaio.spark.options.parse import SourceOptions, Use, parse_options
from jmsaio.spark.planning.batch_planning import list_sources, look, source_of, start_places
from jmsaio.spark.planning.cursor import StreamCursor
from jmsaio.spark.planning.losses import Losses
from jmsaio.spark.planning.offsets import advance, between, is_trimmed
from jmsaio.spark.planning.plan import Stored, locate
from jmsaio.spark.planning.ranges import Loss, Range
from jmsaio.spark.worker import call_broker
from jmsaio.transport.base import Transport

#: Folder where tasks record losses, in the archive's folder; the underscore hides it from readers of the folder.
LOSSES: Final = "_losses"
#: Folder where accepted losses are kept until a summary reports them.
_UNREPORTED: Final = "_untold"
_GONE: Final = "the topic, or the partition, no longer exists"


def subscription_of(folder: AnyPath) -> str:
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
        folder: folder of the archive, which the driver and all workers reach under its path or URL.
        selector: selector that messages must match; None: all match.
        since: publish time of the first messages, in ISO 8601 or ms since the epoch; None: from the oldest message.
        until: publish time from which messages are left out, likewise; None: up to the newest message.
        fail_on_data_loss: fail if messages that should follow the archived ones no longer exist; if False, continue.
        consume: subscription to move past the archived messages, or None. A selector or times, which leave out
            messages, raise ConfigurationError with it.
    """

    connection: Mapping[str, str]
    destination: str
    folder: AnyPath
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
    def losses(self) -> AnyPath:
        """Folder where tasks record losses: absolute, since their working directory differs."""
        return (self.folder / LOSSES).absolute()

    @property
    def unreported(self) -> AnyPath:
        """Folder of accepted losses, until the summary of a run reports them."""
        return self.folder / _UNREPORTED

    def manifest(self) -> Manifest:
        """Create the manifest of a new archive."""
        return Manifest(destination=self.destination, selector=self.selector, since=self.since, until=self.until)

    def reader_options(self) -> dict[str, str]:
        """Return the options of a reader of the data source, with all columns."""
        optional = {
            "selector": self.selector,
            "endingTime": self.until,
            "startingTime": self.since,
            "dataLossFolder": None if self.fail_on_data_loss else str(self.losses),
        }
        return {
            **self.connection,
            "destination": self.destination,
            "body": "raw",
            "failOnDataLoss": str(self.fail_on_data_loss).lower(),
            **{name: text for name, text in optional.items() if text},
        }


@attrs.frozen
class ArchivePlan:
    """The messages to archive that the broker stores.

    Attributes:
        stores: what each topic or partition stores.
        ranges: what to read of each topic or partition with new messages.
        losses: messages to archive that no longer exist.
    """

    stores: Mapping[str, Stored] = attrs.field(factory=dict)
    ranges: tuple[Range, ...] = ()
    losses: tuple[Loss, ...] = ()

    def ends(self) -> dict[str, Place]:
        """Return the ends of the ranges, by topic."""
        return {each.topic: each.end for each in self.ranges}

    def run(self, entries: int | None, size: int | None, until: Mapping[str, Place]) -> list[Range]:
        """Return the ranges of the next run.

        Args:
            entries: maximum entries, divided in proportion to the topics' ranges; None: no limit.
            size: maximum bytes, estimated; None: no limit.
            until: ends by topic; other topics are left out.
        """
        starts = {each.topic: each.start for each in self.ranges if each.topic in until}
        stores = {topic: self.stores[topic] for topic in starts}
        ends = advance(starts, stores, max_entries=entries, max_bytes=size, until=until).end
        return between(starts, ends, stores)[0]


def count_entries(ranges: Iterable[Range]) -> int:
    """Return the number of entries of all ranges."""
    return sum(each.entries() for each in ranges)


def plan_archive(order: ArchiveOrder, archived: Manifest) -> ArchivePlan:
    """Plan the next run from the state of the broker.

    Raises:
        ConfigurationError: an option is invalid.
        DataLossError: messages after the archived ones no longer exist, and ``fail_on_data_loss`` is set.
        NotFoundError: a topic does not exist.
        TransportError: the broker does not answer.
    """
    options = parse_options(order.reader_options(), Use.READ)
    return call_broker(options, partial(plan_next, order=order, archived=archived, options=options))


async def plan_next(
    transport: Transport,
    configuration: Configuration,
    order: ArchiveOrder,
    archived: Manifest,
    options: SourceOptions,
    *,
    may_miss: bool = False,
) -> ArchivePlan:
    """Plan the next run with an open transport; see ``plan_archive``.

    Args:
        options: parsed ``ArchiveOrder.reader_options``.
        may_miss: leave out topics that do not exist, as for an archive that has messages.
    """
    source = source_of(options, configuration)
    topics = await list_sources(transport, source, may_miss=may_miss or bool(archived.parts))
    stores = await look(transport, topics)
    kept = await _kept(transport, order, archived.ends(), stores)
    starts, losses = locate_all(archived.ends(), stores, kept)
    Losses(order.fail_on_data_loss).report_all(losses)
    if starts:
        options = attrs.evolve(options, starting_offsets=starts, starting_time=None)
    places = await start_places(transport, options, stores)
    ends = {topic: end for topic in places if (end := stores[topic].end) is not None}
    return ArchivePlan(stores, tuple(between(places, ends, stores)[0]), tuple(losses))


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
