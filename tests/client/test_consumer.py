"""Receiving: receive, iterate, bodies, process, selectors."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import pytest

import jmsaio
from jmsaio import AcknowledgeMode
from jmsaio.testing import embedded_broker
from tests.client.helpers import fill, rest, text, texts
from tests.kit.inside import inbox_of
from tests.kit.virtual_time import wall

Name = Callable[[str], str]


async def test_the_first_example_of_the_readme_works(url: str, name: Name) -> None:
    async with jmsaio.connect(url) as connection, connection.create_session(AcknowledgeMode.CLIENT) as session:
        orders = session.create_queue(name("orders"))
        producer = await session.create_producer(orders)
        receipt = await producer.send("hello", properties={"region": "EU", "amount": 5}, priority=7, time_to_live=60)
        async with session.create_consumer(orders, selector="region = 'EU' AND amount > 3") as consumer:
            async for message in consumer:
                assert isinstance(message, jmsaio.TextMessage)
                assert message.text == "hello"
                assert message.properties["amount"] == 5
                assert message.jms_message_id == receipt.jms_message_id
                assert message.jms_priority == 7
                assert message.jms_expiration == message.jms_timestamp + 60_000
                await message.acknowledge()
                break


async def test_order_and_count(session: jmsaio.Session, name: Name) -> None:
    queue = session.create_queue(name("order"))
    async with session.create_consumer(queue) as consumer:
        producer = await session.create_producer(queue)
        futures = [await producer.send_async(f"m{number}") for number in range(1000)]
        await asyncio.gather(*futures)
        texts = []
        for _ in range(1000):
            message = await consumer.receive(timeout=20)
            assert message is not None
            texts.append(message.get_body(str))
        assert texts == [f"m{number}" for number in range(1000)]
        assert await consumer.receive(timeout=0.2) is None


async def test_every_kind_of_body(session: jmsaio.Session, name: Name) -> None:
    queue = session.create_queue(name("kinds"))
    producer = await session.create_producer(queue)
    bodies: list[Any] = ["text", b"\x00\xff", {"a": 1, "b": "x", "c": None}, [1, "two", b"three", None, 2.5]]
    for body in bodies:
        await producer.send(body)
    await producer.send(jmsaio.Message())
    await producer.send(jmsaio.TextMessage(None))
    await producer.send(jmsaio.ObjectMessage({"deep": [1, {"x": None}]}))
    async with session.create_consumer(queue) as consumer:
        text, data, mapping, stream, plain, empty, obj = [await consumer.receive(timeout=20) for _ in range(7)]
    assert isinstance(text, jmsaio.TextMessage) and text.text == "text"
    assert isinstance(data, jmsaio.BytesMessage) and data.get_body(bytes) == b"\x00\xff"
    assert isinstance(mapping, jmsaio.MapMessage) and dict(mapping) == {"a": 1, "b": "x", "c": None}
    assert isinstance(stream, jmsaio.StreamMessage)
    assert [stream.read_object() for _ in range(5)] == [1, "two", b"three", None, 2.5]
    assert type(plain) is jmsaio.Message
    assert isinstance(empty, jmsaio.TextMessage) and empty.text is None
    assert isinstance(obj, jmsaio.ObjectMessage) and obj.get_object() == {"deep": [1, {"x": None}]}


async def test_receive_waits_not_at_all_for_a_time_or_without_end(session: jmsaio.Session, name: Name) -> None:
    queue = session.create_queue(name("times"))
    async with session.create_consumer(queue) as consumer:
        assert await consumer.receive_no_wait() is None
        assert await consumer.receive(timeout=0.05) is None
        with pytest.raises(ValueError, match="timeout"):
            await consumer.receive(timeout=-1)
        with pytest.raises(ValueError, match="seconds, not milliseconds"):
            await consumer.receive(timeout=10**9)
        forever = asyncio.ensure_future(consumer.receive(timeout=0))
        await asyncio.sleep(0.05)
        with pytest.raises(jmsaio.IllegalStateError):
            await consumer.receive(timeout=1)
        producer = await session.create_producer(queue)
        await producer.send("late")
        message = await asyncio.wait_for(forever, 20)
        assert message is not None and message.get_body(str) == "late"


async def test_cancelled_receive_loses_nothing(session: jmsaio.Session, name: Name) -> None:
    queue = session.create_queue(name("cancel"))
    async with session.create_consumer(queue) as consumer:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(consumer.receive(), 0.05)
        producer = await session.create_producer(queue)
        for number in range(3):
            await producer.send(str(number))
        received = [await consumer.receive(timeout=20) for _ in range(3)]
        assert [message.get_body(str) for message in received if message] == ["0", "1", "2"]


async def test_close_ends_a_waiting_receive(session: jmsaio.Session, name: Name) -> None:
    consumer = await session.create_consumer(session.create_queue(name("end")))
    waiting = asyncio.ensure_future(consumer.receive())
    await asyncio.sleep(0.05)
    await consumer.close()
    assert await asyncio.wait_for(waiting, 20) is None
    with pytest.raises(jmsaio.ObjectClosedError):
        await consumer.receive()
    with pytest.raises(jmsaio.ObjectClosedError):
        consumer.get_message_selector()
    await consumer.close()


async def test_a_body_of_another_type_stays_to_be_received(session: jmsaio.Session, name: Name) -> None:
    queue = session.create_queue(name("body"))
    producer = await session.create_producer(queue)
    await producer.send("one")
    await producer.send({"k": 1})
    async with session.create_consumer(queue) as consumer:
        with pytest.raises(jmsaio.MessageFormatError):
            await consumer.receive_body(bytes, timeout=20)
        message = await consumer.receive(timeout=20)
        assert message is not None
        assert message.get_body(str) == "one"
        assert not message.jms_redelivered
        assert message.get_int_property("JMSXDeliveryCount") == 1
        assert await consumer.receive_body(dict, timeout=20) == {"k": 1}
        assert await consumer.receive_body(str, timeout=0.1) is None


async def test_process_acknowledges_on_success_and_redelivers_on_an_exception(
    session: jmsaio.Session, name: Name
) -> None:
    queue = session.create_queue(name("process"))
    producer = await session.create_producer(queue)
    await producer.send("work")
    async with session.create_consumer(queue) as consumer:
        with pytest.raises(ZeroDivisionError):
            async with consumer.process(timeout=20) as message:
                raise ZeroDivisionError
        async with consumer.process(timeout=20) as message:
            assert message.get_body(str) == "work"
            assert message.jms_redelivered
            assert message.get_int_property("JMSXDeliveryCount") == 2
        assert await consumer.receive(timeout=0.3) is None
        with pytest.raises(TimeoutError):
            async with consumer.process(timeout=0.05):
                raise AssertionError("there is no message")


async def test_disjoint_selectors_on_one_queue(session: jmsaio.Session, name: Name) -> None:
    queue = session.create_queue(name("disjoint"))
    async with (
        session.create_consumer(queue, "parity = 'even'") as even,
        session.create_consumer(queue, "parity = 'odd'") as odd,
    ):
        producer = await session.create_producer(queue)
        for number in range(20):
            await producer.send(str(number), properties={"parity": "odd" if number % 2 else "even"})

        async def take_ten(consumer: jmsaio.MessageConsumer) -> list[jmsaio.Message]:
            found: list[jmsaio.Message] = []
            while len(found) < 10 and (message := await consumer.receive(timeout=100)) is not None:
                found.append(message)
            return found

        evens, odds = await asyncio.gather(take_ten(even), take_ten(odd))
    assert sorted(int(text(message)) for message in evens) == list(range(0, 20, 2))
    assert sorted(int(text(message)) for message in odds) == list(range(1, 20, 2))
    assert max(message.get_int_property("JMSXDeliveryCount") for message in evens + odds) < 20


async def test_a_consumer_with_a_wrong_selector_or_destination_is_refused(session: jmsaio.Session, name: Name) -> None:
    queue = session.create_queue(name("invalid"))
    with pytest.raises(jmsaio.InvalidSelectorError):
        await session.create_consumer(queue, "region = ")
    with pytest.raises(jmsaio.InvalidDestinationError):
        await session.create_consumer(None)  # type: ignore[arg-type]  # what a caller may do
    with pytest.raises(jmsaio.InvalidDestinationError):
        await session.create_durable_consumer(queue, "n")  # type: ignore[arg-type]  # what a caller may do
    consumer = await session.create_consumer(queue, "")
    assert consumer.get_message_selector() is None
    await consumer.close()


async def test_stopped_connection_gives_nothing(url: str, name: Name) -> None:
    async with jmsaio.connect(url, auto_start=False) as connection, connection.create_session() as session:
        queue = session.create_queue(name("stopped"))
        producer = await session.create_producer(queue)
        await producer.send("kept")
        async with session.create_consumer(queue) as consumer:
            assert await consumer.receive(timeout=0.2) is None
            assert await consumer.receive_no_wait() is None
            waiting = asyncio.ensure_future(consumer.receive(timeout=20))
            await asyncio.sleep(0.05)
            await connection.start()
            message = await waiting
            assert message is not None and message.get_body(str) == "kept"


@pytest.mark.parametrize(("choice", "policy"), [("dead-letter", True), ("dead-letter", False), ("remove", True)])
async def test_expired_messages_are_dead_letters_by_choice(
    url: str, name: Name, choice: Literal["remove", "dead-letter"], policy: bool
) -> None:
    dead = jmsaio.Queue(name("dead"))
    option = "consumerConfig.deadLetterPolicy"
    letters = f"?{option}.maxRedeliverCount=5&{option}.deadLetterTopic={dead.name}"
    queue, topic = jmsaio.Queue(name("expired") + (letters if policy else "")), jmsaio.Topic(name("topic") + letters)
    buried = choice == "dead-letter" and policy
    async with jmsaio.connect(url, expired_messages=choice) as connection, connection.create_session() as session:
        async with session.create_consumer(dead) as graveyard, session.create_shared_consumer(topic, "s") as other:
            async with session.create_producer() as producer:
                for destination in (queue, topic):
                    await producer.send(destination, "late", properties={"a": 1}, time_to_live=0.05)
                    await asyncio.sleep(0.1)
                    await producer.send(destination, "in time")
            async with session.create_consumer(queue) as consumer:
                assert await consumer.receive_body(str, timeout=20) == "in time"
                assert await consumer.receive(timeout=0.5) is None
            assert await other.receive_body(str, timeout=20) == "in time"  # a topic's are always removed
            letter = await graveyard.receive(timeout=20 if buried else 1)
            assert (letter is not None) is buried
            if letter is not None:
                assert (letter.get_body(str), letter.get_int_property("a"), letter.jms_expiration) == ("late", 1, 0)
                assert 0 < letter.get_long_property("JMS_jmsaio_expired_at") < wall() * 1000
            assert await graveyard.receive(timeout=0.5) is None
        async with session.create_consumer(queue) as consumer:
            assert await consumer.receive(timeout=0.5) is None


async def test_an_acknowledgement_time_out_of_one_second(url: str, name: Name) -> None:
    """The option counts as it is written: pulsar-client's own least time, 10 s, is no bound."""
    queue = jmsaio.Queue(name("late"))
    async with jmsaio.connect(url, consumer={"ackTimeoutMillis": 1000}) as connection:
        async with connection.create_session(AcknowledgeMode.CLIENT) as session:
            consumer = await session.create_consumer(queue)
            await (await session.create_producer(queue)).send("tea")
            for redelivered in (False, True):
                message = await consumer.receive(timeout=20 if not redelivered else 8)
                assert message is not None and message.jms_redelivered is redelivered
            await session.acknowledge()


