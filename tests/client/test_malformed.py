"""Messages that can't be read: acknowledged by their error, dead letters, or delivered as received."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import attrs
import pytest

import jmsaio
from jmsaio.client.delivery import settlement
from jmsaio.client.delivery.filter import Filter
from jmsaio.config import Backoff, ConsumerConfig, DeadLetterPolicy
from jmsaio.model.wire import OutgoingRecord
from jmsaio.transport.base import SenderOptions
from tests.client.delivery.test_deliveries import deliveries
from tests.client.delivery.test_inbox import Receiver, inbox, numbered
from tests.client.helpers import drain, fill
from tests.kit.inside import transport_of
from tests.kit.records import Record, UnreadableRecord, tell_each

Name = Callable[[str], str]
BAD = b"\xff\xfe is not UTF-8"


async def poison(connection: jmsaio.Connection, name: str, count: int = 1) -> None:
    """Send text messages whose bodies are no text, as a foreign producer may."""
    topic = f"persistent://public/default/{name}"
    sender = await transport_of(connection).open_sender(
        topic, SenderOptions(connection.configuration.producer, tell_each)
    )
    outcomes = [asyncio.get_running_loop().create_future() for _ in range(count)]
    for outcome in outcomes:
        record = OutgoingRecord(BAD, {"JMSPulsarMessageType": "text", "colour": "red"})
        sender.send(record, lambda place, error, outcome=outcome: outcome.set_result(error))
    assert await asyncio.gather(*outcomes) == [None] * count
    await sender.aclose(10)


@pytest.fixture
async def make(url: str) -> AsyncIterator[Callable[..., Any]]:
    """Makes connections with options."""
    opened: list[jmsaio.Connection] = []

    async def connect(**options: Any) -> jmsaio.Connection:
        connection = await jmsaio.connect(url, **options)
        opened.append(connection)
        return connection

    yield connect
    for connection in opened:
        await connection.close()


async def queue_with(connection: jmsaio.Connection, name: str, count: int = 1) -> jmsaio.Queue:
    """A queue with messages that can't be read, and one that can behind them."""
    queue = jmsaio.Queue(name)
    async with connection.create_session() as session, session.create_producer(queue):
        await poison(connection, name, count)
    await fill(connection, queue, 1)
    return queue


MODES = [jmsaio.AcknowledgeMode.AUTO, jmsaio.AcknowledgeMode.CLIENT]
#: Seconds within which a returned message is redelivered, with a margin.
AGAIN = 1.8


@pytest.mark.parametrize("mode", MODES)
async def test_the_error_acknowledges_and_iteration_goes_on(
    connection: jmsaio.Connection, name: Name, mode: jmsaio.AcknowledgeMode
) -> None:
    """A message acknowledged through its error is not redelivered, and the same consumer gets the next message."""
    queue = await queue_with(connection, name("poison"))
    async with connection.create_session(mode) as session, session.create_consumer(queue) as consumer:
        with pytest.raises(jmsaio.MalformedMessageError, match="no readable text body") as caught:
            async for _ in consumer:
                raise AssertionError("the first message can't be read")
        assert (caught.value.payload, caught.value.properties["colour"]) == (BAD, "red")
        await caught.value.acknowledge()
        await caught.value.acknowledge()
        async for message in consumer:
            assert message.get_body(str) == "0"
            await message.acknowledge()
            break
    async with connection.create_session() as session, session.create_consumer(queue) as consumer:
        assert await drain(consumer, wait=AGAIN) == []


async def test_a_message_that_its_error_does_not_acknowledge_is_redelivered(
    connection: jmsaio.Connection, name: Name
) -> None:
    """Left alone, the message is given back; its old error can't acknowledge it any more, the new one can."""
    queue = await queue_with(connection, name("again"))
    async with connection.create_session() as session, session.create_consumer(queue) as consumer:
        with pytest.raises(jmsaio.MalformedMessageError) as first:
            await consumer.receive(timeout=20)
        assert await consumer.receive_body(str, timeout=20) == "0"
        with pytest.raises(jmsaio.MalformedMessageError) as second:
            await consumer.receive(timeout=20)
        await second.value.acknowledge()
        with pytest.raises(jmsaio.IllegalStateError, match="given back"):
            await first.value.acknowledge()
        assert await drain(consumer, wait=AGAIN) == []


