"""Creating a queue's subscription: what is asked again, and what is told at once."""

from __future__ import annotations

import uuid

import anyio
import pytest

import jmsaio
from jmsaio.client.precreating import passes, precreate
from jmsaio.config import load
from jmsaio.errors import (
    AdminError,
    BrokerUnavailableError,
    JMSError,
    JMSSecurityError,
    NotFoundError,
    OperationTimeoutError,
    TransportError,
)
from jmsaio.transport.base import Position
from tests.support.broker import TestBroker

#: Seconds after which a refusal was asked again instead of told: a start-up is waited for 60 seconds.
AT_ONCE = 30


class Admin:
    """Administration that answers a creation with these errors, then with success."""

    def __init__(self, *errors: JMSError) -> None:
        self.errors = list(errors)
        self.calls = 0

    async def create_subscription(self, topic: str, name: str, position: Position) -> bool:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return True


class Transport:
    """A transport with nothing but administration."""

    def __init__(self, admin: Admin) -> None:
        self.admin = admin


@pytest.mark.parametrize(
    "error",
    [
        AdminError("refused"), AdminError("busy", 503), AdminError("broken", 500), AdminError("many", 429),
        AdminError("slow", 408), BrokerUnavailableError("away"), OperationTimeoutError("silent"),
        TransportError("moving", "ServiceUnitNotReady"),
    ],
)  # fmt: skip
def test_what_may_pass(error: JMSError) -> None:
    """No answer, an overloaded broker and one that starts are asked again."""
    assert passes(error)


@pytest.mark.parametrize(
    "error",
    [
        AdminError("bad", 400), AdminError("no", 405), AdminError("conflict", 412), AdminError("not Pulsar", 200),
        NotFoundError("no namespace"), JMSSecurityError("no right"), TransportError("x", "NotAllowedError"),
        ValueError("a fault of ours"),
    ],
)  # fmt: skip
def test_what_does_not_pass(error: Exception) -> None:
    """A refusal stays one."""
    assert not passes(error)


async def test_a_passing_failure_is_asked_again() -> None:
    """The third answer is a success."""
    admin = Admin(AdminError("starting", 503), NotFoundError("not asked for"))
    with pytest.raises(NotFoundError):
        await precreate(Transport(admin), load("memory://x"), "persistent://a/b/c", "s")  # type: ignore[arg-type] # a part
    assert admin.calls == 2
    await precreate(Transport(admin), load("memory://x"), "persistent://a/b/c", "s")  # type: ignore[arg-type] # a part
    assert admin.calls == 3


@pytest.mark.broker
async def test_a_missing_namespace_is_told_at_once(pulsar_broker: TestBroker) -> None:
    """create_producer says which namespace is missing, and does not wait for the broker's start."""
    url = f"{pulsar_broker.service_url}?webServiceUrl={pulsar_broker.web_service_url}"
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        queue = jmsaio.Queue(f"persistent://public/missing-{uuid.uuid4()}/orders")
        with anyio.fail_after(AT_ONCE), pytest.raises(NotFoundError, match="Namespace not found"):
            await session.create_producer(queue)


@pytest.mark.broker
async def test_a_non_persistent_queue_is_told_at_once(pulsar_broker: TestBroker) -> None:
    """create_producer says why the queue can't be made and which option sends to it nevertheless."""
    url = f"{pulsar_broker.service_url}?webServiceUrl={pulsar_broker.web_service_url}"
    queue = jmsaio.Queue(f"non-persistent://public/default/orders-{uuid.uuid4()}")
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        with anyio.fail_after(AT_ONCE), pytest.raises(TransportError, match=r"jms\.precreateQueueSubscription=false"):
            await session.create_producer(queue)
    async with (
        jmsaio.connect(url, precreate_queue_subscription=False) as connection,
        connection.create_session() as session,
        session.create_consumer(queue) as consumer,
        session.create_producer(queue) as producer,
    ):
        await producer.send("now")
        assert await consumer.receive_body(str, timeout=AT_ONCE) == "now"
