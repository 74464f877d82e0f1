"""Closed objects (checklist.txt, group 9): after close every call raises, getters included; close itself never does."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest

import jmsaio
from jmsaio import AcknowledgeMode, DeliveryMode
from tests.conformance.kit import row


@attrs.define
class Things:
    """What a test closes, or uses after something was closed."""

    connection: jmsaio.Connection
    session: jmsaio.Session
    consumer: jmsaio.MessageConsumer
    producer: jmsaio.MessageProducer
    destination: Any
    received: jmsaio.Message


Call = Callable[[Things], Any]

MESSAGE = jmsaio.TextMessage("late")

CONNECTION: dict[str, Call] = {
    "GetClientID": lambda it: it.connection.get_client_id(),
    "SetClientID": lambda it: it.connection.set_client_id("late"),
    "GetMetaData": lambda it: it.connection.get_meta_data(),
    "GetExceptionListener": lambda it: it.connection.get_exception_listener(),
    "SetExceptionListener": lambda it: it.connection.set_exception_listener(print),
    "Start": lambda it: it.connection.start(),
    "Stop": lambda it: it.connection.stop(),
    "CreateQueueSession": lambda it: it.connection.create_session(),
    "CreateTopicSession": lambda it: it.connection.create_session(),
}

SESSION: dict[str, Call] = {
    "Commit": lambda it: it.session.commit(),
    "Rollback": lambda it: it.session.rollback(),
    "Recover": lambda it: it.session.recover(),
    "GetTransacted": lambda it: it.session.get_transacted(),
    "Unsubscribe": lambda it: it.session.unsubscribe("late", jmsaio.Topic("late")),
    "CreateBrowser": lambda it: it.session.create_browser(it.destination),
    "CreateBrowserMsgSelector": lambda it: it.session.create_browser(it.destination, "TEST = 'test'"),
    "CreateQueue": lambda it: it.session.create_queue("late"),
    "CreateTopic": lambda it: it.session.create_topic("late"),
    "CreateTempQueue": lambda it: it.session.create_temporary_queue(),
    "CreateTempTopic": lambda it: it.session.create_temporary_topic(),
    "CreateReceiver": lambda it: it.session.create_consumer(it.destination),
    "CreateReceiverMsgSelector": lambda it: it.session.create_consumer(it.destination, "TEST = 'test'"),
    "CreateSubscriber": lambda it: it.session.create_consumer(it.destination),
    "CreateSubscriberMsgSelector": lambda it: it.session.create_consumer(it.destination, "TEST = 'test'", True),
    "CreateDurableSubscriber": lambda it: it.session.create_durable_consumer(it.destination, "late"),
    "CreateDurableSubscriberMsgSelector": lambda it: it.session.create_durable_consumer(
        it.destination, "late", "TEST = 'test'", True
    ),
    "CreateSender": lambda it: it.session.create_producer(it.destination),
    "CreatePublisher": lambda it: it.session.create_producer(it.destination),
    "CreateMessage": lambda it: it.session.create_message(),
    "CreateBytesMessage": lambda it: it.session.create_bytes_message(),
    "CreateMapMessage": lambda it: it.session.create_map_message(),
    "CreateObjectMessage": lambda it: it.session.create_object_message(),
    "CreateObject2Message": lambda it: it.session.create_object_message({"late": True}),
    "CreateStreamMessage": lambda it: it.session.create_stream_message(),
    "CreateTextMessage": lambda it: it.session.create_text_message(),
    "CreateText2Message": lambda it: it.session.create_text_message("late"),
    "Ack": lambda it: it.received.acknowledge(),
}

CONSUMER: dict[str, Call] = {
    "GetMessageSelector": lambda it: it.consumer.get_message_selector(),
    "GetMessageListener": lambda it: it.consumer.get_message_listener(),
    "SetMessageListener": lambda it: it.consumer.set_message_listener(print),
    "GetNoLocal": lambda it: it.consumer.get_no_local(),
    "Receive": lambda it: it.consumer.receive(),
    "ReceiveTimeout": lambda it: it.consumer.receive(timeout=10),
    "ReceiveNoWait": lambda it: it.consumer.receive_no_wait(),
    "ReceiverGetQueue": lambda it: it.consumer.get_destination(),
    "SubscriberGetTopic": lambda it: it.consumer.get_destination(),
}

PRODUCER: dict[str, Call] = {
    "GetDeliveryMode": lambda it: it.producer.get_delivery_mode(),
    "GetDisableMessageID": lambda it: it.producer.get_disable_message_id(),
    "GetDisableMessageTimestamp": lambda it: it.producer.get_disable_message_timestamp(),
    "GetPriority": lambda it: it.producer.get_priority(),
    "GetTimeToLive": lambda it: it.producer.get_time_to_live(),
    "SetDeliveryMode": lambda it: it.producer.set_delivery_mode(DeliveryMode.PERSISTENT),
    "SetDisableMessageID": lambda it: it.producer.set_disable_message_id(True),
    "SetDisableMessageTimestamp": lambda it: it.producer.set_disable_message_timestamp(True),
    "SetPriority": lambda it: it.producer.set_priority(4),
    "SetTimeToLive": lambda it: it.producer.set_time_to_live(10),
    "SenderGetQueue": lambda it: it.producer.get_destination(),
    "PublisherGetTopic": lambda it: it.producer.get_destination(),
    "Send1": lambda it: it.producer.send(MESSAGE),
    "Send2": lambda it: it.producer.send(MESSAGE, delivery_mode=DeliveryMode.PERSISTENT, priority=4, time_to_live=0),
    "Send3": lambda it: it.producer.send(it.destination, MESSAGE),
    "Send4": lambda it: it.producer.send(
        it.destination, MESSAGE, delivery_mode=DeliveryMode.PERSISTENT, priority=4, time_to_live=0
    ),
    "Publish1": lambda it: it.producer.send(MESSAGE),
    "Publish2": lambda it: it.producer.send(MESSAGE, delivery_mode=DeliveryMode.PERSISTENT, priority=4, time_to_live=0),
}

CALLS = CONNECTION | SESSION | CONSUMER | PRODUCER

SETTINGS = (
    "GetDeliveryMode GetDisableMessageID GetDisableMessageTimestamp GetPriority GetTimeToLive SetDeliveryMode "
    "SetDisableMessageID SetDisableMessageTimestamp SetPriority SetTimeToLive"
)
MESSAGES = (
    "CreateMessage CreateBytesMessage CreateMapMessage CreateObjectMessage CreateObject2Message CreateStreamMessage "
    "CreateTextMessage CreateText2Message"
)
RECEIVING = "GetMessageSelector Receive ReceiveTimeout ReceiveNoWait"
QUEUES = (
    "CreateBrowser CreateBrowserMsgSelector CreateQueue CreateReceiver CreateReceiverMsgSelector CreateSender "
    "CreateTempQueue ReceiverGetQueue SenderGetQueue Send1 Send2 Send3 Send4"
)
TOPICS = (
    "CreateTopic CreateSubscriber CreateSubscriberMsgSelector CreatePublisher CreateTempTopic GetNoLocal "
    "SubscriberGetTopic PublisherGetTopic Publish1 Publish2"
)
LISTENING = "GetMessageListener SetMessageListener"
ENDS = "Commit Rollback Recover GetTransacted"
ABOUT = "GetClientID GetMetaData Start"

#: Class of the checklist, the word in its methods' names, the kind of destination, what is closed, the calls.
REFUSED = [
    ("core/closedQueueConnection/ClosedQueueConnectionTestsIT", "QueueConnection", "queue", "connection",
     f"{ENDS} {ABOUT} CreateQueueSession {MESSAGES} {RECEIVING} {SETTINGS} {QUEUES}"),
    ("core/appclient/closedQueueConnection/ClosedQueueConnectionTestsIT", "QueueConnection", "queue", "connection",
     f"SetClientID SetExceptionListener GetExceptionListener {LISTENING} Stop Ack"),
    ("core/closedQueueSession/ClosedQueueSessionTestsIT", "QueueSession", "queue", "session",
     f"{ENDS} {MESSAGES} {RECEIVING} {SETTINGS} {QUEUES}"),
    ("core/appclient/closedQueueSession/ClosedQueueSessionTestsIT", "QueueSession", "queue", "session", LISTENING),
    ("core/closedQueueReceiver/ClosedQueueReceiverTestsIT", "QueueReceiver", "queue", "consumer",
     f"{RECEIVING} GetQueue"),
    ("core/appclient/closedQueueReceiver/ClosedQueueReceiverIT", "QueueReceiver", "queue", "consumer", LISTENING),
    ("core/closedQueueSender/ClosedQueueSenderTestsIT", "QueueSender", "queue", "producer",
     f"{SETTINGS} GetQueue Send1 Send2 Send3 Send4"),
    ("core/closedTopicConnection/ClosedTopicConnectionTestsIT", "TopicConnection", "topic", "connection",
     f"{ENDS} {ABOUT} CreateTopicSession {MESSAGES} {RECEIVING} {SETTINGS} {TOPICS}"),
    ("core/appclient/closedTopicConnection/ClosedTopicConnectionTestsIT", "TopicConnection", "topic", "connection",
     f"SetClientID SetExceptionListener GetExceptionListener {LISTENING} Stop"),
    ("core/closedTopicSession/ClosedTopicSessionTestsIT", "TopicSession", "topic", "session",
     f"{ENDS} {MESSAGES} {RECEIVING} {SETTINGS} {TOPICS} Unsubscribe CreateDurableSubscriber "
     "CreateDurableSubscriberMsgSelector"),
    ("core/appclient/closedTopicSession/ClosedTopicSessionTestsIT", "TopicSession", "topic", "session", LISTENING),
    ("core/closedTopicSubscriber/ClosedTopicSubscriberTestsIT", "TopicSubscriber", "topic", "consumer",
     f"{RECEIVING} GetNoLocal GetTopic"),
    ("core/closedTopicPublisher/ClosedTopicPublisherTestsIT", "TopicPublisher", "topic", "producer",
     f"{SETTINGS} GetTopic Publish1 Publish2"),
]  # fmt: skip

#: As above: what is closed first, and what can be closed after that.
SILENT = [
    ("core/closedQueueConnection/ClosedQueueConnectionTestsIT", "QueueConnection", "queue", "connection",
     {"Close": "connection", "SessionClose": "session", "ReceiverClose": "consumer", "SenderClose": "producer"}),
    ("core/closedQueueSession/ClosedQueueSessionTestsIT", "QueueSession", "queue", "session",
     {"Close": "session", "ReceiverClose": "consumer", "SenderClose": "producer"}),
    ("core/closedQueueReceiver/ClosedQueueReceiverTestsIT", "QueueReceiver", "queue", "consumer",
     {"Close": "consumer"}),
    ("core/closedQueueSender/ClosedQueueSenderTestsIT", "QueueSender", "queue", "producer", {"Close": "producer"}),
    ("core/closedTopicConnection/ClosedTopicConnectionTestsIT", "TopicConnection", "topic", "connection",
     {"Close": "connection", "SessionClose": "session", "SubscriberClose": "consumer", "PublisherClose": "producer"}),
    ("core/closedTopicSession/ClosedTopicSessionTestsIT", "TopicSession", "topic", "session",
     {"Close": "session", "SubscriberClose": "consumer", "PublisherClose": "producer"}),
    ("core/closedTopicSubscriber/ClosedTopicSubscriberTestsIT", "TopicSubscriber", "topic", "consumer",
     {"Close": "consumer"}),
    ("core/closedTopicPublisher/ClosedTopicPublisherTestsIT", "TopicPublisher", "topic", "producer",
     {"Close": "producer"}),
]  # fmt: skip


def refused_rows() -> Iterator[Any]:
    for file, word, kind, closed, calls in REFUSED:
        for name in calls.split():
            call = CALLS["SenderGetQueue" if closed == "producer" else "ReceiverGetQueue"]
            yield row(kind, closed, CALLS.get(name, call), key=f"{file}.closed{word}{name}Test")
    again = "core/closedQueueSession/ClosedQueueSessionTestsIT.closedSessionRecoverTest"  # the list has it twice
    yield row("queue", "session", CALLS["Recover"], key=again)


def silent_rows() -> Iterator[Any]:
    for file, word, kind, closed, others in SILENT:
        for name, other in others.items():
            yield row(kind, closed, other, key=f"{file}.closed{word}{name}Test")


@pytest.fixture
async def things(connection: jmsaio.Connection, name: Callable[[str], str], kind: str) -> Things:
    """All open, and a message received that is not acknowledged."""
    session = await connection.create_session(AcknowledgeMode.CLIENT)
    destination = (jmsaio.Queue if kind == "queue" else jmsaio.Topic)(name("closed"))
    consumer = await session.create_consumer(destination)
    producer = await session.create_producer(destination)
    await producer.send("early")
    received = await consumer.receive(timeout=20)
    assert received is not None
    return Things(connection, session, consumer, producer, destination, received)


async def finish(result: Any) -> Any:
    """What a call comes to, awaited if it can be."""
    return await result if inspect.isawaitable(result) else result


@pytest.mark.parametrize(("kind", "closed", "call"), list(refused_rows()))
async def test_a_call_after_close_is_refused(things: Things, closed: str, call: Call) -> None:
    await getattr(things, closed).close()
    with pytest.raises(jmsaio.ObjectClosedError) as caught:
        await finish(call(things))
    assert isinstance(caught.value, jmsaio.IllegalStateError)


@pytest.mark.parametrize(("kind", "closed", "other"), list(silent_rows()))
async def test_close_after_close_is_silent(things: Things, closed: str, other: str) -> None:
    await getattr(things, closed).close()
    await getattr(things, other).close()
    assert getattr(things, other).closed


async def test_the_same_calls_work_while_all_is_open(things: Things) -> None:
    """Else a call that always raises would pass above."""
    apart = {"SetClientID", "Commit", "Rollback", "Unsubscribe", "Receive", "ReceiveTimeout"}
    kind = "queue" if isinstance(things.destination, jmsaio.Queue) else "topic"
    other = {"queue": {"Subscriber", "Durable"}, "topic": {"Browser", "Receiver"}}[kind]
    for name, call in CALLS.items():
        if name in apart or any(word in name for word in other) or name in ("SetMessageListener", "Send3", "Send4"):
            continue
        made = await finish(call(things))
        if hasattr(made, "close"):
            await made.close()
