"""Test support for services: an embedded broker per test, scripted faults, and a clock that the test advances.

``FaultProxy`` adds network faults to a real broker.

    from jmsaio.testing import embedded_broker

    async def test_my_service():
        with embedded_broker() as broker:
            async with jmsaio.connect(broker.url) as connection:
                ...
                broker.faults.fail_sends()  # the next send is not stored
                assert broker.backlog("orders", "jms-queue") == 1

With pytest: ``pytest_plugins = ["jmsaio.testing.plugin"]`` in the topmost conftest, then the fixture ``jms_broker``.
"""

from __future__ import annotations

from jmsaio.protocol.commands import Command
from jmsaio.testing.embedded import EmbeddedBroker, FaultScript, embedded_broker
from jmsaio.testing.link import Direction, FrameFault, Part, Traffic
from jmsaio.testing.proxy import FaultProxy
from jmsaio.transport.clock import ManualClock

__all__ = [
    "Command",
    "Direction",
    "EmbeddedBroker",
    "FaultProxy",
    "FaultScript",
    "FrameFault",
    "ManualClock",
    "Part",
    "Traffic",
    "embedded_broker",
]
