"""From requests to subscriptions: the table of names and types."""

from __future__ import annotations

import uuid
from collections.abc import Container
from typing import Literal

import httpx
import pytest

import jmsaio
from jmsaio.client.subscriptions.plan import ConsumerKind, ConsumerRequest, check, plan
from jmsaio.config import ConsumerConfig, DeadLetterPolicy, load
from jmsaio.errors import IllegalArgumentError, IllegalStateError, InvalidDestinationError
from jmsaio.model.destinations import Queue, TemporaryTopic, Topic
from jmsaio.model.modes import AcknowledgeMode
from jmsaio.transport.base import StartPosition, SubscriptionType

EXCLUSIVE, SHARED, FAILOVER = SubscriptionType.EXCLUSIVE, SubscriptionType.SHARED, SubscriptionType.FAILOVER
TOPIC = Topic("t")
KEYED = "jms.queueSubscriptionType=key_shared"
TABLE = [
    (ConsumerRequest(Queue("q"), ConsumerKind.QUEUE), None, "jms-queue", SHARED, False),
    (ConsumerRequest(Queue("q:sub"), ConsumerKind.QUEUE), "c", "sub", SHARED, False),
    (ConsumerRequest(Queue(f"q?{KEYED}"), ConsumerKind.QUEUE), None, "jms-queue", SubscriptionType.KEY_SHARED, False),
    (ConsumerRequest(TOPIC, ConsumerKind.SIMPLE), "c", "jmsaio-nd-unique", EXCLUSIVE, True),
    (ConsumerRequest(TOPIC, ConsumerKind.SHARED, "n"), None, "n-nd", FAILOVER, True),
    (ConsumerRequest(TOPIC, ConsumerKind.SHARED, "n"), "c", "c_n-nd", FAILOVER, True),
    (ConsumerRequest(TOPIC, ConsumerKind.DURABLE, "n"), "c", "c_n", EXCLUSIVE, False),
    (ConsumerRequest(TOPIC, ConsumerKind.DURABLE, "n"), None, "n", EXCLUSIVE, False),
    (ConsumerRequest(TOPIC, ConsumerKind.SHARED_DURABLE, "n"), "c", "c_n", FAILOVER, False),
]


@pytest.mark.parametrize(("request_", "client_id", "name", "kind", "ends"), TABLE)
def test_each_request_gets_its_name_type_and_position(
    request_: ConsumerRequest, client_id: str | None, name: str, kind: SubscriptionType, ends: bool
) -> None:
    config = load("memory:", topic_shared_subscription_type="Failover")
    subscription = plan(request_, client_id, config, AcknowledgeMode.AUTO, "unique")
    assert (subscription.name, subscription.type, subscription.durable) == (name, kind, not ends)
    queue = request_.kind is ConsumerKind.QUEUE
    assert subscription.position is (StartPosition.EARLIEST if queue else StartPosition.LATEST)
    assert subscription.metadata["jms.destination.type"] == ("queue" if queue else "topic")
    assert subscription.metadata["jms.acknowledgeMode"] == "AUTO_ACKNOWLEDGE"


def test_the_query_string_overrides_the_configuration() -> None:
    request = ConsumerRequest(Queue("q?consumerConfig.receiverQueueSize=7"), ConsumerKind.QUEUE)
    planned = plan(request, None, load("memory:"), AcknowledgeMode.AUTO, "u")
    assert planned.config.receiver_queue_size == 7


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (ConsumerRequest(Queue("q"), ConsumerKind.DURABLE, "n"), InvalidDestinationError),
        (ConsumerRequest(TemporaryTopic("t"), ConsumerKind.DURABLE, "n"), InvalidDestinationError),
        (ConsumerRequest(TOPIC, ConsumerKind.SHARED, ""), IllegalArgumentError),
        (ConsumerRequest(TOPIC, ConsumerKind.SHARED_DURABLE, None), IllegalArgumentError),
        (ConsumerRequest(TOPIC, ConsumerKind.SHARED, " "), IllegalArgumentError),
        (ConsumerRequest(TOPIC, ConsumerKind.SHARED_DURABLE, "n\ud800"), IllegalArgumentError),
        (ConsumerRequest(TOPIC, ConsumerKind.SHARED_DURABLE, "n\0"), IllegalArgumentError),
        (ConsumerRequest(TOPIC, ConsumerKind.SHARED_DURABLE, "n" * 1001), IllegalArgumentError),
        (ConsumerRequest(TOPIC, ConsumerKind.DURABLE, "n"), IllegalStateError),
    ],
)
def test_requests_that_cannot_work_are_refused(request_: ConsumerRequest, error: type[Exception]) -> None:
    with pytest.raises(error):
        check(request_, None, strict_client_id=True)


