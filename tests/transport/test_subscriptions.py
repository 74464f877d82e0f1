"""Creating a queue's subscription: which failures are retried, and which are raised at once."""

from __future__ import annotations

import asyncio
import sys
import uuid
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Literal, cast

import anyio
import attrs
import httpx
import pytest

import jmsaio
from jmsaio.config import load
from jmsaio.errors import (
    AdminError,
    BrokerUnavailableError,
    ConsumerBusyError,
    InvalidDestinationError,
    JMSError,
    JMSSecurityError,
    NotFoundError,
    OperationTimeoutError,
    TransportError,
)
from jmsaio.model.destinations import Queue, resolve
from jmsaio.model.topic_names import partition_names
from jmsaio.transport.administration import Admin
from jmsaio.transport.base import StartPosition, Subscription, SubscriptionType
from jmsaio.transport.causes import PASSING
from jmsaio.transport.clock import LoopTimers, ManualClock
from jmsaio.transport.subscriptions import list_matching, list_partitions, list_topics, passes, precreate
from tests.kit.inside import admin_of
from tests.support.broker import TestBroker


@attrs.define
class FixedTopics:
    """The questions of an administration that are asked here; ``asked`` has them."""

    counts: Mapping[str, int]
    asked: list[str] = attrs.field(factory=list)

    async def topics(self, namespace: str) -> list[str]:
        self.asked.append(namespace)
        names = [name for topic, count in self.counts.items() for name in partition_names(topic, count)]
        return [name for name in names if name.startswith(f"persistent://{namespace}/")]

    async def partitions(self, topic: str) -> int:
        self.asked.append(topic)
        if topic not in self.counts:
            raise NotFoundError(topic)
        return self.counts[topic]


def full(name: str) -> str:
    return f"persistent://public/default/{name}"


async def topics_of(name: str, **counts: int) -> list[str]:
    """The topics of a queue where topics of ``public/default`` have so many partitions."""
    admin = FixedTopics({full(topic): count for topic, count in counts.items()})
    return await list_topics(cast(Admin, admin), resolve(Queue(name)))


async def test_listed_topics_keep_their_order_and_nothing_is_asked() -> None:
    admin = FixedTopics({})
    assert await list_topics(cast(Admin, admin), resolve(Queue("multi:b,a"))) == [full("b"), full("a")]
    assert await list_topics(cast(Admin, admin), resolve(Queue("one:sub"))) == [full("one")]
    assert admin.asked == []


async def test_a_pattern_finds_existing_topics_by_name_each_once() -> None:
    assert await topics_of("regex:[a-c].*", c=0, b2=3, b1=0, d=0) == [full("b1"), full("b2"), full("c")]
    assert await topics_of("regex:none", c=0) == []


async def test_a_pattern_fits_the_whole_name_with_all_its_branches() -> None:
    assert await topics_of("regex:a|b", a=0, ab=0, b=0) == [full("a"), full("b")]


async def test_only_the_last_part_of_a_pattern_is_an_expression() -> None:
    """A dot in the namespace is a dot, and the expression may have slashes."""
    names = ["persistent://t/n.s/x", "persistent://t/nxs/x"]
    admin = FixedTopics(dict.fromkeys(names, 0))
    assert await list_topics(cast(Admin, admin), resolve(Queue("regex:persistent://t/n.s/(a/b|x)"))) == names[:1]
    assert admin.asked == ["t/n.s"]


async def test_a_pattern_that_is_no_expression_is_refused() -> None:
    with pytest.raises(InvalidDestinationError, match=r"topics pattern 'persistent://public/default/\('"):
        await topics_of("regex:(")


@pytest.mark.parametrize(("topic", "parts"), [("plain", [""]), ("parted", ["-partition-0", "-partition-1"])])
async def test_partitions_come_in_order_and_a_topic_without_is_its_own(topic: str, parts: list[str]) -> None:
    admin = cast(Admin, FixedTopics({full("plain"): 0, full("parted"): 2}))
    assert await list_partitions(admin, full(topic)) == [full(topic) + part for part in parts]


