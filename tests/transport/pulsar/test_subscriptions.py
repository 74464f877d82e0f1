"""Opening receivers on kinds of subscriptions that Pulsar's protocol lacks: some end with their last consumer, others
are replaced."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import attrs
import pytest

from jmsaio.config import ConsumerConfig
from jmsaio.errors import AdminError, ConsumerBusyError, JMSSecurityError, NotFoundError, OperationTimeoutError
from jmsaio.transport.base import (
    SHARED_PROPERTY,
    StartPosition,
    Subscription,
    SubscriptionStats,
    SubscriptionType,
    TopicStats,
)
from jmsaio.transport.pulsar.subscriptions import (
    TOGETHER,
    ReceiverOpener,
    delete_leftover,
    delete_other,
    delete_unused,
    write_properties,
)

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


@pytest.mark.parametrize("wanted", [MARKED, EPHEMERAL])
async def test_without_admin_it_is_only_subscribed(wanted: Subscription, caplog: pytest.LogCaptureFixture) -> None:
    """``Capabilities.replaces_properties`` tells it to the client."""
    receiver = FakeReceiver()
    assert await Broker([receiver], None).opening().open(wanted, wake) is receiver
    assert receiver.after_close is None and not caplog.records


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


LEFT_TOPICS = ("persistent://public/default/a", "persistent://public/default/b")
LEFT = Subscription(LEFT_TOPICS, "sub-nd", SubscriptionType.SHARED, ConsumerConfig())
BUSY = AdminError("has consumers", 412)


@attrs.define
class Deleting:
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
    admin = Deleting(answers)
    await delete_unused(admin, LEFT, 5, patient=patient)  # type: ignore[arg-type]  # a fake
    assert "".join(admin.calls) == asked


async def test_deleting_goes_on_when_cancelled() -> None:
    admin = Deleting({"a": [BUSY]})
    with anyio.CancelScope() as scope:
        scope.cancel()
        await delete_unused(admin, LEFT, 5, patient=True)  # type: ignore[arg-type]  # a fake
    assert "".join(admin.calls) == "aab"


@pytest.mark.parametrize(
    ("properties", "asked"),
    [({}, "ab"), ({"theirs": "1"}, "ab"), (NotFoundError(""), ""), (AdminError("down"), "")],
)
async def test_what_a_crash_left_is_deleted_where_it_can_be_told(
    properties: dict[str, str] | Exception, asked: str
) -> None:
    admin = Deleting({}, properties)
    await delete_leftover(admin, LEFT, 5)  # type: ignore[arg-type]  # a fake
    assert "".join(admin.calls) == asked


async def test_what_is_durable_is_spared() -> None:
    admin = Deleting({}, {"jmsaio.shared": "false"})
    with pytest.raises(ConsumerBusyError, match="use another name"):
        await delete_leftover(admin, LEFT, 5)  # type: ignore[arg-type]  # a fake
    assert admin.calls == []


@attrs.define
class Replacing:
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


async def warnings(admin: Replacing, wanted: Subscription = WANTED) -> list[str]:
    """Delete what ``wanted`` replaces and write its properties; the warnings."""
    told: list[str] = []
    topics = await delete_other(admin, wanted, told.append)  # type: ignore[arg-type]  # a fake
    await write_properties(admin, wanted, topics)  # type: ignore[arg-type]  # a fake
    return told


def dropped(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if "is recreated" in record.message]


@pytest.mark.parametrize("error", [AdminError("down"), AdminError("broken", 500), JMSSecurityError("not yours")])
async def test_an_admin_interface_that_fails_means_that_the_subscription_is_resumed(error: Exception) -> None:
    for admin in (Replacing(error), Replacing(OTHER, deleting=error)):
        assert ["could not find out" in text for text in await warnings(admin)] == [True]
    with pytest.raises(type(error)):
        await warnings(Replacing({}, writing=error))


async def test_the_same_is_left_alone_and_one_without_properties_gets_them(caplog: pytest.LogCaptureFixture) -> None:
    for properties, calls in ((dict(WANTED.properties), []), ({}, ["remember"]), ({"theirs": "1"}, ["remember"])):
        admin = Replacing(properties)
        assert await warnings(admin) == []
        assert admin.calls == calls
    assert not dropped(caplog)


async def test_another_is_deleted_and_the_new_one_gets_the_properties(caplog: pytest.LogCaptureFixture) -> None:
    admin = Replacing(OTHER)
    assert await warnings(admin) == []
    assert admin.calls == ["delete", "remember"]
    assert ["30 messages" in text for text in dropped(caplog)] == [True]


async def test_without_replace_only_a_new_subscription_gets_properties() -> None:
    wanted = attrs.evolve(WANTED, replace=False)
    for properties, calls in ((OTHER, []), (NotFoundError("none"), ["remember"])):
        admin = Replacing(properties)
        topics = await delete_other(admin, wanted, str)  # type: ignore[arg-type]  # a fake
        admin.properties = {}
        await write_properties(admin, wanted, topics)  # type: ignore[arg-type]  # a fake
        assert admin.calls == calls


@pytest.mark.parametrize(("shared", "kind"), [("true", "shared"), ("false", "unshared")])
async def test_one_that_is_shared_otherwise_is_refused(shared: str, kind: str) -> None:
    """Its selector differs, too, which would delete it."""
    admin = Replacing({**OTHER, "jmsaio.shared": shared})
    wanted = attrs.evolve(WANTED, properties={**WANTED.properties, "jmsaio.shared": str(shared != "true").lower()})
    with pytest.raises(ConsumerBusyError, match=f"is {kind}: unsubscribe it first"):
        await warnings(admin, wanted)
    assert admin.calls == []


async def test_one_that_a_consumer_uses_or_that_gets_one_meanwhile_is_refused() -> None:
    for admin in (Replacing(OTHER, consumers=1), Replacing(OTHER, deleting=AdminError("", 412))):
        with pytest.raises(ConsumerBusyError, match="is active"):
            await warnings(admin)


@pytest.mark.parametrize("admin", [Replacing(OTHER, kept=False), Replacing(OTHER, deleting=NotFoundError(""))])
async def test_one_that_vanishes_between_is_made_anew_without_a_word(
    admin: Replacing, caplog: pytest.LogCaptureFixture
) -> None:
    assert await warnings(admin) == []
    assert admin.calls[-1] == "remember"
    assert not dropped(caplog)


async def test_a_broker_that_can_t_count_messages_counts_batches(caplog: pytest.LogCaptureFixture) -> None:
    await warnings(Replacing(OTHER, counting=NotFoundError("no such call")))
    assert ["3 messages" in text for text in dropped(caplog)] == [True]


async def test_what_a_pattern_subscribed_to_can_t_be_told() -> None:
    admin = Replacing(OTHER)
    told = await warnings(admin, attrs.evolve(WANTED, topics=(), pattern="persistent://public/default/.*"))
    assert admin.calls == []
    assert ["a topics pattern" in text for text in told] == [True]
