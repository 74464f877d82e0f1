"""Records to senders, and what became of them."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Iterator

import attrs
import httpx
import pyarrow as pa
import pytest

from jmsaio.config import Configuration, load
from jmsaio.errors import (
    ConfigurationError,
    InvalidDestinationError,
    MessageFormatError,
    MessageTooLargeError,
    SendError,
    TransportError,
)
from jmsaio.model.wire import OutgoingRecord
from jmsaio.spark import worker as workers
from jmsaio.spark.arrow.records import OutgoingRow
from jmsaio.spark.options.parse import SourceOptions, Use, parse_options
from jmsaio.spark.sending import Sending, make_records, with_schema, write_batches
from jmsaio.testing import embedded_broker
from jmsaio.transport.base import ReaderOptions, StartPosition, Transport
from jmsaio.transport.registry import open_transport
from jmsaio.transport.sending import longest_wait
from tests.spark.seam import Breakable
from tests.spark.use import backlog, deduplicate, receive, receive_values
from tests.support.broker import TestBroker

PREFIX = "persistent://public/default/"


@pytest.fixture
def configuration() -> Configuration:
    return load(f"memory://{uuid.uuid4()}")


@pytest.fixture
async def transport(configuration: Configuration) -> AsyncIterator[Transport]:
    transport = await open_transport(configuration)
    yield transport
    await transport.aclose(5)


def rows(*texts: str, to: str, first: int = 0) -> Iterable[OutgoingRow]:
    for number, text in enumerate(texts, first):
        yield OutgoingRow(to, OutgoingRecord(text.encode(), {}), number)


async def keep(transport: Transport, *topics: str) -> None:
    """Create topics that keep what is sent to them."""
    assert transport.admin is not None
    for topic in topics:
        await transport.admin.create_subscription(PREFIX + topic, "keeps", StartPosition.EARLIEST)


async def stored(transport: Transport, topic: str) -> list[bytes | None]:
    reader = await transport.open_reader(ReaderOptions(PREFIX + topic, load("memory:").consumer))
    found: list[bytes | None] = []
    while not await reader.at_end():
        found += [record.payload for record in await reader.read(100, 5)]
    await reader.aclose(5)
    return found


async def test_rows_of_several_destinations_arrive_in_order_and_are_counted(
    transport: Transport, configuration: Configuration
) -> None:
    await keep(transport, "one", "two")
    sending = Sending(transport, configuration)
    await sending.send(rows("a", "b", to="topic://one"))
    await sending.send(rows("c", to="topic://two", first=2))
    await sending.send(rows("d", to="topic://one", first=3))
    sent = {each.topic: each for each in await sending.finish()}
    assert {topic: each.rows for topic, each in sent.items()} == {PREFIX + "one": 3, PREFIX + "two": 1}
    assert await stored(transport, "one") == [b"a", b"b", b"d"]
    assert await stored(transport, "two") == [b"c"]


async def test_a_queue_has_its_subscription_before_its_first_message(
    transport: Transport, configuration: Configuration
) -> None:
    sending = Sending(transport, configuration)
    await sending.send(
        [*rows("a", to="queue://plain"), *rows("b", to="queue://named:mine", first=1), *rows("c", to="topic://t")]
    )
    await sending.finish()
    assert transport.admin is not None
    for topic, subscriptions in {"plain": {"jms-queue": 1}, "named": {"mine": 1}, "t": {}}.items():
        found = (await transport.admin.stats(PREFIX + topic)).subscriptions
        assert {name: each.backlog for name, each in found.items()} == subscriptions


async def test_the_first_error_names_topic_row_and_cause_and_nothing_follows_it(
    transport: Transport, configuration: Configuration, caplog: pytest.LogCaptureFixture
) -> None:
    await keep(transport, "t")
    sending = Sending(transport, configuration)
    large = OutgoingRow("topic://t", OutgoingRecord(bytes(6 << 20), {}), 1)
    with pytest.raises(SendError, match=f"row 1 of this task was not sent to {PREFIX}t: ") as refused:
        await sending.send([*rows("a", to="topic://t"), large, *rows("b", to="topic://t", first=2)])
    assert isinstance(refused.value.__cause__, MessageTooLargeError)
    await sending.aclose()
    assert await stored(transport, "t") == [b"a"]
    counted = "the task failed; 1 of its rows are stored, 0 of them as duplicates, and 0 in doubt"
    assert [record.message for record in caplog.records] == [f"{PREFIX}t: {counted}"]


async def test_an_error_that_comes_later_fails_the_next_row_and_the_end(
    transport: Transport, configuration: Configuration
) -> None:
    sending = Sending(transport, configuration)
    await sending.send(rows("a", to="topic://gone"))
    assert transport.admin is not None
    await transport.admin.terminate_topic(PREFIX + "gone")
    with pytest.raises(SendError, match="row 1 of this task"):
        await sending.send(rows("b", to="topic://gone", first=1))
        await sending.finish()
    await sending.aclose()
    await sending.aclose()


async def test_a_window_that_is_full_is_waited_for(transport: Transport, configuration: Configuration) -> None:
    sending = Sending(transport, attrs.evolve(configuration, send_window_messages=2))
    await sending.send(rows(*map(str, range(50)), to="topic://small"))
    (sent,) = await sending.finish()
    assert sent.rows == 50


async def test_no_more_senders_are_open_than_the_configuration_allows(
    transport: Transport, configuration: Configuration
) -> None:
    sending = Sending(transport, attrs.evolve(configuration, max_num_of_producers=2))
    for number in range(5):
        await sending.send(rows("x", to=f"topic://many-{number}"))
        assert transport.admin is not None
        open_now = [(await transport.admin.stats(f"{PREFIX}many-{each}")).producers for each in range(number + 1)]
        assert sum(open_now) == min(number + 1, 2)
    assert [each.rows for each in await sending.finish()] == [1] * 5


async def test_several_topics_at_once_are_refused_with_the_row(
    transport: Transport, configuration: Configuration
) -> None:
    sending = Sending(transport, configuration)
    with pytest.raises(InvalidDestinationError, match="row 0: queue://multi:a,b stands for several topics"):
        await sending.send(rows("a", to="queue://multi:a,b"))
    with pytest.raises(ConfigurationError, match=r"row 0: .*did you mean 'consumerConfig.useSchema'"):
        await sending.send(rows("a", to="queue://a?consumerConfig.useShema=true"))


def numbered(producer: str, count: int) -> list[OutgoingRow]:
    return [
        OutgoingRow("topic://once", OutgoingRecord(b"%d" % number, {}, sequence_id=number), number, producer)
        for number in range(count)
    ]


async def test_rows_that_are_sent_again_are_left_out_where_the_broker_deduplicates() -> None:
    with embedded_broker() as broker:
        broker.deduplicate()
        configuration = load(broker.url)
        transport = await open_transport(configuration)
        for duplicates in (0, 5):
            sending = Sending(transport, configuration)
            await sending.send(numbered("archive", 5))
            (sent,) = await sending.finish()
            assert (sent.rows, sent.duplicates, sent.producers) == (5, duplicates, ("archive",))
        sending = Sending(transport, configuration)
        await sending.send([*numbered("archive", 7), *numbered("other", 2)])
        assert {each.producers: (each.rows, each.duplicates) for each in await sending.finish()} == {
            ("archive",): (7, 5), ("other",): (2, 0),
        }  # fmt: skip
        await transport.aclose(5)


async def test_deduplication_is_refused_where_the_broker_has_none(
    transport: Transport, configuration: Configuration
) -> None:
    with pytest.raises(ConfigurationError, match=f"dedup=columns: the broker does not deduplicate {PREFIX}once; "):
        await Sending(transport, configuration).send(numbered("archive", 1))


async def test_a_destination_that_does_not_say_what_it_is_is_refused_with_the_row(
    transport: Transport, configuration: Configuration
) -> None:
    sending = Sending(transport, configuration)
    with pytest.raises(InvalidDestinationError, match="row 7: destination 'orders' must be written queue://name or"):
        await sending.send(rows("a", to="orders", first=7))


async def test_a_row_goes_to_the_partition_that_it_names_or_is_refused(
    transport: Transport, configuration: Configuration
) -> None:
    assert transport.admin is not None
    await transport.admin.create_topic(f"{PREFIX}parts", 3)
    for index in range(3):
        await keep(transport, f"parts-partition-{index}")
    sending = Sending(transport, configuration)
    records = [OutgoingRecord(b"%d" % index, {}, sticky_key=index) for index in (2, 0, 1, 2, 3)]
    with pytest.raises(SendError, match=r"row 4 .*there is no partition 3: the topic has 3"):
        await sending.send(OutgoingRow("topic://parts", record, number) for number, record in enumerate(records))
    await sending.finish()
    assert [await stored(transport, f"parts-partition-{index}") for index in range(3)] == [[b"0"], [b"1"], [b"2", b"2"]]


async def test_rows_wait_for_a_broker_that_is_unreachable(breakable: Breakable) -> None:
    transport, configuration = breakable.transport, load("memory:?producerConfig.sendTimeoutMs=1000")
    await keep(transport, name := str(uuid.uuid4()))
    sending = Sending(transport, configuration, outage_timeout=60.0)
    with breakable.outage():
        opening = asyncio.create_task(sending.send(rows("a", to=f"topic://{name}")))
        done, _ = await asyncio.wait([opening], timeout=2)
        assert not done
    await opening
    with breakable.outage():
        await sending.send(rows("b", to=f"topic://{name}", first=1))
        await asyncio.sleep(2)
    assert [each.rows for each in await sending.finish()] == [2]
    # A row whose confirmation an outage cut off is sent again.
    assert set(await stored(transport, name)) == {b"a", b"b"}


async def test_rows_that_nobody_confirmed_are_counted_as_in_doubt(
    breakable: Breakable, broker_kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    transport, configuration = breakable.transport, load("memory:")
    await keep(transport, name := str(uuid.uuid4()))
    sending = Sending(transport, attrs.evolve(configuration, close_timeout=0.5))
    await sending.send(rows("a", to=f"topic://{name}"))
    [outlet] = sending._outlets.values()
    while not outlet.rows:
        await asyncio.sleep(0.05)
    with breakable.outage():
        await sending.send(rows("b", "c", to=f"topic://{name}", first=1))
        await sending.aclose()
    doubtful = 0 if broker_kind == "memory" else 2  # the embedded broker knows that it has not stored them
    assert f"1 of its rows are stored, 0 of them as duplicates, and {doubtful} in doubt" in caplog.text


@pytest.mark.parametrize(("configured", "awaited"), [(0, 3600.0), (30_000, 3600.0), (7_200_000, 7200.0)])
async def test_an_outage_that_may_be_long_bounds_every_wait_for_confirmations(
    transport: Transport, configured: int, awaited: float
) -> None:
    configuration = load(f"memory:?producerConfig.sendTimeoutMs={configured}")
    sending = Sending(transport, configuration, outage_timeout=3600.0)
    assert longest_wait(sending.configuration) == awaited
    assert sending.configuration.producer.send_timeout == awaited


def options_of(url: str) -> SourceOptions:
    """Options of a write to one queue, on a broker in this process, which users can't name."""
    options = parse_options({"url": "pulsar://localhost:6650", "queue": "written"}, Use.WRITE)
    return attrs.evolve(options, connection={"brokerServiceUrl": url})