async def test_closing_the_consumer_gives_it_back_at_once(connection: jmsaio.Connection, name: Name) -> None:
    """A consumer that closes keeps nothing: another one gets the message."""
    queue = await queue_with(connection, name("close"))
    async with connection.create_session() as session:
        for _ in range(2):
            async with session.create_consumer(queue) as consumer:
                with pytest.raises(jmsaio.MalformedMessageError):
                    while await consumer.receive(timeout=20) is not None:
                        pass


async def test_the_commit_makes_it_final(make: Callable[..., Any], name: Name) -> None:
    """In a transacted session the acknowledgement of the error is part of the transaction."""
    connection = await make(emulate_transactions=True)
    queue = jmsaio.Queue(name("transacted"))
    async with connection.create_session() as plain, plain.create_producer(queue):
        await poison(connection, queue.name)
    async with (
        connection.create_session(jmsaio.AcknowledgeMode.TRANSACTED) as session,
        session.create_consumer(queue) as consumer,
    ):
        for end in (session.rollback, session.commit):
            with pytest.raises(jmsaio.MalformedMessageError) as caught:
                await consumer.receive(timeout=20)
            await caught.value.acknowledge()
            await end()
        assert await drain(consumer, wait=AGAIN) == []


async def test_a_topic_consumer_gets_it_again(connection: jmsaio.Connection, name: Name) -> None:
    """On a subscription of its own, too, the message is redelivered until it is acknowledged."""
    topic = jmsaio.Topic(name("topic"))
    async with connection.create_session() as session, session.create_consumer(topic) as consumer:
        await poison(connection, topic.name)
        for _ in range(2):
            with pytest.raises(jmsaio.MalformedMessageError) as caught:
                await consumer.receive(timeout=20)
        await caught.value.acknowledge()


async def test_the_exception_listener_can_acknowledge(
    connection: jmsaio.Connection, name: Name, caplog: pytest.LogCaptureFixture
) -> None:
    """With a message listener the error is reported once: one record of the log, one call of the ExceptionListener."""
    queue = await queue_with(connection, name("listener"))
    told: list[jmsaio.JMSError] = []
    seen: asyncio.Queue[str] = asyncio.Queue()

    async def acknowledge(error: jmsaio.JMSError) -> None:
        assert isinstance(error, jmsaio.MalformedMessageError)
        await error.acknowledge()
        told.append(error)

    connection.set_exception_listener(acknowledge)
    async with connection.create_session() as session:
        consumer = await session.create_consumer(queue)
        consumer.set_message_listener(lambda message: seen.put_nowait(message.get_body(str)))
        assert await asyncio.wait_for(seen.get(), 20) == "0"
        await asyncio.sleep(AGAIN)
    assert len(told) == 1 and seen.empty()
    [entry] = [entry for entry in caplog.records if "no readable text body" in entry.getMessage()]
    fields = {name: value for name, value in vars(entry).items() if name.startswith("jms_")}
    assert fields.pop("jms_message_id")
    assert fields == {
        "jms_connection": connection._runtime.connection_id, "jms_session": session._runtime.number,
        "jms_destination": queue.name, "jms_subscription": "jms-queue", "jms_attempt": 1,
    }  # fmt: skip


async def test_dead_letter_makes_it_one_and_its_consumer_gets_rid_of_it(
    make: Callable[..., Any], name: Name, caplog: pytest.LogCaptureFixture
) -> None:
    """With ``malformed=dead-letter`` it becomes a dead letter as it came; on the dead letters it is raised."""
    letters = jmsaio.Queue(name("letters"))
    topic = f"persistent://public/default/{letters.name}"
    policy = {"deadLetterPolicy": {"maxRedeliverCount": 3, "deadLetterTopic": topic}}
    connection = await make(malformed="dead-letter", consumer=policy)
    queue = await queue_with(connection, name("to-letters"))
    async with (
        connection.create_session() as session,
        session.create_consumer(letters) as buried,
        session.create_consumer(queue) as consumer,
    ):
        assert await consumer.receive_body(str, timeout=20) == "0"
        with pytest.raises(jmsaio.MalformedMessageError) as caught:
            await buried.receive(timeout=20)
        assert (caught.value.payload, caught.value.properties["colour"]) == (BAD, "red")
        await caught.value.acknowledge()
    assert "it is moved to the dead letters of" in caplog.text


async def test_dead_letter_without_a_policy_raises(make: Callable[..., Any], name: Name) -> None:
    """A consumer that can make no dead letters raises the error: nothing is thrown away."""
    connection = await make(malformed="dead-letter")
    queue = await queue_with(connection, name("no-policy"))
    async with connection.create_session() as session, session.create_consumer(queue) as consumer:
        with pytest.raises(jmsaio.MalformedMessageError):
            await consumer.receive(timeout=20)