async def test_a_topic_that_does_not_exist_has_no_partitions() -> None:
    assert await list_partitions(cast(Admin, FixedTopics({})), full("unknown")) == []


async def test_a_silent_broker_is_not_taken_for_a_missing_topic() -> None:
    class Silent(FixedTopics):
        async def partitions(self, topic: str) -> int:
            raise BrokerUnavailableError("no answer")

    with pytest.raises(BrokerUnavailableError):
        await list_partitions(cast(Admin, Silent({})), full("t"))


async def test_a_pattern_finds_each_partition_by_its_number_in_one_call() -> None:
    admin = FixedTopics({full("b"): 11, full("a"): 0, full("c"): 0})
    found = await list_matching(cast(Admin, admin), "persistent://public/default/[ab]")
    assert found == [full("a"), *partition_names(full("b"), 11)]
    assert admin.asked == ["public/default"]


#: Seconds after which a refusal was asked again instead of told: a start-up is waited for 60 seconds.
AT_ONCE = 30


class FakeAdmin:
    """Administration that answers a creation with these errors, then with success; ``keep`` repeats the first."""

    def __init__(self, *errors: JMSError, keep: bool = False) -> None:
        self.errors = list(errors)
        self.keep = keep
        self.made: list[tuple[str, str, StartPosition]] = []

    @property
    def calls(self) -> int:
        return len(self.made)

    async def create_subscription(self, topic: str, name: str, position: StartPosition) -> bool:
        self.made.append((topic, name, position))
        if self.errors:
            raise self.errors[0] if self.keep else self.errors.pop(0)
        return True


class SilentAdmin(FakeAdmin):
    """Administration that gives up by itself after ``patience`` seconds without an answer."""

    def __init__(self, patience: float) -> None:
        super().__init__(OperationTimeoutError("silent"), keep=True)
        self.patience = patience

    async def create_subscription(self, topic: str, name: str, position: StartPosition) -> bool:
        self.made.append((topic, name, position))
        await asyncio.sleep(self.patience)
        raise self.errors[0]


class Transport:
    """A transport with administration, or without, that opens one receiver after these refusals."""

    def __init__(self, admin: FakeAdmin | None, *refusals: JMSError) -> None:
        self.admin = admin
        self.refusals = list(refusals)
        self.opened: list[Subscription] = []
        self.closed: list[float] = []

    async def open_receiver(self, wanted: Subscription, wake: Callable[[], None]) -> Transport:
        self.opened.append(wanted)
        wake()
        if self.refusals:
            raise self.refusals.pop(0)
        return self

    async def aclose(self, timeout: float) -> None:
        self.closed.append(timeout)


@pytest.mark.parametrize(
    "error",
    [
        AdminError("Failed for Subscription Busy: Failed to fence subscription", 412),
        AdminError("log of persistent://a/b/c: status 412 (Can't find owner for topic persistent://a/b/c)", 412),
        TransportError("the ledger is closed", "BrokerPersistenceError"),
        AdminError("refused"), AdminError("busy", 503), AdminError("broken", 500), AdminError("many", 429),
        AdminError("slow", 408), BrokerUnavailableError("away"), OperationTimeoutError("silent"),
        *(TransportError("moving", code) for code in sorted(PASSING)),
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
        ValueError("our own fault"),
    ],
)  # fmt: skip
def test_what_does_not_pass(error: Exception) -> None:
    """A refusal stays one."""
    assert not passes(error)


async def test_a_passing_failure_is_asked_again() -> None:
    """The third answer is a success."""
    admin = FakeAdmin(AdminError("starting", 503), NotFoundError("not asked for"))
    with pytest.raises(NotFoundError):
        await precreate(Transport(admin), load("memory://x"), "persistent://a/b/c", "s", LoopTimers())  # type: ignore[arg-type] # a part
    assert admin.calls == 2
    await precreate(Transport(admin), load("memory://x"), "persistent://a/b/c", "s", LoopTimers())  # type: ignore[arg-type] # a part
    assert admin.calls == 3


