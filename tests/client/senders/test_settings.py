"""A producer's settings: attributes and JMS setters are the same."""

from __future__ import annotations

from datetime import timedelta

import pytest

import jmsaio
from jmsaio.client.senders.settings import checked_mode, checked_priority


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


@pytest.mark.parametrize("wrong", [0, 3, True, "1"])
def test_a_delivery_mode_that_jms_lacks_is_refused(wrong: object) -> None:
    with pytest.raises(jmsaio.JMSError, match="delivery_mode"):
        checked_mode(wrong)  # type: ignore[arg-type]  # what a caller may do


@pytest.mark.parametrize("wrong", [-1, 10, True, 4.0])
def test_a_priority_is_an_int_from_0_to_9(wrong: object) -> None:
    with pytest.raises(jmsaio.JMSError, match="priority"):
        checked_priority(wrong)  # type: ignore[arg-type]  # what a caller may do
