"""The seam: its size, its values, and that both engines offer all of it."""

from __future__ import annotations

import inspect

import pytest

from jmsaio.model.wire import WireId
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
    """A receiver that takes nothing more and still settles needs stop and resume; what rests, set_aside."""
    assert sum(len(calls(part)) for part in PARTS) <= 26


@pytest.mark.parametrize(
    ("part", "engine"),
    [
        (base.Transport, MemoryTransport),
        (base.Transport, PulsarTransport),
        (base.Sender, MemorySender),
        (base.Sender, PulsarSender),
        (base.Receiver, MemoryReceiver),
        (base.Receiver, PulsarReceiver),
    ],
)
def test_engines_offer_what_the_seam_names_with_its_parameters(part: type, engine: type) -> None:
    for name in calls(part):
        asked, offered = inspect.signature(getattr(part, name)), inspect.signature(getattr(engine, name))
        assert list(offered.parameters)[: len(asked.parameters)] == list(asked.parameters), name
        assert inspect.iscoroutinefunction(getattr(engine, name)) == inspect.iscoroutinefunction(getattr(part, name))


def test_cursor() -> None:
    cursor = base.Cursor(WireId(5, 10), (((5, 12), (5, 13)), ((6, 0), (6, 0))))
    acknowledged = [(5, 10), (5, 9), (4, 99), (5, 12), (5, 13), (6, 0)]
    assert all(cursor.is_acknowledged(WireId(*place)) for place in acknowledged)
    assert not any(cursor.is_acknowledged(WireId(*place)) for place in [(5, 11), (5, 14), (6, 1)])
    assert not base.Cursor(None).is_acknowledged(WireId(0, 0))
    assert not base.Cursor(None).is_newer(WireId(0, 0))  # nobody knows
    cursor = base.Cursor(None, last=WireId(5, 10, 0, 3))
    newer = [cursor.is_newer(WireId(*place)) for place in [(4, 99), (5, 10, 0, 7), (5, 11), (6, 0)]]
    assert newer == [False, False, True, True]
