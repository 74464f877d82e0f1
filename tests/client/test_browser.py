"""Queue browsers (Jakarta Messaging 3.1, 4.1.6 QueueBrowser)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import cast

import pytest

import jmsaio
from jmsaio.client.delivery.filter import Filter
from jmsaio.codec import RecordSource
from jmsaio.model.wire import OutgoingRecord, ReceivedRecord, WireId
from jmsaio.transport.base import Reader, ReaderOptions, Receiver, SenderOptions, StartPosition
from jmsaio.transport.clock import LoopTimers
from jmsaio.transport.memory.reader import MemoryReader
from tests.client.helpers import fill, take, texts
from tests.kit.inside import admin_of, inbox_of, transport_of
from tests.kit.records import tell_each

Name = Callable[[str], str]


async def test_a_browser_shows_what_is_unconsumed_and_takes_nothing(
    session: jmsaio.Session, connection: jmsaio.Connection, name: Name
) -> None:
    queue = session.create_queue(name("browser"))
    async with session.create_producer(queue) as producer:
        for number in range(10):
            await producer.send(str(number), properties={"n": number})
    async with session.create_consumer(queue) as consumer:
        for _ in range(3):
            await consumer.receive(timeout=20)
    await asyncio.sleep(0.3)
    browser = await session.create_browser(queue)
    some = await session.create_browser(queue, "n >= 8")
    assert [message.get_body(str) async for message in browser] == [str(number) for number in range(3, 10)]
    assert [message.get_body(str) async for message in some] == ["8", "9"]
    enumeration = await browser.get_enumeration()
    assert [message.get_body(str) async for message in browser.stream()] == [str(number) for number in range(3, 10)]
    with pytest.raises(jmsaio.InvalidDestinationError):
        await session.create_browser(session.create_topic("t"))  # type: ignore[arg-type]  # what a caller may do
    async with session.create_consumer(queue) as consumer:
        messages = [await consumer.receive(timeout=20) for _ in range(7)]
        assert all(message and message.get_int_property("JMSXDeliveryCount") <= 2 for message in messages)
    await session.close()
    assert [message.get_body(str) async for message in enumeration] == [str(number) for number in range(3, 10)]
    with pytest.raises(jmsaio.ObjectClosedError):
        await browser.get_enumeration()


async def browsed(connection: jmsaio.Connection, queue: jmsaio.Queue, selector: str | None = None) -> list[str | None]:
    async with connection.create_session() as session, session.create_browser(queue, selector) as browser:
        return [message.get_body(str) async for message in browser]


async def test_an_empty_selector_is_none(session: jmsaio.Session, name: Name) -> None:
    async with session.create_browser(jmsaio.Queue(name("empty")), "") as browser:
        assert browser.message_selector is None


async def test_what_was_acknowledged_just_now_does_not_show(
    session: jmsaio.Session, connection: jmsaio.Connection, name: Name
) -> None:
    """A browser that is opened after the last receive sees an empty queue."""
    queue = session.create_queue(name("read-empty"))
    await fill(connection, queue, 20)
    async with session.create_consumer(queue) as consumer, session.create_browser(queue) as browser:
        for left in (10, 0):
            for _ in range(10):
                assert await consumer.receive(timeout=20) is not None
            assert len(await browser.get_enumeration()) == left


async def test_the_limit_counts_what_is_examined(url: str, name: Name) -> None:
    queue = jmsaio.Queue(name("limited"))
    async with jmsaio.ConnectionFactory(url) as factory:
        first = await factory.create_connection()
        async with first.create_session() as session, session.create_producer(queue) as producer:
            for number in range(10):
                await producer.send(str(number), properties={"n": number})
        factory.queue_browser_read_max = 4
        second = await factory.create_connection()
        factory.queue_browser_read_max = -2
        third = await factory.create_connection()
        for connection, limit, seen in ((first, 0, 10), (second, 4, 4), (third, -2, 10)):
            assert connection.configuration.queue_browser_read_max == limit
            assert await browsed(connection, queue) == [str(number) for number in range(seen)]
            assert await browsed(connection, queue, "n >= 3") == [str(number) for number in range(3, seen)]
        factory.queue_browser_read_max = 1
        async with await factory.create_context() as context:
            async with await context.create_browser(queue) as browser:
                assert [message.get_body(str) async for message in browser.stream()] == ["0"]


async def test_a_stream_that_is_left_closes_its_reader(session: jmsaio.Session, name: Name) -> None:
    queue = session.create_queue(name("left"))
    async with session.create_producer(queue) as producer:
        for number in range(5):
            await producer.send(str(number))
    browser = await session.create_browser(queue)
    stream = browser.stream()
    assert (await anext(stream)).get_body(str) == "0"
    await stream.aclose()  # type: ignore[attr-defined]  # an asynchronous generator
    admin = admin_of(session)
    async with asyncio.timeout(20):
        while set((await admin.stats(f"persistent://public/default/{queue.name}")).subscriptions) != {"jms-queue"}:
            await asyncio.sleep(0.05)


async def contents(browser: jmsaio.QueueBrowser) -> list[str | None]:
    return [message.get_body(str) async for message in browser]


async def send_raw(connection: jmsaio.Connection, topic: str, properties: dict[str, str]) -> None:
    """Send a text with properties that none of our producers would write."""
    sender = await transport_of(connection).open_sender(
        topic, SenderOptions(connection.configuration.producer, tell_each)
    )
    outcome = asyncio.get_running_loop().create_future()
    sender.send(OutgoingRecord(b"x", properties, None, 0), lambda place, error: outcome.set_result(error))
    assert await asyncio.wait_for(outcome, 20) is None
    await sender.aclose(20)


async def test_an_enumeration_survives_and_does_not_expire(url: str, name: Name) -> None:
    queue = jmsaio.Queue(name("survives"))
    expiry = 1.0 if url.startswith("memory") else 5.0  # a real broker on a busy machine needs more time to browse
    async with jmsaio.connect(url) as connection:
        session = await connection.create_session()
        producer = await session.create_producer(queue)
        for number in range(3):
            await producer.send(str(number), time_to_live=expiry)
        browser = await session.create_browser(queue)
        assert repr(browser) == f"<QueueBrowser {queue!r} selector=None>"
        enumeration = await browser.get_enumeration()
        await browser.close()
        assert len(await browser.get_enumeration()) == 3  # close has no effect
        await asyncio.sleep(expiry + 0.1)
        await producer.send("later")
        assert await contents(browser) == ["later"]  # a fresh snapshot, and nothing expired in it
        assert enumeration.next_element().get_body(str) == "0"
        await session.close()
        assert enumeration.next_element().get_body(str) == "1"
        for refused in (browser.get_enumeration, browser.stream().__anext__, browser.__aiter__().__anext__):
            with pytest.raises(jmsaio.ObjectClosedError):
                await refused()
        for read in (browser.get_queue, browser.get_message_selector):
            with pytest.raises(jmsaio.ObjectClosedError):
                read()
    assert enumeration.has_more_elements()
    assert [message.get_body(str) async for message in enumeration] == ["2"]
    with pytest.raises(IndexError, match="no more messages"):
        enumeration.next_element()


async def test_what_was_read_is_let_go(session: jmsaio.Session, name: Name) -> None:
    queue = session.create_queue(name("let-go"))
    async with session.create_producer(queue) as producer:
        for number in range(3):
            await producer.send(str(number))
    browser = await session.create_browser(queue)
    enumeration = await browser.get_enumeration()
    assert len(enumeration) == len(enumeration._messages) == 3
    message = next(enumeration)
    assert len(enumeration) == 2
    assert all(other is not message for other in enumeration._messages)


async def test_browsing_disturbs_no_one(connection: jmsaio.Connection, session: jmsaio.Session, name: Name) -> None:
    """Neither redelivery counts, nor order, nor what a consumer holds, nor subscriptions."""
    queue = session.create_queue(name("undisturbed"))
    async with connection.create_session(jmsaio.AcknowledgeMode.CLIENT) as mine:
        async with session.create_producer(queue) as producer:
            for number in range(6):
                await producer.send(str(number))
        async with mine.create_consumer(queue) as consumer:
            held = await take(consumer, 2)
            browser = await session.create_browser(queue)
            for _ in range(3):
                assert await contents(browser) == [str(number) for number in range(6)]  # also what is not acknowledged
            messages = held + await take(consumer, 4)
            assert texts(messages) == [str(number) for number in range(6)]
            assert {message.get_int_property("JMSXDeliveryCount") for message in messages} == {1}
            await messages[-1].acknowledge()
    admin = admin_of(connection)
    async with asyncio.timeout(20):
        while set((await admin.stats(f"persistent://public/default/{queue.name}")).subscriptions) != {"jms-queue"}:
            await asyncio.sleep(0.05)


async def test_partitions_and_virtual_queues(
    connection: jmsaio.Connection, session: jmsaio.Session, name: Name
) -> None:
    stem = name("virtual")
    admin = admin_of(connection)
    await admin.create_topic(f"persistent://public/default/{stem}-a", 3)
    producer = await session.create_producer()
    for letter in "abab":
        await producer.send(session.create_queue(f"{stem}-{letter}"), letter)
    for virtual in (f"multi:{stem}-a,{stem}-b", f"regex:{stem}-(a|b)", f"regex:nothing|{stem}-.*"):
        assert await contents(await session.create_browser(session.create_queue(virtual))) == list("aabb")
    assert await contents(await session.create_browser(session.create_queue(name("unknown")))) == []
    with pytest.raises(jmsaio.InvalidDestinationError, match="pattern"):
        await contents(await session.create_browser(session.create_queue("regex:(")))


async def test_what_can_t_be_read_hides_nothing(
    connection: jmsaio.Connection, session: jmsaio.Session, name: Name, caplog: pytest.LogCaptureFixture
) -> None:
    queue = session.create_queue(name("malformed"))
    producer = await session.create_producer(queue)
    await producer.send("first")
    topic, text = f"persistent://public/default/{queue.name}", {"JMSPulsarMessageType": "text"}
    await send_raw(connection, topic, {**text, "JMSExpiration": "abc", "JMSDeliveryTime": "1" * 5000})
    await send_raw(connection, topic, {"JMSPulsarMessageType": "map"})  # its body is none
    await producer.send("last")
    assert await contents(await session.create_browser(queue)) == ["first", "x", "last"]
    assert await contents(await session.create_browser(queue, "x IS NULL")) == ["first", "x", "last"]
    assert len([record for record in caplog.records if "no readable map body" in record.message]) == 2


async def test_the_clock_of_a_sender_ends_no_snapshot(
    connection: jmsaio.Connection, session: jmsaio.Session, name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A browser whose clock is behind, which is the same as senders whose clocks are ahead."""
    queue = session.create_queue(name("clock"))
    await (await session.create_producer(queue)).send("kept")
    browser = await session.create_browser(queue)
    monkeypatch.setattr(LoopTimers, "milliseconds", lambda timers: 1_000_000_000_000)
    assert await contents(browser) == ["kept"]