@pytest.mark.parametrize("durable", [False, True])
async def test_dead_letters_of_an_exclusive_subscription(url: str, name: Name, durable: bool) -> None:
    """The consumer counts where the broker does not: what it gave back too often goes to the dead letters."""
    dead, option = jmsaio.Queue(name("dead")), "consumerConfig.deadLetterPolicy"
    topic = jmsaio.Topic(f"{name('topic')}?{option}.maxRedeliverCount=2&{option}.deadLetterTopic={dead.name}")
    async with jmsaio.connect(url) as connection, connection.create_session(AcknowledgeMode.CLIENT) as session:
        graveyard = await session.create_consumer(dead)
        kind = session.create_durable_consumer(topic, name("s")) if durable else session.create_consumer(topic)
        async with kind as consumer, session.create_producer(topic) as producer:
            await producer.send("bad", properties={"a": 1})
            await producer.send("good")
            counts = []
            for _ in range(3):
                message = await consumer.receive(timeout=20)
                assert message is not None and message.get_body(str) == "bad"
                counts.append(message.get_int_property("JMSXDeliveryCount"))
                await session.recover()
            assert counts == [1, 2, 3]
            assert await consumer.receive_body(str, timeout=20) == "good"
            letter = await graveyard.receive(timeout=20)
            assert letter is not None
            assert (letter.get_body(str), letter.get_int_property("a")) == ("bad", 1)
            assert letter.get_int_property("JMS_jmsaio_failed_deliveries") == 3
            await session.acknowledge()
            assert await consumer.receive(timeout=0.5) is None


