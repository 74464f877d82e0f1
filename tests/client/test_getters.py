"""JMS's getters: each noun declares ``get_priority()`` beside ``priority``, so that type checkers know it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest

import jmsaio
from jmsaio import AcknowledgeMode
from tests.client.helpers import take

#: The getters of each class.
GETTERS: dict[type[Any], str] = {
    jmsaio.Connection: "client_id exception_listener meta_data",
    jmsaio.Session: "acknowledge_mode transacted",
    jmsaio.MessageProducer: (
        "delivery_delay delivery_mode destination disable_message_id disable_message_timestamp priority "
        "time_to_live"
    ),
    jmsaio.MessageConsumer: "destination message_listener message_selector no_local",
    jmsaio.QueueBrowser: "enumeration message_selector queue",
    jmsaio.Context: (
        "auto_start client_id exception_listener meta_data session_mode transacted"
    ),
    jmsaio.JMSProducer: (
        "async boolean_property byte_property delivery_delay delivery_mode disable_message_id "
        "disable_message_timestamp double_property float_property int_property jms_correlation_id "
        "jms_correlation_id_as_bytes jms_reply_to jms_type long_property object_property priority properties "
        "property_names short_property string_property time_to_live"
    ),
}  # fmt: skip
#: Everything else that each class shows under completion: what JMS has, and nothing internal.
CALLS: dict[type[Any], str] = {
    jmsaio.ConnectionFactory: (
        "close configuration create_connection create_context create_queue_connection create_topic_connection "
        "queue_browser_read_max"
    ),
    jmsaio.Connection: (
        "client_id close closed configuration create_queue_session create_session create_topic_session "
        "drain exception_listener last_change metadata on_state ping set_client_id "
        "set_exception_listener start state stats stop"
    ),
    jmsaio.Session: (
        "AUTO_ACKNOWLEDGE CLIENT_ACKNOWLEDGE DUPS_OK_ACKNOWLEDGE SESSION_TRANSACTED "
        "acknowledge acknowledge_mode close closed commit create_browser create_bytes_message create_consumer "
        "create_durable_consumer create_durable_subscriber create_map_message create_message create_object_message "
        "create_producer create_publisher create_queue create_receiver create_sender create_shared_consumer "
        "create_shared_durable_consumer create_stream_message create_subscriber create_temporary_queue "
        "create_temporary_topic create_text_message create_topic recover request rollback "
        "set_subscription_selector transacted unsubscribe"
    ),
    jmsaio.MessageProducer: (
        "close closed delivery_delay delivery_mode destination disable_message_id disable_message_timestamp "
        "priority publish send send_async set_delivery_delay set_delivery_mode set_disable_message_id "
        "set_disable_message_timestamp set_priority set_time_to_live stats time_to_live"
    ),
    jmsaio.MessageConsumer: (
        "close closed deliveries destination drain message_listener message_selector no_local process receive "
        "receive_body receive_body_no_wait receive_no_wait set_message_listener stats"
    ),
    jmsaio.QueueBrowser: (
        "close message_selector queue stream"
    ),
    jmsaio.Context: (
        "AUTO_ACKNOWLEDGE CLIENT_ACKNOWLEDGE DUPS_OK_ACKNOWLEDGE SESSION_TRANSACTED "
        "acknowledge auto_start client_id close closed commit connection create_browser create_bytes_message "
        "create_consumer create_context create_durable_consumer create_map_message create_message "
        "create_object_message create_producer create_queue create_shared_consumer create_shared_durable_consumer "
        "create_stream_message create_temporary_queue create_temporary_topic create_text_message create_topic "
        "exception_listener metadata recover request rollback session_mode set_auto_start set_client_id "
        "set_exception_listener start set_subscription_selector stop transacted unsubscribe"
    ),
    jmsaio.JMSProducer: (
        "clear_properties delivery_delay delivery_mode disable_message_id disable_message_timestamp "
        "jms_correlation_id jms_correlation_id_as_bytes jms_reply_to jms_type priority properties property_exists "
        "send set_async set_delivery_delay set_delivery_mode set_disable_message_id set_disable_message_timestamp "
        "set_jms_correlation_id set_jms_correlation_id_as_bytes set_jms_reply_to set_jms_type set_priority "
        "set_properties set_property set_time_to_live time_to_live"
    ),
}  # fmt: skip
#: What a context and a session do alike.
SESSION_CALLS = (
    "create_queue create_topic create_temporary_queue create_temporary_topic create_message create_text_message "
    "create_bytes_message create_map_message create_stream_message create_object_message unsubscribe acknowledge "
    "recover commit rollback"
)


@pytest.mark.parametrize("noun", GETTERS, ids=lambda noun: noun.__name__)
def test_each_noun_declares_its_getters_and_hides_no_others(noun: type[Any]) -> None:
    declared = {name for name in dir(noun) if name.startswith("get_")}
    assert declared == {f"get_{name}" for name in GETTERS[noun].split()}
    assert not hasattr(noun, "__getattr__")
    for name in declared:
        assert callable(getattr(noun, name)) and getattr(noun, name).__doc__


@pytest.mark.parametrize("noun", CALLS, ids=lambda noun: noun.__name__)
def test_completion_shows_nothing_internal(noun: type[Any]) -> None:
    shown = {name for name in dir(object.__new__(noun)) if not name.startswith(("_", "get_"))}
    assert shown == set(CALLS[noun].split())


def test_each_property_has_its_getter() -> None:
    """Some are no properties of JMS; its getter of ``metadata`` is ``get_meta_data``."""
    ours = {"closed", "configuration", "connection", "last_change", "metadata", "queue_browser_read_max", "state"}
    for noun, getters in GETTERS.items():
        properties = {name for name in dir(noun) if name[0] != "_" and isinstance(getattr(noun, name), property)}
        assert properties - {*ours, *getters.split()} == set(), noun


def test_a_context_has_the_calls_of_a_session() -> None:
    for name in SESSION_CALLS.split():
        assert getattr(jmsaio.Context, name) is getattr(jmsaio.Session, name)


async def test_getters_read_the_properties() -> None:
    async with jmsaio.connect(f"memory://{uuid.uuid4()}", client_id="getters") as connection:
        assert connection.get_meta_data().jms_version == connection.metadata.jms_version == "3.1"
        assert connection.get_client_id() == "getters"
        async with connection.create_session() as session:
            assert session.get_transacted() is session.closed is False
            assert session.get_acknowledge_mode() is jmsaio.AcknowledgeMode.AUTO
            queue = session.create_queue("q")
            async with session.create_producer(queue) as producer, session.create_consumer(queue) as consumer:
                producer.set_priority(7)
                assert (producer.get_priority(), producer.get_destination()) == (7, queue)
                assert (producer.get_time_to_live(), producer.get_disable_message_id()) == (0, False)
                assert (producer.get_delivery_delay(), producer.get_disable_message_timestamp()) == (0, False)
                assert producer.get_delivery_mode() is jmsaio.DeliveryMode.PERSISTENT
                assert consumer.get_message_selector() is None and consumer.get_no_local() is False
                assert (consumer.get_destination(), consumer.closed) == (queue, False)
            assert producer.closed and consumer.closed
            for read in (producer.get_priority, consumer.get_no_local):
                with pytest.raises(jmsaio.ObjectClosedError):
                    read()
            browser = await session.create_browser(queue)
            assert browser.get_queue() == queue
        with pytest.raises(AttributeError, match="get_nothing"):
            connection.get_nothing()  # type: ignore[attr-defined]  # the point
        assert session.closed and not connection.closed


async def test_the_simplified_api_has_them_too() -> None:
    url = f"memory://{uuid.uuid4()}"
    async with jmsaio.ConnectionFactory(url) as factory, await factory.create_context() as context:
        assert context.get_auto_start() is True and context.get_client_id() is None
        assert context.get_session_mode() is jmsaio.AcknowledgeMode.AUTO
        assert context.get_transacted() is context.closed is False
        assert context.get_exception_listener() is None
        assert context.get_meta_data() == context.metadata
        producer = context.create_producer().set_delivery_delay(2).set_jms_type("t").set_property("n", 5)
        assert (producer.get_delivery_delay(), producer.get_jms_type(), producer.get_int_property("n")) == (2, "t", 5)
        assert producer.property_exists("n") and producer.get_property_names() == ["n"]
        assert dict(producer.get_properties()) == {"n": 5}
        assert producer.get_async() is None


async def test_a_contexts_calls_do_what_those_of_its_session_do() -> None:
    url = f"memory://{uuid.uuid4()}"
    async with (
        jmsaio.ConnectionFactory(url, enable_transaction=True) as factory,
        await factory.create_context(jmsaio.AcknowledgeMode.TRANSACTED) as context,
    ):
        assert (context.create_queue("q"), context.create_topic("t")) == (jmsaio.Queue("q"), jmsaio.Topic("t"))
        assert isinstance(await context.create_temporary_queue(), jmsaio.TemporaryQueue)
        assert isinstance(await context.create_temporary_topic(), jmsaio.TemporaryTopic)
        assert type(context.create_message()) is jmsaio.Message
        assert context.create_text_message("a").text == "a"
        assert context.create_bytes_message(b"a").get_body(bytes) == b"a"
        assert context.create_map_message({"a": 1})["a"] == 1
        assert isinstance(context.create_stream_message([1, "a"]), jmsaio.StreamMessage)
        assert context.create_object_message({"a": 1}).get_object() == {"a": 1}
        with pytest.raises(jmsaio.IllegalStateError, match="rollback"):
            await context.recover()
        with pytest.raises(jmsaio.InvalidDestinationError):
            await context.unsubscribe("unknown", jmsaio.Topic("t"))
        await context.acknowledge()
        await context.create_producer().send(jmsaio.Queue("q"), "undone")
        await context.rollback()
        await context.create_producer().send(jmsaio.Queue("q"), "kept")
        await context.commit()
        async with context.create_consumer(jmsaio.Queue("q")) as consumer:
            assert await consumer.receive_body(str, timeout=20) == "kept"


async def test_the_names_of_jms_1_1_do_the_same(url: str, name: Callable[[str], str]) -> None:
    async with jmsaio.ConnectionFactory(url) as factory:
        connection = await factory.create_topic_connection(client_id=name("client"))
        await connection.start()
        async with connection.create_topic_session(False, AcknowledgeMode.AUTO) as session:
            topic, queue = session.create_topic(name("topic")), session.create_queue(name("queue"))
            durable = await session.create_durable_subscriber(topic, "durable", "n > 1", True)
            plain = await session.create_subscriber(topic)
            publisher = await session.create_publisher(topic)
            for number in (1, 2):
                await publisher.publish(str(number), properties={"n": number})
            assert [message.text for message in await take(plain, 2)] == ["1", "2"]
            assert durable.get_message_selector() == "n > 1" and durable.get_no_local()
            assert await durable.receive_no_wait() is None
            await (await session.create_sender(queue)).send("x")
            assert [message.text for message in await take(await session.create_receiver(queue), 1)] == ["x"]
            await durable.close()
            await session.unsubscribe("durable", topic)
        async with connection.create_queue_session(False, AcknowledgeMode.CLIENT) as session:
            assert session.acknowledge_mode is AcknowledgeMode.CLIENT and not session.transacted
    async with jmsaio.connect(f"{url}{'&' if '?' in url else '?'}jms.emulateTransactions=true") as connection:
        async with connection.create_queue_session(True, AcknowledgeMode.AUTO) as session:
            assert session.transacted
