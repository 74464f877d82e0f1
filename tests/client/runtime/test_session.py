"""What lives behind a session: lingering consumers, bounded closes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

import jmsaio
from jmsaio import AcknowledgeMode
from jmsaio.testing import embedded_broker
from jmsaio.transport.memory.receiver import MemoryReceiver
from tests.client.helpers import fill, rest, take, texts
from tests.kit.inside import inbox_of, runtime_of, transport_of
from tests.kit.virtual_time import steady

Name = Callable[[str], str]


async def test_a_listener_that_never_returns_bounds_the_close(url: str, name: Name) -> None:
    queue = jmsaio.Queue(name("stuck"))
    entered = asyncio.Event()

    async def listener(message: jmsaio.Message) -> None:
        entered.set()
        await asyncio.sleep(3600)

    connection = await jmsaio.connect(url, close_timeout=0.2)
    await fill(connection, queue, 1)
    session = await connection.create_session()
    (await session.create_consumer(queue)).set_message_listener(listener)
    await asyncio.wait_for(entered.wait(), 20)
    with pytest.raises(jmsaio.OperationTimeoutError, match="did not return"):
        await session.close()
    assert session.closed
    await connection.close()
    async with jmsaio.connect(url) as again:
        assert texts(await rest(again, queue, 1)) == ["0"]


async def test_many_idle_consumers(connection: jmsaio.Connection, name: Name, url: str) -> None:
    count = 100 if url.startswith("memory") else 10
    async with connection.create_session() as session:
        queue = session.create_queue(name("idle"))
        consumers = [await session.create_consumer(queue) for _ in range(count)]
        waiting = [asyncio.ensure_future(consumer.receive()) for consumer in consumers]
        await asyncio.sleep(0.05)
    assert await asyncio.wait_for(asyncio.gather(*waiting), 30) == [None] * count


async def test_a_consumer_that_a_closing_session_did_not_know(name: Name) -> None:
    queue = jmsaio.Queue(name("race"))
    async with jmsaio.connect(f"memory://{name('broker')}") as connection:
        await fill(connection, queue, 1)
        session = await connection.create_session()
        open_receiver = transport_of(connection).open_receiver

        async def slowly(*arguments: object) -> object:
            receiver = await open_receiver(*arguments)  # type: ignore[arg-type]  # passed on as they came
            await session.close()
            return receiver

        transport_of(connection).open_receiver = slowly  # type: ignore[method-assign,assignment]  # the same, slower
        with pytest.raises(jmsaio.ObjectClosedError):
            await session.create_consumer(queue)
        transport_of(connection).open_receiver = open_receiver  # type: ignore[method-assign]  # as it was
        assert texts(await rest(connection, queue, 1)) == ["0"]


async def test_a_session_whose_making_was_cancelled_ends(connection: jmsaio.Connection) -> None:
    for turns in range(6):
        making = asyncio.ensure_future(connection._create_session(AcknowledgeMode.AUTO, None))
        for _ in range(turns):
            await asyncio.sleep(0)
        making.cancel()
        await asyncio.wait([making])
        if not making.cancelled():
            await making.result().close()
    await asyncio.sleep(0.1)
    assert not connection.stats().sessions


async def test_a_session_whose_worker_its_own_listener_cancelled_is_reported(
    connection: jmsaio.Connection, name: Name
) -> None:
    def listener(message: jmsaio.Message) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    queue = jmsaio.Queue(name("cancels"))
    reported: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
    connection.set_exception_listener(reported.set_result)
    await fill(connection, queue, 1)
    session = await connection.create_session(AcknowledgeMode.CLIENT)
    (await session.create_consumer(queue)).set_message_listener(listener)
    error = await asyncio.wait_for(reported, 20)
    assert "the session ended by itself" in str(error) and "cancelled the task" in str(error)
    await session.close()  # was reported, and is not raised as well
    assert texts(await rest(connection, queue, 1)) == ["0"]


async def test_closing_waits_for_what_a_listener_sends_meanwhile(name: Name) -> None:
    queue, output = jmsaio.Queue(name("in")), jmsaio.Queue(name("out"))
    entered, sent = asyncio.Event(), []
    with embedded_broker() as broker:
        async with jmsaio.connect(broker.url) as connection:
            await fill(connection, queue, 1)
            session = await connection.create_session()
            producer = await session.create_producer(output)

            async def listener(message: jmsaio.Message) -> None:
                entered.set()
                await asyncio.sleep(0.05)
                broker.faults.delay_answers(0.2)
                sent.append(await producer.send_async("answer"))

            (await session.create_consumer(queue)).set_message_listener(listener)
            await asyncio.wait_for(entered.wait(), 20)
            await session.close()
            assert [future.done() and future.exception() for future in sent] == [None]


async def test_an_inbox_that_lost_its_subscription_is_not_taken_over(name: Name) -> None:
    queue = jmsaio.Queue(name("lost"))
    async with jmsaio.connect(f"memory://{name('broker')}") as connection:
        await fill(connection, queue, 2)
        async with connection.create_session(AcknowledgeMode.CLIENT) as session:
            first = await session.create_consumer(queue)
            await take(first, 1)
            await first.close()
            inbox_of(first).fail(jmsaio.TransportError("gone"))
            second = await session.create_consumer(queue)
            assert texts(await take(second, 1)) == ["1"]
            assert await second.receive(timeout=0.05) is None


async def test_what_failed_after_its_consumer_closed_comes_to_others_while_the_rest_is_unsettled(name: Name) -> None:
    queue = jmsaio.Queue(name("others"))
    async with jmsaio.connect(f"memory://{name('broker')}") as connection:
        await fill(connection, queue, 2)
        async with connection.create_session(AcknowledgeMode.CLIENT) as session:
            consumer = await session.create_consumer(queue)
            await take(consumer, 1)
            with pytest.raises(KeyError):
                async with consumer.process(timeout=20):
                    await consumer.close()
                    raise KeyError
            assert texts(await rest(connection, queue, 1, wait=0.1)) == ["1"]


@pytest.mark.parametrize("receipts", [True, False])
async def test_an_acknowledgement_waits_for_the_brokers_receipt_where_it_is_asked_for(
    name: Name, receipts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def too_late(self: object, timeout: float, **options: object) -> None:
        raise jmsaio.OperationTimeoutError("no receipt")

    queue = jmsaio.Queue(name("receipt"))
    options = {"consumerConfig": {"ackReceiptEnabled": receipts}}
    async with jmsaio.connect({"brokerServiceUrl": f"memory://{name('broker')}", **options}) as connection:
        await fill(connection, queue, 1)
        async with connection.create_session(AcknowledgeMode.CLIENT) as session:
            (message,) = await take(await session.create_consumer(queue), 1)
            monkeypatch.setattr(MemoryReceiver, "settle", too_late)
            if receipts:
                with pytest.raises(jmsaio.OperationTimeoutError, match="no receipt"):
                    await message.acknowledge()
            else:
                await message.acknowledge()
            monkeypatch.undo()


async def test_a_message_stays_for_a_receive_when_its_listener_is_taken_away(name: Name) -> None:
    queue = jmsaio.Queue(name("taken-away"))
    got: list[jmsaio.Message] = []
    async with jmsaio.connect(f"memory://{name('broker')}") as connection, connection.create_session() as session:
        consumer = await session.create_consumer(queue)
        await fill(connection, queue, 1)
        inbox_of(consumer).wanted = True
        async with asyncio.timeout(20):
            while not inbox_of(consumer).records:
                await runtime_of(session).inboxes.turn(inbox_of(consumer))
        consumer.set_message_listener(got.append)
        job = runtime_of(session)._next_job()
        consumer.set_message_listener(None)
        assert job is not None
        await job()
        assert texts(await take(consumer, 1)) == ["0"]
        assert got == []


async def test_a_closing_session_calls_its_listeners_no_more_and_ends_receives_at_once(name: Name) -> None:
    """Though it waits for the call that runs."""
    queue, heard, entered, ended = jmsaio.Queue(name("closing")), [], asyncio.Event(), []

    async def listener(message: jmsaio.Message) -> None:
        heard.append(message.get_body(str))
        entered.set()
        await asyncio.sleep(0.2)
        ended.append("listener")

    async with jmsaio.connect(f"memory://{name('broker')}") as connection:
        await fill(connection, queue, 3)
        session = await connection.create_session()
        receiving = asyncio.ensure_future((await session.create_consumer(jmsaio.Queue(name("none")))).receive())
        receiving.add_done_callback(lambda _: ended.append("receive"))
        (await session.create_consumer(queue)).set_message_listener(listener)
        await entered.wait()
        await session.close()
        assert (heard, ended) == (["0"], ["receive", "listener"])
        assert list(runtime_of(connection).inboxes) == []
        assert texts(await rest(connection, queue, wait=0.1)) == ["1", "2"]


async def test_a_start_wakes_listeners_for_what_arrived_while_the_connection_was_stopped(name: Name) -> None:
    queue, heard = jmsaio.Queue(name("stopped")), asyncio.Event()
    async with jmsaio.connect(f"memory://{name('broker')}") as connection, connection.create_session() as session:
        consumer = await session.create_consumer(queue)
        consumer.set_message_listener(lambda _: heard.set())
        await connection.stop()
        await fill(connection, queue, 1)
        await asyncio.sleep(0.1)
        assert not heard.is_set()
        await connection.start()
        await asyncio.wait_for(heard.wait(), 1.0)


async def test_a_closing_session_keeps_no_inbox_of_another(name: Name) -> None:
    async with jmsaio.connect(f"memory://{name('broker')}") as connection, connection.create_session() as other:
        inbox = inbox_of(await other.create_consumer(jmsaio.Queue(name("transferred"))))
        session, transport = await connection.create_session(), transport_of(connection)
        await session.close()
        assert runtime_of(session).inboxes.keep(inbox, transport) is False and list(runtime_of(session).inboxes) == []
        assert runtime_of(other).inboxes.keep(inbox, transport) is True


@pytest.mark.parametrize("own", [False, True])
async def test_closing_a_consumer_waits_for_the_listener_call_that_runs_unless_that_closes_it(
    name: Name, own: bool
) -> None:
    queue, entered, ended, begun = jmsaio.Queue(name("waits")), asyncio.Event(), asyncio.Event(), steady()

    async def listener(message: jmsaio.Message) -> None:
        entered.set()
        if own:
            await consumer.close()
        else:
            await asyncio.sleep(0.2)
        ended.set()

    async with jmsaio.connect(f"memory://{name('broker')}") as connection:
        await fill(connection, queue, 1)
        async with connection.create_session() as session:
            consumer = await session.create_consumer(queue)
            consumer.set_message_listener(listener)
            await entered.wait()
            if not own:
                await consumer.close()
                assert ended.is_set()
            await ended.wait()
            assert steady() - begun < 1.0
            assert runtime_of(session).listeners._by_inbox == {}


async def test_a_listener_that_closes_a_consumer_of_another_session_waits_for_that_ones_listener(name: Name) -> None:
    queues, ended = [jmsaio.Queue(name(stem)) for stem in ("one", "two")], []
    entered, done = asyncio.Event(), asyncio.Event()

    async def slow(message: jmsaio.Message) -> None:
        entered.set()
        await asyncio.sleep(0.2)
        ended.append("slow")

    async def closing(message: jmsaio.Message) -> None:
        await entered.wait()
        await other.close()
        ended.append("closing")
        done.set()

    async with (
        jmsaio.connect(f"memory://{name('broker')}") as connection,
        connection.create_session() as session,
        connection.create_session() as another,
    ):
        other = await another.create_consumer(queues[0])
        other.set_message_listener(slow)
        (await session.create_consumer(queues[1])).set_message_listener(closing)
        for queue in queues:
            await fill(connection, queue, 1)
        await asyncio.wait_for(done.wait(), 20)
    assert ended == ["slow", "closing"]


@pytest.mark.parametrize(
    ("mode", "unsettled", "transferred", "stops"),
    [
        (AcknowledgeMode.AUTO, 0, False, 0),
        (AcknowledgeMode.AUTO, 0, True, 1),
        (AcknowledgeMode.CLIENT, 0, False, 0),
        (AcknowledgeMode.CLIENT, 1, False, 1),
    ],
)
async def test_the_receiver_of_a_closed_consumer_stops_where_its_inbox_can_not_be_closed_yet(
    name: Name, monkeypatch: pytest.MonkeyPatch, mode: AcknowledgeMode, unsettled: int, transferred: bool, stops: int
) -> None:
    stopped: list[float] = []
    stop = MemoryReceiver.stop

    async def noted(self: MemoryReceiver, timeout: float) -> None:
        stopped.append(timeout)
        await stop(self, timeout)

    monkeypatch.setattr(MemoryReceiver, "stop", noted)
    queue = jmsaio.Queue(name("stops"))
    async with jmsaio.connect(f"memory://{name('broker')}") as connection:
        await fill(connection, queue, 1)
        async with connection.create_session(mode) as session, session.create_consumer(queue) as consumer:
            await take(consumer, unsettled)
            receiver = inbox_of(consumer).receiver
            if transferred:
                receiver.transferred[1] = inbox_of(consumer)
            await consumer.close()
            assert (len(stopped), inbox_of(consumer).closed) == (stops, not stops)
