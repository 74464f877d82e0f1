"""Plans of topics on a broker."""

from __future__ import annotations

import asyncio
import re
import uuid
from typing import Any, NoReturn

import attrs
import pytest

from jmsaio.codec.schemas.reading import schema_reader
from jmsaio.codec.schemas.writing import schema_writer
from jmsaio.config import load
from jmsaio.errors import ConfigurationError, DataLossError, NotFoundError
from jmsaio.model.destinations import Queue, Resolved, Topic, resolve
from jmsaio.model.schema import Schema
from jmsaio.model.topic_names import partition_names
from jmsaio.model.wire import WireId
from jmsaio.spark.model.place import Place
from jmsaio.spark.options.parse import SourceOptions, Use, View, parse_options
from jmsaio.spark.options.table import LATEST
from jmsaio.spark.planning.batch_planning import (
    find_schemas,
    find_stores,
    first_since,
    list_sources,
    plan_batch,
    source_of,
    start_places,
)
from jmsaio.spark.planning.plan import Stored
from jmsaio.transport.base import StartPosition
from jmsaio.transport.registry import open_transport
from tests.spark.seam import HANG, Seam, source
from tests.support.broker import TestBroker

SEVEN = [f"m{number}" for number in range(7)]


def pending(topic: str) -> tuple[Resolved, SourceOptions]:
    """What a queue has not acknowledged."""
    found, options = source(topic, view=View.PENDING)
    return attrs.evolve(found, subscription="jms-queue"), options


async def test_the_ranges_of_a_topic_hold_its_messages(seam: Seam) -> None:
    topic = await seam.topic(*SEVEN)
    ranges = await plan_batch(seam.transport, *source(topic, max_entries_per_partition=3))
    assert [one.entries() for one in ranges] == [2, 2, 3]
    assert await seam.all_texts(ranges) == SEVEN
    await seam.send(topic, "later")
    assert await seam.all_texts(ranges) == SEVEN


async def test_partitions_are_cut_by_their_backlog(seam: Seam) -> None:
    topic = await seam.topic(partitions=3)
    names = partition_names(topic, 3)
    await seam.send(names[0], *SEVEN)
    await seam.send(names[2], "x")
    ranges = await plan_batch(seam.transport, *source(topic, min_partitions=4))
    assert [one.topic for one in ranges] == [names[0]] * 4 + [names[2]]
    assert await seam.all_texts(ranges) == [*SEVEN, "x"]


async def test_an_empty_topic_has_no_ranges(seam: Seam) -> None:
    assert await plan_batch(seam.transport, *source(await seam.topic())) == []


async def test_a_topic_that_does_not_exist_is_told(seam: Seam) -> None:
    source = resolve(Topic(f"absent-{uuid.uuid4()}"))
    admin = seam.transport.admin
    assert admin is not None
    with pytest.raises(NotFoundError, match=rf"absent-.* does not exist at {re.escape(admin.address)}: check its name"):
        await list_sources(seam.transport, source)
    assert await list_sources(seam.transport, source, may_miss=True) == []
    assert await find_stores(seam.transport, source.topics) == {}


async def test_several_destinations_and_patterns_are_listed_with_their_partitions(seam: Seam) -> None:
    first, second = await seam.topic(), await seam.topic(partitions=2)
    names = [first, *partition_names(second, 2)]
    assert await list_sources(seam.transport, resolve(Topic(f"multi:{first},{second}"))) == names
    either = "|".join(name.rpartition("/")[2] for name in (first, second))
    assert sorted(await list_sources(seam.transport, resolve(Queue(f"regex:{either}")))) == sorted(names)


async def test_given_places_bound_the_messages(seam: Seam) -> None:
    topic = await seam.topic()
    places = [Place(each.ledger, each.entry) for each in await seam.send(topic, *SEVEN)]
    bounds = source(topic, starting_offsets={topic: places[2]}, ending_offsets={topic: places[5]})
    assert await seam.all_texts(await plan_batch(seam.transport, *bounds)) == SEVEN[2:5]
    assert await plan_batch(seam.transport, *source(topic, starting_offsets=LATEST)) == []