async def test_expired_messages_are_removed(session: jmsaio.Session, name: Name) -> None:
    queue = session.create_queue(name("expired"))
    producer = await session.create_producer(queue)
    producer.set_time_to_live(0.05)
    await producer.send("gone")
    await asyncio.sleep(0.2)
    producer.set_time_to_live(0)
    await producer.send("stays")
    async with session.create_consumer(queue) as consumer:
        message = await consumer.receive(timeout=20)
        assert message is not None and message.get_body(str) == "stays"
        assert await consumer.receive(timeout=0.3) is None


async def test_a_delayed_message_comes_after_one_sent_later_without_delay(session: jmsaio.Session, name: Name) -> None:
    queue, topic = session.create_queue(name("delay")), session.create_topic(name("delay-topic"))
    async with session.create_consumer(queue) as consumer, session.create_consumer(topic) as subscriber:
        producer = await session.create_producer()
        for destination in (queue, topic):
            await producer.send(destination, "later", delivery_delay=1.0)
            await producer.send(destination, "now")

        async def two(receiver: jmsaio.MessageConsumer) -> list[jmsaio.Message | None]:
            return [await receiver.receive(timeout=20), await receiver.receive(timeout=20)]

        for first, second in await asyncio.gather(two(consumer), two(subscriber)):
            assert first is not None and first.get_body(str) == "now"
            assert second is not None and second.get_body(str) == "later"
            assert second.jms_delivery_time >= second.jms_timestamp + 1000