def batch(*texts: str | None, **columns: list[object]) -> pa.RecordBatch:
    """Rows with texts."""
    return pa.RecordBatch.from_pydict({"text": pa.array(texts, pa.string()), **columns})


def test_the_rows_of_all_batches_are_sent_and_counted() -> None:
    with embedded_broker() as broker:
        sent = write_batches(options_of(broker.url), iter([batch("a", "b"), batch("c")]))
        assert [(each.topic, each.rows) for each in sent] == [("persistent://public/default/written", 3)]
        assert write_batches(options_of(broker.url), iter(())) == ()
        workers.forget(options_of(broker.url))


def test_a_write_needs_no_rest_interface(pulsar_broker: TestBroker) -> None:
    connection = {"brokerServiceUrl": pulsar_broker.service_url, "jms.usePulsarAdmin": "false"}
    options = attrs.evolve(options_of(""), connection=connection)
    assert workers.worker(options).transport.admin is None
    assert [each.rows for each in write_batches(options, iter([batch("a", "b")]))] == [2]
    workers.forget(options)


def test_a_row_that_is_refused_has_its_number_in_the_task() -> None:
    with embedded_broker() as broker:
        bad = batch("a", "b", JMSPriority=[None, 10])
        with pytest.raises(MessageFormatError, match="row 3: JMSPriority must be 0 to 9"):
            write_batches(options_of(broker.url), iter([batch("a", "b", JMSPriority=[None, 9]), bad]))
        workers.forget(options_of(broker.url))


