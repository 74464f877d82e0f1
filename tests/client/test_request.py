"""Request and reply (jms-spec 14)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

import jmsaio

Name = Callable[[str], str]


async def test_request_and_reply(connection: jmsaio.Connection, name: Name) -> None:
    queue = jmsaio.Queue(name("requests"))
    async with connection.create_session() as server, connection.create_session() as client:
        replies = await server.create_producer()
        consumer = await server.create_consumer(queue)

        async def serve(message: jmsaio.Message) -> None:
            reply = jmsaio.TextMessage(message.get_body(str).upper())
            by_id = message.get_body(str).endswith("0")
            reply.jms_correlation_id = message.jms_message_id if by_id else message.jms_correlation_id
            assert message.jms_reply_to is not None
            await replies.send(message.jms_reply_to, reply)

        consumer.set_message_listener(serve)
        answers = await asyncio.gather(*[client.request(queue, f"r{number}", timeout=30) for number in range(100)])
        assert [answer.get_body(str) for answer in answers] == [f"R{number}" for number in range(100)]
        with pytest.raises(TimeoutError):
            await client.request(jmsaio.Queue(name("nobody")), "hello", timeout=0.2)


async def test_queue_requestor(connection: jmsaio.Connection, name: Name) -> None:
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
