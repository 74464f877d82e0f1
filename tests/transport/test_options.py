"""What names a subscription, and what the options of a sender are unless something else is said."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from jmsaio.config import ConsumerConfig, ProducerConfig
from jmsaio.transport.options import SenderOptions, Subscription, SubscriptionType

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