async def test_process_that_closes_its_consumer_and_fails(connection: jmsaio.Connection, name: Name) -> None:
    """Delivered messages are redelivered marked, although Pulsar forgets its count with the last consumer."""
    queue = jmsaio.Queue(name("process"))
    await fill(connection, queue, 1)
    async with connection.create_session() as session:
        consumer = await session.create_consumer(queue)
        with pytest.raises(ZeroDivisionError):
            async with consumer.process():
                await consumer.close()
                raise ZeroDivisionError
        (again,) = await rest(connection, queue, 1)
        assert again.jms_redelivered


@pytest.mark.parametrize("closed", ["session", "connection"])
@pytest.mark.parametrize("mode", [AcknowledgeMode.AUTO, AcknowledgeMode.CLIENT])
async def test_processing_in_a_session_that_is_closed_meanwhile_says_that_nothing_was_acknowledged(
    url: str, connection: jmsaio.Connection, name: Name, mode: AcknowledgeMode, closed: Literal["session", "connection"]
) -> None:
    queue = jmsaio.Queue(name("process-closed"))
    await fill(connection, queue, 1)
    async with jmsaio.connect(url) as other, other.create_session(mode) as session:
        consumer = await session.create_consumer(queue)
        with pytest.raises(jmsaio.ObjectClosedError, match="redelivered"):
            async with consumer.process(timeout=20):
                await (session if closed == "session" else other).close()
    assert texts(await rest(connection, queue, 1)) == ["0"]