async def test_deliver_gives_bytes_and_raw_properties(make: Callable[..., Any], name: Name) -> None:
    """With ``malformed=deliver`` it comes as a BytesMessage with the record's properties as texts."""
    connection = await make(malformed="deliver")
    queue = await queue_with(connection, name("deliver"))
    async with connection.create_session() as session, session.create_consumer(queue) as consumer:
        message = await consumer.receive(timeout=20)
        assert isinstance(message, jmsaio.BytesMessage) and message.get_body(bytes) == BAD
        assert message.get_string_property("JMSPulsarMessageType") == "text"
        assert dict(message.properties) == {"JMSPulsarMessageType": "text", "colour": "red", "JMSXDeliveryCount": 1}
        assert message.jms_message_id is not None and message.jms_destination == queue
        assert await consumer.receive_body(str, timeout=20) == "0"


async def test_what_is_kept_is_bounded(
    connection: jmsaio.Connection, name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the bound the message kept for longest is given back, so that its error can't acknowledge it."""
    monkeypatch.setattr(settlement, "MOST_RECORDS", 2)
    queue = await queue_with(connection, name("bound"), count=3)
    async with connection.create_session() as session, session.create_consumer(queue) as consumer:
        errors = []
        for _ in range(3):
            with pytest.raises(jmsaio.MalformedMessageError) as caught:
                await consumer.receive(timeout=20)
            errors.append(caught.value)
        with pytest.raises(jmsaio.IllegalStateError):
            await errors[0].acknowledge()
        for error in errors[1:]:
            await error.acknowledge()


async def test_only_a_consumers_error_acknowledges() -> None:
    """An error that no consumer raised says that it can't acknowledge."""
    with pytest.raises(jmsaio.IllegalStateError, match="only an error that a consumer raised"):
        await jmsaio.MalformedMessageError("x").acknowledge()


@pytest.mark.parametrize("mode", [jmsaio.AcknowledgeMode.CLIENT, jmsaio.AcknowledgeMode.TRANSACTED])
async def test_an_error_acknowledges_nothing_for_a_session_that_ends_first(
    name: Name, mode: jmsaio.AcknowledgeMode
) -> None:
    """It closes before the call, or before the commit."""
    async with jmsaio.connect(f"memory://{name('broker')}", enable_transaction=True) as connection:
        queue = await queue_with(connection, name("ended"))
        async with connection.create_session(mode) as session:
            consumer = await session.create_consumer(queue)
            with pytest.raises(jmsaio.MalformedMessageError) as caught:
                await consumer.receive(timeout=20)
            if mode is jmsaio.AcknowledgeMode.TRANSACTED:
                await caught.value.acknowledge()
        if mode is jmsaio.AcknowledgeMode.CLIENT:
            with pytest.raises(jmsaio.ObjectClosedError):
                await caught.value.acknowledge()
        async with connection.create_session() as session, session.create_consumer(queue) as consumer:
            with pytest.raises(jmsaio.MalformedMessageError):
                await drain(consumer, 2)


POLICY = ConsumerConfig(
    dead_letter=DeadLetterPolicy(max_redeliver_count=3, dead_letter_topic="dead"),
    negative_ack_backoff=Backoff(min_delay=1.0, max_delay=60.0, multiplier=2.0),
)


@pytest.mark.parametrize(
    ("malformed", "record"),
    [
        ("raise", numbered(1)),
        ("dead-letter", UnreadableRecord()),
        ("dead-letter", attrs.evolve(numbered(1), topic="dead")),
    ],
    ids=["not asked for", "unreadable properties", "a dead letter already"],
)
async def test_what_can_not_or_shall_not_become_a_dead_letter_is_raised(malformed: Any, record: Record) -> None:
    receiver, error = Receiver(), jmsaio.MalformedMessageError("bad", record)
    made = inbox(receiver, Filter(), config=POLICY)
    with pytest.raises(jmsaio.MalformedMessageError) as caught:
        deliveries(jmsaio.AcknowledgeMode.AUTO, malformed=malformed).unreadable(made, record, error)
    assert caught.value is error and receiver.calls == []
    await error.acknowledge()
    assert [call[0] for call in receiver.calls] == ["ack"]
    made.settlement.return_unsettled([record])
    assert receiver.calls[-1][:2] == ("nack", 1.0)  # its first delay again: it is not remembered any longer
