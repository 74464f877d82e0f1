"""Subscriptions that end with their last consumer: what their receivers leave is deleted through REST."""

from __future__ import annotations

import anyio
import attrs
import pytest

from jmsaio.config import ConsumerConfig
from jmsaio.errors import AdminError, ConsumerBusyError, JMSSecurityError, NotFoundError
from jmsaio.transport.base import Subscription, SubscriptionType
from jmsaio.transport.pulsar.subscriptions.ephemeral import delete_leftover, delete_unused

TOPICS = ("persistent://public/default/a", "persistent://public/default/b")
WANTED = Subscription(TOPICS, "sub-nd", SubscriptionType.SHARED, ConsumerConfig())
BUSY = AdminError("has consumers", 412)


@attrs.define
class FakeAdmin:
    """Answers the deletions of a topic in turn, None for success, and notes them."""

    answers: dict[str, list[Exception | None]] = attrs.field(factory=dict)
    properties: dict[str, str] | Exception = attrs.field(factory=dict)
    calls: list[str] = attrs.field(factory=list)

    async def subscription_properties(self, topic: str, name: str) -> dict[str, str]:
        if isinstance(self.properties, Exception):
            raise self.properties
        return self.properties

    async def delete_subscription(self, topic: str, name: str, force: bool = False) -> None:
        assert name == "sub-nd" and not force
        self.calls.append(topic[-1])
        answers = self.answers.get(topic[-1], [])
        error = answers.pop(0) if answers else None
        if error is not None:
            raise error


@pytest.mark.parametrize(
    ("answers", "patient", "asked"),
    [
        ({}, False, "ab"),
        ({"a": [NotFoundError("")]}, False, "ab"),
        ({"a": [BUSY]}, False, "ab"),
        ({"a": [BUSY, BUSY]}, True, "aaab"),
        ({"a": [BUSY] * 99}, True, "a" * 10 + "b"),
        ({"a": [BUSY, NotFoundError("")]}, True, "aab"),
        ({"a": [AdminError("down")] * 9, "b": [JMSSecurityError("not yours")] * 9}, True, "ab"),
    ],
)
async def test_each_topic_is_asked_and_a_patient_caller_asks_again(
    answers: dict[str, list[Exception | None]], patient: bool, asked: str
) -> None:
    admin = FakeAdmin(answers)
    await delete_unused(admin, WANTED, 5, patient=patient)  # type: ignore[arg-type]  # a fake
    assert "".join(admin.calls) == asked


async def test_deleting_goes_on_when_cancelled() -> None:
    admin = FakeAdmin({"a": [BUSY]})
    with anyio.CancelScope() as scope:
        scope.cancel()
        await delete_unused(admin, WANTED, 5, patient=True)  # type: ignore[arg-type]  # a fake
    assert "".join(admin.calls) == "aab"


async def test_without_admin_nothing_is_deleted() -> None:
    await delete_unused(None, WANTED, 5)
    await delete_leftover(None, WANTED, 5)


@pytest.mark.parametrize(
    ("properties", "asked"),
    [({}, "ab"), ({"theirs": "1"}, "ab"), (NotFoundError(""), ""), (AdminError("down"), "")],
)
async def test_what_a_crash_left_is_deleted_where_it_can_be_told(
    properties: dict[str, str] | Exception, asked: str
) -> None:
    admin = FakeAdmin({}, properties)
    await delete_leftover(admin, WANTED, 5)  # type: ignore[arg-type]  # a fake
    assert "".join(admin.calls) == asked


async def test_what_is_durable_is_spared() -> None:
    admin = FakeAdmin({}, {"jmsaio.shared": "false"})
    with pytest.raises(ConsumerBusyError, match="use another name"):
        await delete_leftover(admin, WANTED, 5)  # type: ignore[arg-type]  # a fake
    assert admin.calls == []
