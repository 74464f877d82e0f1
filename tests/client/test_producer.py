"""Sending: settings, errors, futures, completion listeners, foreign messages."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import uuid
import warnings
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import jmsaio
from jmsaio import DeliveryMode, MessageProducer
from jmsaio.client.producer import SendOptions
from jmsaio.client.senders.pool import SenderPool
from jmsaio.testing import embedded_broker
from tests.client.helpers import full_name, rest, take, texts
from tests.kit.inside import admin_of, inbox_of, runtime_of

Name = Callable[[str], str]


async def test_headers_after_send(session: jmsaio.Session, connection: jmsaio.Connection, name: Name) -> None:
    queue = session.create_queue(name("headers"))
    async with session.create_consumer(queue) as consumer, session.create_producer(queue) as producer:
        message = jmsaio.TextMessage("x")
        message.jms_correlation_id, message.jms_type = "corr", "kind"
        message.jms_reply_to = jmsaio.Topic("answers")
        message.jms_priority, message.jms_delivery_mode = 9, 1
        receipt = await producer.send(message, priority=6, delivery_mode=DeliveryMode.NON_PERSISTENT)
        assert message.jms_message_id == receipt.jms_message_id
        assert receipt.jms_message_id.startswith(f"ID:{runtime_of(connection).uuid}:")  # type: ignore[union-attr]  # set
        number = runtime_of(session).number
        assert (
            receipt.jms_message_id == f"ID:{runtime_of(connection).uuid}:{number}:1:1"
        )  # three integers, as Starlight wants them
        assert receipt.place is not None
        assert message.jms_priority == 6
        first = message.jms_message_id
        received = await consumer.receive(timeout=20)
        assert received is not None
        assert received.jms_message_id == first
        assert received.jms_destination == queue
        assert received.jms_priority == 6 and received.jms_delivery_mode == 1
        assert received.jms_correlation_id == "corr" and received.jms_type == "kind"
        assert received.jms_timestamp == message.jms_timestamp == receipt.timestamp
        assert not received.jms_redelivered and received.jms_expiration == 0
        assert isinstance(received.jms_reply_to, jmsaio.Topic)
        await producer.send(message)
        assert message.jms_message_id != first and message.jms_priority == 4
        again = await consumer.receive(timeout=20)
        assert again is not None and again.jms_message_id == message.jms_message_id
        await producer.send(again)
        forwarded = await consumer.receive(timeout=20)
        assert forwarded is not None and forwarded.get_body(str) == "x"
        assert forwarded.jms_message_id != message.jms_message_id


async def test_without_id_and_timestamp_the_time_is_0_and_the_id_stays(session: jmsaio.Session, name: Name) -> None:
    queue = session.create_queue(name("hints"))
    async with session.create_consumer(queue) as consumer, session.create_producer(queue) as producer:
        producer.disable_message_id = producer.disable_message_timestamp = True
        receipt = await producer.send("x")
        message = await consumer.receive(timeout=20)
        assert message is not None
        assert message.jms_timestamp == 0
        assert receipt.place is not None and receipt.jms_message_id == str(receipt.place) == message.jms_message_id


async def test_a_destination_is_given_to_the_producer_or_to_the_send_not_both(
    session: jmsaio.Session, name: Name
) -> None:
    queue = session.create_queue(name("which"))
    async with session.create_producer(queue) as own, session.create_producer() as anonymous:
        with pytest.raises(jmsaio.UnsupportedOperationError):
            await own.send(queue, "x")
        with pytest.raises(jmsaio.UnsupportedOperationError):
            await anonymous.send("x")
        with pytest.raises(jmsaio.InvalidDestinationError):
            await anonymous.send(None, "x")  # type: ignore[call-overload]  # type checkers refuse it, too
        with pytest.raises(jmsaio.MessageFormatError):
            await own.send(None)  # type: ignore[call-overload]  # type checkers refuse it, too
        with pytest.raises(jmsaio.MessageFormatError):
            await own.send(object())  # type: ignore[call-overload]  # type checkers refuse it, too
        assert anonymous.destination is None and own.destination == queue


async def test_settings_out_of_range_and_any_use_after_close_are_refused(session: jmsaio.Session, name: Name) -> None:
    async with session.create_producer(session.create_queue(name("settings"))) as producer:
        assert (producer.delivery_mode, producer.priority, producer.time_to_live) == (2, 4, 0)
        for priority in (10, -1):
            with pytest.raises(jmsaio.JMSError):
                producer.set_priority(priority)
        with pytest.raises(jmsaio.JMSError):
            producer.set_delivery_mode(3)  # type: ignore[arg-type]  # what a caller may do
        with pytest.raises(ValueError, match="seconds, not milliseconds"):
            producer.set_time_to_live(10**10)
        with pytest.raises(jmsaio.JMSError):
            await producer.send("x", priority=11)
    for use in (lambda: producer.priority, lambda: producer.destination):
        with pytest.raises(jmsaio.ObjectClosedError):
            use()
    with pytest.raises(jmsaio.ObjectClosedError):
        await producer.send("x")
    await producer.close()


async def test_too_large_is_refused_and_the_rest_goes_on(session: jmsaio.Session, name: Name) -> None:
    queue = session.create_queue(name("large"))
    async with session.create_consumer(queue) as consumer, session.create_producer(queue) as producer:
        before = await producer.send_async("before")
        with pytest.raises(jmsaio.MessageTooLargeError):
            await producer.send(b"x" * 6 * 1024 * 1024)
        after = await producer.send_async("after")
        await asyncio.gather(before, after)
        bodies = [await consumer.receive_body(str, timeout=20) for _ in range(2)]
        assert bodies == ["before", "after"]


async def test_many_tasks_share_a_producer(session: jmsaio.Session, name: Name) -> None:
    queue = session.create_queue(name("tasks"))
    async with session.create_consumer(queue) as consumer, session.create_producer(queue) as producer:
        receipts = await asyncio.gather(*[producer.send(str(number)) for number in range(500)])
        assert len({receipt.jms_message_id for receipt in receipts}) == 500
        found = {await consumer.receive_body(str, timeout=20) for _ in range(500)}
        assert found == {str(number) for number in range(500)}


async def test_a_small_window_holds_senders_back(url: str, name: Name) -> None:
    async with jmsaio.connect(url, send_window_messages=10) as connection, connection.create_session() as session:
        queue = session.create_queue(name("window"))
        async with session.create_consumer(queue) as consumer, session.create_producer(queue) as producer:
            futures = [await producer.send_async(str(number)) for number in range(200)]
            await asyncio.gather(*futures)
            found = [await consumer.receive_body(str, timeout=20) for _ in range(200)]
            assert found == [str(number) for number in range(200)]


async def test_a_queue_keeps_what_is_sent_before_any_consumer(session: jmsaio.Session, name: Name) -> None:
    queue = session.create_queue(name("keeps"))
    async with session.create_producer(queue) as producer:
        await producer.send("kept")
    async with session.create_consumer(queue) as consumer:
        assert await consumer.receive_body(str, timeout=20) == "kept"


async def test_a_message_of_another_library_is_sent_and_gets_its_headers(session: jmsaio.Session, name: Name) -> None:
    class Foreign:
        """A text message of another library."""

        def __init__(self) -> None:
            self.text = "foreign"
            self.properties = {"n": 5}
            self.jms_correlation_id = "c"
            self.jms_reply_to = None
            self.jms_type = None
            self.jms_message_id: str | None = None
            self.jms_timestamp = 0
            self.jms_expiration = -1
            self.jms_priority = -1
            self.jms_destination: object = None
            self.jms_delivery_mode = 0

        def get_property_names(self) -> list[str]:
            return list(self.properties)

        def get_object_property(self, key: str) -> object:
            return self.properties[key]

    queue = session.create_queue(name("foreign"))
    async with session.create_consumer(queue) as consumer, session.create_producer(queue) as producer:
        foreign = Foreign()
        receipt = await producer.send(foreign, time_to_live=60)
        assert foreign.jms_message_id == receipt.jms_message_id
        assert foreign.jms_destination == queue and foreign.jms_priority == 4 and foreign.jms_expiration > 0
        message = await consumer.receive(timeout=20)
        assert message is not None and message.get_body(str) == "foreign"
        assert message.get_int_property("n") == 5 and message.jms_correlation_id == "c"


async def test_closing_a_session_settles_sends(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("settle"))
    async with connection.create_session() as session:
        producer = await session.create_producer(queue)
        futures = [await producer.send_async(str(number)) for number in range(100)]
    assert all(future.done() for future in futures)
    assert {future.result().jms_message_id is not None for future in futures} == {True}


async def test_higher_priorities_come_first(url: str, name: Name) -> None:
    async with jmsaio.connect(url, enable_jms_priority=True) as connection, connection.create_session() as session:
        queue = session.create_queue(name("priority"))
        async with session.create_producer(queue) as producer:
            for priority in (4, 0, 9, 4):
                producer.set_priority(priority)
                await producer.send(str(priority))
            await producer.send("9", priority=9)
        async with session.create_consumer(queue) as consumer:
            await asyncio.sleep(0.5)  # all of them are here
            found = [await consumer.receive(timeout=20) for _ in range(5)]
    assert [message.jms_priority for message in found if message is not None] == [9, 9, 4, 4, 0]


@pytest.mark.small_namespace
async def test_received_destinations_equal_those_that_were_set(url: str, broker_kind: str, name: Name) -> None:
    options: dict[str, Any] = {"system_namespace": "t/n"} if broker_kind == "memory" else {}
    async with jmsaio.connect(url, **options) as connection, connection.create_session() as session:
        short = session.create_queue(name("spelled"))
        full = jmsaio.Queue(full_name(connection, short))
        replies: list[jmsaio.Destination] = [
            await session.create_temporary_queue(), await session.create_temporary_topic(), short, full,
            jmsaio.Queue(short.name), jmsaio.Topic(full.name), jmsaio.Queue("persistent://public/default/elsewhere"),
        ]  # fmt: skip
        consumed = session.create_queue(f"{short.name}?consumerConfig.receiverQueueSize=7")
        async with session.create_producer(full) as producer, session.create_consumer(consumed) as consumer:
            for reply in replies:
                request = jmsaio.TextMessage("x")
                request.jms_reply_to = reply
                await producer.send(request)
            browsed = [message async for message in await session.create_browser(consumed)]
            found = await take(consumer, len(replies))
        for messages in (found, browsed):
            assert [message.jms_reply_to for message in messages] == replies
            assert {message.jms_reply_to for message in messages} == set(replies)
            for message in messages:
                assert message.jms_destination == short == full == consumed
                assert message.jms_destination is not None and message.jms_destination.name == short.name


async def test_equal_destinations_are_sent_to_as_they_are_spelled(name: Name) -> None:
    """``Queue("a")`` of no known namespace equals that of any namespace."""
    plain = jmsaio.Queue(name("apart"))
    full = jmsaio.Queue(f"persistent://public/default/{plain.name}")
    assert plain == full
    url = f"memory://{name('broker')}"
    async with jmsaio.connect(url, system_namespace="t/n") as connection, connection.create_session() as session:
        producer = await session.create_producer()
        for _ in range(3):
            await asyncio.gather(*(producer.send(each, each.name) for each in (plain, full)))
        for each in (plain, full):
            assert texts(await rest(connection, each, 3)) == [each.name] * 3


async def test_a_destination_of_one_connection_is_the_same_topic_on_another(name: Name) -> None:
    """Also if the other has another namespace for short names: an answer goes to the one who asked."""
    url = f"memory://{name('broker')}"
    async with (
        jmsaio.connect(url, system_namespace="t/a") as asks,
        jmsaio.connect(url, system_namespace="t/b") as answers,
        asks.create_session() as session,
        answers.create_session() as other,
    ):
        reply_to = session.create_queue("answers")
        producer = await other.create_producer()
        for each in (jmsaio.Queue("answers"), reply_to):  # equal, and not the same
            await producer.send(each, repr(each._namespace))
            forwarded = jmsaio.TextMessage("x")
            forwarded.jms_reply_to = each
            await producer.send(other.create_queue("requests"), forwarded)
        assert texts(await rest(asks, reply_to, 1)) == ["'t/a'"]
        assert texts(await rest(answers, other.create_queue("answers"), 1)) == ["None"]
        replies = [message.jms_reply_to for message in await rest(answers, other.create_queue("requests"), 2)]
        assert replies == [other.create_queue("answers"), reply_to] and replies[0] != reply_to


async def _prefetched(consumer: jmsaio.MessageConsumer, count: int) -> None:
    """Wait until ``count`` messages are in a consumer's inbox."""
    async with asyncio.timeout(20):
        while len(inbox_of(consumer).records) < count:
            await asyncio.sleep(0.02)


