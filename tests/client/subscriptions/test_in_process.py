"""Client identifiers (Jakarta Messaging 3.1, 6.1.2 Client identifier)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import jmsaio
from jmsaio.client.subscriptions import in_process
from jmsaio.client.subscriptions.plan import ConsumerKind
from tests.kit.inside import runtime_of

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


def use(
    kind: ConsumerKind = SHARED, selector: str | None = None, shared: bool = True, topic: str = "t"
) -> in_process.ActiveSubscription:
    return in_process.ActiveSubscription(kind, (topic,), selector, False, shared)


def test_a_subscription_is_active_until_its_last_consumer_closes(name: Name) -> None:
    broker = name("broker")
    first, second = (in_process.claim_subscription(broker, "s", use()) for _ in range(2))
    assert in_process.is_active(broker, "s") and not in_process.is_active(name("other"), "s")
    for _ in range(2):
        first()
        assert in_process.is_active(broker, "s")
    for _ in range(2):
        second()
        assert not in_process.is_active(broker, "s")


@pytest.mark.parametrize(
    ("second", "why"),
    [
        (use(selector="x"), "is active with topic"),
        (use(topic="other"), "is active with topic"),
        (use(ConsumerKind.SHARED_DURABLE), "in use by another consumer"),
        (use(shared=False), "in use by another consumer"),
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
    assert not in_process.is_active(broker, "s")


def test_an_unshared_subscription_has_one_consumer(name: Name) -> None:
    broker = name("broker")
    release = in_process.claim_subscription(broker, "s", use(DURABLE, shared=False))
    for second in (use(DURABLE, shared=False), use(DURABLE)):
        with pytest.raises(jmsaio.JMSError, match="in use by another consumer"):
            in_process.claim_subscription(broker, "s", second)
    release()
