"""Request and reply (Jakarta Messaging 3.1, 2.16 Request/reply)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import nullcontext
from typing import Any

import anyio
import pytest

import jmsaio
from jmsaio.client.producer import SendOptions
from jmsaio.client.session import RequestReply
from jmsaio.testing import embedded_broker
from tests.client.helpers import rest, text, texts
from tests.kit.inside import temporaries_left

Name = Callable[[str], str]


async def test_request_and_reply(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("requests"))
    async with connection.create_session() as server, connection.create_session() as client:
        replies = await server.create_producer()
        consumer = await server.create_consumer(queue)

        async def serve(message: jmsaio.Message) -> None:
            reply = jmsaio.TextMessage(text(message).upper())
            by_id = text(message).endswith("0")
            reply.jms_correlation_id = message.jms_message_id if by_id else message.jms_correlation_id
            assert message.jms_reply_to is not None
            await replies.send(message.jms_reply_to, reply)

        consumer.set_message_listener(serve)
        answers = await asyncio.gather(*[client.request(queue, f"r{number}", timeout=30) for number in range(100)])
        assert [answer.get_body(str) for answer in answers] == [f"R{number}" for number in range(100)]
        with pytest.raises(TimeoutError):
            await client.request(jmsaio.Queue(name("no-one")), "hello", timeout=0.2)


async def test_a_message_answers_its_request(connection: jmsaio.Connection, name: Name) -> None:
    queue, replies = jmsaio.Queue(name("requests")), jmsaio.Queue(name("replies"))
    one = jmsaio.TextMessage("same object")
    async with connection.create_session() as server, connection.create_session() as client:
        listening = await server.create_consumer(queue)
        listening.set_message_listener(lambda request: request.reply(one, priority=7))
        answer = await client.request(queue, "by its correlation id", timeout=30)
        assert (answer.get_body(str), answer.jms_priority) == ("same object", 7)
        consumer, producer = await client.create_consumer(replies), await client.create_producer(queue)
        for text_ in ("by its id", "by another id"):
            request = jmsaio.TextMessage(text_)
            request.jms_reply_to = replies
            await producer.send(request)
            reply = await consumer.receive(30)
            assert reply is not None and reply.jms_correlation_id == request.jms_message_id


async def test_an_answer_belongs_to_the_transaction_of_its_request(name: Name) -> None:
    queue, replies = jmsaio.Queue(name("requests")), jmsaio.Queue(name("replies"))
    request = jmsaio.TextMessage("once")
    request.jms_reply_to = replies
    async with (
        jmsaio.connect(f"memory://{name('broker')}", enable_transaction=True) as connection,
        connection.create_session() as client,
        connection.create_session(jmsaio.AcknowledgeMode.TRANSACTED) as server,
    ):
        await (await client.create_producer(queue)).send(request)
        answers, consumer = await client.create_consumer(replies), await server.create_consumer(queue)
        for end in (server.rollback, server.commit):
            received = await consumer.receive(30)
            assert received is not None and await answers.receive(0.05) is None
            await received.reply("done")
            await end()
        assert await answers.receive(30) is not None
        assert await answers.receive(0.05) is None


async def test_what_can_not_be_answered_says_why(session: jmsaio.Session, name: Name) -> None:
    queue = jmsaio.Queue(name("requests"))
    consumer, producer = await session.create_consumer(queue), await session.create_producer(queue)
    await producer.send("to nobody")
    message = await consumer.receive(30)
    assert message is not None
    with pytest.raises(jmsaio.InvalidDestinationError, match="has no JMSReplyTo"):
        await message.reply("hello")
    message.jms_reply_to = queue
    await message.reply("hello")
    await session.close()
    with pytest.raises(jmsaio.ObjectClosedError, match="session is closed"):
        await message.reply("hello")


async def test_a_queue_requestor_gets_its_reply_and_closes_its_session(
    connection: jmsaio.Connection, name: Name
) -> None:
    queue = jmsaio.Queue(name("requestor"))
    async with connection.create_session() as server, connection.create_session() as client:
        replies = await server.create_producer()
        consumer = await server.create_consumer(queue)

        async def serve(message: jmsaio.Message) -> None:
            assert message.jms_reply_to is not None
            await replies.send(message.jms_reply_to, "pong")

        consumer.set_message_listener(serve)
        requestor = await jmsaio.QueueRequestor.open(client, queue)
        answer = await requestor.request(jmsaio.TextMessage("ping"))
        assert answer is not None and answer.get_body(str) == "pong"
        await requestor.close()
        assert client.closed


@pytest.fixture
async def served(url: str, name: Name) -> AsyncIterator[jmsaio.Queue]:
    """A queue whose requests are answered with their own text, by a client of another broker connection."""
    queue = jmsaio.Queue(name("served"))
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        replies = await session.create_producer()

        async def serve(message: jmsaio.Message) -> None:
            reply = jmsaio.TextMessage(message.get_body(str))
            reply.jms_correlation_id = message.jms_correlation_id
            assert message.jms_reply_to is not None
            await replies.send(message.jms_reply_to, reply)

        (await session.create_consumer(queue)).set_message_listener(serve)
        yield queue


async def test_hundreds_of_requests_share_one_reply_consumer(
    connection: jmsaio.Connection, session: jmsaio.Session, served: jmsaio.Queue
) -> None:
    answers = await asyncio.gather(*[session.request(served, str(number), timeout=60) for number in range(500)])
    assert [answer.get_body(str) for answer in answers] == [str(number) for number in range(500)]
    assert connection.stats().sessions == 2 and len(connection.stats().consumers) == 1
    requests = session._requests
    assert requests is not None and not requests._replies and not requests._own_ids


async def test_later_requests_of_a_session_use_its_reply_consumer_again(
    connection: jmsaio.Connection, session: jmsaio.Session, served: jmsaio.Queue
) -> None:
    for _ in range(2):
        await session.request(served, "x", timeout=20)
    assert connection.stats().sessions == 2


async def test_one_message_object_may_be_requested_again_and_at_once(
    session: jmsaio.Session, served: jmsaio.Queue
) -> None:
    message = jmsaio.TextMessage("x")
    await session.request(served, message, timeout=30)
    assert message.jms_correlation_id is None
    answers = await asyncio.gather(*[session.request(served, message, timeout=30) for _ in range(3)])
    assert len({answer.jms_correlation_id for answer in answers}) == 3
    assert message.jms_correlation_id is None
    message.jms_correlation_id = "mine"
    assert (await session.request(served, message, timeout=30)).jms_correlation_id == "mine"
    assert message.jms_correlation_id == "mine"
    both = [session.request(served, message, timeout=30) for _ in range(2)]
    first, second = await asyncio.gather(*both, return_exceptions=True)
    assert isinstance(first, jmsaio.TextMessage) and isinstance(second, jmsaio.IllegalStateError)


async def test_a_server_elsewhere_does_not_make_the_close_fail(
    connection: jmsaio.Connection, served: jmsaio.Queue
) -> None:
    """It holds its sender to the reply queue, so that the broker refuses to delete it."""
    async with connection.create_session() as session:
        assert (await session.request(served, "x", timeout=30)).get_body(str) == "x"


async def test_a_fresh_context_may_request(url: str, served: jmsaio.Queue) -> None:
    async with jmsaio.ConnectionFactory(url) as factory, await factory.create_context() as context:
        assert (await context.request(served, "x", timeout=30, priority=7)).get_body(str) == "x"


async def test_requests_that_are_cancelled_while_they_open_leave_nothing(
    connection: jmsaio.Connection, session: jmsaio.Session, served: jmsaio.Queue, url: str
) -> None:
    for turns in range(12):
        request = asyncio.ensure_future(session.request(served, "x", timeout=30))
        for _ in range(turns):
            await asyncio.sleep(0 if url.startswith("memory") else 0.003)
        request.cancel()
        await asyncio.wait([request])
    await session.request(served, "x", timeout=30)
    async with asyncio.timeout(30):
        while connection.stats().sessions > 2 or len(temporaries_left(connection)) > 1:
            await asyncio.sleep(0.05)
    assert connection.stats().sessions == 2
    assert len(temporaries_left(connection)) == 1


async def test_requests_in_a_cancelled_scope_leave_nothing(name: Name) -> None:
    """A scope of anyio cancels each await in it, also those that clean up."""
    async with jmsaio.connect(f"memory://{name('broker')}") as connection, connection.create_session() as session:
        for turns in range(1, 12):
            with anyio.CancelScope() as scope:
                asyncio.get_running_loop().call_soon(cancel_after, turns, scope)
                await session.request(jmsaio.Queue(name("no-one")), "x", timeout=30)
            assert scope.cancelled_caught
            if session._requests is not None and session._requests._listening is None:
                assert connection.stats().sessions == 1 and not temporaries_left(connection)


def cancel_after(turns: int, scope: anyio.CancelScope) -> None:
    """Cancel a scope that many turns of the event loop from now."""
    if turns:
        asyncio.get_running_loop().call_soon(cancel_after, turns - 1, scope)
    else:
        scope.cancel()


async def test_a_closed_session_requests_nothing(connection: jmsaio.Connection, name: Name) -> None:
    session = await connection.create_session()
    await session.close()
    with pytest.raises(jmsaio.ObjectClosedError):
        await session.request(jmsaio.Queue(name("no-one")), "x", timeout=1)
    requests = RequestReply(connection.create_session)
    await requests.close()
    with pytest.raises(jmsaio.ObjectClosedError):
        await requests.request(jmsaio.Queue(name("no-one")), "x", 1, {})
    assert not connection.stats().sessions


async def test_a_request_expires_when_nobody_waits_for_its_reply_any_more(
    connection: jmsaio.Connection, session: jmsaio.Session, served: jmsaio.Queue, name: Name
) -> None:
    """Unless ``time_to_live`` says something else."""
    queue = jmsaio.Queue(name("late-server"))
    await session.request(served, "opens the reply queue", timeout=30)
    await (await session.create_producer(queue)).close()  # keeps the sender open
    lives: list[SendOptions] = [{}, {"time_to_live": 0}, {"time_to_live": 600}]
    requests = [session.request(queue, str(each.get("time_to_live")), timeout=2, **each) for each in lives]
    outcomes = await asyncio.gather(*requests, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [TimeoutError] * 3
    messages = sorted(await rest(connection, queue, 2, wait=0.5), key=text)
    assert texts(messages) == ["0", "600"] and [message.jms_expiration > 0 for message in messages] == [False, True]


async def test_a_request_without_reply_says_that_the_broker_is_lost(name: Name) -> None:
    with embedded_broker() as broker:
        async with jmsaio.connect(broker.url) as connection, connection.create_session() as session:
            queue = jmsaio.Queue(name("requests"))
            for lost in (False, True, False):
                with broker.faults.outage() if lost else nullcontext(), pytest.raises(TimeoutError) as caught:
                    await session.request(queue, "x", timeout=1)
                assert ("the connection to" in str(caught.value) and "is lost" in str(caught.value)) is lost
                assert isinstance(caught.value.__cause__, jmsaio.BrokerUnavailableError) is lost


async def test_a_request_that_can_not_be_sent_raises_why() -> None:
    with embedded_broker() as broker:
        async with jmsaio.connect(broker.url) as connection, connection.create_session() as session:
            broker.faults.fail_sends(error=jmsaio.TransportError("not stored"))
            with pytest.raises(jmsaio.TransportError, match="not stored"):
                await session.request(jmsaio.Queue("requests"), "x", timeout=5)


async def test_replies_that_no_request_waits_for_are_dropped(name: Name, caplog: pytest.LogCaptureFixture) -> None:
    """One for no request, one without a correlation ID, and a second one for the same request."""
    caplog.set_level("INFO")
    told: list[jmsaio.JMSError] = []
    queue, url = jmsaio.Queue(name("requests")), f"memory://{name('broker')}"
    async with (
        jmsaio.connect(url) as connection,
        connection.create_session() as session,
        jmsaio.connect(url) as other,
        other.create_session() as server,
        server.create_consumer(queue) as consumer,
        server.create_producer() as replies,
    ):
        connection.set_exception_listener(told.append)
        request = asyncio.ensure_future(session.request(queue, "x", timeout=20))
        received = await consumer.receive(timeout=20)
        assert received is not None and received.jms_reply_to is not None
        for correlation in ("unknown", None):
            reply = jmsaio.TextMessage("reply")
            reply.jms_correlation_id = correlation
            await replies.send(received.jms_reply_to, reply)
        await asyncio.sleep(1)
        reply.jms_correlation_id = received.jms_message_id
        assert session._requests is not None
        for _ in range(2):  # in the same turn of the loop, before the request goes on
            session._requests._replied(reply)
        assert await request is reply
        await asyncio.sleep(1)
    dropped = [record for record in caplog.records if "dropped a reply" in record.getMessage()]
    assert len(dropped) == 3 and not told
    assert not [record for record in caplog.records if record.levelname != "INFO"]


async def test_what_an_application_makes_of_a_message_meanwhile_stays(name: Name) -> None:
    queue, message = jmsaio.Queue(name("requests")), jmsaio.TextMessage("x")
    async with jmsaio.connect(f"memory://{name('broker')}") as connection, connection.create_session() as session:
        request = asyncio.ensure_future(session.request(queue, message, timeout=1))
        await asyncio.sleep(0.5)
        message.jms_correlation_id = "mine"
        with pytest.raises(TimeoutError):
            await request
    assert message.jms_correlation_id == "mine"


@pytest.mark.parametrize("place", [jmsaio.Queue("requests"), jmsaio.Topic("requests")])
async def test_requestors_refuse_a_transacted_session(name: Name, place: jmsaio.Queue | jmsaio.Topic) -> None:
    """Its request would not go out before the commit."""
    async with (
        jmsaio.connect(f"memory://{name('broker')}", enable_transaction=True) as connection,
        connection.create_session(jmsaio.AcknowledgeMode.TRANSACTED) as session,
    ):
        with pytest.raises(jmsaio.IllegalStateError, match="not transacted"):
            if isinstance(place, jmsaio.Queue):
                await jmsaio.QueueRequestor.open(session, place)
            else:
                await jmsaio.TopicRequestor.open(session, place)


async def test_closing_fails_requests_at_any_moment(connection: jmsaio.Connection, name: Name, url: str) -> None:
    for turns in (0, 1, 2, 5, 10, 50):
        session = await connection.create_session()
        request = asyncio.ensure_future(session.request(jmsaio.Queue(name("no-one")), "x", timeout=60))
        for _ in range(turns):
            await asyncio.sleep(0 if url.startswith("memory") else 0.005)
        await session.close()
        with pytest.raises(jmsaio.ObjectClosedError):
            await asyncio.wait_for(request, 20)
    async with asyncio.timeout(30):
        while connection.stats().sessions or temporaries_left(connection):
            await asyncio.sleep(0.05)


async def test_requestors_refuse_anything_but_a_message(session: jmsaio.Session, name: Name) -> None:
    wrongs: tuple[Any, ...] = (None, object())
    for wrong in wrongs:
        requestor = await jmsaio.QueueRequestor.open(session, jmsaio.Queue(name("wrong")))
        with pytest.raises(jmsaio.MessageFormatError):
            await requestor.request(wrong)
        with pytest.raises(jmsaio.MessageFormatError):
            await session.request(jmsaio.Queue(name("wrong")), wrong, timeout=1)
    await requestor.close()
    await requestor.close()
    with pytest.raises(jmsaio.ObjectClosedError):
        await requestor.request(jmsaio.TextMessage("x"))
    for kind in (jmsaio.QueueRequestor, jmsaio.TopicRequestor):
        with pytest.raises(jmsaio.InvalidDestinationError):
            await kind.open(session, None)  # type: ignore[arg-type]  # likewise


async def test_a_requestor_for_no_real_queue_leaves_nothing(
    connection: jmsaio.Connection, session: jmsaio.Session
) -> None:
    with pytest.raises(jmsaio.InvalidDestinationError):
        await jmsaio.QueueRequestor.open(session, jmsaio.Queue("multi:a,b"))
    assert not temporaries_left(connection)


async def test_a_topic_requestor_gets_its_reply_and_leaves_no_temporary_topic(
    connection: jmsaio.Connection, name: Name
) -> None:
    topic = jmsaio.Topic(name("requestor"))
    async with connection.create_session() as server, connection.create_session() as client:
        replies = await server.create_producer()

        async def serve(message: jmsaio.Message) -> None:
            assert isinstance(message.jms_reply_to, jmsaio.Topic)
            await replies.send(message.jms_reply_to, "pong")

        (await server.create_consumer(topic)).set_message_listener(serve)
        async with await jmsaio.TopicRequestor.open(client, topic) as requestor:
            answer = await asyncio.wait_for(requestor.request(jmsaio.TextMessage("ping")), 30)
            assert answer is not None and answer.get_body(str) == "pong"
    assert not temporaries_left(connection)
