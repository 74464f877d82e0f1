"""Unsubscribe: the named subscription and nothing else; the Java client deletes others, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import httpx
import pytest

import jmsaio
from jmsaio.client.subscriptions import in_process
from jmsaio.client.subscriptions.in_process import unsubscribe
from jmsaio.client.subscriptions.plan import ConsumerKind
from jmsaio.config import ConsumerConfig, load
from jmsaio.errors import AdminError
from jmsaio.transport.base import StartPosition, Subscription, SubscriptionStats, SubscriptionType, TopicStats
from jmsaio.transport.pulsar.admin.rest import RestAdmin
from tests.client.helpers import full_name
from tests.kit.inside import admin_of, runtime_of, transport_of
from tests.support.broker import TestBroker

Name = Callable[[str], str]


async def test_a_client_id_is_set_once_before_use_and_by_one_connection(url: str, name: Name) -> None:
    client = name("id")
    async with jmsaio.connect(url, client_id=client) as connection:
        assert connection.client_id == client
        with pytest.raises(jmsaio.IllegalStateError):
            connection.set_client_id("other")
        with pytest.raises(jmsaio.InvalidClientIDError):
            await jmsaio.connect(url, client_id=client)
    async with jmsaio.ConnectionFactory(url) as factory:
        connection = await factory.create_connection()
        with pytest.raises(jmsaio.InvalidClientIDError):
            connection.set_client_id("")
        connection.set_client_id(client)
        assert runtime_of(connection).connection_id == f"{client}_{runtime_of(connection).uuid}"
        late = await factory.create_connection()
        await late.start()
        with pytest.raises(jmsaio.IllegalStateError):
            late.set_client_id("late")


async def test_an_id_is_free_after_close_and_looking_is_no_use(url: str, name: Name) -> None:
    client = name("id")
    async with jmsaio.ConnectionFactory(url) as factory:
        first, second = await factory.create_connection(), await factory.create_connection()
        first.set_exception_listener(print)
        assert first.metadata.jms_major_version == 3 and first.client_id is None
        first.set_client_id(client)
        with pytest.raises(jmsaio.InvalidClientIDError, match="used by another"):
            second.set_client_id(client)
        await first.close()
        second.set_client_id(client)
        for use in ("start", "stop", "create_session"):
            used = await factory.create_connection()
            await getattr(used, use)()
            with pytest.raises(jmsaio.IllegalStateError, match="before anything else"):
                used.set_client_id(name(use))


async def test_an_id_by_configuration(url: str, name: Name) -> None:
    client = name("configured")
    async with jmsaio.ConnectionFactory(f"{url}{'&' if '?' in url else '?'}jms.clientId={client}") as factory:
        connection = await factory.create_connection()
        assert connection.get_client_id() == client
        with pytest.raises(jmsaio.IllegalStateError, match="by configuration"):
            connection.set_client_id(name("other"))
        with pytest.raises(jmsaio.InvalidClientIDError):
            await factory.create_connection()
        await connection.close()
        assert (await factory.create_connection()).client_id == client


async def test_a_durable_subscription_and_one_that_is_not_never_share_a_name(
    url: str, session: jmsaio.Session, name: Name
) -> None:
    """On Pulsar both are durable subscriptions there, one named with -nd at its end."""
    topic, subscription = session.create_topic(name("topic")), name("sub")
    async with session.create_shared_consumer(topic, subscription):
        if url.startswith("pulsar:"):
            with pytest.raises(jmsaio.JMSError, match="in use by another consumer"):
                await session.create_shared_durable_consumer(topic, f"{subscription}-nd")
        async with session.create_shared_durable_consumer(topic, subscription):
            producer = await session.create_producer(topic)
            await producer.send("both")
    async with session.create_shared_durable_consumer(topic, subscription) as durable:
        assert await durable.receive_body(str, timeout=20) == "both"
    await session.unsubscribe(subscription, topic)


SHARED, DURABLE = ConsumerKind.SHARED, ConsumerKind.DURABLE


def use(kind: ConsumerKind = SHARED, selector: str | None = None, topic: str = "t") -> in_process.ActiveSubscription:
    return in_process.ActiveSubscription(kind, (topic,), selector)


def test_a_subscription_is_active_until_its_last_consumer_closes(name: Name) -> None:
    broker = name("broker")
    first, second = (in_process.claim_subscription(broker, "s", use()) for _ in range(2))
    assert (broker, "s") in in_process._subscriptions and (name("other"), "s") not in in_process._subscriptions
    for _ in range(2):
        first()
        assert (broker, "s") in in_process._subscriptions
    for _ in range(2):
        second()
        assert (broker, "s") not in in_process._subscriptions


@pytest.mark.parametrize(
    ("second", "why"),
    [
        (use(selector="x"), "is active with topic"),
        (use(topic="other"), "is active with topic"),
        (use(ConsumerKind.SHARED_DURABLE), "in use by another consumer"),
        (use(DURABLE), "in use by another consumer"),
    ],
)
def test_a_second_consumer_has_the_kind_topic_and_selector_of_the_first(
    name: Name, second: in_process.ActiveSubscription, why: str
) -> None:
    broker = name("broker")
    release = in_process.claim_subscription(broker, "s", use())
    with pytest.raises(jmsaio.JMSError, match=why):
        in_process.claim_subscription(broker, "s", second)
    release()
    assert (broker, "s") not in in_process._subscriptions


def test_an_unshared_subscription_has_one_consumer(name: Name) -> None:
    broker = name("broker")
    release = in_process.claim_subscription(broker, "s", use(DURABLE))
    for second in (use(DURABLE), use()):
        with pytest.raises(jmsaio.JMSError, match="in use by another consumer"):
            in_process.claim_subscription(broker, "s", second)
    release()


Name_unsubscribe = Callable[[str], str]

#: Unsubscribing looks for a subscription in all topics of the namespace.
pytestmark = pytest.mark.small_namespace


async def test_another_topic_s_subscription_of_that_name_is_left_alone(
    connection: jmsaio.Connection, session: jmsaio.Session, name: Name_unsubscribe
) -> None:
    subscription = name("same")
    topics = [session.create_topic(name(f"topic{index}")) for index in range(2)]
    await (await session.create_shared_durable_consumer(topics[1], subscription)).close()
    admin = admin_of(connection)
    await admin.create_subscription(full_name(connection, topics[0]), subscription, StartPosition.EARLIEST)
    producer = await session.create_producer(topics[1])
    await producer.send("kept")
    with pytest.raises(jmsaio.InvalidDestinationError, match="exists on 2 topics"):
        await session.unsubscribe(subscription)
    await session.unsubscribe(subscription, topics[0])
    async with session.create_shared_durable_consumer(topics[1], subscription) as consumer:
        assert await consumer.receive_body(str, timeout=20) == "kept"
    await session.unsubscribe(subscription)


async def test_anything_but_a_durable_subscription_is_refused(session: jmsaio.Session, name: Name_unsubscribe) -> None:
    for wrong in ("", "jms-queue", name("unknown")):
        with pytest.raises(jmsaio.InvalidDestinationError):
            await session.unsubscribe(wrong)


async def test_one_that_another_connection_uses(url: str, session: jmsaio.Session, name: Name_unsubscribe) -> None:
    topic, subscription = session.create_topic(name("used")), name("sub")
    async with jmsaio.connect(url) as other, other.create_session() as theirs:
        async with theirs.create_shared_durable_consumer(topic, subscription):
            with pytest.raises(jmsaio.IllegalStateError):
                await session.unsubscribe(subscription, topic)
    await session.unsubscribe(subscription, topic)


async def test_what_others_made_is_deleted_only_by_its_topic(
    connection: jmsaio.Connection, session: jmsaio.Session, name: Name_unsubscribe
) -> None:
    """A queue's subscription, or another program's, may have the name."""
    theirs, suffix = name("theirs"), name("suffix")
    admin, topic = admin_of(connection), session.create_topic(name("topic"))
    full = full_name(connection, topic)
    await admin.create_subscription(full, theirs, StartPosition.EARLIEST)
    await (await session.create_producer(session.create_queue(f"{topic.name}:{suffix}"))).send("kept")
    for one in (theirs, suffix):
        with pytest.raises(jmsaio.InvalidDestinationError, match="name the topic"):
            await session.unsubscribe(one)
    assert {theirs, suffix} <= set((await admin.stats(full)).subscriptions)
    for _ in range(2):  # resuming it does not make it ours
        await (await session.create_durable_consumer(topic, theirs)).close()
        with pytest.raises(jmsaio.InvalidDestinationError, match="did not create"):
            await session.unsubscribe(theirs)
    await (await session.create_durable_consumer(topic, theirs, "x = 1")).close()  # replaces it, with a warning
    await session.unsubscribe(theirs)
    assert theirs not in (await admin.stats(full)).subscriptions
    await admin.create_subscription(full, theirs, StartPosition.EARLIEST)
    await session.unsubscribe(theirs, topic)
    assert theirs not in (await admin.stats(full)).subscriptions


async def test_every_topic_of_a_virtual_name(session: jmsaio.Session, name: Name_unsubscribe) -> None:
    subscription, topics = name("sub"), [session.create_topic(name(stem)) for stem in "ab"]
    both = session.create_topic("multi:" + ",".join(topic.name for topic in topics))
    await (await session.create_durable_consumer(both, subscription)).close()
    with pytest.raises(jmsaio.InvalidDestinationError, match="exists on 2 topics"):
        await session.unsubscribe(subscription)
    await session.unsubscribe(subscription, both)
    for topic in topics:
        with pytest.raises(jmsaio.InvalidDestinationError, match="there is no subscription"):
            await session.unsubscribe(subscription, topic)


async def test_a_topic_with_partitions(
    connection: jmsaio.Connection, session: jmsaio.Session, name: Name_unsubscribe
) -> None:
    admin, topic, subscription = admin_of(connection), session.create_topic(name("parts")), name("sub")
    await admin.create_topic(full_name(connection, topic), 3)
    await (await session.create_durable_consumer(topic, subscription)).close()
    await session.unsubscribe(subscription)
    assert (await admin.stats(full_name(connection, topic))).subscriptions == {}


@pytest.mark.parametrize("wrong", [jmsaio.Queue("q"), jmsaio.Topic("regex:t.*"), "t", 5])
async def test_anything_but_a_topic_is_refused(
    session: jmsaio.Session, name: Name_unsubscribe, wrong: jmsaio.Topic
) -> None:
    with pytest.raises(jmsaio.InvalidDestinationError):
        await session.unsubscribe(name("sub"), wrong)


@pytest.mark.parametrize("wrong", [None, 5, b"sub"])
async def test_anything_but_a_name_is_refused(session: jmsaio.Session, wrong: str) -> None:
    with pytest.raises(jmsaio.InvalidDestinationError):
        await session.unsubscribe(wrong)


async def test_one_with_unsettled_messages(connection: jmsaio.Connection, name: Name_unsubscribe) -> None:
    topic, subscription = jmsaio.Topic(name("unsettled")), name("sub")
    async with connection.create_session(jmsaio.AcknowledgeMode.CLIENT) as session:
        consumer = await session.create_durable_consumer(topic, subscription)
        await (await session.create_producer(topic)).send("held")
        message = await consumer.receive(timeout=20)
        assert message is not None
        await consumer.close()
        with pytest.raises(jmsaio.IllegalStateError, match="unsettled"):
            await session.unsubscribe(subscription, topic)
        await message.acknowledge()
        await session.unsubscribe(subscription, topic)


async def test_a_consumer_of_another_process(
    connection: jmsaio.Connection, session: jmsaio.Session, name: Name_unsubscribe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A receiver beside the client stands for it: the list of uses does not know it."""
    topic, subscription = session.create_topic(name("theirs")), name("sub")
    full = full_name(connection, topic)
    await (await session.create_durable_consumer(topic, subscription)).close()
    wanted = Subscription((full,), subscription, SubscriptionType.EXCLUSIVE, ConsumerConfig())
    receiver = await transport_of(connection).open_receiver(wanted, lambda: None)
    with pytest.raises(jmsaio.IllegalStateError, match="active consumers"):
        await session.unsubscribe(subscription)

    async def seen_before(*_: object) -> None:
        """It came after the look at the statistics."""

    with monkeypatch.context() as patch:
        patch.setattr("jmsaio.client.subscriptions.in_process._check_idle", seen_before)
        with pytest.raises(jmsaio.IllegalStateError, match="meanwhile"):
            await session.unsubscribe(subscription, topic)
    await receiver.aclose(20)
    await session.unsubscribe(subscription)


