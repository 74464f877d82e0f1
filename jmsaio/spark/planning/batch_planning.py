"""State of the topics to read, from the broker, and the ranges for tasks."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

import attrs

from jmsaio.config import Configuration
from jmsaio.errors import (
    ConfigurationError,
    IllegalArgumentError,
    InvalidDestinationError,
    MessageFormatError,
    NotFoundError,
)
from jmsaio.model.destinations import Resolved, resolve
from jmsaio.model.schema import Schema
from jmsaio.model.topic_names import split_partition
from jmsaio.spark.model.place import Place
from jmsaio.spark.options.parse import SourceOptions, View
from jmsaio.spark.options.table import LATEST, SCHEMAS
from jmsaio.spark.options.values import Use, refuse
from jmsaio.spark.planning.plan import (
    Stored,
    beyond,
    locate,
    pending,
    split,
    stored,
    whole,
)
from jmsaio.spark.planning.ranges import BEGINNING, Loss, Range
from jmsaio.spark.planning.tolerance import report_loss
from jmsaio.transport.base import Admin, Transport
from jmsaio.transport.subscriptions import list_matching, list_partitions
from jmsaio.transport.waiting import together

T = TypeVar("T")
#: Topics requested at the same time: a broker can't answer for thousands at once.
_AT_ONCE: Final = 16
_GONE: Final = "there is no such topic, or partition"
_WAITING: Final = "it is not stored yet, or waits for the end of a transaction"


def source_of(options: SourceOptions, configuration: Configuration) -> Resolved:
    if options.destination is None:
        raise InvalidDestinationError("a reader needs a destination: set the option queue or topic")
    source = resolve(options.destination, configuration.system_namespace)
    return attrs.evolve(source, subscription=configuration.queue_subscription(source.subscription))


def admin_of(transport: Transport) -> Admin:
    if transport.admin is None:
        reason = "the broker's REST interface tells what topics store; set jms.usePulsarAdmin=true and webServiceUrl"
        raise ConfigurationError(reason, key="jms.usePulsarAdmin")
    return transport.admin


async def list_sources(
    transport: Transport, source: Resolved, *, may_miss: bool = False, known: Container[str] = ()
) -> list[str]:  # fmt: skip
    """Return the full names of topics without partitions, and of partitions; ``known`` topics had none before."""
    admin = admin_of(transport)
    if source.pattern is not None:
        return await list_matching(admin, source.pattern)
    listed = await for_each([topic for topic in source.topics if topic not in known], partial(list_partitions, admin))
    found = {topic: listed.get(topic, [topic]) for topic in source.topics}
    missing = [topic for topic, names in found.items() if not names]
    if missing and not may_miss:
        text = f"topic {', '.join(missing)} does not exist at {admin.address}: check its name and webServiceUrl"
        raise NotFoundError(f"{text}, or send a message to it first")
    return list(dict.fromkeys(itertools.chain(*found.values())))


async def for_each(topics: Iterable[str], call: Callable[[str], Awaitable[T]]) -> dict[str, T]:
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(topic: str) -> T:
        async with turns:
            return await call(topic)

    names = list(topics)
    return dict(zip(names, await together(map(one, names)), strict=True))


async def find_schemas(
    options: SourceOptions, use: Callable[[Schema], object], transport: Transport, configuration: Configuration
) -> list[Schema]:  # fmt: skip
    """Check that the destination exists; return the schemas that the option ``schema`` stands for, the newest first."""
    wanted, admin = options.schema, admin_of(transport)
    parts = await list_sources(transport, source_of(options, configuration))
    if wanted is None:
        return []
    found = await for_each(dict.fromkeys(split_partition(part)[0] for part in parts), partial(_schemas, admin, wanted))
    if wanted in SCHEMAS[Use.READ]:
        return list(itertools.chain.from_iterable(found.values()))
    topic_of = {(*versions[:1],): topic for topic, versions in found.items()}
    if len(topic_of) != 1:
        why = f"the topics {' and '.join([*topic_of.values()][:2])} have different schemas: use them one by one"
        raise refuse("schema", str(wanted), why if topic_of else "no topic matches yet")
    ((schemas, topic),) = topic_of.items()
    try:
        if schemas and use(*schemas) is not None:
            return [*schemas]
        why = f"is {schemas[0].type}, whose bodies are not decoded" if schemas else "does not exist"
    except (IllegalArgumentError, MessageFormatError) as error:
        why = f"can't be used: {error}"
    raise refuse("schema", str(wanted), f"that schema of topic {topic} {why}; leave the option out, or write another")


async def _schemas(admin: Admin, wanted: str | int, topic: str) -> list[Schema]:
    if isinstance(wanted, str):
        return [*reversed(await admin.schemas(topic))]
    with suppress(NotFoundError):
        return [await admin.schema(topic, wanted)]
    return []


async def find_stores(transport: Transport, topics: Iterable[str]) -> dict[str, Stored]:
    found = await for_each(topics, partial(_find_store, transport))
    return {topic: store for topic, store in found.items() if store is not None}


async def _find_store(transport: Transport, topic: str) -> Stored | None:
    try:
        log = await admin_of(transport).log(topic)
    except (NotFoundError, InvalidDestinationError):  # deleted, and perhaps created again with partitions
        return None
    return stored(log, None if log.is_readable_known else await transport.end(topic))


async def first_since(transport: Transport, topic: str, store: Stored, time: int) -> Place | None:
    """Return the first stored entry published at ``time`` (ms since the epoch) or later; None without one."""
    if store.end is None or store.first >= store.end:
        return None
    first = await admin_of(transport).first_since(topic, time)
    found = store.normal(Place(first.ledger, first.entry))
    return found if found < store.end else None


async def plan_batch(transport: Transport, source: Resolved, options: SourceOptions) -> list[Range]:
    """Return the ranges of a batch: of messages that are readable now, unless the options end it earlier."""
    stores = await find_stores(transport, await list_sources(transport, source))
    starts = await start_places(transport, options, stores)

    async def one(topic: str) -> Range | None:
        end = await _end(transport, topic, stores[topic], options)
        found = whole(topic, stores[topic], starts[topic], end) if topic in starts else None
        if found is None or options.view is not View.PENDING:
            return found
        assert source.subscription is not None
        return pending(found, await admin_of(transport).cursor(topic, source.subscription))

    ranges = [found for found in (await for_each(stores, one)).values() if found is not None]
    return split(ranges, options.min_partitions, options.max_entries_per_partition)


async def start_places(
    transport: Transport, options: SourceOptions, stores: Mapping[str, Stored]
) -> dict[str, Place]:  # fmt: skip
    """Return the start of each topic by name; a topic that never had a message is left out."""
    _report_missing(options, stores)
    places = await for_each(stores, lambda topic: _start(transport, topic, stores[topic], options))
    ends = {topic: None if store.is_unused else store.end for topic, store in stores.items()}  # published later
    return {topic: place for topic in places if (place := places[topic] or ends[topic]) is not None}


def _report_missing(options: SourceOptions, stores: Iterable[str]) -> None:
    """Report bounds for topics that do not exist. A time or a word can also apply to all partitions of a topic."""
    known = {*stores, *(split_partition(topic)[0] for topic in stores)}
    for bound in (options.starting_offsets, options.ending_offsets):
        for topic, mark in () if isinstance(bound, str) else bound.items():
            if topic not in (stores if isinstance(mark, Place) else known):
                report_loss(Loss(topic, mark if isinstance(mark, Place) else BEGINNING, None, _GONE), options)


async def _start(transport: Transport, topic: str, store: Stored, options: SourceOptions) -> Place | None:
    mark = options.start_of(topic)
    if isinstance(mark, int):
        return await first_since(transport, topic, store, mark)
    if isinstance(mark, str):
        return None if store.is_unused else store.end if mark == LATEST else store.first
    place, loss = locate(topic, mark, store)
    if loss is not None:
        report_loss(loss, options)
    return place


async def _end(transport: Transport, topic: str, store: Stored, options: SourceOptions) -> Place | None:
    mark = options.end_of(topic)
    if isinstance(mark, int):
        return await first_since(transport, topic, store, mark)
    if not isinstance(mark, Place):
        return None
    place, loss = locate(topic, mark, store)
    loss = loss or beyond(topic, place, store, _WAITING)
    if loss is not None:
        report_loss(loss, options)
    return place
