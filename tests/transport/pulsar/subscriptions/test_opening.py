"""Opening receivers on subscriptions of kinds that Pulsar's protocol does not have."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import attrs
import pytest

from jmsaio.config import ConsumerConfig
from jmsaio.errors import AdminError, ConsumerBusyError, NotFoundError, OperationTimeoutError
from jmsaio.transport.base import SHARED_PROPERTY, StartPosition, Subscription, SubscriptionType
from jmsaio.transport.pulsar.subscriptions.opening import TOGETHER, ReceiverOpener

TOPIC = "persistent://public/default/t"
DURABLE = Subscription((TOPIC,), "s", SubscriptionType.SHARED, ConsumerConfig())
MARKED = attrs.evolve(DURABLE, properties={"a": "b", SHARED_PROPERTY: "true"}, replace=True)
EPHEMERAL = attrs.evolve(DURABLE, durable=False)
MISSING = NotFoundError("no such subscription")
MISSING.error_code = "SubscriptionNotFound"


class FakeReceiver:
    """A receiver that notes its close."""

    def __init__(self) -> None:
        self.after_close: Callable[[float], Awaitable[None]] | None = None
        self.closed = False

    async def aclose(self, timeout: float) -> None:
        self.closed = True


@attrs.define
class FakeAdmin:
    """An admin interface that knows no subscription and notes what it is asked to do."""

    writing: BaseException | None = None
    calls: list[str] = attrs.field(factory=list)

    async def subscription_properties(self, topic: str, name: str) -> dict[str, str]:
        if "write" in self.calls or not self.calls:
            self.calls.append("look")
            raise NotFoundError("no such subscription")
        return {}

    async def set_subscription_properties(self, topic: str, name: str, properties: dict[str, str]) -> None:
        self.calls.append("write")
        if self.writing is not None:
            raise self.writing

    async def create_subscription(self, topic: str, name: str, position: StartPosition) -> bool:
        self.calls.append(f"create {position.value}")
        return True

    async def delete_subscription(self, topic: str, name: str, force: bool = False) -> None:
        self.calls.append("delete")


@attrs.define
class Broker:
    """Answers each subscribing in turn, with a receiver or an error."""

    answers: list[FakeReceiver | BaseException]
    admin: FakeAdmin | None = attrs.field(factory=FakeAdmin)

    def opening(self) -> ReceiverOpener[Any]:
        found: Any = ReceiverOpener(self.subscribe, self.admin, 5.0)  # type: ignore[arg-type]  # a fake
        assert isinstance(found, ReceiverOpener)
        return found

    async def subscribe(self, wanted: Subscription, wake: object) -> Any:
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def wake() -> None:
    """Nobody waits."""


async def test_a_durable_one_without_properties_needs_no_admin() -> None:
    receiver = FakeReceiver()
    broker = Broker([receiver])
    assert await broker.opening().open(DURABLE, wake) is receiver
    assert broker.admin is not None and broker.admin.calls == []
    assert receiver.after_close is None


async def test_properties_are_written_once_the_subscription_is_there() -> None:
    broker = Broker([FakeReceiver()])
    await broker.opening().open(MARKED, wake)
    assert broker.admin is not None and broker.admin.calls == ["look", "write"]


async def test_properties_that_can_t_be_written_are_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    broker = Broker([FakeReceiver(), FakeReceiver()], FakeAdmin(AdminError("down")))
    opening = broker.opening()
    for _ in range(2):
        assert broker.admin is not None
        broker.admin.calls.clear()
        await opening.open(MARKED, wake)
    assert ["could not find out" in record.message for record in caplog.records] == [True]


async def test_an_opening_cancelled_while_it_writes_leaves_no_receiver() -> None:
    receiver = FakeReceiver()
    with pytest.raises(asyncio.CancelledError):
        await Broker([receiver], FakeAdmin(asyncio.CancelledError())).opening().open(MARKED, wake)
    assert receiver.closed


async def test_one_that_ends_with_its_consumers_is_deleted_after_its_close() -> None:
    receiver = FakeReceiver()
    broker = Broker([receiver])
    await broker.opening().open(EPHEMERAL, wake)
    assert receiver.after_close is not None and broker.admin is not None
    broker.admin.calls.clear()
    await receiver.after_close(5)
    assert broker.admin.calls == ["delete"]


async def test_what_many_receivers_leave_is_deleted_a_few_at_a_time() -> None:
    running: list[int] = [0, 0]  # now, and at most

    class Slow(FakeAdmin):
        async def delete_subscription(self, topic: str, name: str, force: bool = False) -> None:
            running[0] += 1
            running[1] = max(running)
            await anyio.sleep(0.01)
            running[0] -= 1
            await super().delete_subscription(topic, name, force)

    receivers = [FakeReceiver() for _ in range(3 * TOGETHER)]
    broker = Broker([*receivers], Slow())
    opening = broker.opening()
    for _ in receivers:
        await opening.open(EPHEMERAL, wake)
    assert broker.admin is not None
    broker.admin.calls.clear()
    await asyncio.gather(*(one.after_close(5) for one in receivers if one.after_close is not None))
    assert (running[1], broker.admin.calls) == (TOGETHER, ["delete"] * len(receivers))


async def test_one_that_ends_with_its_consumers_is_created_where_the_broker_does_not() -> None:
    broker = Broker([MISSING, FakeReceiver()])
    await broker.opening().open(EPHEMERAL, wake)
    assert broker.admin is not None and broker.admin.calls == ["look", "create latest"]


@pytest.mark.parametrize(
    ("wanted", "admin"),
    [(DURABLE, FakeAdmin()), (EPHEMERAL, None), (attrs.evolve(EPHEMERAL, topics=(), pattern="x"), FakeAdmin())],
    ids=["durable", "no admin", "pattern"],
)
async def test_others_are_not_created(wanted: Subscription, admin: FakeAdmin | None) -> None:
    with pytest.raises(NotFoundError):
        await Broker([MISSING], admin).opening().open(wanted, wake)


@pytest.mark.parametrize(
    ("error", "deleted"), [(OperationTimeoutError("late"), True), (asyncio.CancelledError(), True),
                           (ConsumerBusyError("theirs"), False)],
)  # fmt: skip
async def test_an_opening_that_fails_deletes_what_it_may_have_made_but_nothing_of_others(
    error: BaseException, deleted: bool
) -> None:
    broker = Broker([error])
    with pytest.raises(type(error)):
        await broker.opening().open(EPHEMERAL, wake)
    assert broker.admin is not None and ("delete" in broker.admin.calls) is deleted