async def test_processing_what_was_acknowledged_before_its_session_closed_ends_well(url: str, name: Name) -> None:
    async with jmsaio.connect(url) as connection:
        queue = jmsaio.Queue(name("process-acknowledged"))
        await fill(connection, queue, 1)
        async with connection.create_session(AcknowledgeMode.CLIENT) as session:
            consumer = await session.create_consumer(queue)
            async with consumer.process(timeout=20) as message:
                await message.acknowledge()
                await session.close()


async def test_a_listener_is_callable(connection: jmsaio.Connection, session: jmsaio.Session, name: Name) -> None:
    consumer = await session.create_consumer(jmsaio.Queue(name("callable")))
    with pytest.raises(jmsaio.IllegalArgumentError, match="function of one message"):
        consumer.set_message_listener(5)  # type: ignore[arg-type]  # what a caller may do
    with pytest.raises(jmsaio.IllegalArgumentError, match="function of one error"):
        connection.set_exception_listener("x")  # type: ignore[arg-type]  # likewise


async def test_close_returns_after_a_waiting_receive(session: jmsaio.Session, name: Name) -> None:
    """When close returns, the receive that waited has returned."""
    for limit in (None, 60):
        consumer = await session.create_consumer(session.create_queue(name("waiting")))
        waiting = asyncio.create_task(consumer.receive(limit))
        await asyncio.sleep(0.1)
        await consumer.close()
        assert waiting.done() and waiting.result() is None


@pytest.mark.parametrize("closed", ["consumer", "session"])
async def test_iterating_ends_when_it_is_closed_between_two_messages(
    connection: jmsaio.Connection, name: Name, closed: str
) -> None:
    session = await connection.create_session()
    queue = session.create_queue(name("iterate"))
    consumer, producer = await session.create_consumer(queue), await session.create_producer(queue)
    for _ in range(2):
        await producer.send("x")
    seen = 0
    async for _ in consumer:
        seen += 1
        await (consumer if closed == "consumer" else session).close()
    assert seen == 1
    with pytest.raises(jmsaio.ObjectClosedError):
        async for _ in consumer:
            seen += 1


@pytest.mark.parametrize("call", ["receive", "receive_no_wait"])
async def test_a_consumer_takes_nothing_in_while_no_one_receives(name: Name, call: str) -> None:
    queue = jmsaio.Queue(name("idle"))
    async with jmsaio.connect(f"memory://{name('broker')}") as connection, connection.create_session() as session:
        consumer = await session.create_consumer(queue)
        assert await (consumer.receive(timeout=0.01) if call == "receive" else consumer.receive_no_wait()) is None
        await fill(connection, queue, 3)
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(inbox_of(consumer).records) == 0
        assert await consumer.receive(timeout=20) is not None


async def test_an_iteration_that_waits_ends_without_a_message_when_the_consumer_closes(
    session: jmsaio.Session, name: Name
) -> None:
    consumer = await session.create_consumer(jmsaio.Queue(name("iterates")))

    async def collect() -> list[jmsaio.Message]:
        return [message async for message in consumer]

    collecting = asyncio.ensure_future(collect())
    await asyncio.sleep(0.05)
    assert consumer._receiving
    await consumer.close()
    assert await asyncio.wait_for(collecting, 20) == []


async def test_a_receive_without_waiting_refuses_another_one_meanwhile(session: jmsaio.Session, name: Name) -> None:
    consumer = await session.create_consumer(jmsaio.Queue(name("two")))
    first = asyncio.ensure_future(consumer.receive_no_wait())
    await asyncio.sleep(0)
    with pytest.raises(jmsaio.IllegalStateError, match="another receive"):
        await consumer.receive(timeout=1)
    assert await asyncio.wait_for(first, 20) is None


#: One of the ways to receive a message; it gives the text.
Way = Callable[[jmsaio.MessageConsumer], Awaitable[str | None]]


async def receive(consumer: jmsaio.MessageConsumer) -> str | None:
    return text(await consumer.receive(timeout=5))


async def receive_body(consumer: jmsaio.MessageConsumer) -> str | None:
    return await consumer.receive_body(str, timeout=5)