@pytest.mark.broker
async def test_without_admin_it_is_refused(pulsar_broker: TestBroker, name: Name_unsubscribe) -> None:
    async with jmsaio.connect(f"{pulsar_broker.service_url}?jms.usePulsarAdmin=false") as connection:
        async with connection.create_session() as session:
            with pytest.raises(jmsaio.IllegalStateError, match="usePulsarAdmin"):
                await session.unsubscribe(name("sub"))


@pytest.mark.broker
async def test_a_search_asks_for_each_topic_once(
    pulsar_broker: TestBroker, name: Name_unsubscribe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A namespace may have thousands of topics."""
    place = f"public/{name('many')}"
    url = f"{pulsar_broker.url}&jms.systemNamespace={place}"
    async with httpx.AsyncClient(base_url=f"{pulsar_broker.web_service_url}/admin/v2", trust_env=False) as rest:
        assert (await rest.put(f"/namespaces/{place}")).is_success
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        admin = admin_of(connection)
        assert isinstance(admin, RestAdmin)
        for number in range(12):
            await admin.create_topic(f"persistent://{place}/{number}")
        await (await session.create_shared_durable_consumer(session.create_topic("7"), "sub")).close()
        asked: list[str] = []
        once = admin._once

        async def counted(method: str, path: str, *more: Any) -> httpx.Response:
            asked.append(f"{method} {path}")
            return await once(method, path, *more)

        monkeypatch.setattr(admin, "_once", counted)
        await session.unsubscribe("sub")
        for number in range(12):
            calls = [call for call in asked if f"/{number}/" in call]
            assert len(calls) == 1 or number == 7, calls


@attrs.define
class FakeAdmin:
    """Knows how many consumers a topic's one subscription has, and notes deletions or refuses them."""

    consumers: dict[str, int]
    deleted: list[str] = attrs.field(factory=list)
    refusal: Exception | None = None

    async def stats(self, topic: str) -> TopicStats:
        return TopicStats(0, {"sub": SubscriptionStats("sub", "Exclusive", 0, self.consumers[topic])})

    async def delete_subscription(self, topic: str, name: str) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.deleted.append(topic)


async def test_nothing_is_deleted_when_one_of_several_topics_is_in_use() -> None:
    base = "persistent://public/default/"
    admin = FakeAdmin({base + "a": 0, base + "b": 1})
    config = load("memory:")
    topic = jmsaio.Topic("multi:a,b")
    with pytest.raises(jmsaio.IllegalStateError, match="active consumers"):
        await unsubscribe(admin, config, "broker", None, "sub", topic)  # type: ignore[arg-type]  # a fake
    assert admin.deleted == []
    admin.consumers[base + "b"] = 0
    await unsubscribe(admin, config, "broker", None, "sub", topic)  # type: ignore[arg-type]  # a fake
    assert admin.deleted == [base + "a", base + "b"]


async def test_one_that_this_process_uses_is_refused_before_the_broker_is_asked(name: Name_unsubscribe) -> None:
    broker = name("broker")
    release = in_process.claim_subscription(
        broker, "sub", in_process.ActiveSubscription(ConsumerKind.DURABLE, ("t",), None)
    )
    with pytest.raises(jmsaio.IllegalStateError, match="active consumer, or unsettled"):
        await unsubscribe(None, load("memory:"), broker, None, "sub", jmsaio.Topic("t"))
    release()


@pytest.mark.parametrize(
    ("refusal", "told", "text"),
    [
        (jmsaio.NotFoundError("gone"), jmsaio.InvalidDestinationError, "there is no subscription"),
        (AdminError("in use", 412), jmsaio.IllegalStateError, "got a consumer meanwhile"),
        (AdminError("broken", 500), AdminError, "broken"),
    ],
)
async def test_what_the_broker_says_to_the_deletion_is_told(
    refusal: Exception, told: type[Exception], text: str
) -> None:
    admin = FakeAdmin({"persistent://public/default/a": 0}, refusal=refusal)
    with pytest.raises(told, match=text):
        await unsubscribe(admin, load("memory:"), "broker", None, "sub", jmsaio.Topic("a"))  # type: ignore[arg-type]  # a fake


async def test_the_subscription_of_queues_is_never_deleted() -> None:
    admin = FakeAdmin({"persistent://public/default/a": 0})
    config = load("memory:", queue_subscription_name="sub")
    with pytest.raises(jmsaio.InvalidDestinationError, match="not the name of a durable subscription"):
        await unsubscribe(admin, config, "broker", None, "sub", jmsaio.Topic("a"))  # type: ignore[arg-type]  # a fake
    with pytest.raises(jmsaio.InvalidDestinationError, match="needs a Topic"):
        await unsubscribe(admin, load("memory:"), "broker", None, "sub", jmsaio.Queue("a"))  # type: ignore[arg-type]  # a fake
    assert admin.deleted == []


async def test_without_an_admin_interface_it_says_which_option_is_needed() -> None:
    with pytest.raises(jmsaio.IllegalStateError, match="usePulsarAdmin"):
        await unsubscribe(None, load("memory:"), "broker", None, "sub", jmsaio.Topic("a"))
