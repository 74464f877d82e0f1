"""From requests to subscriptions: the table of names and types (Starlight 3.2)."""

from __future__ import annotations

import pytest

from jmsaio.client.subscribing import Kind, Request, check, plan
from jmsaio.config import load
from jmsaio.errors import IllegalArgumentError, IllegalStateError, InvalidDestinationError
from jmsaio.model.destinations import Queue, TemporaryTopic, Topic
from jmsaio.model.modes import AcknowledgeMode
from jmsaio.transport.base import Capabilities, Position, SubscriptionType

EXCLUSIVE, SHARED, FAILOVER = SubscriptionType.EXCLUSIVE, SubscriptionType.SHARED, SubscriptionType.FAILOVER
PULSAR = Capabilities(False, False, False, False, False, False)
TOPIC = Topic("t")
TABLE = [
    (Request(Queue("q"), Kind.QUEUE), None, "jms-queue", SHARED, False),
    (Request(Queue("q:sub"), Kind.QUEUE), "c", "sub", SHARED, False),
    (Request(TOPIC, Kind.SIMPLE), "c", "jmsaio-nd-unique", EXCLUSIVE, True),
    (Request(TOPIC, Kind.SHARED, "n"), None, "n-nd", FAILOVER, True),
    (Request(TOPIC, Kind.SHARED, "n"), "c", "c_n-nd", FAILOVER, True),
    (Request(TOPIC, Kind.DURABLE, "n"), "c", "c_n", EXCLUSIVE, False),
    (Request(TOPIC, Kind.DURABLE, "n"), None, "n", EXCLUSIVE, False),
    (Request(TOPIC, Kind.SHARED_DURABLE, "n"), "c", "c_n", FAILOVER, False),
]


@pytest.mark.parametrize(("request_", "client_id", "name", "kind", "dropped"), TABLE)
def test_plan(request_: Request, client_id: str | None, name: str, kind: SubscriptionType, dropped: bool) -> None:
    config = load("memory:", topic_shared_subscription_type="Failover")
    planned = plan(request_, client_id, config, AcknowledgeMode.AUTO, PULSAR, "unique")
    subscription = planned.subscription
    assert (subscription.name, subscription.type, planned.drop_at_close) == (name, kind, dropped)
    assert subscription.durable
    queue = request_.kind is Kind.QUEUE
    assert subscription.position is (Position.EARLIEST if queue else Position.LATEST)
    assert subscription.metadata["jms.destination.type"] == ("queue" if queue else "topic")
    assert subscription.metadata["jms.acknowledgeMode"] == "AUTO_ACKNOWLEDGE"


def test_an_engine_with_non_durable_subscriptions_drops_them_itself() -> None:
    able = Capabilities(True, True, True, True, True, True)
    planned = plan(Request(TOPIC, Kind.SIMPLE), None, load("memory:"), AcknowledgeMode.AUTO, able, "u")
    assert not planned.subscription.durable and not planned.drop_at_close


def test_the_query_string_overrides_the_configuration() -> None:
    request = Request(Queue("q?consumerConfig.receiverQueueSize=7"), Kind.QUEUE)
    planned = plan(request, None, load("memory:"), AcknowledgeMode.AUTO, PULSAR, "u")
    assert planned.subscription.config.receiver_queue_size == 7


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (Request(Queue("q"), Kind.DURABLE, "n"), InvalidDestinationError),
        (Request(TemporaryTopic("t"), Kind.DURABLE, "n"), InvalidDestinationError),
        (Request(TOPIC, Kind.SHARED, ""), IllegalArgumentError),
        (Request(TOPIC, Kind.SHARED_DURABLE, None), IllegalArgumentError),
        (Request(TOPIC, Kind.DURABLE, "n"), IllegalStateError),
    ],
)
def test_refusals(request_: Request, error: type[Exception]) -> None:
    with pytest.raises(error):
        check(request_, None, strict_client_id=True)


def test_without_strict_client_id_a_durable_one_needs_none() -> None:
    check(Request(TOPIC, Kind.DURABLE, "n"), None, strict_client_id=False)


@pytest.mark.parametrize("name", [None, "", 5])
def test_a_name_is_a_text(name: object) -> None:
    request = Request(TOPIC, Kind.DURABLE, name)  # type: ignore[arg-type]  # what a caller may do
    with pytest.raises(IllegalArgumentError, match="needs a name"):
        check(request, None, False)