@pytest.mark.broker
async def test_a_missing_namespace_is_told_at_once(pulsar_broker: TestBroker) -> None:
    """create_producer says which namespace is missing, and does not wait for the broker's start."""
    url = pulsar_broker.url
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        queue = jmsaio.Queue(f"persistent://public/missing-{uuid.uuid4()}/orders")
        with anyio.fail_after(AT_ONCE), pytest.raises(NotFoundError, match="Namespace not found"):
            await session.create_producer(queue)


@pytest.mark.broker
async def test_a_non_persistent_queue_is_told_at_once(pulsar_broker: TestBroker) -> None:
    """create_producer says why the queue can't be made and which option sends to it nevertheless."""
    url = pulsar_broker.url
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


#: Opens a producer for each queue that it gets, and sends.
OTHER_PROCESS = """
import asyncio, sys, jmsaio
async def main():
    async with jmsaio.connect(sys.argv[1]) as connection, connection.create_session() as session:
        print("ready", flush=True)
        for name in iter(sys.stdin.readline, ""):
            async with session.create_producer(jmsaio.Queue(name.strip())) as producer:
                await producer.send("x")
asyncio.run(main())
"""


async def test_a_consumer_and_a_producer_open_a_queue_together(url: str) -> None:
    """Neither waits for the other's time-out, and the message arrives."""
    async with jmsaio.connect(url) as one, jmsaio.connect(url) as two:
        session, other = await one.create_session(), await two.create_session()

        async def make_producer_and_send(queue: jmsaio.Queue) -> None:
            async with other.create_producer(queue) as producer:
                await producer.send("x")

        for _ in range(20):
            queue = jmsaio.Queue(f"together-{uuid.uuid4()}")
            consumer, _ = await asyncio.gather(session.create_consumer(queue), make_producer_and_send(queue))
            assert await consumer.receive_body(str, timeout=AT_ONCE) == "x"
            await consumer.close()


@pytest.mark.broker
async def test_a_producer_of_another_process_opens_the_queue_too(pulsar_broker: TestBroker) -> None:
    """Turns can't be taken there: what the broker refuses for the moment is repeated."""
    url = pulsar_broker.url
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", OTHER_PROCESS, url, stdin=PIPE, stdout=PIPE)
    assert process.stdin is not None and process.stdout is not None
    try:
        assert await asyncio.wait_for(process.stdout.readline(), AT_ONCE) == b"ready\n"
        async with jmsaio.connect(url) as connection, connection.create_session() as session:
            for round in range(30):
                queue = jmsaio.Queue(f"processes-{uuid.uuid4()}")
                process.stdin.write(f"{queue.name}\n".encode())
                await anyio.sleep(round % 10 / 1000)  # so that all steps of both meet
                async with session.create_consumer(queue) as consumer:
                    assert await consumer.receive_body(str, timeout=AT_ONCE) == "x"
        process.stdin.close()
        assert await asyncio.wait_for(process.wait(), AT_ONCE) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.fixture
async def strict(pulsar_broker: TestBroker) -> AsyncIterator[str]:
    """The URL of a namespace whose broker creates no subscriptions by itself."""
    name = f"public/strict-{uuid.uuid4().hex[:12]}"
    async with httpx.AsyncClient(base_url=f"{pulsar_broker.web_service_url}/admin/v2", timeout=30) as client:
        (await client.put(f"/namespaces/{name}", json={})).raise_for_status()
        policy = {"allowAutoSubscriptionCreation": False}
        (await client.post(f"/namespaces/{name}/autoSubscriptionCreation", json=policy)).raise_for_status()
    yield f"{pulsar_broker.url}&jms.systemNamespace={name}"


