"""The destinations of a producer are resolved once each, for a bounded number of them."""

from __future__ import annotations

import pytest

import jmsaio
from jmsaio.client.producers.targets import Targets, target_for
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
