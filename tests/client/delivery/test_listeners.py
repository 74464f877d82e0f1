"""Message listeners of a session: served in turn, at no cost while nothing comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import jmsaio
from jmsaio.client.delivery.filter import Filter
from jmsaio.client.delivery.inbox import Inbox
from jmsaio.client.delivery.listeners import Listener, Listeners
from tests.client.delivery.test_deliveries import deliveries
from tests.client.delivery.test_inbox import Receiver, inbox, numbered
from tests.kit.inside import admin_of, inbox_of, runtime_of

Name = Callable[[str], str]


async def test_an_idle_listener_costs_nothing(session: jmsaio.Session, name: Name) -> None:
    consumer = await session.create_consumer(jmsaio.Queue(name("idle")))
    consumer.set_message_listener(lambda message: None)
    await asyncio.sleep(0.1)
    asked = 0
    give = runtime_of(session).callbacks.next_job

    def next_job() -> object:
        nonlocal asked
        asked += 1
        return give()

    runtime_of(session).callbacks.next_job = next_job  # type: ignore[assignment]  # counts on its way
    await asyncio.sleep(0.3)
    assert asked < 20


async def test_a_listener_may_close_another_consumer(session: jmsaio.Session, name: Name) -> None:
    queue = jmsaio.Queue(name("closes"))
    consumer, other = await session.create_consumer(queue), await session.create_consumer(jmsaio.Queue(name("other")))
    closed = asyncio.Event()

    async def listener(message: jmsaio.Message) -> None:
        await other.close()
        closed.set()

    consumer.set_message_listener(listener)
    await (await session.create_producer(queue)).send("x")
    await asyncio.wait_for(closed.wait(), 10)


async def test_a_listener_whose_subscription_is_lost_is_reported(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("lost"))
    told: asyncio.Queue[jmsaio.JMSError] = asyncio.Queue()
    connection.set_exception_listener(told.put_nowait)
    async with connection.create_session() as session:
        consumer, other = await session.create_consumer(queue), await session.create_consumer(queue)
        consumer.set_message_listener(lambda message: None)
        lost = jmsaio.NotFoundError("the topic was deleted")
        for inbox in (inbox_of(consumer), inbox_of(other)):
            inbox.fail(lost)
        runtime_of(session).callbacks.wake()
        assert await asyncio.wait_for(told.get(), 10) is lost
        with pytest.raises(jmsaio.NotFoundError, match="deleted"):
            await other.receive_no_wait()


async def test_a_listener_that_waits_for_a_schema_holds_up_no_other_and_no_close(
    connection: jmsaio.Connection, name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin: Any = admin_of(connection)
    away, began = asyncio.Event(), asyncio.Event()
    monkeypatch.setattr("jmsaio.client.delivery.schemas._LONGEST", 60.0)
    give = type(admin).schema

    async def hang(self: Any, topic: str, version: int) -> Any:
        began.set()
        await away.wait()
        return await give(self, topic, version)

    monkeypatch.setattr(type(admin), "schema", hang)
    texts, values = jmsaio.Queue(name("texts")), jmsaio.Queue(name("values"))
    reading = jmsaio.Queue(f"{values.name}?consumerConfig.useSchema=true")
    heard: asyncio.Queue[str] = asyncio.Queue()
    async with connection.create_session() as session:
        (await session.create_consumer(reading)).set_message_listener(lambda message: None)
        (await session.create_consumer(texts)).set_message_listener(lambda message: heard.put_nowait(message.text))
        await (await session.create_producer(values, schema=jmsaio.Schema("JSON", '"int"'))).send([5])
        await asyncio.wait_for(began.wait(), 10)
        producer = await session.create_producer(texts)
        for text in ("1", "2", "3"):
            await producer.send(text)
        assert [await asyncio.wait_for(heard.get(), 10) for _ in range(3)] == ["1", "2", "3"]
    away.set()
    async with connection.create_session() as session, session.create_consumer(reading) as consumer:
        assert await consumer.receive_body(list, timeout=10) == [5]


def listening(*inboxes: Inbox) -> tuple[Listeners, list[Exception]]:
    """Listeners of inboxes, and the errors that they report."""
    reported: list[Exception] = []
    reports: Any = SimpleNamespace(add=lambda error, **_: reported.append(error))
    nothing: Any = None
    listeners = Listeners(nothing, reports, nothing, nothing)
    for one in inboxes:
        listeners.set(Listener(one, lambda message: None, lambda record: None, one))
    return listeners, reported


def filled(*entries: int, asked: list[Inbox] | None = None) -> Inbox:
    """An inbox with records."""
    made = inbox(Receiver(), Filter(), changed=lambda one: None if asked is None else asked.append(one))
    made.records.extend(numbered(entry) for entry in entries)
    return made


async def test_inboxes_are_served_in_turn() -> None:
    first, second = filled(1, 2, 3), filled(4)
    listeners, _ = listening(first, second)
    left = []
    while listeners.next_job() is not None:
        left.append((len(first.records), len(second.records)))
    assert left == [(2, 1), (2, 0), (1, 0), (0, 0)]


async def test_what_a_failed_inbox_has_is_delivered_before_its_failure_is_reported_once() -> None:
    failed, other = filled(1), filled(2, 3)
    lost = jmsaio.TransportError("lost")
    failed.fail(lost)
    listeners, reported = listening(failed, other)
    assert listeners.next_job() is not None and reported == []
    jobs = 0
    while listeners.next_job() is not None:
        jobs += 1
    assert jobs == 2 and reported == [lost] and listeners.next_job() is None


async def test_an_empty_inbox_is_asked_only_while_its_receiver_may_have_more() -> None:
    asked: list[Inbox] = []
    empty = filled(asked=asked)
    listeners, _ = listening(empty)
    assert listeners.next_job() is None and asked == [empty]
    empty.fill()
    assert listeners.next_job() is None and asked == [empty]


async def test_a_second_listener_takes_the_place_of_the_first() -> None:
    one, other = filled(1, 2), filled(3, 4)
    listeners, _ = listening(one, other, one)
    listeners.next_job()
    listeners.next_job()
    assert (len(one.records), len(other.records)) == (1, 1)
    listeners.unset(one)
    listeners.unset(one)
    assert listeners.next_job() is not None and listeners.next_job() is None and len(one.records) == 1


async def test_a_message_whose_listener_was_taken_away_stays_first_in_line() -> None:
    one = filled(1, 2)
    listeners, _ = listening(one)
    job = listeners.next_job()
    assert job is not None
    listeners.unset(one)
    await job()
    assert [record.message_id.entry for record in one.records] == [1, 2]


@pytest.mark.parametrize("dead", [True, False])
async def test_a_listener_hears_of_what_was_decoded_and_nothing_is_reported(dead: bool) -> None:
    """What became a dead letter is not delivered. An inbox that lingers is closed after the call."""
    receiver, heard, reports = Receiver([numbered(1)]), [], []
    made, found = inbox(receiver, Filter()), deliveries(jmsaio.AcknowledgeMode.AUTO)
    reporting: Any = SimpleNamespace(add=lambda *report, **_: reports.append(report))
    listeners = Listeners(found, reporting, None, None)

    def listen(message: jmsaio.Message) -> None:
        heard.append(message)
        found.inboxes.linger(made)

    def decode(_: object) -> jmsaio.Message | None:
        return None if dead else jmsaio.TextMessage("x")

    for _ in range(2):  # the second takes the place of the first
        listeners.set(Listener(made, listen, decode, None))
    assert list(listeners._turns) == [made]
    made.fill()
    job = listeners.next_job()
    assert job is not None
    await job()
    assert (len(heard), reports, len(found.ledger)) == (not dead, [], 0)
    assert receiver.calls == ([] if dead else [("ack", 1), ("close",)])
