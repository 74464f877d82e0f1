"""How public names appear, and names of Java."""

from __future__ import annotations

import inspect
import pydoc
import re
import sys
import traceback
from typing import Any

import attrs
import pytest

import jmsaio
from jmsaio.model.public import created_by, public


@public
@created_by("factory.create_thing")
@attrs.define
class Thing:
    """A thing."""

    inner: int


def test_the_module_is_the_package() -> None:
    assert (Thing.__module__, Thing.__qualname__) == ("jmsaio", "Thing")


def test_the_library_creates_it_with_its_arguments() -> None:
    assert Thing(5).inner == 5


def test_help_shows_no_arguments_and_the_call_that_creates_it() -> None:
    shown = pydoc.plain(pydoc.render_doc(Thing))
    assert "inner:" not in shown and not inspect.signature(Thing).parameters
    assert "Not for applications, which call factory.create_thing." in shown


#: Methods of Java's interfaces, whose names here are the same words in snake_case.
METHODS: dict[type[Any], str] = {
    jmsaio.ConnectionFactory: "createConnection createContext createQueueConnection createTopicConnection",
    jmsaio.Connection: (
        "createSession createQueueSession createTopicSession getClientID setClientID getMetaData getExceptionListener "
        "setExceptionListener start stop close"
    ),
    jmsaio.Session: (
        "createBytesMessage createMapMessage createMessage createObjectMessage createStreamMessage createTextMessage "
        "getTransacted getAcknowledgeMode commit rollback close recover createProducer createConsumer "
        "createSharedConsumer createQueue createTopic createDurableSubscriber createDurableConsumer "
        "createSharedDurableConsumer createBrowser createTemporaryQueue createTemporaryTopic unsubscribe "
        "createReceiver createSender createSubscriber createPublisher"
    ),
    jmsaio.Context: (
        "createContext createProducer getClientID setClientID getMetaData getExceptionListener setExceptionListener "
        "start stop setAutoStart getAutoStart close createTextMessage getTransacted getSessionMode commit rollback "
        "recover createConsumer createQueue createTopic createDurableConsumer createSharedDurableConsumer "
        "createSharedConsumer createBrowser createTemporaryQueue createTemporaryTopic unsubscribe acknowledge"
    ),
    jmsaio.MessageProducer: (
        "setDisableMessageID getDisableMessageID setDisableMessageTimestamp getDisableMessageTimestamp "
        "setDeliveryMode getDeliveryMode setPriority getPriority setTimeToLive getTimeToLive setDeliveryDelay "
        "getDeliveryDelay getDestination close send publish"
    ),
    jmsaio.MessageConsumer: (
        "getMessageSelector getMessageListener setMessageListener receive receiveNoWait close getNoLocal receiveBody "
        "receiveBodyNoWait"
    ),
    jmsaio.JMSProducer: (
        "send setDisableMessageID setDeliveryMode setPriority setTimeToLive setDeliveryDelay setAsync getAsync "
        "setProperty clearProperties propertyExists getBooleanProperty getStringProperty getPropertyNames "
        "setJMSCorrelationID getJMSCorrelationID setJMSCorrelationIDAsBytes setJMSType getJMSType setJMSReplyTo "
        "getJMSReplyTo"
    ),
    jmsaio.QueueBrowser: "getQueue getMessageSelector getEnumeration close",
    jmsaio.Message: (
        "clearProperties propertyExists getBooleanProperty getByteProperty getShortProperty "
        "getIntProperty getLongProperty getFloatProperty getDoubleProperty getStringProperty getObjectProperty "
        "getPropertyNames setBooleanProperty setByteProperty setShortProperty setIntProperty setLongProperty "
        "setFloatProperty setDoubleProperty setStringProperty setObjectProperty acknowledge clearBody getBody "
        "isBodyAssignableTo"
    ),
    jmsaio.TextMessage: "getText setText",
    jmsaio.ObjectMessage: "getObject setObject",
    jmsaio.BytesMessage: (
        "getBodyLength readBoolean readByte readUnsignedByte readShort readUnsignedShort readChar readInt readLong "
        "readFloat readDouble readUTF readBytes writeBoolean writeByte writeShort writeChar writeInt writeLong "
        "writeFloat writeDouble writeUTF writeBytes writeObject reset"
    ),
    jmsaio.MapMessage: (
        "getBoolean getByte getShort getChar getInt getLong getFloat getDouble getString getBytes getObject "
        "getMapNames setBoolean setByte setShort setChar setInt setLong setFloat setDouble setString setBytes "
        "setObject itemExists"
    ),
    jmsaio.StreamMessage: (
        "readBoolean readByte readShort readChar readInt readLong readFloat readDouble readString readBytes readObject "
        "writeBoolean writeByte writeShort writeChar writeInt writeLong writeFloat writeDouble writeString writeBytes "
        "writeObject reset"
    ),
}


