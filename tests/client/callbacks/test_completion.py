"""Completion listeners (Jakarta Messaging 3.1, 7.3 Asynchronous send)."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import jmsaio
from jmsaio.client.callbacks.completion import Completions
from jmsaio.client.callbacks.reports import ExceptionReports, SerialCalls
from jmsaio.client.callbacks.worker import CallbackWorker
from jmsaio.client.lifetime.stats import SendCounts
from jmsaio.client.senders.pending import PendingSend, PendingSends, SendOrigin
from jmsaio.client.senders.pool import SenderPool
from tests.client.helpers import Functions, Listener, text, transactions

Name = Callable[[str], str]


async def test_completion_listeners_in_order(session: jmsaio.Session, name: Name) -> None:
    queue = session.create_queue(name("completion"))
    listener = Listener()
    messages = [jmsaio.BytesMessage(bytes([number])) for number in range(50)]
    async with session.create_producer(queue) as producer:
        for message in messages:
            await producer.send_async(message, completion_listener=listener)
    assert [message for message, _ in listener.told] == messages
    assert [error for _, error in listener.told] == [None] * 50
    assert messages[3].read_byte() == 3


async def test_calls_from_a_completion_listener(
    session: jmsaio.Session, connection: jmsaio.Connection, name: Name
) -> None:
    refused: list[jmsaio.IllegalStateError] = []

    class Closing(Listener):
        async def on_completion(self, message: jmsaio.Message) -> None:
            for call in (producer.close, session.close, connection.close):
                try:
                    await call()
                except jmsaio.IllegalStateError as error:
                    refused.append(error)
            await connection.stop()
            await connection.start()
            self.told.append((message, None))

    listener = Closing()
    producer = await session.create_producer(session.create_queue(name("closing")))
    await producer.send_async("x", completion_listener=listener)
    await producer.close()
    assert len(refused) == 3 and len(listener.told) == 1


async def test_close_waits_for_a_listener_whose_outcome_came_in_the_same_turn(
    session: jmsaio.Session, name: Name
) -> None:
    told = []

    class Listener:
        def on_completion(self, message: jmsaio.Message) -> None:
            told.append(message)

        def on_exception(self, message: jmsaio.Message, error: Exception) -> None:
            raise error

    async with session.create_producer(jmsaio.Queue(name("turn"))) as producer:
        first = await producer.send_async("a")
        await producer.send_async("b", completion_listener=Listener())
        await first
    assert len(told) == 1


async def test_a_listener_that_can_not_be_told_is_refused(session: jmsaio.Session, name: Name) -> None:
    producer = await session.create_producer(jmsaio.Queue(name("refused")))
    wrongs: tuple[Any, ...] = (5, None)
    for wrong in wrongs:
        with pytest.raises(jmsaio.IllegalArgumentError, match="on_completion"):
            await producer.send_async("a", completion_listener=wrong)
    await producer.send("the session goes on")


async def test_a_listener_that_ends_cancelled_ends_nothing_else(session: jmsaio.Session, name: Name) -> None:
    class Cancelled(Listener):
        async def on_completion(self, message: jmsaio.Message) -> None:
            self.told.append((message, None))
            raise asyncio.CancelledError

    listener = Cancelled()
    async with session.create_producer(jmsaio.Queue(name("cancelled"))) as producer:
        for number in range(3):
            await producer.send_async(str(number), completion_listener=listener)
    assert [message.get_body(str) for message, _ in listener.told] == ["0", "1", "2"]
    assert not session.closed


async def test_one_at_a_time_and_in_order_with_many_workers(url: str, name: Name) -> None:
    running = 0

    class Slow(Listener):
        async def on_completion(self, message: jmsaio.Message) -> None:
            nonlocal running
            running += 1
            assert running == 1
            await asyncio.sleep(0.001 * (5 - int(text(message)) % 5))
            running -= 1
            self.told.append((message, None))

    listener = Slow()
    async with jmsaio.connect(url, listener_concurrency=4) as connection, connection.create_session() as session:
        async with session.create_producer(jmsaio.Queue(name("workers"))) as producer:
            for number in range(20):
                await producer.send_async(str(number), completion_listener=listener)
    assert [message.get_body(str) for message, _ in listener.told] == [str(number) for number in range(20)]


async def test_a_cancelled_future_leaves_the_send_in_doubt(session: jmsaio.Session, name: Name) -> None:
    listener = Listener()
    async with session.create_producer(jmsaio.Queue(name("doubt"))) as producer:
        future = await producer.send_async("x", completion_listener=listener)
        future.cancel()
    assert [type(error) for _, error in listener.told] == [jmsaio.SendInDoubtError]


class Silent:
    """A sender whose broker never answers."""

    full = False

    def __init__(self) -> None:
        self.sent: list[PendingSend] = []

    def send(self, record: object, token: PendingSend, transaction: object) -> None:
        self.sent.append(token)


@pytest.mark.parametrize("hanging", [False, True])
async def test_close_tells_every_listener_also_when_the_broker_is_silent(
    url: str, name: Name, monkeypatch: pytest.MonkeyPatch, hanging: bool
) -> None:
    class Hangs(Listener):
        def __init__(self) -> None:
            super().__init__()
            self.hung = False

        async def on_completion(self, message: jmsaio.Message) -> None:
            self.hung = True
            await asyncio.sleep(3600)

    listener, silent = Hangs(), Silent()
    async with jmsaio.connect(url, close_timeout=2) as connection:
        session = await connection.create_session()
        producer = await session.create_producer(jmsaio.Queue(name("silent")))
        if hanging:
            await (await producer.send_async("told, and hangs", completion_listener=listener))
        with monkeypatch.context() as patched:
            patched.setattr(SenderPool, "use", lambda *_: SimpleNamespace(sender=silent))
            for number in range(3):
                await producer.send_async(str(number), completion_listener=listener)
        with pytest.raises(jmsaio.OperationTimeoutError):
            await session.close()
        assert [message.get_body(str) for message, _ in listener.told] == ["0", "1", "2"]
        assert [type(error) for _, error in listener.told] == [jmsaio.SendInDoubtError] * 3
        assert listener.hung is hanging
        PendingSends.settled(silent.sent, None, None)  # late answers change nothing
        await asyncio.sleep(0.01)
        assert len(listener.told) == 3


async def test_a_listener_that_hangs_at_close_is_bounded(name: Name, monkeypatch: pytest.MonkeyPatch) -> None:
    class Hangs(Listener):
        async def on_exception(self, message: jmsaio.Message, error: Exception) -> None:  # type: ignore[override]  # both
            self.told.append((message, error))
            await asyncio.sleep(3600)

    listener = Hangs()
    async with jmsaio.connect(f"memory://{name('broker')}", close_timeout=0.1) as connection:
        session = await connection.create_session()
        producer = await session.create_producer(jmsaio.Queue(name("hangs")))
        with monkeypatch.context() as patched:
            patched.setattr(SenderPool, "use", lambda *_: SimpleNamespace(sender=Silent()))
            await producer.send_async("x", completion_listener=listener)
        with pytest.raises(jmsaio.OperationTimeoutError):
            await session.close()
        assert session.closed and len(listener.told) == 1


async def test_the_listener_gets_the_applications_own_object(session: jmsaio.Session, name: Name) -> None:
    class Foreign:
        """A text message of another library."""

        jms_correlation_id = jms_type = jms_reply_to = None

        def get_property_names(self) -> list[str]:
            return []

        def get_object_property(self, name: str) -> None:
            raise KeyError(name)

        def get_text(self) -> str:
            return "foreign"

    listener, given = Listener(), Foreign()
    async with session.create_producer(jmsaio.Queue(name("foreign"))) as producer:
        await producer.send_async(given, completion_listener=listener)
    assert listener.told == [(given, None)]


async def test_answers_out_of_order_are_told_in_order(
    session: jmsaio.Session, name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Raises(Listener):
        async def on_completion(self, message: jmsaio.Message) -> None:
            await super().on_completion(message)
            raise ValueError("logged, and nothing else")

    listener, silent = Raises(), Silent()
    producer = await session.create_producer(jmsaio.Queue(name("answers")))
    with monkeypatch.context() as patched:
        patched.setattr(SenderPool, "use", lambda *_: SimpleNamespace(sender=silent))
        for number in range(3):
            await producer.send_async(str(number), completion_listener=listener)
    refused = jmsaio.SendError("refused")
    first, second, third = silent.sent
    PendingSends.settled([third], None, None)
    PendingSends.settled([second], None, refused)
    await asyncio.sleep(0.05)
    assert listener.told == []
    PendingSends.settled([first], None, None)
    await producer.close()
    assert [(message.get_body(str), error) for message, error in listener.told] == [
        ("0", None),
        ("1", refused),
        ("2", None),
    ]


async def test_commit_and_rollback_are_refused_inside_and_wait_outside(url: str, name: Name) -> None:
    refused: list[type[Exception]] = []

    class Calls(Listener):
        async def on_completion(self, message: jmsaio.Message) -> None:
            for call in (session.commit, session.rollback):
                try:
                    await asyncio.ensure_future(call())  # a task of it carries the mark
                except jmsaio.IllegalStateError as error:
                    refused.append(type(error))
            self.told.append((message, None))

    emulated = not url.startswith("memory")
    async with jmsaio.connect(url, **transactions(emulated)) as connection:
        session = await connection.create_session(jmsaio.AcknowledgeMode.TRANSACTED)
        producer, listener = await session.create_producer(jmsaio.Queue(name("inside"))), Calls()
        for number, call in enumerate((session.commit, session.rollback), 1):
            await producer.send_async("x", completion_listener=listener)
            await call()
            assert len(listener.told) == number
    assert refused == [jmsaio.IllegalStateError] * 4


async def test_a_message_may_be_changed_and_sent_again_while_it_is_pending(session: jmsaio.Session, name: Name) -> None:
    queue, listener = jmsaio.Queue(name("pending")), Listener()
    message = jmsaio.TextMessage("first", properties={"n": 1})
    async with session.create_producer(queue) as producer, session.create_consumer(queue) as consumer:
        first = await producer.send_async(message, completion_listener=listener)
        message.text = "second"
        message.set_int_property("n", 2)
        second = await producer.send_async(message, completion_listener=listener)
        message.clear_body()
        message.clear_properties()
        sent = [(await future).jms_message_id for future in (first, second)]
        found = [await consumer.receive(timeout=20) for _ in range(2)]
    assert [(one.get_body(str), one.get_int_property("n"), one.jms_message_id) for one in found if one is not None] == [
        ("first", 1, sent[0]),
        ("second", 2, sent[1]),
    ]
    assert listener.told == [(message, None)] * 2


def unanswered() -> PendingSend:
    """A send that never has an outcome."""
    send = PendingSend(loop=asyncio.get_running_loop())
    send.origin = SendOrigin(PendingSends(), None, jmsaio.Queue("orders"), 0, SendCounts())
    return send


class Sent:
    """A message of another library."""


@pytest.mark.parametrize(
    ("failure", "lines"), [(None, []), (ValueError(), ["the completion listener of message: ValueError"])]
)
async def test_what_a_listener_of_a_foreign_message_raises_is_logged(
    failure: Exception | None, lines: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    def listen(*_: object) -> None:
        if failure is not None:
            raise failure

    completions = Completions("session", "connection", CallbackWorker(lambda: None), ExceptionReports(SerialCalls()))
    completions.expect(Sent(), Functions(listen, listen), None, unanswered())  # type: ignore[arg-type]  # what a caller may send
    assert len(completions) == 1
    await completions.finish(1.0)
    assert len(completions) == 0 and [record.message for record in caplog.records] == lines


async def test_a_listener_that_hangs_at_the_end_is_told_of() -> None:
    async def hang(*_: object) -> None:
        await asyncio.sleep(3600)

    completions = Completions("session", "connection", CallbackWorker(lambda: None), ExceptionReports(SerialCalls()))
    completions.expect(jmsaio.TextMessage("x"), Functions(hang, hang), None, unanswered())
    with pytest.raises(jmsaio.OperationTimeoutError, match=r"did not return within 0\.1 s"):
        await completions.finish(0.1)


@pytest.mark.parametrize("slow", [False, True])
async def test_the_close_of_a_producer_waits_for_listeners_whose_sends_have_ended(name: Name, slow: bool) -> None:
    """Jakarta Messaging 3.1, 7.3.4 Close, commit or rollback."""

    class Slow(Listener):
        async def on_completion(self, message: jmsaio.Message) -> None:
            await asyncio.sleep(0.05)
            await super().on_completion(message)

    listener = Slow() if slow else Listener()
    async with jmsaio.connect(f"memory://{name('broker')}") as connection, connection.create_session() as session:
        producer = await session.create_producer(jmsaio.Queue(name("ended")))
        await (await producer.send_async("x", completion_listener=listener))
        await producer.close()
        assert [text(message) for message, _ in listener.told] == ["x"]


@pytest.mark.parametrize("error", [jmsaio.SendError("refused"), None], ids=["failed", "cancelled"])
async def test_an_outcome_after_the_listener_was_told_at_close_is_not_complained_of(
    name: Name, monkeypatch: pytest.MonkeyPatch, error: jmsaio.JMSError | None
) -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    listener, silent = Listener(), Silent()
    async with jmsaio.connect(f"memory://{name('broker')}", close_timeout=0.1) as connection:
        session = await connection.create_session()
        producer = await session.create_producer(jmsaio.Queue("q"))
        with monkeypatch.context() as patched:
            patched.setattr(SenderPool, "use", lambda *_: SimpleNamespace(sender=silent))
            await producer.send_async("x", completion_listener=listener)
        with pytest.raises(jmsaio.OperationTimeoutError):
            await session.close()
        assert [type(told) for _, told in listener.told] == [jmsaio.SendInDoubtError]
        if error is None:
            silent.sent[0].cancel()
        PendingSends.settled(silent.sent, None, error)
        silent.sent.clear()
        await asyncio.sleep(0)
        gc.collect()
    assert complaints == [] and len(listener.told) == 1
