"""What lives behind a session: lingering consumers, bounded closes, transactions, emulated and real."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

import jmsaio
from jmsaio import AcknowledgeMode
from jmsaio.client.callbacks.callback_context import CallbackContext, CallbackKind
from jmsaio.client.delivery.inbox import Inbox
from jmsaio.client.runtime.session import LocalTransaction
from jmsaio.client.senders.pool import SenderPool
from jmsaio.config import ConnectOptions
from jmsaio.testing import embedded_broker
from jmsaio.transport.base import Transaction
from jmsaio.transport.memory.receiver import MemoryReceiver
from jmsaio.transport.memory.transaction import MemoryTransaction, TransactionState
from tests.client.helpers import Functions, drain, fill, rest, take, texts, transactions
from tests.kit.inside import admin_of, inbox_of, runtime_of, transport_of
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
        making = asyncio.ensure_future(connection._create_session(AcknowledgeMode.AUTO))
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
        assert runtime_of(session).inboxes.retain(inbox, transport) is False and list(runtime_of(session).inboxes) == []
        assert runtime_of(other).inboxes.retain(inbox, transport) is True


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
            assert runtime_of(session).listeners.by_inbox == {}


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
            receiver = inbox_of(consumer).settlement
            if transferred:
                receiver.transferred[1] = inbox_of(consumer)
            await consumer.close()
            assert (len(stopped), inbox_of(consumer).closed) == (stops, not stops)


def transaction_of(session: jmsaio.Session) -> LocalTransaction:
    """The transaction of a transacted session."""
    assert session._runtime.transaction is not None
    return session._runtime.transaction


async def test_an_emulated_transaction_sends_at_once_and_acknowledges_at_commit(url: str, name: Name) -> None:
    async with jmsaio.connect(url, emulate_transactions=True) as connection:
        queue, output = jmsaio.Queue(name("in")), jmsaio.Queue(name("out"))
        await fill(connection, queue, 3)
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            assert session.transacted
            consumer, producer = await session.create_consumer(queue), await session.create_producer(output)
            await take(consumer, 1)
            await producer.send("sent at once")
            assert texts(await rest(connection, output, 1)) == ["sent at once"]
            await session.commit()
            again = await take(consumer, 2)
            await session.rollback()
            messages = await take(consumer, 2)
            assert texts(messages) == texts(again) == ["1", "2"]
            assert all(message.jms_redelivered for message in messages)
            await session.commit()
        assert await rest(connection, queue, wait=1.0) == []


async def test_real_transaction_on_the_embedded_broker(name: Name) -> None:
    async with jmsaio.connect("memory://transactions", enable_transaction=True) as connection:
        queue, output = jmsaio.Queue(name("in")), jmsaio.Queue(name("out"))
        await fill(connection, queue, 2)
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            consumer, producer = await session.create_consumer(queue), await session.create_producer(output)
            await take(consumer, 1)
            await producer.send("a")
            assert await rest(connection, output, wait=0.1) == []
            await session.commit()
            assert texts(await rest(connection, output, 1, wait=0.1)) == ["a"]
            await take(consumer, 1)
            await producer.send("b")
            await session.rollback()
            assert await rest(connection, output, wait=0.1) == []
            assert texts(await take(consumer, 1)) == ["1"]
        assert texts(await rest(connection, queue, 1, wait=0.1)) == ["1"]


async def test_a_commit_that_can_not_begin_loses_no_delivery(name: Name, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = jmsaio.Queue(name("in"))
    async with jmsaio.connect(f"memory://{name('broker')}", enable_transaction=True) as connection:
        await fill(connection, queue, 1)
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            consumer = await session.create_consumer(queue)
            await take(consumer, 1)

            async def refuse(self: object) -> None:
                raise jmsaio.TransportError("no coordinator")

            with monkeypatch.context() as patched:
                patched.setattr("jmsaio.client.runtime.session.LocalTransaction._begin", refuse)
                with pytest.raises(jmsaio.TransportError):
                    await session.commit()
            await session.commit()
        assert await rest(connection, queue, wait=0.2) == []


async def test_a_send_beside_a_commit_is_never_outside_a_transaction(
    name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = jmsaio.Queue(name("out"))
    begin = LocalTransaction._begin

    async def slowly(self: LocalTransaction) -> object:
        handle = await begin(self)
        await asyncio.sleep(0.1)
        return handle

    monkeypatch.setattr(LocalTransaction, "_begin", slowly)
    async with jmsaio.connect(f"memory://{name('broker')}", enable_transaction=True) as connection:
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            producer = await session.create_producer(output)
            sending = asyncio.ensure_future(producer.send("x"))
            await asyncio.sleep(0.02)
            await session.commit()
            await sending
            assert await rest(connection, output, wait=0.2) == []
            await session.commit()
        assert texts(await rest(connection, output, 1, wait=0.2)) == ["x"]


async def test_a_stuck_listener_does_not_keep_the_transaction_open(name: Name) -> None:
    queue, entered = jmsaio.Queue(name("in")), asyncio.Event()

    async def listener(message: jmsaio.Message) -> None:
        entered.set()
        await asyncio.sleep(3600)

    async with jmsaio.connect(f"memory://{name('broker')}", close_timeout=0.2, enable_transaction=True) as connection:
        await fill(connection, queue, 1)
        session = await connection.create_session(AcknowledgeMode.TRANSACTED)
        await (await session.create_producer(jmsaio.Queue(name("out")))).send("x")
        (await session.create_consumer(queue)).set_message_listener(listener)
        await asyncio.wait_for(entered.wait(), 10)
        handle = transaction_of(session).work.handle
        with pytest.raises(jmsaio.OperationTimeoutError):
            await session.close()
        with pytest.raises(jmsaio.TransactionRolledBackError):
            await handle.commit()  # type: ignore[union-attr]  # begun by the send


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if "stay sent" in record.message]


@pytest.mark.parametrize("end", ["rollback", "close"])
async def test_an_emulated_rollback_after_a_send_warns_once_a_session(
    url: str, name: Name, caplog: pytest.LogCaptureFixture, end: str
) -> None:
    output = jmsaio.Queue(name("out"))
    caplog.set_level(logging.WARNING, "jmsaio")
    async with jmsaio.connect(url, emulate_transactions=True) as connection:
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            producer = await session.create_producer(output)
            await session.rollback()
            await producer.send("committed")
            await session.commit()
            with pytest.raises(jmsaio.MessageTooLargeError):
                await producer.send(b"x" * 6 * 1024 * 1024)
            await session.rollback()
            assert warnings(caplog) == []
            for number in range(2):
                await producer.send(str(number))
                if end == "rollback":
                    await session.rollback()
                    assert len(warnings(caplog)) == 1
        assert len(warnings(caplog)) == 1 and "jms.emulateTransactions" in warnings(caplog)[0]
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            await (await session.create_producer(output)).send("another session")
        assert len(warnings(caplog)) == 2
        assert texts(await rest(connection, output, 4)) == ["committed", "0", "1", "another session"]


async def test_closing_an_emulated_session_gives_received_messages_back(url: str, name: Name) -> None:
    queue = jmsaio.Queue(name("in"))
    async with jmsaio.connect(url, emulate_transactions=True) as connection:
        await fill(connection, queue, 3)
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            consumer = await session.create_consumer(queue)
            await take(consumer, 1)
            await session.commit()
            await take(consumer, 1)
        assert sorted(texts(await rest(connection, queue, 2))) == ["1", "2"]


@pytest.mark.parametrize("emulated", [True, False])
async def test_asynchronous_sends_settle_before_commit(url: str, name: Name, emulated: bool) -> None:
    emulated = emulated or not url.startswith("memory")
    output = jmsaio.Queue(name("out"))
    async with jmsaio.connect(url, **transactions(emulated)) as connection:
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            producer = await session.create_producer(output)
            futures = [await producer.send_async(str(number)) for number in range(50)]
            await session.commit()
            assert all(future.done() for future in futures)
        assert texts(await rest(connection, output, 50)) == [str(number) for number in range(50)]


@pytest.mark.parametrize("emulated", [False, True])
async def test_a_commit_waits_for_what_completion_listeners_send_while_it_waits_for_them(
    name: Name, emulated: bool
) -> None:
    with embedded_broker() as broker:
        async with jmsaio.connect(broker.url, **transactions(emulated)) as connection:
            async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
                producer, told = await session.create_producer(jmsaio.Queue(name("out"))), list[jmsaio.Message]()

                async def send_another(message: jmsaio.Message) -> None:
                    told.append(message)
                    broker.faults.fail_sends()
                    await producer.send_async("is not stored")

                await producer.send_async("x", completion_listener=Functions(send_another, print))
                with pytest.raises(jmsaio.TransactionRolledBackError, match="scripted fault"):
                    await session.commit()
                assert len(told) == 1 and runtime_of(session).sends.count == 0


async def test_a_send_that_failed_makes_an_emulated_commit_a_rollback(
    name: Name, caplog: pytest.LogCaptureFixture
) -> None:
    queue, output = jmsaio.Queue(name("in")), jmsaio.Queue(name("out"))
    with embedded_broker(name("broker")) as broker:
        async with (
            jmsaio.connect(broker.url, emulate_transactions=True) as connection,
            connection.create_session(AcknowledgeMode.TRANSACTED) as session,
        ):
            await fill(connection, queue, 1)
            consumer, producer = await session.create_consumer(queue), await session.create_producer(output)
            await take(consumer, 1)
            broker.faults.fail_sends(topic=output.name)
            await producer.send_async("fails")
            with pytest.raises(jmsaio.TransactionRolledBackError, match="a send failed"):
                await session.commit()
            assert warnings(caplog) == []  # nothing was sent
            assert texts(await take(consumer, 1)) == ["0"]
            await session.commit()


@pytest.mark.parametrize("emulated", [True, False])
async def test_closing_waits_for_a_commit_that_runs(
    url: str, name: Name, emulated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    emulated = emulated or not url.startswith("memory")
    queue, going, go_on = jmsaio.Queue(name("in")), asyncio.Event(), asyncio.Event()
    commit = LocalTransaction._commit

    async def slowly(self: LocalTransaction) -> None:
        going.set()
        await go_on.wait()
        await commit(self)

    monkeypatch.setattr(LocalTransaction, "_commit", slowly)
    async with jmsaio.connect(url, **transactions(emulated)) as connection:
        await fill(connection, queue, 1)
        session = await connection.create_session(AcknowledgeMode.TRANSACTED)
        await take(await session.create_consumer(queue), 1)
        committing = asyncio.ensure_future(session.commit())
        await going.wait()
        with pytest.raises(jmsaio.IllegalStateError, match="running"):
            await session.rollback()
        closing = asyncio.ensure_future(session.close())
        await asyncio.sleep(0.05)
        assert not closing.done()
        go_on.set()
        await asyncio.wait_for(asyncio.gather(committing, closing), 20)
        assert await rest(connection, queue, wait=1.0) == []


async def test_a_transaction_sends_to_one_partition_and_the_next_one_to_another(url: str, name: Name) -> None:
    """What a transaction sends goes to one partition; the next one has another number."""
    topic = f"persistent://public/default/{name('sticky')}"
    options: ConnectOptions = {"emulate_transactions": True, "transactions_sticky_partitions": True}
    async with jmsaio.connect(url, **options) as connection:
        admin = admin_of(connection)
        await admin.create_topic(topic, partitions=4)
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            producer = await session.create_producer(jmsaio.Queue(topic))
            places = []
            for _ in range(2):
                places.append([(await producer.send("x")).place for _ in range(6)])
                await session.commit()
        partitions = [{place.partition for place in found if place is not None} for found in places]
        assert [len(found) for found in partitions] == [1, 1]
        assert partitions[0] != partitions[1]


async def test_a_send_that_waited_while_a_transaction_ended_goes_to_the_partition_of_the_next(
    name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, opened = f"persistent://public/default/{name('sticky')}", SenderPool.open

    async def slowly(self: SenderPool, *arguments: Any) -> Any:
        await asyncio.sleep(0.1)
        return await opened(self, *arguments)

    options: ConnectOptions = {"emulate_transactions": True, "transactions_sticky_partitions": True}
    with embedded_broker() as broker:
        broker.create_topic(topic, partitions=4)
        async with jmsaio.connect(broker.url, **options) as connection:
            async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
                producer = await session.create_producer()
                monkeypatch.setattr(SenderPool, "open", slowly)
                sending = asyncio.ensure_future(producer.send(jmsaio.Queue(topic), "waits for its sender"))
                await asyncio.sleep(0.02)
                await session.commit()
                places = [(await sending).place, (await producer.send(jmsaio.Queue(topic), "behind it")).place]
            assert len({place.partition for place in places if place is not None}) == 1


async def test_tasks_that_send_at_once_share_one_transaction_even_when_the_first_is_cancelled(
    name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    askers: list[Any] = []
    begun: list[Any] = []
    async with jmsaio.connect(f"memory://{name('two')}", enable_transaction=True) as connection:
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            begin = LocalTransaction._begin
            queue = session.create_queue(name("shared"))
            producer = await session.create_producer(queue)

            async def noted(self: LocalTransaction) -> Transaction:
                askers.append(asyncio.current_task())
                await asyncio.sleep(0.01)
                begun.append(handle := await begin(self))
                return handle

            monkeypatch.setattr(LocalTransaction, "_begin", noted)
            sending = [asyncio.ensure_future(producer.send(str(number))) for number in range(4)]
            while not askers:
                await asyncio.sleep(0)
            askers[0].cancel()
            results = await asyncio.gather(*sending, return_exceptions=True)
            assert [type(each) for each in results if isinstance(each, BaseException)] == [asyncio.CancelledError]
            assert len(askers) == 2 and [handle.state for handle in begun] == [TransactionState.OPEN]
            await session.commit()
        async with connection.create_session() as session, session.create_consumer(queue) as consumer:
            assert len(await take(consumer, 3)) == 3


async def test_messages_are_redelivered_even_when_the_broker_refuses_the_rollback(
    name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = jmsaio.Queue(name("in"))
    async with jmsaio.connect(f"memory://{name('broker')}", enable_transaction=True) as connection:
        await fill(connection, queue, 1)
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            consumer, producer = await session.create_consumer(queue), await session.create_producer(queue)
            await producer.send("begins it")
            await take(consumer, 1)

            async def refuse(self: object) -> None:
                raise jmsaio.TransportError("no coordinator")

            with monkeypatch.context() as patched:
                patched.setattr(MemoryTransaction, "abort", refuse)
                with pytest.raises(jmsaio.TransportError):
                    await session.rollback()
            (again,) = await take(consumer, 1)
            assert (again.get_body(str), again.jms_redelivered) == ("0", True)


async def test_a_commit_lets_the_inbox_of_a_closed_consumer_go(name: Name) -> None:
    """A temporary queue can be deleted then."""
    async with jmsaio.connect(f"memory://{name('broker')}", enable_transaction=True) as connection:
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            queue = await session.create_temporary_queue()
            consumer, producer = await session.create_consumer(queue), await session.create_producer(queue)
            await producer.send("x")
            await session.commit()
            await take(consumer, 1)
            await consumer.close()
            with pytest.raises(jmsaio.JMSError, match="unsettled"):
                await queue.delete()
            await session.commit()
            await queue.delete()


@pytest.mark.parametrize(("error", "stays"), [(jmsaio.SendInDoubtError("?"), 1), (jmsaio.SendError("no"), 0)])
async def test_a_send_in_doubt_counts_as_sent_when_an_emulated_transaction_is_rolled_back(
    name: Name, caplog: pytest.LogCaptureFixture, error: jmsaio.JMSError, stays: int
) -> None:
    with embedded_broker() as broker:
        async with jmsaio.connect(broker.url, emulate_transactions=True) as connection:
            async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
                producer = await session.create_producer(jmsaio.Queue(name("doubt")))
                transaction_of(session).real = False  # as on a broker without transactions
                broker.faults.fail_sends(error=error)
                with pytest.raises(type(error)):
                    await producer.send("x")
                with caplog.at_level(logging.WARNING, "jmsaio"):
                    await session.rollback()
    assert len(warnings(caplog)) == stays


@pytest.mark.parametrize("call", ["commit", "rollback"])
async def test_a_completion_listener_may_not_end_the_transaction_of_its_sends(name: Name, call: str) -> None:
    async with jmsaio.connect(f"memory://{name('broker')}", enable_transaction=True) as connection:
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            transaction = transaction_of(session)
            work = transaction.work
            with CallbackContext(CallbackKind.COMPLETION, runtime_of(connection), runtime_of(session), None):
                with pytest.raises(jmsaio.IllegalStateError, match=f"{call} from its own CompletionListener"):
                    await getattr(session, call)()
            assert transaction.work is work
            with CallbackContext(CallbackKind.LISTENER, runtime_of(connection), runtime_of(session), None):
                await getattr(session, call)()
            assert transaction.work is not work


async def test_a_transaction_begun_for_work_that_has_ended_is_rolled_back(
    name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Any] = []
    begin = LocalTransaction._begin

    async def slowly(self: LocalTransaction) -> Transaction:
        handle = await begin(self)
        begun.append(handle)
        await asyncio.sleep(0.1)
        return handle

    monkeypatch.setattr(LocalTransaction, "_begin", slowly)
    async with jmsaio.connect(f"memory://{name('ended')}", enable_transaction=True) as connection:
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            transaction = transaction_of(session)
            beginning = asyncio.ensure_future(transaction.begin())
            await asyncio.sleep(0.01)
            await session.rollback()
            await beginning
            assert [handle.state for handle in begun] == [TransactionState.ABORTED] and transaction.to_begin


@pytest.mark.parametrize("closed", [True, False])
async def test_an_emulated_commit_waits_for_the_acknowledgements_of_open_consumers(
    name: Name, monkeypatch: pytest.MonkeyPatch, closed: bool
) -> None:
    """Those of a closed one are settled by the close of its inbox. No transaction of the broker is begun."""
    waited: list[float] = []

    async def settle(self: object, timeout: float, *, receipt: bool = False) -> None:
        waited.append(timeout)

    monkeypatch.setattr(MemoryReceiver, "settle", settle)
    monkeypatch.delattr(LocalTransaction, "_begin")
    queue = jmsaio.Queue(name("in"))
    options: ConnectOptions = {"emulate_transactions": True, "operation_timeout": 7.0}
    async with jmsaio.connect(f"memory://{name('broker')}", **options) as connection:
        await fill(connection, queue, 1)
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            consumer = await session.create_consumer(queue)
            await take(consumer, 1)
            if closed:
                await consumer.close()
            await session.commit()
            assert waited == ([] if closed else [7.0])


async def test_a_commit_that_fails_lets_the_inbox_of_a_closed_consumer_go(
    name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(self: object) -> None:
        raise jmsaio.TransportError("no coordinator")

    monkeypatch.setattr(MemoryTransaction, "commit", refuse)
    queue = jmsaio.Queue(name("in"))
    async with jmsaio.connect(f"memory://{name('broker')}", enable_transaction=True) as connection:
        await fill(connection, queue, 1)
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            async with session.create_consumer(queue) as consumer:
                await take(consumer, 1)
            with pytest.raises(jmsaio.TransactionInDoubtError, match="might have been committed: no coordinator"):
                await session.commit()
            assert list(runtime_of(session).inboxes) == []


@pytest.mark.parametrize("error", [jmsaio.OperationTimeoutError("no answer"), jmsaio.TransportError("gone")])
async def test_an_emulated_commit_without_an_answer_to_its_acknowledgements_is_in_doubt(
    name: Name, monkeypatch: pytest.MonkeyPatch, error: jmsaio.JMSError
) -> None:
    async def settle(self: object, timeout: float, *, receipt: bool = False) -> None:
        raise error

    queue = jmsaio.Queue(name("in"))
    async with jmsaio.connect(f"memory://{name('broker')}", emulate_transactions=True) as connection:
        await fill(connection, queue, 1)
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            consumer = await session.create_consumer(queue)
            await take(consumer, 1)
            with monkeypatch.context() as patched:
                patched.setattr(MemoryReceiver, "settle", settle)
                with pytest.raises(jmsaio.TransactionInDoubtError, match="what it sent is stored") as raised:
                    await session.commit()
            assert raised.value.linked_exception is error
            await session.commit()  # the next one


@pytest.mark.parametrize("error", [jmsaio.TransportError("gone"), jmsaio.ObjectClosedError("the receiver has ended")])
async def test_an_emulated_commit_acknowledges_all_that_it_can(
    name: Name, monkeypatch: pytest.MonkeyPatch, error: jmsaio.JMSError
) -> None:
    acknowledge = MemoryReceiver.acknowledge
    queues = [jmsaio.Queue(name(text)) for text in ("first", "second", "third")]

    def refuse_first(self: Any, records: Any, transaction: Any = None) -> None:
        if queues[0].name in records[0].topic:
            raise error
        acknowledge(self, records, transaction)

    async with jmsaio.connect(f"memory://{name('broker')}", emulate_transactions=True) as connection:
        for queue in queues:
            await fill(connection, queue, 1)
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            for queue in queues:
                await take(await session.create_consumer(queue), 1)
            with monkeypatch.context() as patched:
                patched.setattr(MemoryReceiver, "acknowledge", refuse_first)
                with pytest.raises(jmsaio.TransactionInDoubtError, match="what it sent is stored") as raised:
                    await session.commit()
            assert raised.value.linked_exception is error
        left = [texts(await rest(connection, queue, wait=0.1)) for queue in queues]
        assert left == [["0"], [], []]


async def test_a_commit_that_was_rolled_back_is_not_in_doubt(name: Name, monkeypatch: pytest.MonkeyPatch) -> None:
    async def roll_back(self: object) -> None:
        raise jmsaio.TransactionRolledBackError("conflict")

    monkeypatch.setattr(MemoryTransaction, "commit", roll_back)
    async with jmsaio.connect(f"memory://{name('broker')}", enable_transaction=True) as connection:
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            await (await session.create_producer(jmsaio.Queue(name("out")))).send("x")
            with pytest.raises(jmsaio.TransactionRolledBackError, match="conflict"):
                await session.commit()


async def test_a_rollback_that_a_send_delays_for_too_long_redelivers_and_says_what_stays_sent(
    name: Name, caplog: pytest.LogCaptureFixture
) -> None:
    queue = jmsaio.Queue(name("in"))
    with embedded_broker() as broker:
        options: ConnectOptions = {"emulate_transactions": True, "operation_timeout": 0.5}
        async with jmsaio.connect(broker.url, **options) as connection:
            await fill(connection, queue, 1)
            async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
                assert transaction_of(session).work.sticky_key is None
                consumer = await session.create_consumer(queue)
                producer = await session.create_producer(jmsaio.Queue(name("out")))
                await take(consumer, 1)
                broker.faults.delay_answers(1.0)
                await producer.send_async("in doubt")
                with pytest.raises(jmsaio.OperationTimeoutError):
                    await session.rollback()
                assert [text.partition(": ")[2][:2] for text in warnings(caplog)] == ["1 "]
                (again,) = await take(consumer, 1)
                assert again.jms_redelivered


async def test_an_inbox_that_can_not_redeliver_costs_others_of_a_failed_commit_nothing(
    name: Name, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ended, queues = jmsaio.ObjectClosedError("the receiver has ended"), [jmsaio.Queue(name(text)) for text in "12"]
    redeliver = Inbox.redeliver

    def refuse(self: Any, records: Any, transaction: Any = None) -> None:
        raise jmsaio.TransportError("the link is lost")

    def redeliver_second(self: Inbox, records: Any) -> None:
        if self.destination == queues[0]:
            raise ended
        redeliver(self, records)

    async with jmsaio.connect(f"memory://{name('broker')}", enable_transaction=True) as connection:
        for queue in queues:
            await fill(connection, queue, 1)
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            consumers = [await session.create_consumer(queue) for queue in queues]
            for consumer in consumers:
                await take(consumer, 1)
            with monkeypatch.context() as patched:
                patched.setattr(MemoryReceiver, "acknowledge", refuse)
                patched.setattr(Inbox, "redeliver", redeliver_second)
                with pytest.raises(jmsaio.TransactionRolledBackError, match="the link is lost"):
                    await session.commit()
            assert "the receiver has ended" in caplog.text
            (again,) = await take(consumers[1], 1)
            assert again.jms_redelivered
            await session.commit()


@pytest.mark.parametrize("answers", [True, False], ids=["aborted", "no answer to the abort"])
async def test_a_commit_that_can_not_acknowledge_is_rolled_back_at_once(
    name: Name, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, answers: bool
) -> None:
    gone, acknowledge = jmsaio.TransportError("the link is lost"), MemoryReceiver.acknowledge
    abort: list[MemoryTransaction] = []
    queues = [jmsaio.Queue(name(text)) for text in ("first", "second", "third")]

    def refuse_second(self: Any, records: Any, transaction: Any = None) -> None:
        if queues[1].name in records[0].topic:
            raise gone
        acknowledge(self, records, transaction)

    async def lose(self: MemoryTransaction) -> None:
        abort.append(self)
        raise jmsaio.TransportError("no answer")

    async with jmsaio.connect(f"memory://{name('broker')}", enable_transaction=True) as connection:
        for queue in queues:
            await fill(connection, queue, 1)
        output = jmsaio.Queue(name("out"))
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            consumers = [await session.create_consumer(queue) for queue in queues]
            await (await session.create_producer(output)).send("undone")
            handle = transaction_of(session).work.handle
            for consumer in consumers:
                await take(consumer, 1)
            with monkeypatch.context() as patched:
                patched.setattr(MemoryReceiver, "acknowledge", refuse_second)
                if not answers:
                    patched.setattr(MemoryTransaction, "abort", lose)
                with pytest.raises(jmsaio.TransactionRolledBackError, match="the link is lost") as raised:
                    await session.commit()
            assert raised.value.__cause__ is gone
            assert isinstance(handle, MemoryTransaction)
            assert ("no answer" in caplog.text, abort) == ((False, []) if answers else (True, [handle]))
            if not answers:
                await handle.abort()  # as the broker does when its time is over
            assert handle.state is TransactionState.ABORTED
            for consumer in consumers:
                (again,) = await take(consumer, 1)
                assert (again.get_body(str), again.jms_redelivered) == ("0", True)
            await session.commit()
        assert [await rest(connection, queue, wait=0.1) for queue in (*queues, output)] == [[], [], [], []]


@pytest.mark.parametrize("calls", [("commit", "commit"), ("commit", "rollback"), ("rollback", "commit")])
async def test_only_one_commit_or_rollback_of_a_session_runs(url: str, name: Name, calls: tuple[str, str]) -> None:
    async with jmsaio.connect(url, emulate_transactions=True) as connection:
        queue = jmsaio.Queue(name("concurrent"))
        await fill(connection, queue, 1)
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            await take(await session.create_consumer(queue), 1)
            first, second = [getattr(session, call)() for call in calls]
            outcomes = await asyncio.gather(first, second, return_exceptions=True)
        assert outcomes[0] is None
        assert isinstance(outcomes[1], jmsaio.IllegalStateError)
        assert texts(await rest(connection, queue, wait=1.0)) == (["0"] if calls[0] == "rollback" else [])


async def test_a_unit_of_work_is_begun_by_its_first_delivery_and_the_subscriptions_join(
    name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commit need not wait for that."""
    joined: list[tuple[str, str]] = []
    monkeypatch.setattr(MemoryTransaction, "join", lambda self, *part: joined.append(part))
    async with jmsaio.connect("memory://joined", enable_transaction=True) as connection:
        queues = [jmsaio.Queue(name("one")), jmsaio.Queue(name("other"))]
        for queue in queues:
            await fill(connection, queue, 1)
        async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
            for queue in queues:
                await take(await session.create_consumer(queue), 1)
                await asyncio.sleep(0.01)
                assert transaction_of(session).work.handle is not None
    assert [topic.rpartition("/")[2] for topic, _ in joined] == [queue.name for queue in queues]
    assert {subscription for _, subscription in joined} == {"jms-queue"}


async def test_a_commit_refused_by_a_closed_receiver_redelivers_each_message_once(name: Name) -> None:
    with embedded_broker() as broker:
        async with jmsaio.connect(broker.url, **transactions(False)) as connection:
            queue = jmsaio.Queue(name("closed"))
            other = await jmsaio.connect(broker.url)
            picky = await (await other.create_session()).create_consumer(queue, "n = 1")
            async with connection.create_session(AcknowledgeMode.TRANSACTED) as session:
                consumer = await session.create_consumer(queue)
                await fill(connection, queue, 4)
                assert sorted(texts(await take(consumer, 4))) == ["0", "1", "2", "3"]
                assert picky.stats().buffered == 0
                await other.close()  # it had received two of them
                with pytest.raises(jmsaio.TransactionRolledBackError, match="is closed"):
                    await session.commit()
                again = await drain(consumer, 4)
                assert sorted(texts(again)) == ["0", "1", "2", "3"]
                await session.commit()
                assert broker.backlog(queue.name) == 0
