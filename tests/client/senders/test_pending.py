"""A send stays with its session until its outcome is known, and its unit of work learns of a failure."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import Any

import pytest

import jmsaio
from jmsaio import AcknowledgeMode, Destination, Message
from jmsaio.client.lifetime.stats import SendCounts
from jmsaio.client.senders.pending import Lines, PendingSend, PendingSends, Receipt, SendOrigin, call_trace
from jmsaio.errors import (
    BrokerUnavailableError,
    JMSError,
    JMSSecurityError,
    OperationTimeoutError,
    RefusedInDoubtError,
    SendError,
    SendInDoubtError,
)
from jmsaio.model.destinations import Queue
from jmsaio.model.messages.tracing import EndpointTrace, SendTrace
from jmsaio.model.wire import ReceivedRecord, WireId
from jmsaio.rules.unit_of_work import UnitOfWork
from jmsaio.testing import FaultProxy, embedded_broker
from jmsaio.transport.base import Transaction
from tests.client.helpers import Functions, drain, texts
from tests.support.broker import TestBroker

_PLACE = WireId(7, 3, 0, 1)


def started(
    sends: PendingSends, work: UnitOfWork[Transaction] | None = None, message_id: str | None = "ID:1"
) -> PendingSend:
    """A send that the transport has taken."""
    send = PendingSend(loop=asyncio.get_running_loop())
    send.message_id, send.origin = message_id, SendOrigin(sends, work, Queue("orders"), 99, SendCounts())
    sends.count += 1
    return send


async def test_a_confirmed_send_is_pending_no_more_and_gives_its_receipt() -> None:
    sends = PendingSends()
    one, other = started(sends), started(sends)
    assert sends.count == 2
    sends.settled([one], _PLACE, None)
    assert sends.count == 1
    assert await one == Receipt("ID:1", _PLACE, Queue("orders"), 99)
    assert not other.done()


async def test_a_receipt_without_message_id_names_the_place() -> None:
    sends = PendingSends()
    placed, unplaced = started(sends, message_id=None), started(sends, message_id=None)
    sends.settled([placed], _PLACE, None)
    sends.settled([unplaced], None, None)
    assert (await placed).jms_message_id == str(_PLACE)
    assert (await unplaced).jms_message_id is None


async def test_sends_confirmed_together_count_for_their_own_producers_and_sessions() -> None:
    """A connection's sessions share a sender, so a broker's answer can confirm sends of several."""
    mine, others = PendingSends(), PendingSends()
    group = [started(mine), started(others), started(others), started(mine)]
    group[2].origin = group[1].origin
    unanswered = started(mine)
    mine.settled(group, _PLACE, None)
    assert (mine.count, others.count) == (1, 0)
    assert [send.origin.counts.confirmed for send in (*group, unanswered)] == [1, 2, 2, 1, 0]


async def test_settle_waits_for_the_last_outcome_whoever_asks() -> None:
    sends = PendingSends()
    first, last = started(sends), started(sends)
    waiting = [asyncio.ensure_future(sends.settle(30)) for _ in range(2)]
    await asyncio.sleep(0)
    sends.settled([first], _PLACE, None)
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    sends.settled([last], None, SendError("refused"))
    await asyncio.gather(*waiting)
    with pytest.raises(SendError, match="refused"):
        await last


async def test_settle_waits_on_when_another_send_starts_before_it_looks() -> None:
    sends = PendingSends()
    first = started(sends)
    waiting = asyncio.ensure_future(sends.settle(30))
    await asyncio.sleep(0)
    sends.settled([first], _PLACE, None)
    second = started(sends)
    await asyncio.sleep(0)
    assert not waiting.done()
    sends.settled([second], _PLACE, None)
    await waiting


async def test_settle_says_how_many_sends_have_no_outcome_in_time() -> None:
    sends = PendingSends()
    started(sends)
    started(sends)
    with pytest.raises(OperationTimeoutError, match=r"2 sends had no outcome within 0\.01 s"):
        await sends.settle(0.01)
    assert sends.count == 2


async def test_settle_ends_in_time_although_sends_end_and_begin_in_each_turn() -> None:
    sends, turns = PendingSends(), 0

    def go_on(send: PendingSend) -> None:
        nonlocal turns
        turns += 1
        sends.settled([send], _PLACE, None)
        if turns < 1000:
            loop.call_soon(go_on, started(sends))

    loop = asyncio.get_running_loop()
    loop.call_soon(go_on, started(sends))
    with pytest.raises(OperationTimeoutError, match="1 sends had no outcome"):
        await sends.settle(0.0)
    assert turns < 1000


async def test_a_failed_send_reaches_its_unit_of_work_even_if_its_future_was_cancelled() -> None:
    sends, work = PendingSends(), UnitOfWork[Transaction]()
    refused, doubtful, fine = started(sends, work), started(sends, work), started(sends, work)
    refused.cancel()
    error, doubt = SendError("refused"), SendInDoubtError("no answer")
    sends.settled([refused], None, error)
    sends.settled([doubtful], None, doubt)
    sends.settled([fine], _PLACE, None)
    assert work.failures == [error, doubt]
    assert work.sent == 2  # what is in doubt may be stored
    with pytest.raises(SendInDoubtError):
        await doubtful


async def test_a_failed_send_that_no_one_awaits_is_complained_of_unless_commit_raises_it() -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    sends, error = PendingSends(), SendError("refused")
    for work in (None, UnitOfWork[Transaction]()):
        sends.settled([started(sends, work)], None, error)
    gc.collect()
    assert [context["exception"] for context in complaints] == [error]


async def test_a_group_lies_in_one_entry_from_its_first_place_on() -> None:
    """Also behind a send whose future the application cancelled."""
    sends = PendingSends()
    group = [started(sends) for _ in range(4)]
    group[1].cancel()
    sends.settled(group, WireId(7, 3, 0, 5), None)
    assert [(await group[each]).place for each in (0, 2, 3)] == [WireId(7, 3, 0, 5 + each) for each in (0, 2, 3)]
    assert sends.count == 0


async def test_a_group_whose_place_is_unknown_is_confirmed_without() -> None:
    sends = PendingSends()
    group = [started(sends), started(sends, message_id=None)]
    sends.settled(group, None, None)
    assert [(await each).place for each in group] == [None, None]
    assert (await group[1]).jms_message_id is None


async def test_each_send_of_a_group_that_failed_raises_an_error_of_its_own() -> None:
    """One that all raised would collect the tracebacks of all."""
    sends, cause = PendingSends(), OSError("gone")
    group = [started(sends) for _ in range(3)]
    error = SendInDoubtError("no answer", "Timeout")
    error.__cause__ = cause
    sends.settled(group, None, error)
    raised = [each.exception() for each in group]
    assert raised[0] is error and len(set(map(id, raised))) == 3
    for one in raised:
        assert isinstance(one, SendInDoubtError)
        assert (one.reason, one.error_code, one.linked_exception) == ("no answer", "Timeout", cause)


async def test_an_error_of_a_missing_answer_names_the_lost_connection() -> None:
    """Errors that the broker answered, or that have a cause, stay as they are."""
    outage = BrokerUnavailableError("the connection is lost")
    sends = PendingSends(lambda: outage)
    group, refused, known = [started(sends) for _ in range(2)], started(sends), started(sends)
    sends.settled(group, None, SendInDoubtError("no answer", "Timeout"))
    errors = [each.exception() for each in group]
    assert errors[0] is not errors[1]
    for error in errors:
        assert type(error) is SendInDoubtError and error.__cause__ is outage
        assert str(error) == error.reason == "no answer; the connection is lost" and error.error_code == "Timeout"
    refusal, doubt = SendError("refused"), RefusedInDoubtError("in doubt")
    doubt.__cause__ = JMSSecurityError("expired")
    sends.settled([refused], None, refusal)
    sends.settled([known], None, doubt)
    assert refused.exception() is refusal and known.exception() is doubt and str(doubt) == "in doubt"


@pytest.fixture
async def unanswered(
    broker_kind: str, request: pytest.FixtureRequest, name: Callable[[str], str]
) -> AsyncIterator[tuple[jmsaio.Connection, asyncio.Future[Receipt], list[JMSError]]]:
    """A connection that knows it lost its broker, a send without an answer, what its completion listener is told."""
    told: list[Any] = []
    told_lost = asyncio.Event()
    listener = Functions(lambda message: None, lambda message, error: told.append(error))

    async def opened(url: str) -> tuple[jmsaio.Connection, jmsaio.MessageProducer]:
        connection = await jmsaio.connect(url, close_timeout=1)
        connection.set_exception_listener(lambda error: told_lost.set())
        producer = await (await connection.create_session()).create_producer(jmsaio.Queue(name("outage")))
        await producer.send("opens the sender")
        return connection, producer

    if broker_kind == "memory":
        with embedded_broker() as broker:
            connection, producer = await opened(broker.url)
            broker.faults.delay_answers(3600)
            pending = await producer.send_async("x", completion_listener=listener)
            with broker.faults.outage():
                await asyncio.wait_for(told_lost.wait(), 20)
                yield connection, pending, told
        return
    pulsar: TestBroker = request.getfixturevalue("pulsar_broker")
    async with FaultProxy.of(pulsar.service_url) as proxy:
        connection, producer = await opened(f"{proxy.url}?webServiceUrl={pulsar.web_service_url}")
        with proxy.outage():
            await asyncio.wait_for(told_lost.wait(), 20)
            yield connection, await producer.send_async("x", completion_listener=listener), told


async def test_sends_that_end_in_an_outage_name_it(
    unanswered: tuple[jmsaio.Connection, asyncio.Future[Receipt], list[JMSError]],
) -> None:
    """The outcome of the send, what its completion listener is told, and the close that waited for it."""
    connection, pending, told = unanswered
    with pytest.raises(OperationTimeoutError, match="1 sends had no outcome") as late:
        await connection.close()
    with pytest.raises(SendInDoubtError) as doubt:
        await pending
    assert len(told) == 1 and isinstance(told[0], SendInDoubtError)
    close_error: BaseException | None = late.value
    if "did not close within" in str(close_error):  # if this machine pauses, the close is late, too
        close_error = late.value.__cause__
    for error in (close_error, doubt.value, told[0]):
        assert "is lost" in str(error) and error is not None and isinstance(error.__cause__, BrokerUnavailableError)


async def test_a_group_may_hold_sends_of_several_sessions() -> None:
    one, other = PendingSends(), PendingSends()
    group = [started(one), started(other), started(one)]
    waiting = [asyncio.ensure_future(sends.settle(30)) for sends in (one, other)]
    await asyncio.sleep(0)
    PendingSends.settled(group, _PLACE, None)
    await asyncio.gather(*waiting)
    assert (one.count, other.count) == (0, 0)


async def test_a_task_goes_on_where_it_sends_again_in_the_same_turn_of_the_loop() -> None:
    sends, answers = PendingSends(), list[bool]()

    async def send() -> None:
        answers.append(sends.blocks_others())

    sends.passed(asyncio.get_running_loop(), 0)
    assert sends.blocks_others()
    await asyncio.sleep(0)
    assert not sends.blocks_others()
    sends.passed(asyncio.get_running_loop(), 0)
    await asyncio.gather(send(), send())
    assert answers == [False, False]


async def send(lines: Lines, sent: list[str], name: str, waits: asyncio.Event | None = None) -> None:
    """Send to topic ``name[0]``; ``waits``: for this when it is its turn."""
    async with lines.turn(name[0]):
        if waits is not None:
            await waits.wait()
        sent.append(name)


async def pause() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_they_leave_in_order_whatever_each_waits_for() -> None:
    lines, sent = Lines(), list[str]()
    room, more = asyncio.Event(), asyncio.Event()
    sends = [asyncio.create_task(send(lines, sent, "a0", room))]
    sends += [asyncio.create_task(send(lines, sent, f"a{number}")) for number in range(1, 150)]
    sends.append(asyncio.create_task(send(lines, sent, "a150", more)))
    sends += [asyncio.create_task(send(lines, sent, f"a{number}")) for number in range(151, 400)]
    await pause()
    assert sent == []
    assert "a" in lines
    room.set()
    await pause()
    assert sent == [f"a{number}" for number in range(150)]
    more.set()
    await asyncio.gather(*sends)
    assert sent == [f"a{number}" for number in range(400)]
    assert not lines


async def test_another_topic_waits_for_nobody() -> None:
    lines, sent, room = Lines(), list[str](), asyncio.Event()
    first = asyncio.create_task(send(lines, sent, "a", room))
    await pause()
    await send(lines, sent, "b")
    assert sent == ["b"]
    room.set()
    await first
    assert not lines


async def test_one_that_is_cancelled_leaves_its_place_and_the_others_their_order() -> None:
    lines, sent, room = Lines(), list[str](), asyncio.Event()
    sends = [asyncio.create_task(send(lines, sent, f"a{number}", room)) for number in range(6)]
    await pause()
    for number in (0, 3, 5):
        sends[number].cancel()
    await pause()
    room.set()
    await asyncio.wait(sends)
    assert sent == ["a1", "a2", "a4"]
    assert not lines


def test_a_receipt_is_a_value() -> None:
    receipt = Receipt("ID:u:1:1", WireId(1, 2), Queue("q"), 5)
    assert receipt == Receipt("ID:u:1:1", WireId(1, 2), Queue("q"), 5)
    assert (receipt.jms_message_id, str(receipt.place), receipt.timestamp) == ("ID:u:1:1", "ID:1:2:-1", 5)


class Broken:
    """A tracing, its endpoints and its sends; all that may raise does."""

    context: Mapping[str, str] = MappingProxyType({})

    def at(self, destination: Destination, server: str, subscription: str | None = None) -> EndpointTrace:
        return self

    def sending(self, message: Message) -> SendTrace:
        return self

    def receiving(self) -> Callable[[Message], None]:
        def received(message: Message) -> None:
            raise RuntimeError("received")

        return received

    def processing(self, message: Message, pushed: bool = False) -> AbstractContextManager[None]:
        return nullcontext()

    def settled(self, operation: str, records: Sequence[ReceivedRecord]) -> None:
        raise RuntimeError(operation)

    def sent(self, message_id: str | None) -> None:
        raise RuntimeError("sent")

    def failed(self, error: BaseException) -> None:
        raise RuntimeError("failed")


async def test_a_trace_that_raises_loses_no_message(
    url: str, name: Callable[[str], str], caplog: pytest.LogCaptureFixture
) -> None:
    queue = jmsaio.Queue(name("broken"))
    with caplog.at_level(logging.ERROR, "jmsaio"):
        async with jmsaio.connect(url, tracing=Broken()) as connection:
            session = await connection.create_session(AcknowledgeMode.INDIVIDUAL)
            producer, consumer = await session.create_producer(queue), await session.create_consumer(queue)
            for number in range(3):
                await producer.send(str(number))
            with pytest.raises(jmsaio.MessageTooLargeError):
                await producer.send(bytes(200_000_000))
            first = await consumer.receive(10)
            assert first is not None
            await session.recover()
            async for delivery in consumer.deliveries():
                async with delivery as message:
                    await message.acknowledge()
                if message.get_body(str) == "1":
                    break
        async with jmsaio.connect(url) as connection, connection.create_session() as session:
            assert texts(await drain(await session.create_consumer(queue))) == ["2"]
    said = {str(record.exc_info[1]) for record in caplog.records if record.exc_info is not None}
    assert said == {"sent", "failed", "received", "ack", "nack"}


def test_what_a_trace_returns_is_passed_on() -> None:
    assert call_trace(len, "four") == 4
    assert call_trace(int, "four") is None
