"""Replacing a durable subscription through the admin interface."""

from __future__ import annotations

import attrs
import pytest

from jmsaio.config import ConsumerConfig
from jmsaio.errors import AdminError, ConsumerBusyError, JMSSecurityError, NotFoundError
from jmsaio.transport.base import Subscription, SubscriptionStats, SubscriptionType, TopicStats
from jmsaio.transport.pulsar.subscriptions.replacement import delete_other, write_properties


@attrs.define
class FakeAdmin:
    """Answers what it is told to, and notes what is deleted."""

    properties: dict[str, str] | Exception = attrs.field(factory=dict)
    writing: Exception | None = None
    deleting: Exception | None = None
    counting: Exception | None = None
    consumers: int = 0
    kept: bool = True
    calls: list[str] = attrs.field(factory=list)

    async def subscription_properties(self, topic: str, name: str) -> dict[str, str]:
        if isinstance(self.properties, Exception):
            raise self.properties
        return self.properties

    async def set_subscription_properties(self, topic: str, name: str, properties: dict[str, str]) -> None:
        self.calls.append("remember")
        if self.writing is not None:
            raise self.writing

    async def stats(self, topic: str) -> TopicStats:
        one = SubscriptionStats("sub", "Exclusive", 3, self.consumers)
        return TopicStats(0, {"sub": one} if self.kept else {})

    async def backlog(self, topic: str, name: str) -> int:
        if self.counting is not None:
            raise self.counting
        return 30

    async def delete_subscription(self, topic: str, name: str, force: bool = False) -> None:
        assert not force
        self.calls.append("delete")
        if self.deleting is not None:
            raise self.deleting


WANTED = Subscription(
    ("persistent://public/default/t",), "sub", SubscriptionType.EXCLUSIVE, ConsumerConfig(), replace=True,
    properties={"jmsaio.selector": "x = 1", "jmsaio.nolocal": "false", "jmsaio.shared": "false"},
)  # fmt: skip
OTHER = {**WANTED.properties, "jmsaio.selector": ""}


async def warnings(admin: FakeAdmin | None, wanted: Subscription = WANTED) -> list[str]:
    """Delete what ``wanted`` replaces and write its properties; the warnings."""
    told: list[str] = []
    topics = await delete_other(admin, wanted, told.append)  # type: ignore[arg-type]  # a fake
    await write_properties(admin, wanted, topics)  # type: ignore[arg-type]  # a fake
    return told


def dropped(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if "is recreated" in record.message]


@pytest.mark.parametrize("error", [AdminError("down"), AdminError("broken", 500), JMSSecurityError("not yours")])
async def test_an_admin_interface_that_fails_means_that_the_subscription_is_resumed(error: Exception) -> None:
    for admin in (FakeAdmin(error), FakeAdmin(OTHER, deleting=error)):
        assert ["could not find out" in text for text in await warnings(admin)] == [True]
    with pytest.raises(type(error)):
        await warnings(FakeAdmin({}, writing=error))


async def test_without_admin_it_is_resumed_and_the_client_has_said_so() -> None:
    """``Capabilities.replaces_properties`` tells it."""
    assert await warnings(None) == []


async def test_the_same_is_left_alone_and_one_without_properties_gets_them(caplog: pytest.LogCaptureFixture) -> None:
    for properties, calls in ((dict(WANTED.properties), []), ({}, ["remember"]), ({"theirs": "1"}, ["remember"])):
        admin = FakeAdmin(properties)
        assert await warnings(admin) == []
        assert admin.calls == calls
    assert not dropped(caplog)


async def test_another_is_deleted_and_the_new_one_gets_the_properties(caplog: pytest.LogCaptureFixture) -> None:
    admin = FakeAdmin(OTHER)
    assert await warnings(admin) == []
    assert admin.calls == ["delete", "remember"]
    assert ["30 messages" in text for text in dropped(caplog)] == [True]


async def test_without_replace_only_a_new_subscription_gets_properties() -> None:
    wanted = attrs.evolve(WANTED, replace=False)
    for properties, calls in ((OTHER, []), (NotFoundError("none"), ["remember"])):
        admin = FakeAdmin(properties)
        topics = await delete_other(admin, wanted, str)  # type: ignore[arg-type]  # a fake
        admin.properties = {}
        await write_properties(admin, wanted, topics)  # type: ignore[arg-type]  # a fake
        assert admin.calls == calls


@pytest.mark.parametrize(("shared", "kind"), [("true", "shared"), ("false", "unshared")])
async def test_one_that_is_shared_otherwise_is_refused(shared: str, kind: str) -> None:
    """Its selector differs, too, which would delete it."""
    admin = FakeAdmin({**OTHER, "jmsaio.shared": shared})
    wanted = attrs.evolve(WANTED, properties={**WANTED.properties, "jmsaio.shared": str(shared != "true").lower()})
    with pytest.raises(ConsumerBusyError, match=f"is {kind}: unsubscribe it first"):
        await warnings(admin, wanted)
    assert admin.calls == []


async def test_one_that_a_consumer_uses_or_that_gets_one_meanwhile_is_refused() -> None:
    for admin in (FakeAdmin(OTHER, consumers=1), FakeAdmin(OTHER, deleting=AdminError("", 412))):
        with pytest.raises(ConsumerBusyError, match="is active"):
            await warnings(admin)


@pytest.mark.parametrize("admin", [FakeAdmin(OTHER, kept=False), FakeAdmin(OTHER, deleting=NotFoundError(""))])
async def test_one_that_vanishes_between_is_made_anew_without_a_word(
    admin: FakeAdmin, caplog: pytest.LogCaptureFixture
) -> None:
    assert await warnings(admin) == []
    assert admin.calls[-1] == "remember"
    assert not dropped(caplog)


async def test_a_broker_that_can_t_count_messages_counts_batches(caplog: pytest.LogCaptureFixture) -> None:
    await warnings(FakeAdmin(OTHER, counting=NotFoundError("no such call")))
    assert ["3 messages" in text for text in dropped(caplog)] == [True]


async def test_what_a_pattern_subscribed_to_can_t_be_told() -> None:
    admin = FakeAdmin(OTHER)
    told = await warnings(admin, attrs.evolve(WANTED, topics=(), pattern="persistent://public/default/.*"))
    assert admin.calls == []
    assert ["a topics pattern" in text for text in told] == [True]