async def test_consumers_where_the_broker_creates_no_subscriptions(strict: str) -> None:
    """Those of queues, also with partitions, and those that end with their consumers are created."""
    async with jmsaio.connect(strict) as connection, connection.create_session() as session:
        admin = admin_of(connection)
        await admin.create_topic(f"persistent://{connection.configuration.system_namespace}/parted", 2)
        queue, parted, topic = jmsaio.Queue("queue"), jmsaio.Queue("parted"), jmsaio.Topic("topic")
        with anyio.fail_after(2 * AT_ONCE):
            async with (
                session.create_consumer(queue) as one,
                session.create_consumer(parted) as two,
                session.create_consumer(topic) as three,
                session.create_shared_consumer(topic, "group") as four,
                session.create_producer() as producer,
            ):
                for destination in (queue, parted, topic):
                    await producer.send(destination, destination.name)
                bodies = [await consumer.receive_body(str, timeout=AT_ONCE) for consumer in (one, two, three, four)]
        assert bodies == ["queue", "parted", "topic", "topic"]
        assert not (await admin.stats(f"persistent://{connection.configuration.system_namespace}/topic")).subscriptions


@pytest.mark.parametrize("option", ["jms.usePulsarAdmin", "jms.precreateQueueSubscription"])
async def test_a_subscription_that_is_not_created_is_told_at_once(strict: str, option: str) -> None:
    """With the broker's sentence, and without waiting for the operation's time-out: queues as told, durable ones."""
    async with jmsaio.connect(f"{strict}&{option}=false", operation_timeout=4 * AT_ONCE) as connection:
        async with connection.create_session() as session:
            with anyio.fail_after(AT_ONCE), pytest.raises(NotFoundError, match=r"\(Subscription does not exist\)"):
                await session.create_consumer(jmsaio.Queue("queue"))
            with anyio.fail_after(AT_ONCE), pytest.raises(NotFoundError, match=r"\(Subscription does not exist\)"):
                await session.create_durable_consumer(jmsaio.Topic("topic"), "durable")


async def test_a_broker_that_does_not_answer_is_asked_for_the_operation_time_out() -> None:
    """Waiting for a start is for brokers that answer; for the others the message is raised, without its causes."""
    error = AdminError("create subscription: http://x can't be reached: Connection refused")
    error.__cause__ = OSError("deep below")
    config = load("memory://x", operation_timeout=0.5, wait_for_server_startup_timeout=3600.0)
    admin = FakeAdmin(error)
    with anyio.fail_after(AT_ONCE), pytest.raises(AdminError, match="Connection refused") as told:
        await precreate(Transport(admin), config, "persistent://a/b/c", "s", LoopTimers())  # type: ignore[arg-type] # a part
    assert admin.calls == 1
    assert told.value.__cause__ is None and told.value.__suppress_context__


async def test_a_second_passes_between_two_attempts() -> None:
    clock = ManualClock()
    admin = FakeAdmin(AdminError("starting", 503))
    making = asyncio.ensure_future(
        precreate(Transport(admin), load("memory://x"), "persistent://a/b/c", "s", LoopTimers(clock))  # type: ignore[arg-type] # a part
    )
    for seconds, calls in ((0.9, 1), (0.2, 2)):
        await asyncio.sleep(5.0)  # the time of the loop is not that of the broker
        clock.advance(seconds)
        await asyncio.sleep(0.01)
        assert admin.calls == calls
    assert await making is True


@pytest.mark.parametrize(("error", "attempts"), [(AdminError("refused"), 3), (AdminError("starting", 503), 6)])
async def test_a_broker_that_answers_is_waited_for_longer_than_one_that_does_not(
    error: AdminError, attempts: int
) -> None:
    admin = FakeAdmin(error, keep=True)
    config = load("memory://x", operation_timeout=2.5, wait_for_server_startup_timeout=5.5)
    with pytest.raises(AdminError, match=str(error)):
        await precreate(Transport(admin), config, "persistent://a/b/c", "s", LoopTimers())  # type: ignore[arg-type] # a part
    assert admin.calls == attempts