async def _filled(consumer: jmsaio.MessageConsumer, count: int) -> None:
    """Fill a consumer's inbox as a receive that waits does, until ``count`` messages are in it.

    A receive may find one message alone; what arrives behind an empty inbox stays with pulsar-client.
    """
    inbox_of(consumer).wanted = True
    inbox_of(consumer).wake()
    await _prefetched(consumer, count)


async def test_a_higher_priority_that_comes_later_overtakes_what_was_prefetched(url: str, name: Name) -> None:
    async with jmsaio.connect(url, enable_jms_priority=True) as connection, connection.create_session() as session:
        queue = session.create_queue(name("overtaking"))
        async with session.create_producer(queue) as producer, session.create_consumer(queue) as consumer:
            for number in range(10):
                await producer.send(f"low {number}")
            await _filled(consumer, 10)
            (first,) = await take(consumer, 1)
            for number in range(5):
                await producer.send(f"high {number}", priority=9)
            await _prefetched(consumer, 14)
            others = await take(consumer, 14)
    expected = ["low 0", *(f"high {number}" for number in range(5))]
    assert texts([first, *others]) == [*expected, *(f"low {number}" for number in range(1, 10))]


async def test_what_is_prefetched_from_many_partitions_comes_by_priority_after_the_first_message(
    url: str, name: Name
) -> None:
    options = jmsaio.connect(url, enable_jms_priority=True, priority_mapping="non-linear")
    async with options as connection, connection.create_session() as session:
        queue, admin = session.create_queue(name("partitions")), admin_of(connection)
        await admin.create_topic(f"persistent://public/default/{queue.name}", 10)
        async with session.create_producer(queue) as producer, session.create_consumer(queue) as consumer:
            for priority in (1, 9):
                futures = [await producer.send_async("x", priority=priority) for _ in range(50)]
                await asyncio.gather(*futures)
                if priority == 1:
                    await _filled(consumer, 50)
                    await take(consumer, 1)
            await _prefetched(consumer, 99)
            priorities = [message.jms_priority for message in await take(consumer, 99)]
    assert priorities == sorted(priorities, reverse=True)