async def iterate(consumer: jmsaio.MessageConsumer) -> str | None:
    return text(await anext(aiter(consumer)))


async def process(consumer: jmsaio.MessageConsumer) -> str | None:
    async with consumer.process(timeout=5) as message:
        return text(message)


async def receive_no_wait(consumer: jmsaio.MessageConsumer) -> str | None:
    return text(await consumer.receive_no_wait())


async def receive_body_no_wait(consumer: jmsaio.MessageConsumer) -> str | None:
    return await consumer.receive_body_no_wait(str)


#: Those that wait come first.
WAYS: tuple[Way, ...] = (receive, receive_body, iterate, process, receive_no_wait, receive_body_no_wait)


@pytest.mark.parametrize(("call", "waits"), [*((way, False) for way in WAYS), *((way, True) for way in WAYS[:4])])
async def test_each_way_to_receive_acknowledges_its_message_alone(name: Name, call: Way, waits: bool) -> None:
    """In a session that acknowledges by itself; whether the message is there already or the call waits for it."""
    queue = jmsaio.Queue(name("ways"))
    async with jmsaio.connect(f"memory://{name('broker')}") as connection:
        async with connection.create_session() as session, session.create_consumer(queue) as consumer:
            receiving = asyncio.ensure_future(call(consumer)) if waits else None
            await asyncio.sleep(0.1)
            await fill(connection, queue, 2)
            assert await (call(consumer) if receiving is None else receiving) == "0"
        left = await rest(connection, queue)
        assert texts(left) == ["1"] and not left[0].jms_redelivered


@pytest.mark.parametrize("mode", [AcknowledgeMode.AUTO, AcknowledgeMode.CLIENT])
@pytest.mark.parametrize("how", ["there", "waits", "no wait"])
@pytest.mark.parametrize("body", [jmsaio.StreamMessage([1]), jmsaio.Message(), jmsaio.TextMessage(None)])
async def test_a_message_without_the_body_that_was_asked_for_stays_or_counts_as_delivered(
    name: Name, mode: AcknowledgeMode, how: str, body: jmsaio.Message
) -> None:
    """It stays in a session that acknowledges by itself (Jakarta Messaging 3.1, 8.6)."""
    queue = jmsaio.Queue(name("no-body"))
    async with jmsaio.connect(f"memory://{name('broker')}") as connection, connection.create_session(mode) as session:
        consumer, producer = await session.create_consumer(queue), await session.create_producer(queue)
        asking = asyncio.ensure_future(receive_body(consumer)) if how == "waits" else None
        await asyncio.sleep(0.1)
        await producer.send(body)
        await producer.send("behind it")
        with pytest.raises(jmsaio.MessageFormatError):
            await (asking or (receive_body if how == "there" else receive_body_no_wait)(consumer))
        if mode is AcknowledgeMode.AUTO:
            message = await consumer.receive(timeout=5)
            assert type(message) is type(body) and not message.jms_redelivered
        assert await receive(consumer) == "behind it"


@pytest.mark.parametrize("closed", ["consumer", "session"])
async def test_a_closed_consumer_answers_nothing(name: Name, closed: str) -> None:
    async with jmsaio.connect(f"memory://{name('broker')}") as connection, connection.create_session() as session:
        consumer = await session.create_consumer(jmsaio.Topic("t"))
        waiting = asyncio.ensure_future(consumer.receive())
        await asyncio.sleep(0.1)
        await (consumer if closed == "consumer" else session).close()
        assert waiting.done() and waiting.result() is None and consumer.closed
        for use in (
            consumer.get_message_selector, consumer.get_message_listener, consumer.get_destination,
            consumer.get_no_local, lambda: consumer.set_message_listener(print), lambda: aiter(consumer),
        ):  # fmt: skip
            with pytest.raises(jmsaio.ObjectClosedError):
                use()
        for call in (receive, receive_body, receive_no_wait, receive_body_no_wait, process):
            with pytest.raises(jmsaio.ObjectClosedError):
                await call(consumer)


