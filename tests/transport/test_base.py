"""The seam: its size, its values, and that both transports offer all of it."""

from __future__ import annotations

import inspect
from typing import Any

import attrs
import pytest

from jmsaio.config import ConsumerConfig, ProducerConfig
from jmsaio.transport import base
from jmsaio.transport.base import SenderOptions, Subscription, SubscriptionType
from jmsaio.transport.memory.receiver import MemoryReceiver
from jmsaio.transport.memory.sender import MemorySender
from jmsaio.transport.memory.transaction import MemoryTransaction
from jmsaio.transport.memory.transport import MemoryTransport
from jmsaio.transport.pulsar.native.consumers.receiver import PulsarReceiver
from jmsaio.transport.pulsar.native.producers.sender import PulsarSender
from jmsaio.transport.pulsar.native.transport import PulsarTransport
from jmsaio.transport.pulsar.wire.consumers.receiver import WireReceiver
from jmsaio.transport.pulsar.wire.producers.sender import WireSender
from jmsaio.transport.pulsar.wire.transactions.transaction import WireTransaction
from jmsaio.transport.pulsar.wire.transport import WireTransport

PARTS = (base.Transport, base.Sender, base.Receiver, base.Reader, base.Transaction)


def calls(part: type) -> set[str]:
    return {name for name, value in vars(part).items() if inspect.isfunction(value) and not name.startswith("_")}


def test_the_seam_stays_narrow() -> None:
    """A receiver that takes nothing more and still settles needs stop and resume; what rests, set_aside.

    A reader that stops where the topic ended at a moment needs to know that place: end. Whether transactions work is
    for the broker to say, before a session is made: ready_for_transactions. A round trip that opens nothing: ping. A
    subscription takes part in a transaction from its first delivery on, so that the commit need not wait: join.
    """
    assert sum(len(calls(part)) for part in PARTS) <= 30


@pytest.mark.parametrize(
    ("part", "transport"),
    [
        (base.Transport, MemoryTransport),
        (base.Transport, PulsarTransport),
        (base.Transport, WireTransport),
        (base.Sender, MemorySender),
        (base.Sender, PulsarSender),
        (base.Sender, WireSender),
        (base.Receiver, MemoryReceiver),
        (base.Receiver, PulsarReceiver),
        (base.Receiver, WireReceiver),
        (base.Transaction, MemoryTransaction),
        (base.Transaction, WireTransaction),
    ],
)
def test_transports_offer_what_the_seam_names_with_its_parameters(part: type, transport: type) -> None:
    for name in calls(part):
        asked, offered = inspect.signature(getattr(part, name)), inspect.signature(getattr(transport, name))
        assert list(offered.parameters)[: len(asked.parameters)] == list(asked.parameters), name
        assert inspect.iscoroutinefunction(getattr(transport, name)) == inspect.iscoroutinefunction(getattr(part, name))


ORDERS = Subscription(("persistent://public/default/orders",), "s", SubscriptionType.SHARED, ConsumerConfig())


@pytest.mark.parametrize(
    "changed", [{"name": "t"}, {"topics": ("persistent://public/default/other",)}, {"pattern": "persistent://a/b/c.*"}]
)
def test_what_a_subscription_stands_for_is_its_identity(changed: dict[str, Any]) -> None:
    assert attrs.evolve(ORDERS, **changed).identity != ORDERS.identity


def test_how_a_consumer_uses_a_subscription_is_not_its_identity() -> None:
    other = attrs.evolve(ORDERS, selective=True, replace=True, metadata={"a": "b"}, properties={"c": "d"})
    assert other.identity == ORDERS.identity


def test_a_sender_has_a_window_of_five_thousand_records_and_no_route() -> None:
    options = SenderOptions(ProducerConfig(), lambda tokens, place, error: None)
    assert (options.window_records, options.window_bytes, options.transacted) == (5000, 64 * 1024 * 1024, False)
    assert options.route is None and options.topic_changed("persistent://public/default/orders") is None
