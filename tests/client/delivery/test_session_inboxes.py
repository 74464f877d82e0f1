"""Inboxes whose consumer is closed: they linger until all is settled, and a new consumer takes them over."""

from __future__ import annotations

import asyncio
import collections
import uuid
from collections.abc import Callable
from typing import Any

import pytest

import jmsaio
from jmsaio import AcknowledgeMode
from jmsaio.client.delivery.filter import Filter
from jmsaio.client.delivery.inbox import Inbox
from jmsaio.client.delivery.session_inboxes import SessionInboxes
from jmsaio.client.delivery.sharing import SharingReceiver
from jmsaio.client.lifetime.closing import Deadline, FirstError
from jmsaio.client.lifetime.opening import Opening
from tests.client.delivery.test_inbox import Receiver, inbox, numbered
from tests.client.helpers import fill, rest, take, text, texts

Name = Callable[[str], str]


async def opened(opening: Opening[jmsaio.MessageConsumer]) -> jmsaio.MessageConsumer:
    return await opening


async def test_a_new_consumer_takes_over_from_a_closed_one(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("adopt"))
    await fill(connection, queue, 4)
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        first = await session.create_consumer(queue)
        await take(first, 2)
        await first.close()
        second = await session.create_consumer(queue)
        messages = await take(second, 2)
        assert texts(messages) == ["2", "3"]
        await messages[-1].acknowledge()
    assert await rest(connection, queue, wait=0.5) == []


async def test_recover_after_the_consumer_closed(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("recover"))
    await fill(connection, queue, 2)
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        first = await session.create_consumer(queue)
        await take(first, 2)
        await first.close()
        await session.recover()
        second = await session.create_consumer(queue)
        messages = await take(second, 2)
        assert sorted(texts(messages)) == ["0", "1"]
        await messages[-1].acknowledge()


async def test_a_lingering_inbox_keeps_nothing_from_others(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("lingering"))
    await fill(connection, queue, 10)
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        consumer = await session.create_consumer(queue)
        (first,) = await take(consumer, 1)
        await consumer.close()
        async with connection.create_session() as other, other.create_consumer(queue) as taker:
            found = texts(await take(taker, 9))
        assert sorted([*found, text(first)]) == [str(number) for number in range(10)]
        await first.acknowledge()
    assert await rest(connection, queue) == []


async def test_a_taken_over_inbox_obeys_the_new_selector(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("selector"))
    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        await (await session.create_producer(queue)).send("a", properties={"n": 1})
        async with session.create_consumer(queue) as consumer:
            await take(consumer, 1)
        async with session.create_consumer(queue, selector="n = 2") as consumer:
            await session.recover()
            assert await consumer.receive(timeout=0.5) is None
    assert texts(await rest(connection, queue, 1)) == ["a"]


