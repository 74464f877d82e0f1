"""Creating subscriptions through REST, where attempts fail in the middle."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import attrs
import httpx
import pytest

import jmsaio
from jmsaio.config import load
from jmsaio.errors import AdminError, JMSSecurityError, NotFoundError
from jmsaio.transport.administration import Admin, Position
from jmsaio.transport.pulsar.admin.creation import MARK, SubscriptionCreation
from jmsaio.transport.pulsar.admin.paths import start_position
from jmsaio.transport.pulsar.admin.rest import open_admin
from tests.support.broker import TestBroker

TOPIC = "persistent://public/default/t"
GONE = AdminError("gone", 503)
OnRetry = Callable[[object], None]


@attrs.define
class Broker:
    """One topic with at most one subscription.

    Attributes:
        properties: of the subscription; None where there is none.
        is_whole: its cursor was reset.
        failures: what the next attempts to create it raise, once it is there, or before.
        refusal: what taking its properties away raises.
        asked: the calls.
    """

    properties: dict[str, str] | None = None
    is_whole: bool = False
    failures: Sequence[tuple[AdminError, bool]] = ()
    refusal: Exception | None = None
    asked: list[str] = attrs.field(factory=list)

    async def call(
        self, method: str, path: str, *, what: str, body: dict[str, Any], query: object = None,
        on_retry: OnRetry | None = None,
    ) -> None:  # fmt: skip
        end = path.rpartition("/")[2]
        self.asked.append(f"{method} {end}")
        if end == "resetcursor":
            assert body == start_position(Position.EARLIEST)
            self.is_whole = True
            return
        while self.failures:
            (failure, is_there), *self.failures = self.failures
            if is_there and self.properties is None:
                self.properties = body["properties"]
            if on_retry is None or not self.failures:
                raise failure
            on_retry(failure)
        if self.properties is not None:
            raise AdminError("exists", 409)
        self.properties, self.is_whole = body.get("properties", {}), True

    async def subscription_properties(self, topic: str, name: str) -> dict[str, str]:
        self.asked.append("GET properties")
        if self.properties is None:
            raise NotFoundError("gone")
        return self.properties

    async def set_subscription_properties(self, topic: str, name: str, properties: dict[str, str]) -> None:
        self.asked.append("PUT properties")
        if self.refusal is not None:
            raise self.refusal
        self.properties = properties

    def creation(self) -> SubscriptionCreation:
        return SubscriptionCreation(cast(Admin, self), self.call)


async def test_what_an_attempt_that_failed_has_created_is_reset_by_the_next() -> None:
    broker = Broker(failures=[(GONE, True)])
    creation = broker.creation()
    with pytest.raises(AdminError, match="gone"):
        await creation.create(TOPIC, "s", Position.EARLIEST)
    assert broker.properties is not None and list(broker.properties) == [MARK]
    assert not broker.is_whole
    assert await creation.create(TOPIC, "s", Position.EARLIEST)
    assert (broker.is_whole, broker.properties) == (True, {})
    assert broker.asked == ["PUT s", "PUT s", "GET properties", "POST resetcursor", "PUT properties"]


async def test_a_repetition_within_one_call_tells_ours_from_that_of_others() -> None:
    ours = Broker(failures=[(GONE, True), (GONE, True)])
    theirs = Broker(failures=[(GONE, False)], properties={MARK: "of another client"})
    for broker, is_ours in ((ours, True), (theirs, False)):
        creation = broker.creation()
        with pytest.raises(AdminError):
            await creation.create(TOPIC, "s", Position.EARLIEST)
        assert await creation.create(TOPIC, "s", Position.EARLIEST) is is_ours
        assert ("POST resetcursor" in broker.asked, broker.is_whole) == (is_ours, is_ours)
    assert theirs.properties == {MARK: "of another client"}


async def test_what_is_there_already_costs_one_call() -> None:
    broker = Broker(properties={"jms.selector": "a = 1"})
    creation = broker.creation()
    for _ in range(2):
        assert not await creation.create(TOPIC, "s", Position.EARLIEST)
    assert broker.asked == ["PUT s"] * 2
    assert broker.properties == {"jms.selector": "a = 1"}


@pytest.mark.parametrize("refusal", [GONE, JMSSecurityError("no right"), NotFoundError("deleted")])
async def test_a_subscription_that_keeps_the_mark_is_created_all_the_same(refusal: Exception) -> None:
    broker = Broker(refusal=refusal)
    assert await broker.creation().create(TOPIC, "s", Position.EARLIEST)
    assert broker.is_whole


async def test_a_subscription_that_was_deleted_meanwhile_is_not_reset() -> None:
    broker = Broker(failures=[(GONE, False)])
    creation = broker.creation()
    with pytest.raises(AdminError):
        await creation.create(TOPIC, "s", Position.EARLIEST)
    broker.failures = [(AdminError("exists", 409), False)]
    assert not await creation.create(TOPIC, "s", Position.EARLIEST)
    assert broker.asked[-1] == "GET properties"


async def test_a_subscription_at_the_end_needs_no_mark() -> None:
    broker = Broker()
    assert await broker.creation().create(TOPIC, "s", Position.LATEST)
    assert (broker.asked, broker.properties) == (["PUT s"], {})


@pytest.mark.broker
async def test_a_subscription_that_a_dying_broker_left_at_the_end_gets_what_is_stored(
    pulsar_broker: TestBroker,
) -> None:
    """The first attempt creates it at the end and gets no answer: so a broker leaves it that dies before the reset."""
    topic = f"persistent://public/default/creation-{uuid.uuid4()}"
    admin = open_admin(load(pulsar_broker.url))

    async def die(method: str, path: str, *, what: str, on_retry: OnRetry | None = None, **given: Any) -> Any:
        call = partial(admin._call, method, path, what=what, on_retry=on_retry)
        if on_retry is not None:
            await call(**{**given, "body": given["body"] | start_position(Position.LATEST)})
            on_retry(httpx.ReadError("no answer"))
        return await call(**given)

    try:
        await admin.create_topic(topic)
        await admin.create_subscription(topic, "keeper", Position.EARLIEST)
        async with jmsaio.connect(pulsar_broker.url) as connection, connection.create_session() as session:
            producer = await session.create_producer(session.create_queue(topic))
            for text in ("a", "b"):
                await producer.send(jmsaio.TextMessage(text))
        assert await SubscriptionCreation(admin, die).create(topic, "s", Position.EARLIEST)
        assert (await admin.stats(topic)).subscriptions["s"].backlog == 2
        assert await admin.subscription_properties(topic, "s") == {}
        assert not await SubscriptionCreation(admin, die).create(topic, "s", Position.EARLIEST)
        await admin.delete_topic(topic, force=True)
    finally:
        await admin.aclose()