@pytest.mark.parametrize("bound", ["starting_offsets", "ending_offsets"])
@pytest.mark.parametrize("place", [Place(2**40, 0), None])
async def test_a_place_that_is_not_stored_is_data_loss(
    seam: Seam, bound: str, place: Place | None, caplog: pytest.LogCaptureFixture
) -> None:
    topic = await seam.topic()
    last = (await seam.send(topic, *SEVEN))[-1]
    place = place or Place(last.ledger, last.entry + 2)
    with pytest.raises(DataLossError, match="failOnDataLoss") as caught:
        await plan_batch(seam.transport, *source(topic, **{bound: {topic: place}}))
    assert caught.value.topic == topic
    ranges = await plan_batch(seam.transport, *source(topic, **{bound: {topic: place}}, fail_on_data_loss=False))
    assert await seam.all_texts(ranges) == ([] if bound == "starting_offsets" else SEVEN)
    assert f"{topic}: messages from" in caplog.text


async def test_a_place_of_a_topic_that_does_not_exist_is_data_loss(seam: Seam) -> None:
    topic = await seam.topic(*SEVEN)
    with pytest.raises(DataLossError, match="absent"):
        await plan_batch(seam.transport, *source(topic, starting_offsets={f"{topic}-absent": Place(1, 1)}))


async def test_a_publish_time_is_the_place_of_the_first_message_since(seam: Seam) -> None:
    topic = await seam.topic()
    await seam.send(topic, "early", "early")
    await asyncio.sleep(0.05)
    [place, _] = await seam.send(topic, "late", "later")
    [late] = [
        row for row in await seam.rows((await plan_batch(seam.transport, *source(topic)))[0]) if row.text == "late"
    ]
    store = (await find_stores(seam.transport, [topic]))[topic]
    assert await first_since(seam.transport, topic, store, late.publish_time) == Place(place.ledger, place.entry)
    assert await first_since(seam.transport, topic, store, late.publish_time + 3_600_000) is None
    assert await first_since(seam.transport, topic, Stored((), None), 0) is None
    ranges = await plan_batch(seam.transport, *source(topic, starting_time=late.publish_time))
    assert await seam.all_texts(ranges) == ["late", "later"]
    for bound in ({"ending_time": late.publish_time}, {"ending_offsets": {topic: late.publish_time}}):
        ranges = await plan_batch(seam.transport, *source(topic, **bound))
        assert [one.entries() for one in ranges] == [2]
        assert await seam.all_texts(ranges, **bound) == ["early", "early"]
    later = source(topic, starting_time=late.publish_time + 3_600_000)
    assert await plan_batch(seam.transport, *later) == []