async def test_a_delay_in_a_transaction_counts_from_the_send(name: Name) -> None:
    async with jmsaio.connect(f"memory://{name('broker')}", enable_transaction=True) as connection:
        async with (
            connection.create_session(jmsaio.AcknowledgeMode.TRANSACTED) as session,
            connection.create_session() as other,
        ):
            queue = session.create_queue(name("delay"))
            producer, consumer = await session.create_producer(queue), await other.create_consumer(queue)
            receipt = await producer.send("later", delivery_delay=0.5)
            await asyncio.sleep(0.3)
            await session.commit()
            message = await consumer.receive(timeout=20)
            assert message is not None and message.jms_delivery_time == receipt.timestamp + 500


@pytest.mark.real_time  # counts turns of the loop in real time
async def test_a_loop_of_sends_holds_up_no_one(session: jmsaio.Session, name: Name) -> None:
    """Others of the loop run meanwhile, also while the window has room for everything."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async with session.create_producer(session.create_queue(name("tight"))) as producer:
        await producer.send("opened")
        counting = asyncio.create_task(count())
        await asyncio.sleep(0)
        before = turns
        futures = [await producer.send_async("x") for _ in range(3000)]  # takes many milliseconds
        held_up = turns - before
        counting.cancel()
        await asyncio.gather(*futures)
    assert held_up >= 3


@pytest.mark.parametrize("window", [7, 5000])
async def test_sends_that_begin_in_order_leave_in_order(url: str, name: Name, window: int) -> None:
    """Also those that let others run because a millisecond is over, or that wait for room."""
    async with jmsaio.connect(url, send_window_messages=window) as connection, connection.create_session() as session:
        queue = session.create_queue(name("ordered"))
        consumer, producer = await session.create_consumer(queue), await session.create_producer(queue)
        passing = itertools.count(step=0.0003)
        producer._stamper.wall = lambda: 1e9 + next(passing)
        sent = [str(number) for number in range(300)]
        bodies = [body if number % 3 else jmsaio.TextMessage(body) for number, body in enumerate(sent)]
        await asyncio.gather(*map(producer.send, bodies))
        assert [await consumer.receive_body(str, timeout=20) for _ in sent] == sent


async def test_a_message_lives_from_its_sending_not_from_its_delivery(name: Name) -> None:
    async with jmsaio.connect(f"memory://{name('broker')}") as connection, connection.create_session() as session:
        message = jmsaio.TextMessage("x")
        producer = await session.create_producer(jmsaio.Queue(name("lives")))
        await producer.send(message, time_to_live=60, delivery_delay=30)
        assert message.jms_delivery_time == message.jms_timestamp + 30_000
        assert message.jms_expiration == message.jms_timestamp + 60_000


async def test_a_temporary_queue_that_is_being_deleted_takes_no_more_messages(
    name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with jmsaio.connect(f"memory://{name('broker')}") as connection, connection.create_session() as session:
        queue, producer = await session.create_temporary_queue(), await session.create_producer()
        await producer.send(queue, "before")
        closing, go_on = asyncio.Event(), asyncio.Event()

        async def slowly(senders: SenderPool, topic: str, timeout: float) -> None:
            closing.set()
            await go_on.wait()

        monkeypatch.setattr(SenderPool, "close_topic", slowly)
        deleting = asyncio.ensure_future(queue.delete())
        await asyncio.wait_for(closing.wait(), 20)
        with pytest.raises(jmsaio.InvalidDestinationError, match="deleted"):
            await producer.send(queue, "meanwhile")
        monkeypatch.undo()
        go_on.set()
        await deleting


async def test_a_closed_producer_is_forgotten_when_its_sends_have_their_outcome() -> None:
    with embedded_broker() as broker:
        async with jmsaio.connect(broker.url) as connection, connection.create_session() as session:
            producer = await session.create_producer(jmsaio.Queue("q"))
            broker.faults.delay_answers(1)
            sent = await producer.send_async("x")
            await producer.close()
            assert sent.done() and producer not in runtime_of(session).children
            await producer.close()


async def test_a_send_that_waits_for_room_is_refused_when_its_producer_closes() -> None:
    """So is any other call. What was sent before is not lost."""
    with embedded_broker() as broker:
        async with jmsaio.connect(broker.url, send_window_messages=2) as connection:
            session = await connection.create_session()
            producer = await session.create_producer(queue := jmsaio.Queue("q"))
            broker.faults.delay_answers(1, times=2)
            for number in range(2):
                await producer.send_async(str(number))
            waiting = asyncio.ensure_future(producer.send_async("2"))
            await asyncio.sleep(0.5)
            assert not waiting.done()
            await producer.close()
            with pytest.raises(jmsaio.ObjectClosedError, match="not sent"):
                await waiting
            assert texts(await rest(connection, queue)) == ["0", "1"]


async def test_a_closing_session_refuses_sends_of_others_than_its_listeners(name: Name) -> None:
    queue, entered, go_on = jmsaio.Queue("q"), asyncio.Event(), asyncio.Event()

    async def listener(message: jmsaio.Message) -> None:
        entered.set()
        await go_on.wait()
        await producer.send(jmsaio.Queue("out"), str(producer.priority))

    async with jmsaio.connect(f"memory://{name('broker')}") as connection:
        session = await connection.create_session()
        (await session.create_consumer(queue)).set_message_listener(listener)
        producer = await session.create_producer()
        await producer.send(queue, "x")
        await asyncio.wait_for(entered.wait(), 20)
        closing = asyncio.ensure_future(session.close())
        await asyncio.sleep(0.1)
        assert not producer.closed
        with pytest.raises(jmsaio.ObjectClosedError):
            await producer.send(queue, "late")
        with pytest.raises(jmsaio.ObjectClosedError):
            producer.get_priority()
        go_on.set()
        await closing
        assert texts(await rest(connection, jmsaio.Queue("out"))) == ["4"]


async def test_a_loop_of_sends_lets_others_run_once_a_millisecond_not_with_each_send(name: Name) -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with jmsaio.connect(f"memory://{name('broker')}") as connection, connection.create_session() as session:
        producer = await session.create_producer(jmsaio.Queue("q"))
        await producer.send("first")
        running = asyncio.ensure_future(other())
        for _ in range(50):  # on virtual time all in the same millisecond
            await producer.send_async("x")
        running.cancel()
        assert turns <= 2


async def test_attributes_and_setters_are_the_same(session: jmsaio.Session) -> None:
    producer = await session.create_producer()
    producer.time_to_live = timedelta(minutes=1)
    producer.delivery_delay = 2
    producer.set_disable_message_id(True)
    producer.set_disable_message_timestamp(True)
    assert (producer.time_to_live, producer.delivery_delay) == (60.0, 2.0)
    assert producer.disable_message_id
    assert producer.disable_message_timestamp
    with pytest.raises(ValueError, match="seconds, not milliseconds"):
        producer.time_to_live = 10**9
    await producer.close()
    with pytest.raises(jmsaio.ObjectClosedError):
        producer.time_to_live = 1


async def test_a_producer_begins_with_the_defaults_of_jms(session: jmsaio.Session) -> None:
    producer = await session.create_producer()
    assert (producer.delivery_mode, producer.priority, producer.time_to_live, producer.delivery_delay) == (2, 4, 0, 0)
    assert (producer.disable_message_id, producer.disable_message_timestamp) == (False, False)
    assert producer.destination is None


async def test_each_setter_sets_its_own_setting(session: jmsaio.Session) -> None:
    producer = await session.create_producer(jmsaio.Queue("orders"))
    producer.set_delivery_mode(jmsaio.DeliveryMode.NON_PERSISTENT)
    producer.set_priority(9)
    producer.set_time_to_live(1.5)
    producer.set_delivery_delay(2.5)
    producer.set_disable_message_id(True)
    assert (producer.get_delivery_mode(), producer.get_priority()) == (1, 9)
    assert (producer.get_time_to_live(), producer.get_delivery_delay()) == (1.5, 2.5)
    assert (producer.get_disable_message_id(), producer.get_disable_message_timestamp()) == (True, False)
    producer.set_disable_message_id(False)
    producer.set_disable_message_timestamp(True)
    assert (producer.get_disable_message_id(), producer.get_disable_message_timestamp()) == (False, True)
    assert producer.get_destination() == jmsaio.Queue("orders")


SETTINGS = {
    "delivery_mode": 1, "priority": 5, "time_to_live": 1, "delivery_delay": 1, "disable_message_id": True,
    "disable_message_timestamp": True,
}  # fmt: skip


@pytest.mark.parametrize("name", [*SETTINGS, "destination"])
async def test_a_closed_producer_has_no_settings(session: jmsaio.Session, name: str) -> None:
    producer = await session.create_producer()
    await producer.close()
    with pytest.raises(jmsaio.ObjectClosedError):
        getattr(producer, name)
    if name in SETTINGS:
        with pytest.raises(jmsaio.ObjectClosedError):
            setattr(producer, name, SETTINGS[name])


@pytest.mark.parametrize("name", ["disable_message_id", "disable_message_timestamp"])
async def test_a_flag_is_true_or_false(session: jmsaio.Session, name: str) -> None:
    producer = await session.create_producer()
    with pytest.raises(jmsaio.JMSError, match=name):
        setattr(producer, name, "yes")
    assert getattr(producer, name) is False


def test_the_keywords_of_send_are_those_that_type_checkers_know() -> None:
    for call in (MessageProducer.send, MessageProducer.send_async):
        keywords = {
            name: each.annotation
            for name, each in inspect.signature(call).parameters.items()
            if each.kind is inspect.Parameter.KEYWORD_ONLY and name != "completion_listener"
        }
        declared = {name: getattr(kind, "__forward_arg__", kind) for name, kind in SendOptions.__annotations__.items()}
        assert keywords == declared
        assert SendOptions.__required_keys__ == frozenset()


async def test_milliseconds_in_place_of_seconds_are_warned_of_at_the_line_that_gives_them() -> None:
    url = f"memory://{uuid.uuid4()}"
    async with jmsaio.ConnectionFactory(url) as factory, factory.create_context() as context:
        async with jmsaio.connect(url) as connection, connection.create_session() as session:
            queue = jmsaio.Queue("q")
            producer, consumer = await session.create_producer(queue), await session.create_consumer(queue)
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                await producer.send("x", time_to_live=30000)
                producer.set_time_to_live(60000)
                producer.set_delivery_delay(5000)
                producer.set_delivery_delay(0)
                context.create_producer().set_time_to_live(60000)
                jmsaio.ConnectionFactory("memory:", send_timeout=30000)
                await consumer.drain(20000)
                jmsaio.ConnectionFactory("memory:?producerConfig.sendTimeoutMs=30000")
                jmsaio.ConnectionFactory("memory:", producer={"send_timeout": 30000})
                request = asyncio.create_task(session.request(queue, "x", timeout=5000))
                await asyncio.sleep(0)
                request.cancel()
                await connection.drain(20000)
            assert [str(each.message).partition(" is ")[0] for each in seen] == [
                "time_to_live = 30000", "time_to_live = 60000", "delivery_delay = 5000", "time_to_live = 60000",
                "send_timeout = 30000", "timeout = 20000", "send_timeout = 30000", "timeout = 5000", "timeout = 20000",
            ]  # fmt: skip
            assert {each.filename for each in seen if "timeout = 5000" not in str(each.message)} == {__file__}
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                jmsaio.ConnectionFactory("memory:", send_timeout=30000.0, close_timeout=timedelta(seconds=30000))
