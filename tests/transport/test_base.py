"""The seam: its size, its values, and that both transports offer all of it."""

from __future__ import annotations

import inspect

import pytest

from jmsaio.transport import base
from jmsaio.transport.memory.receiver import MemoryReceiver
from jmsaio.transport.memory.sender import MemorySender
from jmsaio.transport.memory.transport import MemoryTransport
from jmsaio.transport.pulsar.consumers.receiver import PulsarReceiver
from jmsaio.transport.pulsar.producers.sender import PulsarSender
from jmsaio.transport.pulsar.transport import PulsarTransport

PARTS = (base.Transport, base.Sender, base.Receiver, base.Reader, base.Transaction)


def calls(part: type) -> set[str]:
    return {name for name, value in vars(part).items() if inspect.isfunction(value) and not name.startswith("_")}


def test_the_seam_stays_narrow() -> None:
    """A receiver that takes nothing more and still settles needs stop and resume; what rests, set_aside.

    A reader that stops where the topic ended at a moment needs to know that place: end. Whether transactions work is
    for the broker to say, before a session is made: ready_for_transactions.
    """
    assert sum(len(calls(part)) for part in PARTS) <= 28


@pytest.mark.parametrize(
    ("part", "transport"),
    [
        (base.Transport, MemoryTransport),
        (base.Transport, PulsarTransport),
        (base.Sender, MemorySender),
        (base.Sender, PulsarSender),
        (base.Receiver, MemoryReceiver),
        (base.Receiver, PulsarReceiver),
    ],
)
def test_transports_offer_what_the_seam_names_with_its_parameters(part: type, transport: type) -> None:
    for name in calls(part):
        asked, offered = inspect.signature(getattr(part, name)), inspect.signature(getattr(transport, name))
        assert list(offered.parameters)[: len(asked.parameters)] == list(asked.parameters), name
        assert inspect.iscoroutinefunction(getattr(transport, name)) == inspect.iscoroutinefunction(getattr(part, name))