async def test_the_wait_for_a_start_bounds_also_a_broker_that_is_away() -> None:
    """The operation's time-out is longer here."""
    admin = FakeAdmin(AdminError("refused"), keep=True)
    config = load("memory://x", operation_timeout=3600.0, wait_for_server_startup_timeout=2.5)
    with anyio.fail_after(AT_ONCE), pytest.raises(AdminError, match="refused"):
        await precreate(Transport(admin), config, "persistent://a/b/c", "s", LoopTimers())  # type: ignore[arg-type] # a part
    assert admin.calls == 3


async def test_an_attempt_that_is_cut_off_leaves_the_cause_of_an_earlier_one() -> None:
    admin = SilentAdmin(patience=1.0)
    config = load("memory://x", wait_for_server_startup_timeout=2.5)
    with anyio.fail_after(AT_ONCE), pytest.raises(OperationTimeoutError, match=r"^silent$"):
        await precreate(Transport(admin), config, "persistent://a/b/c", "s", LoopTimers())  # type: ignore[arg-type] # a part
    assert admin.calls == 2


@pytest.mark.parametrize("limit", [0.5, 0])
async def test_an_attempt_without_an_answer_ends_with_the_wait(limit: float) -> None:
    """Without a wait there is one attempt, which has the operation's time-out."""
    admin = SilentAdmin(patience=1.0)
    config = load("memory://x", operation_timeout=3600.0, wait_for_server_startup_timeout=limit)
    with anyio.fail_after(AT_ONCE), pytest.raises(OperationTimeoutError) as told:
        await precreate(Transport(admin), config, "persistent://a/b/c", "s", LoopTimers())  # type: ignore[arg-type] # a part
    assert admin.calls == 1
    assert ("waitForServerStartupTimeout" in str(told.value)) == (limit > 0)


@pytest.mark.parametrize(
    ("topic", "status", "told"),
    [
        ("persistent://a/b/c", 405, "^no$"),
        ("non-persistent://a/b/c", 405, "non-persistent queue"),
        ("non-persistent://a/b/c", None, "^no$"),
    ],
)
async def test_a_refusal_says_what_to_do_about_a_non_persistent_queue(
    topic: str, status: int | None, told: str
) -> None:
    """Not where the broker did not answer. Its causes stay."""
    error, cause = AdminError("no", status), OSError("deep below")
    error.__cause__ = cause
    config = load("memory://x", operation_timeout=0.5)
    with pytest.raises(TransportError, match=told) as raised:
        await precreate(Transport(FakeAdmin(error)), config, topic, "s", LoopTimers())  # type: ignore[arg-type] # a part
    if raised.value is error and status is not None:
        assert error.__cause__ is cause


@pytest.mark.parametrize("kind", ["Shared", "Key_Shared"])
async def test_without_administration_a_consumer_is_opened_and_closed(kind: Literal["Shared", "Key_Shared"]) -> None:
    """At the beginning of the topic, of the queue's type, and it takes as little as possible from it."""
    config = load("memory://x", close_timeout=7.0, queue_subscription_type=kind)
    transport = Transport(None)
    assert await precreate(transport, config, "persistent://a/b/c", "s", LoopTimers()) is False  # type: ignore[arg-type] # a part
    (opened,) = transport.opened
    assert (opened.topics, opened.name, opened.type) == (("persistent://a/b/c",), "s", SubscriptionType(kind))
    assert (opened.position, opened.config.receiver_queue_size) == (StartPosition.EARLIEST, 1)
    assert transport.closed == [7.0]


async def test_a_subscription_with_consumers_of_another_type_exists() -> None:
    transport = Transport(None, ConsumerBusyError("it has consumers of another type"))
    config = load("memory://x")
    assert await precreate(transport, config, "persistent://a/b/c", "s", LoopTimers()) is False  # type: ignore[arg-type] # a part
