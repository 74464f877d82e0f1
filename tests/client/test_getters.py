"""JMS's getters beside the properties."""

from __future__ import annotations

import uuid

import pytest

import jmsaio


async def test_getters_read_the_properties() -> None:
    async with jmsaio.connect(f"memory://{uuid.uuid4()}", client_id="getters") as connection:
        assert connection.get_meta_data().jms_version == "3.1"
        assert connection.get_client_id() == "getters"
        async with connection.create_session() as session:
            assert session.get_transacted() is False
            assert session.get_acknowledge_mode() is jmsaio.AcknowledgeMode.AUTO
            queue = session.create_queue("q")
            async with session.create_producer(queue) as producer, session.create_consumer(queue) as consumer:
                producer.set_priority(7)
                assert (producer.get_priority(), producer.get_destination()) == (7, queue)
                assert (producer.get_time_to_live(), producer.get_disable_message_id()) == (0, False)
                assert consumer.get_message_selector() is None and consumer.get_no_local() is False
            with pytest.raises(jmsaio.ObjectClosedError):
                producer.get_priority()
            browser = await session.create_browser(queue)
            assert browser.get_queue() == queue
        with pytest.raises(AttributeError, match="get_nothing"):
            connection.get_nothing()


async def test_the_simplified_api_has_them_too() -> None:
    url = f"memory://{uuid.uuid4()}"
    async with jmsaio.ConnectionFactory(url) as factory, await factory.create_context() as context:
        assert context.get_auto_start() is True and context.get_client_id() is None
        assert context.get_session_mode() is jmsaio.AcknowledgeMode.AUTO
        producer = context.create_producer().set_delivery_delay(2).set_jms_type("t").set_property("n", 5)
        assert (producer.get_delivery_delay(), producer.get_jms_type(), producer.get_int_property("n")) == (2, "t", 5)
