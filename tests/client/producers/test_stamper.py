"""A producer's stamps: of its settings or a send's options, with ids in order."""

from __future__ import annotations

from typing import Any

import pytest

import jmsaio
from jmsaio.client.producers.stamper import SendSettings, Stamper, Targets, target_for
from tests.kit.inside import runtime_of


async def test_a_producer_remembers_a_thousand_destinations_at_most(session: jmsaio.Session) -> None:
    targets = Targets(runtime_of(session).connection, None)
    for number in range(1002):
        assert targets.other(jmsaio.Topic(str(number))).topic == f"persistent://public/default/{number}"
    assert len(targets._others) == 1000
    assert targets.other(jmsaio.Topic("1")) is targets.other(jmsaio.Topic("1"))


async def test_a_producer_has_a_destination_or_each_send_names_one(session: jmsaio.Session) -> None:
    connection = runtime_of(session).connection
    own = Targets(connection, target_for(jmsaio.Queue("own"), connection))
    assert own.default() is own.own
    with pytest.raises(jmsaio.UnsupportedOperationError, match="without destination for others"):
        own.other(jmsaio.Queue("another"))
    with pytest.raises(jmsaio.UnsupportedOperationError, match=r"call send\(destination, message\)"):
        Targets(connection, None).default()


async def test_a_virtual_destination_is_consumed_only(session: jmsaio.Session) -> None:
    with pytest.raises(jmsaio.InvalidDestinationError, match="stands for several topics"):
        target_for(jmsaio.Queue("multi:a,b"), runtime_of(session).connection)


def test_a_delivery_mode_becomes_a_plain_number() -> None:
    modes: list[Any] = [1, 2, jmsaio.DeliveryMode.PERSISTENT]
    assert [SendSettings().changed(delivery_mode=mode).delivery_mode for mode in modes] == [1, 2, 2]


@pytest.mark.parametrize("wrong", [0, 3, True, "1", jmsaio.AcknowledgeMode.CLIENT])
def test_a_delivery_mode_that_jms_lacks_is_refused(wrong: object) -> None:
    with pytest.raises(jmsaio.JMSError, match=r"delivery_mode must be DeliveryMode\.PERSISTENT or"):
        SendSettings().changed(delivery_mode=wrong)
    with pytest.raises(jmsaio.JMSError, match="delivery_mode"):
        SendSettings().options(wrong, None, None, None)


@pytest.mark.parametrize("wrong", [-1, 10, True, 4.0])
def test_a_priority_is_an_int_from_0_to_9(wrong: object) -> None:
    with pytest.raises(jmsaio.JMSError, match="priority"):
        SendSettings().changed(priority=wrong)


def test_durations_are_kept_in_milliseconds_and_an_option_replaces_its_setting() -> None:
    settings = SendSettings().changed(time_to_live=1.5, delivery_delay=2, priority=7)
    assert settings.options(None, None, None, None) == (2, 7, 1500, 2000)
    assert settings.options(1, 0, 3, 0) == (1, 0, 3000, 0)


async def test_only_a_delayed_message_has_a_delivery_time_for_the_broker(session: jmsaio.Session) -> None:
    stamper = Stamper(runtime_of(session).connection, None, "ID:1:")
    settings = stamper.settings
    assert stamper.stamp(1000, stamper.next_id(), settings, (2, 4, 0, 0)).deliver_at is None
    stamp = stamper.stamp(1000, stamper.next_id(), settings, (2, 4, 0, 1500))
    assert stamp.deliver_at == stamp.delivery_time == stamp.timestamp + 1500
    assert stamp.message_id == "ID:1:2"