async def test_zero_seconds_wait_forever_for_a_body_too(name: Name) -> None:
    queue = jmsaio.Queue(name("forever"))
    async with jmsaio.connect(f"memory://{name('broker')}") as connection, connection.create_session() as session:
        consumer = await session.create_consumer(queue)
        for timeout in (0, None):
            asking = asyncio.ensure_future(consumer.receive_body(str, timeout=timeout))
            await asyncio.sleep(60)
            await (await session.create_producer(queue)).send("late")
            assert await asyncio.wait_for(asking, 20) == "late"


async def test_a_lost_subscription_fails_each_way_to_receive_once_it_is_empty() -> None:
    with embedded_broker() as broker:
        async with jmsaio.connect(broker.url) as connection, connection.create_session() as session:
            topic = jmsaio.Topic("news")
            for call in WAYS:
                consumer = await session.create_durable_consumer(topic, call.__name__)
                await (await session.create_producer(topic)).send("before")
                assert await call(consumer) == "before"
                broker.faults.drop_consumers(
                    "news", inbox_of(consumer).subscription.name, error=jmsaio.TransportError("lost for good")
                )
                await asyncio.sleep(0.1)
                with pytest.raises(jmsaio.TransportError, match="lost for good"):
                    await call(consumer)
                await consumer.close()


async def test_a_listener_is_not_set_while_a_receive_waits(name: Name) -> None:
    queue = jmsaio.Queue(name("waiting"))
    async with jmsaio.connect(f"memory://{name('broker')}") as connection, connection.create_session() as session:
        consumer = await session.create_consumer(queue)
        waiting = asyncio.ensure_future(consumer.receive(timeout=1))
        await asyncio.sleep(0.1)
        with pytest.raises(jmsaio.IllegalStateError, match="receive is waiting"):
            consumer.set_message_listener(print)
        assert await waiting is None and consumer.message_listener is None
        heard: asyncio.Queue[str] = asyncio.Queue()
        consumer.set_message_listener(lambda message: heard.put_nowait(text(message)))
        for call in (receive, receive_no_wait):
            with pytest.raises(jmsaio.IllegalStateError, match="has a message listener"):
                await call(consumer)
        await fill(connection, queue, 1)
        assert await asyncio.wait_for(heard.get(), 20) == "0"
        consumer.set_message_listener(None)
        await fill(connection, queue, 1)
        assert await receive(consumer) == "0"


async def test_what_a_closed_consumer_did_not_select_comes_before_what_it_did_not_receive(name: Name) -> None:
    async with (
        jmsaio.connect("memory://order-after-close") as connection,
        connection.create_session(AcknowledgeMode.CLIENT) as session,
    ):
        queue = session.create_queue(name("order"))
        producer = await session.create_producer(queue)
        async with session.create_consumer(queue, selector="parity = 1") as consumer:
            for number in (0, 1, 2):
                await producer.send(str(number), properties={"parity": number % 2})
            assert await consumer.receive_body(str, timeout=20) == "1"
            await producer.send("3", properties={"parity": 1})
        async with session.create_consumer(queue) as consumer:
            assert [await consumer.receive_body(str, timeout=20) for _ in range(3)] == ["0", "2", "3"]


async def test_a_consumer_whose_close_is_cancelled_receives_no_more(name: Name) -> None:
    async with (
        jmsaio.connect("memory://cancelled-close") as connection,
        connection.create_session(AcknowledgeMode.CLIENT) as session,
        connection.create_session() as other,
    ):
        queue = session.create_queue(name("cancelled"))
        producer = await session.create_producer(queue)
        first = await session.create_consumer(queue, selector="parity = 1")
        for number in (0, 1, 2):
            await producer.send(str(number), properties={"parity": number % 2})
        assert await first.receive_body(str, timeout=20) == "1"
        closing = asyncio.create_task(first.close())
        await asyncio.sleep(0)
        closing.cancel()  # while it returns what it rejected
        with pytest.raises(asyncio.CancelledError):
            await closing
        async with other.create_consumer(queue) as consumer:
            assert [await consumer.receive_body(str, timeout=20) for _ in range(2)] == ["0", "2"]
