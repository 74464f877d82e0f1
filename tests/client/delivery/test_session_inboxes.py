"""Inboxes of a session: filled in turn; once their consumer is closed they linger until all is settled."""

from __future__ import annotations

import asyncio
import collections
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

import jmsaio
from jmsaio import AcknowledgeMode
from jmsaio.client.delivery import session_inboxes
from jmsaio.client.delivery.filter import Filter
from jmsaio.client.delivery.inbox import Inbox, Siblings
from jmsaio.client.delivery.session_inboxes import SessionInboxes
from jmsaio.client.lifetime.scope import Deadline, FirstError, Opening
from jmsaio.client.subscriptions.plan import parse_selector
from jmsaio.model.wire import ReceivedRecord
from jmsaio.rules.ledger import DeliveryLedger
from tests.client.delivery.test_inbox import Receiver, Session, inbox, numbered
from tests.client.helpers import fill, full_name, rest, take, text, texts
from tests.kit.inside import admin_of, inbox_of, runtime_of

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
            statistics = await admin_of(connection).stats(full_name(connection, queue))
            assert [one.selector for one in statistics.subscriptions["jms-queue"].connected] == ["n = 2"]
            await session.recover()
            assert await consumer.receive(timeout=0.5) is None
    assert texts(await rest(connection, queue, 1)) == ["a"]


async def test_a_selector_that_a_taken_over_inbox_can_not_show_is_left_out(name: Name) -> None:
    """The consumer's own properties fill the metadata."""
    queue, properties = jmsaio.Queue(name("full")), {"p": "x" * 900}
    async with (
        jmsaio.connect(f"memory://{name('broker')}", consumer={"properties": properties}) as connection,
        connection.create_session(jmsaio.AcknowledgeMode.CLIENT) as session,
    ):
        await fill(connection, queue, 1)
        async with session.create_consumer(queue) as consumer:
            await take(consumer, 1)
        async with session.create_consumer(queue, selector=f"n = '{'x' * 200}'") as consumer:
            statistics = await admin_of(connection).stats(full_name(connection, queue))
            assert [one.selector for one in statistics.subscriptions["jms-queue"].connected] == [None]
            await session.recover()
            assert await consumer.receive(timeout=0.1) is None