def in_snake_case(java: str) -> str:
    """``getJMSMessageID`` as ``get_jms_message_id``."""
    found = ""
    for before, letter, after in zip(f" {java}", java, f"{java[1:]} ", strict=False):
        begins = letter.isupper() and (before.islower() or (before.isupper() and after.islower()))
        found += f"_{letter.lower()}" if begins else letter.lower()
    return found


@pytest.mark.parametrize(("kind", "java"), [(kind, java) for kind, names in METHODS.items() for java in names.split()])
def test_each_method_of_java_has_its_name_in_snake_case_and_python_suggests_it(kind: type[Any], java: str) -> None:
    name = in_snake_case(java)
    assert callable(getattr(kind, name))
    if name != java:
        with pytest.raises(AttributeError) as error:
            getattr(kind, java)
        said = "".join(traceback.format_exception_only(error.value))
        if sys.version_info >= (3, 12):  # before, only the interpreter itself adds it, when it prints a traceback
            found = re.search(rf"Did you mean:? '\.?{name}'", said)  # Python 3.15 puts it otherwise
            assert found or java[1:] == "etJMSReplyTo"  # too different for Python


async def test_a_missing_async_or_await_is_named() -> None:
    connecting: Any = jmsaio.connect("memory:")
    with pytest.raises(TypeError, match="write `async with` instead of `with`"), connecting:
        pass
    async with connecting as connection, connection.create_session() as session:
        opening: Any = session.create_consumer(jmsaio.Queue("q"))
        with pytest.raises(TypeError, match="write `await` in front of the call"):
            async for _ in opening:
                pass
        with pytest.raises(TypeError, match="write `async with` instead of `with`"), await opening:
            pass


@pytest.mark.parametrize("kind", [jmsaio.Session, jmsaio.Context])
def test_the_constants_of_sessions_are_acknowledge_modes(kind: Any) -> None:
    assert kind.AUTO_ACKNOWLEDGE is jmsaio.AcknowledgeMode.AUTO
    assert kind.CLIENT_ACKNOWLEDGE is jmsaio.AcknowledgeMode.CLIENT
    assert kind.DUPS_OK_ACKNOWLEDGE is jmsaio.AcknowledgeMode.DUPS_OK
    assert kind.SESSION_TRANSACTED is jmsaio.AcknowledgeMode.TRANSACTED


async def test_javas_arguments_get_an_answer_that_can_be_followed() -> None:
    queue = jmsaio.Queue("orders")
    async with jmsaio.connect("memory://java-names") as connection:
        create_session: Any = connection.create_session
        with pytest.raises(TypeError, match=r"write create_session\(AcknowledgeMode\.AUTO\).*create_queue_session"):
            create_session(False, 1)
        async with connection.create_queue_session(False, jmsaio.Session.CLIENT_ACKNOWLEDGE) as session:
            producer: Any = await session.create_producer(queue)
            anywhere: Any = await session.create_producer()
            for send in (producer.send, anywhere.send):
                with pytest.raises(TypeError, match=r"options of a send are keywords: send\(message, delivery_mode="):
                    await send(queue, "text", jmsaio.DeliveryMode.PERSISTENT, 4, 0)
            requestor: Any = jmsaio.QueueRequestor
            with pytest.raises(TypeError, match=r"write await QueueRequestor\.open\(session, destination\)"):
                requestor(session, queue)
            consumer = await session.create_consumer(queue)
            await producer.send("one")
            with pytest.warns(UserWarning, match="1000 milliseconds are 1 here"):
                assert await consumer.receive(1000) is not None