def test_without_strict_client_id_a_durable_one_needs_none() -> None:
    check(ConsumerRequest(TOPIC, ConsumerKind.DURABLE, "n"), None, strict_client_id=False)


@pytest.mark.parametrize("client_id", [None, "c"])
@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("kind", [ConsumerKind.SIMPLE, ConsumerKind.SHARED, ConsumerKind.SHARED_DURABLE])
def test_only_an_unshared_durable_one_needs_a_client_id(kind: ConsumerKind, strict: bool, client_id: str) -> None:
    check(ConsumerRequest(TOPIC, kind, "n"), client_id, strict)
    check(ConsumerRequest(TOPIC, ConsumerKind.DURABLE, "n"), "c", strict)


@pytest.mark.parametrize("kind", [ConsumerKind.SIMPLE, ConsumerKind.SHARED])
def test_what_is_not_durable_may_be_on_a_temporary_topic(kind: ConsumerKind) -> None:
    check(ConsumerRequest(TemporaryTopic("t"), kind, "n"), None, True)
    with pytest.raises(InvalidDestinationError, match="temporary"):
        check(ConsumerRequest(TemporaryTopic("t"), ConsumerKind.SHARED_DURABLE, "n"), None, True)


@pytest.mark.parametrize(
    ("kind", "client_id", "terms"),
    [
        (ConsumerKind.QUEUE, "c", {}),
        (ConsumerKind.SIMPLE, "c", {}),
        (ConsumerKind.SHARED, "c", {}),
        (ConsumerKind.DURABLE, "c", {"selector": "x = 1", "nolocal": "true", "shared": "false"}),
        (ConsumerKind.DURABLE, None, {"selector": "x = 1", "nolocal": "false", "shared": "false"}),
        (ConsumerKind.SHARED_DURABLE, "c", {"selector": "x = 1", "nolocal": "false", "shared": "true"}),
    ],
)
def test_a_durable_subscription_records_its_terms_and_replaces_one_with_others(
    kind: ConsumerKind, client_id: str | None, terms: dict[str, str]
) -> None:
    """noLocal only where it has an effect."""
    place = Queue("q") if kind is ConsumerKind.QUEUE else TOPIC
    request = ConsumerRequest(place, kind, "n", "x = 1", True)
    subscription = plan(request, client_id, load("memory:"), AcknowledgeMode.AUTO, "u")
    assert subscription.properties == {f"jmsaio.{name}": term for name, term in terms.items()}
    assert subscription.replace is bool(terms)


def test_a_durable_subscription_without_selector_records_that() -> None:
    """One with a selector that is opened again without it is replaced."""
    request = ConsumerRequest(TOPIC, ConsumerKind.DURABLE, "n")
    subscription = plan(request, "c", load("memory:"), AcknowledgeMode.AUTO, "u")
    assert subscription.properties["jmsaio.selector"] == ""


@pytest.mark.parametrize(
    ("selector", "no_local", "selective"),
    [(None, False, False), ("", False, False), ("x", False, True), ("", True, True)],
)
def test_a_subscription_is_selective_with_a_selector_or_no_local(
    selector: str | None, no_local: bool, selective: bool
) -> None:
    request = ConsumerRequest(TOPIC, ConsumerKind.SIMPLE, None, selector, no_local)
    assert plan(request, None, load("memory:"), AcknowledgeMode.AUTO, "u").selective is selective


@pytest.mark.parametrize("exclusive", [True, False])
@pytest.mark.parametrize(("kind", "shared"), [("Shared", True), ("Key_Shared", True), ("Failover", False)])
def test_a_simple_consumer_shares_only_where_the_configuration_says_so(
    kind: Literal["Shared", "Key_Shared", "Failover"], shared: bool, exclusive: bool
) -> None:
    config = load(
        "memory:", topic_shared_subscription_type=kind, use_exclusive_subscriptions_for_simple_consumers=exclusive
    )
    planned = plan(ConsumerRequest(TOPIC, ConsumerKind.SIMPLE), None, config, AcknowledgeMode.AUTO, "u")
    assert planned.shared is (shared and not exclusive)
    assert planned.type is (EXCLUSIVE if exclusive else SubscriptionType(kind))
    assert (
        plan(ConsumerRequest(TOPIC, ConsumerKind.SHARED, "n"), None, config, AcknowledgeMode.AUTO, "u").shared is shared
    )