async def test_what_is_recovered_while_an_inbox_is_taken_over_obeys_the_new_selector(
    connection: jmsaio.Connection, name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, resuming, recovered = jmsaio.Queue(name("meanwhile")), asyncio.Event(), asyncio.Event()

    async def resume_late(self: Any, timeout: float, selector: str | None) -> None:
        resuming.set()
        await recovered.wait()
        await resume(self, timeout, selector)

    async with connection.create_session(AcknowledgeMode.CLIENT) as session:
        await (await session.create_producer(queue)).send("a", properties={"n": 1})
        async with session.create_consumer(queue, selector="n = 1") as consumer:
            await take(consumer, 1)
        transports_own = type(inbox_of(consumer).settlement.own)
        resume = transports_own.resume
        monkeypatch.setattr(transports_own, "resume", resume_late)
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
        assert [inbox.closed for inbox in runtime_of(session).inboxes.lingering] == [False]
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
            assert list(runtime_of(session).inboxes) == [inbox_of(second)]


#: Stands for the transport of a session, which is compared only.
TRANSPORT: Any = object()


async def test_only_lingering_inboxes_whose_records_are_all_settled_are_closed() -> None:
    settled, unsettled, shared = (Receiver() for _ in range(3))
    made = {name: inbox(receiver, Filter()) for name, receiver in (("s", settled), ("u", unsettled), ("l", shared))}
    ledger: DeliveryLedger[Inbox, ReceivedRecord] = DeliveryLedger()
    ledger.delivered(made["u"], numbered(2))
    inboxes = SessionInboxes(TRANSPORT, ledger, lambda: None)
    for one in made.values():
        inboxes.linger(one)
    inbox(Receiver(), Filter()).add(numbered(1), made["l"].settlement)
    await inboxes.close_settled(Deadline.after(1.0))
    assert [settled.calls, unsettled.calls, shared.calls] == [[("close",)], [], []]
    assert list(inboxes) == [made["u"], made["l"]]


async def test_an_inbox_of_another_transport_is_not_kept() -> None:
    inboxes, other = SessionInboxes(TRANSPORT, DeliveryLedger(), lambda: None), object()
    made = inbox(Receiver(), Filter())
    assert inboxes.retain(made, other) is False and list(inboxes) == []  # type: ignore[arg-type]  # compared only
    assert inboxes.retain(made, TRANSPORT) is True and list(inboxes) == [made]


async def test_a_session_that_has_begun_to_close_its_inboxes_keeps_none() -> None:
    inboxes, made = SessionInboxes(TRANSPORT, DeliveryLedger(), lambda: None), inbox(Receiver(), Filter())
    await inboxes.close_all(Deadline.after(1.0), {}, FirstError())
    assert inboxes.retain(made, TRANSPORT) is False and list(inboxes) == []


@pytest.mark.parametrize("kept", [None, False, True])
async def test_an_inbox_whose_records_another_session_has_is_left_to_it_if_that_can_keep_it(kept: bool | None) -> None:
    """What the closing session did not deliver, or not settle, goes back either way."""
    receiver, taker, asked = Receiver([numbered(1), numbered(2)]), inbox(Receiver(), Filter()), []
    made = inbox(receiver, Filter())
    made.fill()
    delivered = made.pop()
    assert delivered is not None

    def keep(one: Inbox, transport: Any) -> bool:
        asked.append((one, transport))
        return bool(kept)

    if kept is not None:
        taker.attach(Session(kept=keep), Filter(), Siblings(), lambda: None)
        taker.add(numbered(3), made.settlement)
    inboxes = SessionInboxes(TRANSPORT, DeliveryLedger(), lambda: None)
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


@attrs.define(eq=False)
class Filled:
    """Says how often it wants to be filled."""

    fills: int
    filled: int = 0
    wanted: bool = True
    filter: Filter = attrs.field(factory=Filter)

    def fill(self) -> bool:
        self.filled += 1
        return self.filled < self.fills


def made(filled: Callable[[], None] = lambda: None) -> SessionInboxes:
    return SessionInboxes(TRANSPORT, DeliveryLedger(), filled)


async def run(inboxes: SessionInboxes, turns: list[Filled]) -> None:
    task = asyncio.ensure_future(inboxes.run())
    for one in turns:
        await asyncio.wait_for(inboxes.turn(one), 5)  # type: ignore[arg-type]  # what is used of one
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_channels_are_filled_until_they_have_enough() -> None:
    filled: list[None] = []
    inboxes = [Filled(1), Filled(20)]
    await run(made(lambda: filled.append(None)), inboxes)
    assert [inbox.filled for inbox in inboxes] == [1, 20]
    assert len(filled) >= 4  # after each inbox, and after each 8 fills


async def test_a_closed_inbox_is_not_filled() -> None:
    inboxes, receiver = made(), Receiver([numbered(1)])
    gone = inbox(receiver, Filter())
    inboxes.linger(gone)
    inboxes.mark(gone)
    await inboxes.close_settled(Deadline.after(1.0))
    await run(inboxes, [Filled(1)])
    assert receiver.limits == []


@attrs.define(eq=False)
class Slow(Filled):
    """Each fill takes its time."""

    def fill(self) -> bool:
        time.sleep(0.02)
        return super().fill()


async def test_others_have_their_turn_between_long_fills() -> None:
    """As long as one inbox has more, however few fills that is."""
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    task = asyncio.ensure_future(others())
    await run(made(), [Slow(5)])
    task.cancel()
    assert turns >= 5


async def test_a_turn_of_a_session_that_has_ended_does_not_wait() -> None:
    inboxes = made()
    await run(inboxes, [Filled(1)])
    await asyncio.wait_for(inboxes.turn(Filled(1)), 5)  # type: ignore[arg-type]  # what is used of one


async def test_a_turn_ends_with_the_session_and_a_cancelled_one_harms_no_one() -> None:
    inboxes = made()
    task = asyncio.ensure_future(inboxes.run())
    await asyncio.sleep(0)
    for cancelled in (True, False):
        turn = asyncio.ensure_future(inboxes.turn(Filled(1)))  # type: ignore[arg-type]  # what is used of one
        await asyncio.sleep(0)
        if cancelled:
            turn.cancel()
            await asyncio.sleep(0.01)
    assert not task.done()
    task.cancel()
    await asyncio.wait_for(turn, 5)
    with suppress(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(("seconds", "turns"), [(0.0, [8, 16, 20]), (0.006, [*range(2, 21, 2), 20])])
async def test_callbacks_and_other_tasks_have_their_turn_after_eight_fills_or_ten_milliseconds(
    monkeypatch: pytest.MonkeyPatch, seconds: float, turns: list[int]
) -> None:
    inbox, loop = Filled(20), asyncio.get_running_loop()
    told: list[int] = []
    others: list[int] = []

    def filled() -> None:
        told.append(inbox.filled)
        loop.call_soon(lambda: others.append(inbox.filled))

    monkeypatch.setattr(session_inboxes, "time", SimpleNamespace(perf_counter=lambda: 1000.0 + seconds * inbox.filled))
    await run(made(filled), [inbox])
    assert told == others == turns


async def test_what_is_announced_to_a_receive_that_waits_is_there_at_once() -> None:
    """Also where there is more than one fill takes: the rest is filled by the coroutine."""
    filled: list[None] = []
    one, inbox = made(lambda: filled.append(None)), Filled(3)
    one.announce(inbox)  # type: ignore[arg-type]  # what is used of one
    assert (inbox.filled, len(filled)) == (1, 1)
    await run(one, [Filled(1)])
    assert inbox.filled == 3


@pytest.mark.parametrize(
    "inbox",
    [Filled(1, wanted=False), Filled(1, filter=Filter(parse_selector("a = 1")))],
    ids=["no one waits", "a selector"],
)
async def test_what_costs_something_is_filled_by_the_coroutine(inbox: Filled) -> None:
    one = made()
    one.announce(inbox)  # type: ignore[arg-type]  # what is used of one
    assert inbox.filled == 0
    await run(one, [Filled(1)])
    assert inbox.filled == 1


async def test_an_announced_inbox_is_not_filled_before_those_that_wait_for_their_turn() -> None:
    one, first, second = made(), Filled(1), Filled(1)
    one.mark(first)  # type: ignore[arg-type]  # what is used of one
    one.announce(second)  # type: ignore[arg-type]  # what is used of one
    assert (first.filled, second.filled) == (0, 0)
    await run(one, [Filled(1)])
    assert (first.filled, second.filled) == (1, 1)


async def test_an_error_in_a_fill_ends_the_dispatch_whoever_filled() -> None:
    @attrs.define(eq=False)
    class Broken(Filled):
        def fill(self) -> bool:
            raise RuntimeError("broken")

    one = made()
    one.announce(Broken(1))  # type: ignore[arg-type]  # what is used of one
    with pytest.raises(RuntimeError, match="broken"):
        await asyncio.wait_for(one.run(), 5)