async def test_topics_are_asked_side_by_side_and_those_of_a_pattern_are_listed_in_one_call(
    seam: Seam, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = seam.transport.admin
    assert admin is not None
    kind, names = type(admin), [await seam.topic("x") for _ in range(3)]
    waiting = asyncio.Barrier(3)
    ask = kind.first_since

    async def all_at_once(admin: Any, topic: str, time: int) -> WireId:
        await waiting.wait()
        return await ask(admin, topic, time)

    async def count(admin: object, topic: str) -> NoReturn:
        raise AssertionError(f"{topic} is asked for its partitions")

    monkeypatch.setattr(kind, "first_since", all_at_once)
    monkeypatch.setattr(kind, "partitions", count)
    either = "|".join(name.rpartition("/")[2] for name in names)
    async with asyncio.timeout(HANG):
        ranges = await plan_batch(seam.transport, *source(f"regex:{either}", starting_time=1000))
    assert [one.topic for one in ranges] == sorted(names)


async def test_each_topic_has_bounds_of_its_own(seam: Seam) -> None:
    first, second, third = [await seam.topic(*SEVEN[:2]) for _ in range(3)]
    await asyncio.sleep(0.05)
    time = int(seam.transport.clock.now() * 1000)
    await asyncio.sleep(0.05)
    for name in (first, second, third):
        await seam.send(name, "late")
    bounds: dict[str, Any] = {"starting_offsets": {first: time, second: LATEST}, "ending_offsets": {third: time}}
    ranges = await plan_batch(seam.transport, *source(f"multi:{first},{second},{third}", **bounds))
    assert await seam.all_texts(ranges, **bounds) == ["late", *SEVEN[:2]]


async def test_a_time_is_that_of_all_partitions_and_a_place_of_one(seam: Seam) -> None:
    topic = await seam.topic(*SEVEN, partitions=2)
    assert await plan_batch(seam.transport, *source(topic, starting_offsets={topic: 2**50})) == []
    for bound in ({topic: Place(1, 1)}, {f"{topic}-absent": 5}):
        with pytest.raises(DataLossError, match="there is no such topic, or partition"):
            await plan_batch(seam.transport, *source(topic, starting_offsets=bound))
        with pytest.raises(DataLossError, match="there is no such topic, or partition"):
            await start_places(
                seam.transport, source(topic, starting_offsets=bound)[1],
                await find_stores(seam.transport, partition_names(topic, 2)),
            )  # fmt: skip


async def test_what_a_queue_has_acknowledged_is_not_pending(seam: Seam) -> None:
    topic = await seam.topic()
    admin = seam.transport.admin
    assert admin is not None
    await admin.create_subscription(topic, "jms-queue", StartPosition.EARLIEST)
    places = await seam.send(topic, *SEVEN)
    await admin.advance(topic, "jms-queue", places[3])
    queue, view = pending(topic)
    ranges = await plan_batch(seam.transport, queue, view)
    assert await seam.all_texts(ranges) == SEVEN[4:]
    await admin.advance(topic, "jms-queue", places[-1])
    assert await plan_batch(seam.transport, queue, view) == []
    with pytest.raises(NotFoundError):
        await plan_batch(seam.transport, attrs.evolve(queue, subscription="absent"), view)


async def test_without_administration_nothing_is_planned(pulsar_broker: TestBroker) -> None:
    transport = await open_transport(load(pulsar_broker.service_url, use_pulsar_admin=False))
    with pytest.raises(ConfigurationError, match=r"usePulsarAdmin=true and webServiceUrl"):
        await plan_batch(transport, *source("a"))
    await transport.aclose(HANG)


def test_a_queue_has_the_subscription_of_its_name_or_of_the_configuration() -> None:
    for queue, subscription in (("orders:audit", "audit"), ("orders", "jms-queue")):
        options = parse_options({"url": "pulsar://h:1", "queue": queue, "view": "pending"}, Use.READ)
        found = source_of(options, options.configuration())
        assert found == attrs.evolve(resolve(Queue(queue)), subscription=subscription)


def record(*names: str) -> Schema:
    """A version of a record."""
    fields = [{"name": name, "type": ["null", "int"], "default": None} for name in names]
    return Schema("AVRO", {"type": "record", "name": "R", "fields": fields})


async def schemas(seam: Seam, wanted: str | int, *topics: str, write: bool = False) -> list[Schema]:
    """What the option ``schema`` stands for."""
    _, options = source(f"multi:{','.join(topics)}", schema=wanted)
    return await find_schemas(options, schema_writer if write else schema_reader, seam.transport, load("memory:"))


async def test_the_schema_to_read_is_the_newest_or_a_version_of_it(seam: Seam) -> None:
    """Partitions share it, and topics may have the same."""
    one, other = await seam.topic(partitions=2), await seam.topic()
    for versions, topic in ((record("a"), record("a", "b")), one), ((record("a", "b"),), other):
        for version in versions:
            await seam.send(topic, "", schema=version)
    assert await schemas(seam, "latest", one) == await schemas(seam, 1, one) == [record("a", "b")]
    assert await schemas(seam, 0, one) == await schemas(seam, 0, one, write=True) == [record("a")]
    assert await schemas(seam, "latest", one, other) == [record("a", "b")]
    assert await schemas(seam, "auto", one, other) == [record("a", "b"), record("a"), record("a", "b")]
    with pytest.raises(ConfigurationError, match=f"schema = '0': the topics {one} and {other} have different schemas"):
        await schemas(seam, 0, one, other)
    with pytest.raises(ConfigurationError, match=f"schema = '7': that schema of topic {other} does not exist; leave"):
        await schemas(seam, 7, other)


async def test_a_schema_that_can_not_be_used_is_refused(seam: Seam) -> None:
    plain, long = await seam.topic("text"), await seam.topic()
    await seam.send(long, "", schema=Schema("JSON", '"long"'))
    with pytest.raises(ConfigurationError, match=f"schema = 'latest': that schema of topic {plain} does not exist"):
        await schemas(seam, "latest", plain)
    assert await schemas(seam, "auto", plain) == []
    _, options = source(long, schema="latest")
    with pytest.raises(ConfigurationError, match="is JSON, whose bodies are not decoded; leave the option out, or"):
        await find_schemas(options, lambda schema: None, seam.transport, load("memory:"))
    with pytest.raises(ConfigurationError, match="only STRING, AVRO or JSON"):
        await find_schemas(options, lambda schema: schema_writer(Schema("INT64")), seam.transport, load("memory:"))
    with pytest.raises(ConfigurationError, match="schema = 'latest': no topic matches yet"):
        _, options = source(f"regex:public/default/{uuid.uuid4()}", schema="latest")
        await find_schemas(options, schema_reader, seam.transport, load("memory:"))