def test_the_task_after_one_that_lost_its_connection_connects_anew() -> None:
    options = options_of(f"memory://{uuid.uuid4()}")

    def failing() -> Iterator[pa.RecordBatch]:
        yield batch("a")
        raise TransportError("the connection is lost")

    before = workers.worker(options)
    write_batches(options, iter([batch("a")]))
    assert workers.worker(options) is before
    with pytest.raises(TransportError, match="is lost"):
        write_batches(options, failing())
    assert workers.worker(options) is not before
    workers.forget(options)


def test_each_maker_of_records_has_message_ids_of_its_own() -> None:
    options = options_of(f"memory://{uuid.uuid4()}")
    rows = [
        next(make_records(options, batch("a").schema, load(options.connection)).records(batch("a"), 1)) for _ in "ab"
    ]
    assert len({row.record.properties["JMSMessageId"] for row in rows}) == 2
    assert {row.destination for row in rows} == {"queue://written"}


def test_a_table_that_can_not_be_written_is_refused() -> None:
    options = options_of(f"memory://{uuid.uuid4()}")
    with pytest.raises(ConfigurationError, match="there is no column 'txt' to write"):
        make_records(options, pa.schema([("txt", pa.string())]), load(options.connection))


def test_values_are_sent_with_the_schema_of_their_column_or_of_the_topic(url: str, name: Callable[[str], str]) -> None:
    """The first write registers it, the second one finds it, also where a column is missing that has a default."""
    queue = name("values")
    given = parse_options({"url": "pulsar://h", "queue": queue, "schema": "avro"}, Use.WRITE)
    given = attrs.evolve(given, connection={"brokerServiceUrl": url})
    values = pa.array([{"item": "tea", "qty": 2}, None], pa.struct([("item", pa.string()), ("qty", pa.int32())]))
    first = pa.RecordBatch.from_pydict({"value": values})
    latest = attrs.evolve(given, schema="latest")
    few = pa.RecordBatch.from_pydict({"value": pa.array([{"item": "coffee"}])})
    for options, batch in (given, first), (latest, few):
        chosen = with_schema(options, batch.schema)
        assert chosen.value_schema is not None and chosen.value_schema.type == "AVRO"
        assert [each.rows for each in write_batches(chosen, iter([batch]))] == [batch.num_rows]
    assert receive_values(url, queue, 3) == [{"item": "tea", "qty": 2}, None, {"item": "coffee", "qty": None}]
    wrong = pa.RecordBatch.from_pydict({"value": pa.array([{"itm": "x"}])})
    with pytest.raises(MessageFormatError, match=r"row 0: column value = \{'itm': 'x'\}: the body does not fit"):
        write_batches(with_schema(latest, wrong.schema), iter([wrong]))
    workers.forget(latest)