def test_a_subscription_says_what_the_broker_is_to_do() -> None:
    long = "a = '" + "ä" * 300 + "'"
    for config, selector, more in (
        (load("memory:"), None, {}),
        (load("memory:"), "a = 1", {"jmsaio.selector": "a = 1"}),
        (load("memory:"), long, {"jmsaio.selector": long[:102]}),  # of the limit of 200 bytes, one is left
        (load("memory:", enable_jms_priority=True), None, {"jms.priority": "enabled"}),
        (load("memory:", acknowledge_rejected_messages=True), None, {"jms.force.drop.rejected": "true"}),
    ):
        request = ConsumerRequest(Queue("q"), ConsumerKind.QUEUE, selector=selector)
        planned = plan(request, None, config, AcknowledgeMode.CLIENT, "u")
        basic = {"jms.destination.type": "queue", "jms.acknowledgeMode": "CLIENT_ACKNOWLEDGE"}
        assert planned.metadata == basic | more


@pytest.mark.parametrize("name", [None, "", 5])
def test_a_name_is_a_text(name: object) -> None:
    request = ConsumerRequest(TOPIC, ConsumerKind.DURABLE, name)  # type: ignore[arg-type]  # what a caller may do
    with pytest.raises(IllegalArgumentError, match="needs a name"):
        check(request, None, False)


@pytest.mark.parametrize(
    ("given", "full"),
    [
        ("dead", "persistent://a/b/dead"),
        ("persistent://c/d/dead", "persistent://c/d/dead"),
        ("c/d/dead", "c/d/dead"),
        (None, None),
    ],
)
def test_a_short_dead_letter_topic_is_in_the_system_namespace(given: str | None, full: str | None) -> None:
    """As a destination of that name; a longer name is left to Pulsar."""
    policy = DeadLetterPolicy(max_redeliver_count=1, dead_letter_topic=given)
    config = load("memory:", system_namespace="a/b", consumer=ConsumerConfig(dead_letter=policy))
    planned = plan(ConsumerRequest(Queue("q"), ConsumerKind.QUEUE), None, config, AcknowledgeMode.AUTO, "u")
    found = planned.config.dead_letter
    assert found is not None and found.dead_letter_topic == full


@pytest.fixture
async def namespace(url: str, request: pytest.FixtureRequest) -> str:
    """A namespace that is not the default one."""
    name = f"public/letters-{uuid.uuid4().hex[:12]}"
    if not url.startswith("memory"):
        web = request.getfixturevalue("pulsar_broker").web_service_url
        async with httpx.AsyncClient(base_url=f"{web}/admin/v2", timeout=30) as client:
            (await client.put(f"/namespaces/{name}", json={})).raise_for_status()
    return name


async def test_dead_letters_arrive_at_the_queue_of_their_short_name(url: str, namespace: str) -> None:
    """Whatever the namespace of short names is."""
    option = "consumerConfig.deadLetterPolicy"
    queue = Queue(f"orders?{option}.maxRedeliverCount=1&{option}.deadLetterTopic=dead-orders")
    async with jmsaio.connect(url, system_namespace=namespace) as connection:
        async with connection.create_session(AcknowledgeMode.CLIENT) as session:
            dead = Queue("dead-orders")
            async with session.create_consumer(dead) as graveyard, session.create_consumer(queue) as one:
                async with session.create_producer(queue) as producer:
                    await producer.send("bad")
                for _ in range(2):
                    assert await one.receive(timeout=20) is not None
                    await session.recover()
                letter = await graveyard.receive(timeout=20)
                assert letter is not None and letter.get_body(str) == "bad"
                await letter.acknowledge()


@pytest.mark.parametrize(("non_durable", "name"), [((), "jmsaio-nd-u"), ([SHARED], "jmsaio-nd-u"), ([EXCLUSIVE], "u")])
def test_a_simple_consumer_has_a_name_for_the_sweep_where_a_crash_leaves_its_subscription(
    non_durable: Container[SubscriptionType], name: str
) -> None:
    """On ``non_durable`` types the broker ends it."""
    request = ConsumerRequest(TOPIC, ConsumerKind.SIMPLE)
    planned = plan(request, "c", load("memory:"), AcknowledgeMode.AUTO, "u", non_durable)
    assert (planned.name, planned.durable) == (name, False)


def test_a_shared_subscription_never_takes_the_name_of_a_durable_one() -> None:
    request = ConsumerRequest(TOPIC, ConsumerKind.SHARED, "n")
    planned = plan(request, "c", load("memory:"), AcknowledgeMode.AUTO, "u", [*SubscriptionType])
    assert planned.name == "c_n-nd"
