"""A producer's settings: attributes and JMS setters are the same."""

from __future__ import annotations

import inspect
from datetime import timedelta

import pytest

import jmsaio
from jmsaio import MessageProducer
from jmsaio.client.producers.settings import SendOptions


async def test_attributes_and_setters_are_the_same(session: jmsaio.Session) -> None:
    producer = await session.create_producer()
    producer.time_to_live = timedelta(minutes=1)
    producer.delivery_delay = 2
    producer.set_disable_message_id(True)
    producer.set_disable_message_timestamp(True)
    assert (producer.time_to_live, producer.delivery_delay) == (60.0, 2.0)
    assert producer.disable_message_id
    assert producer.disable_message_timestamp
    with pytest.raises(ValueError, match="seconds, not milliseconds"):
        producer.time_to_live = 10**9
    await producer.close()
    with pytest.raises(jmsaio.ObjectClosedError):
        producer.time_to_live = 1


async def test_a_producer_begins_with_the_defaults_of_jms(session: jmsaio.Session) -> None:
    producer = await session.create_producer()
    assert (producer.delivery_mode, producer.priority, producer.time_to_live, producer.delivery_delay) == (2, 4, 0, 0)
    assert (producer.disable_message_id, producer.disable_message_timestamp) == (False, False)
    assert producer.destination is None


async def test_each_setter_sets_its_own_setting(session: jmsaio.Session) -> None:
    producer = await session.create_producer(jmsaio.Queue("orders"))
    producer.set_delivery_mode(jmsaio.DeliveryMode.NON_PERSISTENT)
    producer.set_priority(9)
    producer.set_time_to_live(1.5)
    producer.set_delivery_delay(2.5)
    producer.set_disable_message_id(True)
    assert (producer.get_delivery_mode(), producer.get_priority()) == (1, 9)
    assert (producer.get_time_to_live(), producer.get_delivery_delay()) == (1.5, 2.5)
    assert (producer.get_disable_message_id(), producer.get_disable_message_timestamp()) == (True, False)
    producer.set_disable_message_id(False)
    producer.set_disable_message_timestamp(True)
    assert (producer.get_disable_message_id(), producer.get_disable_message_timestamp()) == (False, True)
    assert producer.get_destination() == jmsaio.Queue("orders")


SETTINGS = {
    "delivery_mode": 1, "priority": 5, "time_to_live": 1, "delivery_delay": 1, "disable_message_id": True,
    "disable_message_timestamp": True,
}  # fmt: skip


@pytest.mark.parametrize("name", [*SETTINGS, "destination"])
async def test_a_closed_producer_has_no_settings(session: jmsaio.Session, name: str) -> None:
    producer = await session.create_producer()
    await producer.close()
    with pytest.raises(jmsaio.ObjectClosedError):
        getattr(producer, name)
    if name in SETTINGS:
        with pytest.raises(jmsaio.ObjectClosedError):
            setattr(producer, name, SETTINGS[name])


@pytest.mark.parametrize("name", ["disable_message_id", "disable_message_timestamp"])
async def test_a_flag_is_true_or_false(session: jmsaio.Session, name: str) -> None:
    producer = await session.create_producer()
    with pytest.raises(jmsaio.JMSError, match=name):
        setattr(producer, name, "yes")
    assert getattr(producer, name) is False


def test_the_keywords_of_send_are_those_that_type_checkers_know() -> None:
    for call in (MessageProducer.send, MessageProducer.send_async):
        keywords = {
            name: each.annotation
            for name, each in inspect.signature(call).parameters.items()
            if each.kind is inspect.Parameter.KEYWORD_ONLY and name != "completion_listener"
        }
        declared = {name: getattr(kind, "__forward_arg__", kind) for name, kind in SendOptions.__annotations__.items()}
        assert keywords == declared
        assert SendOptions.__required_keys__ == frozenset()