@pytest.mark.parametrize("dedup", ["off", "columns"])
def test_a_task_that_fails_after_some_sends_repeats_those_and_no_others(
    pulsar_broker: TestBroker, name: Callable[[str], str], dedup: str
) -> None:
    queue = name("failing-task")
    url = f"{pulsar_broker.web_service_url}/admin/v2/persistent/public/default/{queue}"
    httpx.put(url, content="", timeout=30).raise_for_status()
    deduplicate(pulsar_broker, queue)  # without an identity of the rows it has no effect
    given = {"url": pulsar_broker.url, "queue": queue, "dedup": dedup, "producerConfig.batchingEnabled": "false"}
    options = parse_options(given, Use.WRITE)
    identity = ("dedup_producer", "dedup_sequence") if dedup == "columns" else ()
    texts = [str(number) for number in range(60)]

    def rows(fails: bool) -> Iterator[pa.RecordBatch]:
        for first in range(0, len(texts), 10):
            if fails and first == 30:
                end = time.monotonic() + 60
                while not httpx.get(f"{url}/stats").json()["msgInCounter"] and time.monotonic() < end:
                    time.sleep(0.05)
                raise ZeroDivisionError
            values: list[list[object]] = [["job"] * 10, list(range(first, first + 10))]
            columns = dict(zip(identity, values, strict=False))
            yield batch(*texts[first : first + 10], **columns)

    with pytest.raises(ZeroDivisionError):
        write_batches(options, rows(fails=True))
    sent = backlog(pulsar_broker, queue, "jms-queue")
    (done,) = write_batches(options, rows(fails=False))
    assert 0 < sent <= 30
    repeated = sent if dedup == "off" else 0
    assert (done.rows, done.duplicates) == (60, sent - repeated)
    found = receive(pulsar_broker.url, queue, 60 + repeated)
    assert [message.text for message in found] == [*texts[:repeated], *texts]
    assert backlog(pulsar_broker, queue, "jms-queue") == 0
    workers.forget(options)