async def test_what_is_recovered_while_an_inbox_is_taken_over_obeys_the_new_selector(
    connection: jmsaio.Connection, name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, resuming, recovered = jmsaio.Queue(name("meanwhile")), asyncio.Event(), asyncio.Event()
    resume = SharingReceiver.resume

    async def resume_late(self: SharingReceiver[Any], timeout: float) -> None:
        resuming.set()
        await recovered.wait()
        await resume(self, timeout)

    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        await (await session.create_producer(queue)).send("a", properties={"n": 1})
        async with session.create_consumer(queue, selector="n = 1") as consumer:
            await take(consumer, 1)
        monkeypatch.setattr(SharingReceiver, "resume", resume_late)
        opening = asyncio.create_task(opened(session.create_consumer(queue, selector="n = 2")))
        await resuming.wait()
        await session.recover()
        recovered.set()
        async with await opening as consumer, connection.create_session() as other:
            assert await consumer.receive(timeout=0.5) is None
            async with other.create_consumer(queue, selector="n = 1") as taker:
                (again,) = await take(taker, 1)
                assert again.get_int_property("JMSXDeliveryCount") == 2


@pytest.mark.parametrize("kind", ["shared", "shared_durable"])
async def test_a_inbox_that_could_not_be_taken_over_is_let_go(
    connection: jmsaio.Connection, name: Name, kind: str
) -> None:
    topic, subscription = jmsaio.Topic(name("claimed")), name("name")
    session = await connection.create_session(AcknowledgeMode.CLIENT)
    async with connection.create_session() as other:
        opening, others = (getattr(one, f"create_{kind}_consumer") for one in (session, other))
        consumer = await opening(topic, subscription)
        stays = await others(topic, subscription)
        producer = await other.create_producer(topic)
        for number in range(4):
            await producer.send(str(number))
        await take(consumer, 1)
        await consumer.close()
        with pytest.raises(jmsaio.JMSError, match="is active"):
            await opening(topic, subscription, selector="n = 1")
        assert [inbox.closed for inbox in session._runtime.inboxes.lingering] == [False]
        await session.close()
        assert sorted(texts(await take(stays, 4))) == ["0", "1", "2", "3"]


async def test_a_cancelled_close_of_a_consumer_leaves_nothing(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("cancelled"))
    await fill(connection, queue, 3)
    entered, go_on = asyncio.Event(), asyncio.Event()

    async def listener(message: jmsaio.Message) -> None:
        entered.set()
        await go_on.wait()

    async with connection.create_session() as session:
        consumer = await session.create_consumer(queue)
        consumer.set_message_listener(listener)
        await asyncio.wait_for(entered.wait(), 20)
        closing = asyncio.ensure_future(consumer.close())
        await asyncio.sleep(0.05)
        closing.cancel()
        go_on.set()
        await asyncio.wait([closing])
    assert sorted(texts(await rest(connection, queue, 2))) == ["1", "2"]


async def test_a_durable_subscription_with_unsettled_messages_is_taken_over(name: Name) -> None:
    topic = jmsaio.Topic(name("durable"))
    async with jmsaio.connect(f"memory://{name('broker')}", client_id=name("id")) as connection:
        async with connection.create_session(AcknowledgeMode.CLIENT) as session:
            first = await session.create_durable_consumer(topic, "sub")
            await fill(connection, topic, 2)
            await take(first, 1)
            await first.close()
            second = await session.create_durable_consumer(topic, "sub")
            assert texts(await take(second, 1)) == ["1"]
            assert list(session._runtime.inboxes) == [second._inbox]


#: Stands for the transport of a session, which is compared only.
TRANSPORT: Any = object()


async def test_only_lingering_inboxes_whose_records_are_all_settled_are_closed() -> None:
    settled, unsettled, shared = (Receiver() for _ in range(3))
    made = {name: inbox(receiver, Filter()) for name, receiver in (("s", settled), ("u", unsettled), ("l", shared))}
    forgotten: list[Inbox] = []
    inboxes = SessionInboxes(TRANSPORT, lambda one: one is made["u"], forgotten.append)
    for one in made.values():
        inboxes.linger(one)
    SharingReceiver[Any](Receiver()).adopt(numbered(1), made["l"].receiver)  # type: ignore[arg-type]  # what is used of one
    await inboxes.close_settled(Deadline.after(1.0))
    assert [settled.calls, unsettled.calls, shared.calls] == [[("close",)], [], []]
    assert list(inboxes) == [made["u"], made["l"]] and forgotten == [made["s"]]


async def test_an_inbox_of_another_transport_is_not_kept() -> None:
    inboxes, other, made = (
        SessionInboxes(TRANSPORT, lambda _: False, lambda _: None),
        object(),
        inbox(Receiver(), Filter()),
    )
    assert inboxes.keep(made, other) is False and list(inboxes) == []  # type: ignore[arg-type]  # compared only
    assert inboxes.keep(made, TRANSPORT) is True and list(inboxes) == [made]


@pytest.mark.parametrize("kept", [None, False, True])
async def test_an_inbox_whose_records_another_session_has_is_left_to_it_if_that_can_keep_it(kept: bool | None) -> None:
    """What the closing session did not deliver, or not settle, goes back either way."""
    receiver, adopter, asked = Receiver([numbered(1), numbered(2)]), SharingReceiver[Any](Receiver()), []  # type: ignore[arg-type]  # what is used of one
    made = inbox(receiver, Filter())
    made.fill()
    delivered = made.take()
    assert delivered is not None
    adopter.adopt(numbered(3), made.receiver)

    def keep(one: Inbox, transport: Any) -> bool:
        asked.append((one, transport))
        return bool(kept)

    adopter.keep = None if kept is None else keep
    inboxes = SessionInboxes(TRANSPORT, lambda _: True, lambda _: None)
    inboxes.open[made] = None
    inboxes.lingering[other := inbox(Receiver(), Filter())] = None
    await inboxes.close_all(Deadline.after(1.0), {made: [delivered]}, FirstError())
    given_back = ("nack", 0.0, False, 2)
    assert receiver.calls == [given_back, *([("nack", 0.0, True, 1), ("stop",)] if kept else [("close",)])]
    assert asked == ([] if kept is None else [(made, TRANSPORT)])
    assert list(inboxes) == [] and other.closed


async def test_a_session_that_closes_many_consumers_lets_others_run_in_between(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn, begun, aclose = 0, collections.Counter[int](), Inbox.aclose

    async def counted(inbox: Inbox, timeout: float) -> None:
        begun[turn] += 1
        await aclose(inbox, timeout)

    async def others() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(Inbox, "aclose", counted)
    async with jmsaio.connect(url) as connection:
        session = await connection.create_session()
        queue = session.create_queue(f"many-{uuid.uuid4()}")
        await asyncio.gather(*(session.create_consumer(queue) for _ in range(60)))
        running = asyncio.create_task(others())
        await session.close()
        running.cancel()
    assert begun.total() == 60
    assert max(begun.values()) <= 10
