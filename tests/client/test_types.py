"""The types are of use: ordinary code checks under mypy and pyright, a misspelt call or a wrong order does not."""

from __future__ import annotations

import pytest

from jmsaio import Message, TextMessage
from tests.kit.type_checkers import CHECKERS, MARKS, declare, type_errors

RIGHT = """\
import asyncio
from datetime import timedelta

import jmsaio
from jmsaio import Context, JMSProducer, MessageConsumer, MessageProducer, QueueBrowser, Session


class Handler:
    def on_completion(self, message: jmsaio.Message) -> None: ...
    def on_exception(self, message: jmsaio.Message, error: Exception) -> None: ...


async def classic(session: Session, consumer: MessageConsumer, producer: MessageProducer) -> None:
    queue = session.create_queue("orders")
    receipt: jmsaio.Receipt = await producer.send("hello", properties={"region": "EU"}, time_to_live=timedelta(hours=1))
    await producer.send(queue, {"amount": 5}, priority=7)
    await producer.send(queue, session.create_bytes_message(b"a"), delivery_mode=jmsaio.DeliveryMode.NON_PERSISTENT)
    future: asyncio.Future[jmsaio.Receipt] = await producer.send_async([1, "a"], completion_listener=Handler())
    await producer.send_async(queue, b"bytes", completion_listener=Handler())
    async for message in consumer:
        text: str | None = message.text
        print(text, message.properties["amount"], message.jms_message_id)
        await message.acknowledge()
    received = await consumer.receive(timeout=5)
    if received is not None and received.text is not None:
        print(received.text.upper())
    amounts: dict[str, int] | None = await consumer.receive_body(dict, timeout=5)
    if isinstance(received, jmsaio.MapMessage):
        print(received["amount"])
    reply = await session.request(queue, "ping", timeout=5, properties={"a": 1}, priority=3)
    print(reply.text, receipt.jms_message_id, producer.get_priority(), consumer.get_message_selector(), amounts, future)


async def simplified(context: Context, browser: QueueBrowser) -> None:
    queue: jmsaio.Queue = context.create_queue("orders")
    producer: JMSProducer = context.create_producer().set_priority(3).set_jms_type("t").set_property("n", 5)
    number: int = producer.get_int_property("n")
    await producer.send(queue, "hello")
    await producer.send(queue, message=context.create_text_message("hello"))
    async with context.create_consumer(queue) as consumer:
        mode: jmsaio.AcknowledgeMode = context.get_session_mode()
        print(mode, number, await consumer.receive_body(str, timeout=5), browser.get_queue())
    await context.commit()
"""
HEAD = """\
import jmsaio


async def main(
    session: jmsaio.Session,
    context: jmsaio.Context,
    connection: jmsaio.Connection,
    producer: jmsaio.MessageProducer,
    consumer: jmsaio.MessageConsumer,
    browser: jmsaio.QueueBrowser,
    queue: jmsaio.Queue,
    message: jmsaio.Message,
) -> None:
"""
#: A line that must not check, and what the error names.
WRONG = {
    "await session.comit()": "comit",
    "await context.comit()": "comit",
    "await connection.strat()": "strat",
    'await producer.sennd("x")': "sennd",
    "await consumer.recieve()": "recieve",
    "browser.get_queu()": "get_queu",
    "context.get_nothing()": "get_nothing",
    "context.create_producer().get_uint_property('n')": "get_uint_property",
    'await producer.send("x", queue)': "send",
    'await producer.send_async("x", queue)': "send_async",
    "await producer.send(queue)": "send",
    'await producer.send(queue, "x", prority=3)': "send",
    'await producer.send("x", priority="high")': "send",
    'await producer.send("x", completion_listener=None)': "send",
    'await producer.send_async("x", completion_listener=None)': "send_async",
    'await context.create_producer().send("x", queue)': "send",
    'await context.create_producer().send(queue, message="x")': "send",
    'await session.request(queue, "x", timeout=5, prority=3)': "prority",
    "context.create_queue(5)": "create_queue",
    "message.txt": "txt",
    "message.text.upper()": "upper",
    "(await consumer.receive(timeout=1)).text": "text",
}


MISTAKES = HEAD + "".join(f"    {line}\n" for line in WRONG)
declare(RIGHT, MISTAKES)


@pytest.mark.parametrize("checker", CHECKERS)
class TestChecker:
    pytestmark = MARKS

    def test_ordinary_code_type_checks(self, checker: str) -> None:
        assert type_errors(checker, RIGHT) == {}

    @pytest.mark.parametrize("line", WRONG)
    def test_a_mistake_is_an_error_that_names_it(self, line: str, checker: str) -> None:
        errors = type_errors(checker, MISTAKES)[HEAD.count("\n") + 1 + list(WRONG).index(line)]
        assert any(WRONG[line] in error for error in errors), errors


def test_only_text_messages_have_a_text() -> None:
    assert TextMessage("tea").text == "tea"
    assert not hasattr(Message(), "text")