async def test_a_stream_reads_as_it_is_read(
    connection: jmsaio.Connection, session: jmsaio.Session, name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a queue may be larger than memory; the queue's own options hold for the reader, too."""
    asked: list[tuple[int, int]] = []
    open_reader = transport_of(connection).open_reader

    async def watched(options: ReaderOptions) -> Reader:
        reader = await open_reader(options)
        read = reader.read

        async def counted(limit: int, timeout: float) -> list[ReceivedRecord]:
            records = await read(limit, timeout)
            asked.append((len(records), options.config.receiver_queue_size))
            return records

        return cast("Reader", SimpleNamespace(read=counted, at_end=reader.at_end, aclose=reader.aclose))

    monkeypatch.setattr(type(transport_of(connection)), "open_reader", lambda transport, options: watched(options))
    queue = session.create_queue(name("large"))
    await fill(connection, queue, 600)
    browser = await session.create_browser(session.create_queue(f"{queue.name}?consumerConfig.receiverQueueSize=50"))
    stream = browser.stream()
    for number in range(10):
        assert (await anext(stream)).get_body(str) == str(number)
    read, size = zip(*asked, strict=True)
    assert 10 <= sum(read) < 300
    assert set(size) == {50}
    assert [message.get_body(str) async for message in stream] == [str(number) for number in range(10, 600)]


async def test_a_snapshot_ends_where_the_queue_ended(session: jmsaio.Session, name: Name) -> None:
    queue = session.create_queue(name("ends"))
    producer = await session.create_producer(queue)
    for number in range(3):
        await producer.send(str(number))
    stream = (await session.create_browser(queue)).stream()
    found = []
    async for message in stream:
        found.append(message.get_body(str))
        await producer.send("one for each that is read")
    assert found == ["0", "1", "2"]


async def test_a_temporary_queue_is_browsed_by_its_own_connection(url: str, session: jmsaio.Session) -> None:
    queue = await session.create_temporary_queue()
    await (await session.create_producer(queue)).send("own")
    assert await contents(await session.create_browser(queue)) == ["own"]
    async with jmsaio.connect(url) as other, other.create_session() as theirs:
        with pytest.raises(jmsaio.InvalidDestinationError, match="another connection"):
            await theirs.create_browser(queue)


async def test_without_admin_browsing_is_refused(url: str, name: Name) -> None:
    async with jmsaio.connect(url, use_pulsar_admin=False) as connection:
        with pytest.raises(jmsaio.IllegalStateError, match="usePulsarAdmin"):
            await browsed(connection, jmsaio.Queue(name("no-admin")))


async def test_a_record_without_readable_properties_is_left_out(session: jmsaio.Session, name: Name) -> None:
    """It does not end the enumeration."""

    class Unreadable:
        message_id = WireId(1, 0)

        def get(self, name: str) -> str | None:
            raise jmsaio.MalformedMessageError("not UTF-8", cast(ReceivedRecord, self))

    opened = await session.create_browser(session.create_queue(name("unreadable")))
    source = RecordSource(None, "public/default")
    assert opened._open(cast(ReceivedRecord, Unreadable()), 0, source, Filter()) is None


async def test_a_consumer_that_closes_meanwhile_does_not_end_a_browse(
    session: jmsaio.Session, connection: jmsaio.Connection, name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = session.create_queue(name("closing"))
    await fill(connection, queue, 1)
    browser = await session.create_browser(queue)
    async with session.create_consumer(queue, "x = 1") as consumer:

        async def closed(self: object, timeout: float, *, receipt: bool = False) -> None:
            raise jmsaio.ObjectClosedError("closed meanwhile")

        monkeypatch.setattr(type(inbox_of(consumer).settlement), "settle", closed)
        assert texts(list(await browser.get_enumeration())) == ["0"]
        monkeypatch.undo()


async def test_one_that_can_not_settle_ends_a_browse_and_the_wait_for_others(
    connection: jmsaio.Connection, name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []

    async def late(*_: object, **__: object) -> None:
        raise jmsaio.OperationTimeoutError("no receipt")

    async def hang(*_: object, **__: object) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("the other")

    async with connection.create_session() as session:
        queue = session.create_queue(name("settling"))
        for settle in (hang, late):
            consumer = await session.create_consumer(queue)
            receiver = inbox_of(consumer).settlement
            monkeypatch.setattr(receiver, "own", Settling(receiver.own, settle))
        browser = await session.create_browser(queue)
        with pytest.raises(jmsaio.OperationTimeoutError, match="no receipt"):
            await browser.get_enumeration()
        assert ended == ["the other"]
        monkeypatch.undo()


class Settling:
    """A receiver that settles in another way."""

    def __init__(self, receiver: Receiver, settle: Callable[..., Awaitable[None]]) -> None:
        self._receiver = receiver
        self.settle = settle

    def __getattr__(self, name: str) -> object:
        return getattr(self._receiver, name)


async def test_what_was_acknowledged_between_others_does_not_show(name: Name) -> None:
    """Another subscription keeps all of it in the topic."""
    queue = jmsaio.Queue(name("gap"))
    async with jmsaio.connect(f"memory://{name('broker')}") as connection:
        admin = admin_of(connection)
        await admin.create_subscription(f"persistent://public/default/{queue.name}", "other", StartPosition.EARLIEST)
        await fill(connection, queue, 3)
        async with connection.create_session(jmsaio.AcknowledgeMode.INDIVIDUAL) as session:
            messages = await take(await session.create_consumer(queue), 3)
            await messages[1].acknowledge()
            assert await browsed(connection, queue) == ["0", "2"]


async def test_a_message_does_not_show_before_its_delivery_time(name: Name) -> None:
    queue = jmsaio.Queue(name("later"))
    async with jmsaio.connect(f"memory://{name('broker')}") as connection, connection.create_session() as session:
        producer = await session.create_producer(queue)
        await producer.send("later", delivery_delay=600)
        await producer.send("now")
        assert await browsed(connection, queue) == ["now"]


async def kept_by_another(connection: jmsaio.Connection, queue: jmsaio.Queue, count: int) -> None:
    """Fill a queue whose topic keeps everything, since another subscription reads nothing of it."""
    admin = admin_of(connection)
    await admin.create_subscription(f"persistent://public/default/{queue.name}", "other", StartPosition.EARLIEST)
    await fill(connection, queue, count)


async def test_a_queue_that_names_its_subscription_shows_what_that_has_not_consumed(name: Name) -> None:
    queue = jmsaio.Queue(name("own"))
    async with jmsaio.connect(f"memory://{name('broker')}") as connection:
        await kept_by_another(connection, queue, 2)
        async with connection.create_session() as session, session.create_consumer(queue) as consumer:
            await take(consumer, 1)
        assert await browsed(connection, queue) == ["1"]
        assert await browsed(connection, jmsaio.Queue(f"{queue.name}:other")) == ["0", "1"]


async def test_a_queue_without_its_subscription_shows_what_was_there_when_the_browse_began(name: Name) -> None:
    """Senders' clocks may be a little ahead, but one that goes on sending does not keep it going."""
    queue, url = jmsaio.Queue(name("none")), f"memory://{name('broker')}"
    async with jmsaio.connect(url) as connection, jmsaio.connect(url, queue_subscription_name="none") as other:
        await kept_by_another(connection, queue, 2)
        async with connection.create_session() as session, connection.create_session() as sending:
            await take(await session.create_consumer(queue), 1)
            producer = await sending.create_producer(queue)
            async with other.create_session() as theirs:
                stream = (await theirs.create_browser(queue)).stream()
                found = []
                async for message in stream:
                    found.append(message.get_body(str))
                    await asyncio.sleep(2)
                    await producer.send(f"one for {found[-1]}")
                assert found == ["0", "1", "one for 0", "one for 1"]


async def test_a_browse_reads_only_what_is_behind_the_acknowledged_messages(
    name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And closes its reader, at the end as in the middle."""
    queue = jmsaio.Queue(name("behind"))
    async with jmsaio.connect(f"memory://{name('broker')}") as connection:
        await kept_by_another(connection, queue, 5)
        transport = transport_of(connection)
        open_reader, readers, read_records = transport.open_reader, list[MemoryReader](), list[ReceivedRecord]()

        async def watched(self: object, options: ReaderOptions) -> Reader:
            reader = await open_reader(options)
            readers.append(cast("MemoryReader", reader))
            read = reader.read

            async def counted(limit: int, timeout: float) -> list[ReceivedRecord]:
                read_records.extend(records := await read(limit, timeout))
                return records

            return cast("Reader", SimpleNamespace(read=counted, at_end=reader.at_end, aclose=reader.aclose))

        async with connection.create_session() as session:
            async with session.create_consumer(queue) as consumer:
                await take(consumer, 3)
            monkeypatch.setattr(type(transport), "open_reader", watched)
            browser = await session.create_browser(queue)
            assert await contents(browser) == ["3", "4"]
            assert len(read_records) == 2
            stream = browser.stream()
            await anext(stream)
            await stream.aclose()  # type: ignore[attr-defined]  # an asynchronous generator
            assert [reader.closed for reader in readers] == [True, True]


@pytest.mark.parametrize("more", [False, True])
async def test_a_reader_that_sees_no_end_and_brings_nothing_does_not_keep_a_browse_going(
    name: Name, monkeypatch: pytest.MonkeyPatch, more: bool
) -> None:
    """The end is where the broker has no message behind the last one; where it has one, that is an error."""
    queue = jmsaio.Queue(name("endless"))
    async with jmsaio.connect(f"memory://{name('broker')}", operation_timeout=0.2) as connection:
        await kept_by_another(connection, queue, 2)
        transport = transport_of(connection)
        open_reader = transport.open_reader

        async def blind(self: object, options: ReaderOptions) -> Reader:
            reader = await open_reader(options)

            async def read(limit: int, timeout: float) -> list[ReceivedRecord]:
                return await reader.read(1, timeout) if not await reader.at_end() and not (more and found) else []

            async def at_end() -> bool:
                return False

            return cast("Reader", SimpleNamespace(read=read, at_end=at_end, aclose=reader.aclose))

        monkeypatch.setattr(type(transport), "open_reader", blind)
        found = list[str | None]()
        async with connection.create_session() as session, asyncio.timeout(20):
            stream = (await session.create_browser(queue)).stream()
            with (
                pytest.raises(jmsaio.OperationTimeoutError, match="no message was received for")
                if more
                else nullcontext()
            ):
                async for message in stream:
                    found.append(message.get_body(str))
            assert found == ["0", "1"][: 1 if more else 2]


@pytest.mark.parametrize(
    ("consumed", "browsed_queue", "settled"),
    [
        ("{}-a", "{}-a", True),
        ("{}-a", "{}-b", False),
        ("multi:{}-a,{}-b", "{}-b", True),
        ("regex:{}-.", "{}-a", True),
        ("{}-a", "regex:{}-.", True),
        ("{}-a:sub", "{}-a", False),
    ],
)
async def test_a_browse_waits_for_the_acknowledgements_of_the_consumers_of_its_queue(
    name: Name, monkeypatch: pytest.MonkeyPatch, consumed: str, browsed_queue: str, settled: bool
) -> None:
    """Until the broker has them; of no others, and not of what a closed consumer left to its session."""
    tail, asked = name("settled"), []

    async def settle(timeout: float, *, receipt: bool = False) -> None:
        asked.append(receipt)

    async with jmsaio.connect(f"memory://{name('broker')}") as connection:
        for letter in "ab":
            await fill(connection, jmsaio.Queue(f"{tail}-{letter}"), 1)
        async with connection.create_session(jmsaio.AcknowledgeMode.CLIENT) as session:
            consumer = await session.create_consumer(jmsaio.Queue(consumed.replace("{}", tail)))
            receiver = inbox_of(consumer).settlement
            monkeypatch.setattr(receiver, "own", Settling(receiver.own, settle))
            await browsed(connection, jmsaio.Queue(browsed_queue.replace("{}", tail)))
            assert asked == ([True] if settled else [])
            monkeypatch.undo()


async def test_the_topics_of_a_pattern_show_in_the_order_of_their_names(
    connection: jmsaio.Connection, session: jmsaio.Session, name: Name
) -> None:
    """The pattern may have slashes."""
    stem = name("ordered")
    for letter in "dbca":
        await (await session.create_producer(jmsaio.Queue(f"{stem}-{letter}"))).send(letter)
    assert await browsed(connection, jmsaio.Queue(f"regex:(a/b|{stem}-.)")) == list("abcd")


@pytest.mark.small_namespace  # the pattern's consumer looks through all topics
async def test_a_consumer_of_a_pattern_is_no_hindrance(connection: jmsaio.Connection, name: Name) -> None:
    """What it acknowledged is gone from its queues at once; other queues can be browsed, too."""
    one, other = jmsaio.Queue(name("pattern-one")), jmsaio.Queue(name("plain"))
    await fill(connection, one, 3)
    await fill(connection, other, 2)
    async with connection.create_session(jmsaio.AcknowledgeMode.INDIVIDUAL) as session:
        async with session.create_consumer(jmsaio.Queue("regex:pattern-one-.*")) as consumer:
            for message in (await take(consumer, 3))[:2]:
                await message.acknowledge()
            assert await browsed(connection, other) == ["0", "1"]
            assert await browsed(connection, one) == ["2"]


@pytest.mark.small_namespace  # the pattern's consumer looks through all topics
async def test_receipts_of_a_pattern_come_beside_browsers(url: str, name: Name) -> None:
    """With ``ackReceiptEnabled`` the consumer of a pattern waits for the broker, and what it acknowledged is gone."""
    stem = name("receipts")
    queue = jmsaio.Queue(f"{stem}-a")
    async with jmsaio.connect(url, ack_receipt_enabled=True) as connection:
        await fill(connection, queue, 3)
        async with connection.create_session(jmsaio.AcknowledgeMode.INDIVIDUAL) as session:
            consumer = await session.create_consumer(jmsaio.Queue(f"regex:{stem}-.*"))
            for message, left in zip(await take(consumer, 2), (["1", "2"], ["2"]), strict=True):
                await message.acknowledge()
                assert await browsed(connection, queue) == left
