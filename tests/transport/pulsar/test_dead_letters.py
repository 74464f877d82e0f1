"""Dead letters on the real broker: count, parts, default topic, first subscription."""

from __future__ import annotations

import logging
import uuid
from typing import cast

import anyio
import httpx
import pytest

import jmsaio
from jmsaio.config import DeadLetterPolicy, ProducerConfig, load
from jmsaio.errors import AdminError
from jmsaio.model.wire import OutgoingRecord
from jmsaio.testing import embedded_broker
from jmsaio.transport.base import Receiver, Subscription, SubscriptionType, Wake
from jmsaio.transport.pulsar.admin import RestAdmin
from jmsaio.transport.pulsar.dead_letters import DeadLetters, LetterSubscriptions
from jmsaio.transport.pulsar.native.binding.record import PulsarRecord
from jmsaio.transport.pulsar.native.records import subscription_records
from tests.kit.records import Outcomes, Record
from tests.support.broker import TestBroker
from tests.support.secure import SecureBroker
from tests.transport.contract.harness import Harness
from tests.transport.pulsar.conftest import HANG, Kit, new_topic, send


@pytest.mark.parametrize("kind", [SubscriptionType.SHARED, SubscriptionType.KEY_SHARED])
async def test_moved_after_so_many_redeliveries(kit: Kit, kind: SubscriptionType) -> None:
    box = await kit.box(kind, dead_letter=DeadLetterPolicy(max_redeliver_count=2))
    dead = await kit.box(SubscriptionType.SHARED, f"{kit.topic}-sub-DLQ", name="d")
    sender, outcomes = await kit.sender(), Outcomes()
    sender.send(OutgoingRecord(None, {"a": "ä"}, "key", 77), outcomes)
    counts = []
    for _ in range(3):
        [record] = await box.take(1)
        counts.append(record.redelivery_count)
        box.receiver.negative_acknowledge([record], 0.1)
    [letter] = await dead.take(1)
    assert counts == [0, 1, 2]
    assert (letter.payload, letter.key, letter.event_time, letter.redelivery_count) == (None, "key", 77, 0)
    assert letter.properties["a"] == "ä"
    assert letter.properties["REAL_TOPIC"] == kit.topic
    assert letter.properties["ORIGIN_MESSAGE_ID"] == str(record.message_id).removeprefix("ID:")
    await box.nothing()
    await box.receiver.aclose(HANG)
    await (await kit.box(kind)).nothing()


async def test_a_dead_letter_waits_for_a_consumer_that_comes_later(kit: Kit) -> None:
    """The letter waits for a consumer that comes later."""
    topic = new_topic("dead")
    policy = DeadLetterPolicy(max_redeliver_count=1, dead_letter_topic=topic, initial_subscription_name="keep")
    box = await kit.box(dead_letter=policy)
    sender, outcomes = await kit.sender(), Outcomes()
    sender.send(OutgoingRecord(b"x", {}), outcomes)
    for _ in range(2):
        box.receiver.negative_acknowledge(await box.take(1), 0.1)
    await box.nothing()
    assert len(await (await kit.box(SubscriptionType.SHARED, topic, name="keep")).take(1)) == 1


@pytest.mark.parametrize(
    "config",
    [ProducerConfig(compression_type="LZ4"), ProducerConfig(chunking_enabled=True, batching_enabled=False)],
    ids=["compressed", "in chunks"],
)
async def test_letters_of_any_size_are_stored(kit: Kit, config: ProducerConfig) -> None:
    """They are small messages and large ones, and one without a policy's count (expired, malformed)."""
    box = await kit.box(dead_letter=DeadLetterPolicy(max_redeliver_count=1))
    dead = await kit.box(SubscriptionType.SHARED, f"{kit.topic}-sub-DLQ", name="d")
    await send(await kit.sender(config=config), "a", "x" * 6_000_000, "b", "x" * 7_000_000)
    [*failing, expired] = await box.take(4)
    box.receiver.dead_letter(expired, {"why": "expired"})
    box.receiver.negative_acknowledge(failing, 0.1)
    box.receiver.negative_acknowledge(await box.take(3), 0.1)
    letters = await dead.take(4)
    assert sorted(len(one.payload or b"") for one in letters) == [1, 1, 6_000_000, 7_000_000]
    assert [len(one.payload or b"") for one in letters if one.get("why")] == [7_000_000]
    await box.nothing()


async def test_letters_that_cannot_be_stored_are_told_once_and_their_messages_stay(
    kit: Kit, caplog: pytest.LogCaptureFixture
) -> None:
    topic = "persistent://public/no-such-namespace/dead"
    box = await kit.box(dead_letter=DeadLetterPolicy(max_redeliver_count=1, dead_letter_topic=topic))
    sender, outcomes = await kit.sender(), Outcomes()
    sender.send(OutgoingRecord(b"x", {}), outcomes)
    with caplog.at_level(logging.WARNING, "jmsaio.transport.pulsar.native.records"):
        for _ in range(2):
            box.receiver.negative_acknowledge(await box.take(1), 0.1)
        with anyio.fail_after(HANG):
            while not caplog.messages:
                await anyio.sleep(0.05)
        await box.nothing()
    [told] = caplog.messages
    assert f"of {kit.topic} can't be stored: " in told and "no-such-namespace" in told
    await box.receiver.aclose(HANG)
    assert len(await (await kit.box()).take(1)) == 1


async def test_a_subscription_whose_only_consumer_is_there_keeps_the_letters(kit: Kit) -> None:
    """No other consumer can join it, and none is needed."""
    topic = new_topic("dead")
    policy = DeadLetterPolicy(max_redeliver_count=1, dead_letter_topic=topic, initial_subscription_name="keep")
    box, dead = await kit.box(dead_letter=policy), await kit.box(SubscriptionType.EXCLUSIVE, topic, name="keep")
    sender, outcomes = await kit.sender(), Outcomes()
    sender.send(OutgoingRecord(b"x", {}), outcomes)
    for _ in range(2):
        box.receiver.negative_acknowledge(await box.take(1), 0.1)
    assert len(await dead.take(1)) == 1


async def test_what_the_application_never_got_does_not_die(kit: Kit) -> None:
    box = await kit.box(dead_letter=DeadLetterPolicy(max_redeliver_count=1))
    sender, outcomes = await kit.sender(), Outcomes()
    sender.send(OutgoingRecord(b"x", {}), outcomes)
    box.receiver.negative_acknowledge(await box.take(1), 0.1)
    box.receiver.negative_acknowledge(await box.take(1), 0.1, counted=False)
    await box.receiver.aclose(HANG)
    assert len(await (await kit.box()).take(1)) == 1


async def test_what_came_too_often_is_moved_unseen(kit: Kit) -> None:
    """Its consumers gave it back, or died with it, more often than this one's policy allows."""
    box = await kit.box()
    sender, outcomes = await kit.sender(), Outcomes()
    sender.send(OutgoingRecord(b"x", {}), outcomes)
    for _ in range(3):
        box.receiver.negative_acknowledge(await box.take(1), 0.1)
    [record] = await box.take(1)
    assert record.redelivery_count == 3
    dead = await kit.box(SubscriptionType.SHARED, f"{kit.topic}-sub-DLQ", name="d")
    strict = await kit.box(dead_letter=DeadLetterPolicy(max_redeliver_count=1))
    box.receiver.negative_acknowledge([record], 0.1)
    await box.receiver.aclose(HANG)
    with anyio.fail_after(HANG):
        while not (letters := dead.receiver.receive(1)):
            assert strict.receiver.receive(1) == []
            await anyio.sleep(0.02)
    assert [one.payload for one in letters] == [b"x"]


async def test_where_selectors_reject_only_failures_here_count(kit: Kit) -> None:
    """Other processes may have rejected it as often as they like."""
    policy = DeadLetterPolicy(max_redeliver_count=1)
    other = await kit.box()
    sender, outcomes = await kit.sender(), Outcomes()
    sender.send(OutgoingRecord(b"x", {}), outcomes)
    for _ in range(3):
        other.receiver.negative_acknowledge(await other.take(1), 0.1, counted=False)
    [record] = await other.take(1)
    subscription_records._all.clear()  # as in a process that knows of none of it
    box = await kit.box(dead_letter=policy, selective=True)
    other.receiver.negative_acknowledge([record], 0.1, counted=False)
    await other.receiver.aclose(HANG)
    dead = await kit.box(SubscriptionType.SHARED, f"{kit.topic}-sub-DLQ", name="d")
    for _ in range(2):
        box.receiver.negative_acknowledge(await box.take(1), 0.1)
    assert len(await dead.take(1)) == 1
    await box.nothing()


async def fail_twice(session: jmsaio.Session, queue: str) -> None:
    """Send a message to a queue, and let it become a dead letter."""
    await (await session.create_producer(session.create_queue(queue))).send("x")
    await fail(session, queue)


async def fail(session: jmsaio.Session, queue: str) -> None:
    """Fail on a message until it is a dead letter."""
    wanted = session.create_queue(f"{queue}?consumerConfig.deadLetterPolicy.maxRedeliverCount=1")
    async with session.create_consumer(wanted) as consumer:
        for _ in range(2):
            with pytest.raises(ValueError, match=r"^no$"):
                async with consumer.process(timeout=HANG):
                    raise ValueError("no")


async def unload_and_trim(broker: TestBroker, topic: str) -> None:
    """Once the topic has a message, have the broker delete what no subscription keeps."""
    async with httpx.AsyncClient(base_url=f"{broker.web_service_url}/admin/v2", timeout=30) as client:
        path = f"/persistent/public/default/{topic}"
        while (await client.get(f"{path}/stats")).json().get("msgInCounter", 0) == 0:
            await anyio.sleep(0.1)
        (await client.put(f"{path}/unload")).raise_for_status()
        while (await client.post(f"{path}/trim")).is_error:  # until the broker has loaded it again
            await anyio.sleep(0.1)


async def refused(*given: object) -> bool:
    raise AdminError("create subscription: no", 405)


@pytest.mark.parametrize("rest", ["works", "refuses", "is off"])
async def test_a_letter_is_kept_for_the_queue_of_its_topic(
    pulsar_broker: TestBroker, monkeypatch: pytest.MonkeyPatch, rest: str
) -> None:
    """Nobody has ever read that queue, and the topic's ledgers are closed and deleted as far as possible."""
    queue = f"kept-{uuid.uuid4()}"
    dead = f"{queue}-jms-queue-DLQ"
    with anyio.fail_after(2 * HANG):
        async with (
            jmsaio.connect(pulsar_broker.url, use_pulsar_admin=rest != "is off") as connection,
            connection.create_session() as session,
        ):
            producer = await session.create_producer(session.create_queue(queue))
            await producer.send("x")
            if rest == "refuses":  # from now on: the queue itself has its subscription
                monkeypatch.setattr(RestAdmin, "create_subscription", refused)
            await fail(session, queue)
            await unload_and_trim(pulsar_broker, dead)
            async with session.create_consumer(session.create_queue(dead)) as consumer:
                assert await consumer.receive_body(str, timeout=HANG) == "x"


async def test_with_precreation_off_a_letter_is_not_kept(pulsar_broker: TestBroker) -> None:
    """As for every queue."""
    queue = f"free-{uuid.uuid4()}"
    with anyio.fail_after(2 * HANG):
        async with (
            jmsaio.connect(pulsar_broker.url, precreate_queue_subscription=False) as connection,
            connection.create_session() as session,
        ):
            await fail_twice(session, queue)
            await unload_and_trim(pulsar_broker, f"{queue}-jms-queue-DLQ")
            async with httpx.AsyncClient(base_url=pulsar_broker.web_service_url, timeout=30) as client:
                path = f"/admin/v2/persistent/public/default/{queue}-jms-queue-DLQ/subscriptions"
                assert (await client.get(path)).json() == []


async def test_without_the_right_to_subscribe_there_is_one_warning(
    secure_broker: SecureBroker, caplog: pytest.LogCaptureFixture
) -> None:
    """The letters are stored all the same."""
    queue = f"forbidden-{uuid.uuid4()}"
    dead = f"{queue}-jms-queue-DLQ"
    headers = {"Authorization": f"Bearer {secure_broker.token('admin')}"}
    base = f"{secure_broker.web_service_url}/admin/v2/persistent/public/default"
    async with httpx.AsyncClient(base_url=base, headers=headers, timeout=30) as client:
        for topic, rights in ((queue, ["produce", "consume"]), (dead, ["produce"])):
            (await client.put(f"/{topic}")).raise_for_status()
            (await client.post(f"/{topic}/permissions/guest", json=rights)).raise_for_status()
        options = secure_broker.options(params=secure_broker.token("guest"))
        with caplog.at_level(logging.WARNING, "jmsaio"), anyio.fail_after(2 * HANG):
            async with jmsaio.connect(options) as connection, connection.create_session() as session:
                for _ in range(2):
                    await fail_twice(session, queue)
            while (await client.get(f"/{dead}/stats")).json()["msgInCounter"] < 2:
                await anyio.sleep(0.1)
    (warning,) = [each.message for each in caplog.records if dead in each.message]
    assert "no right" in warning and "deletes the dead letters" in warning


async def test_an_outdated_sender_is_replaced_and_the_letters_kept_again() -> None:
    """Its topic might have been deleted meanwhile, with the subscription that keeps the letters."""
    with embedded_broker() as broker:
        harness = await Harness.start(load(broker.url))
        kept, moved, transport, topic = list[str](), list[bool](), harness.transport, f"{harness.topic()}-DLQ"

        async def open_receiver(wanted: Subscription, wake: Wake) -> Receiver:
            kept.extend(wanted.topics)
            return await transport.open_receiver(wanted, wake)

        policy = DeadLetterPolicy(max_redeliver_count=1, dead_letter_topic=topic, initial_subscription_name="keep")
        subscriptions = LetterSubscriptions(load(broker.url), None, open_receiver)
        letters = DeadLetters(policy, "sub", transport.open_sender, subscriptions)
        for _ in range(2):
            letters.put([(cast("PulsarRecord", Record()), 1)], lambda _, stored: moved.append(stored))
            await anyio.wait_all_tasks_blocked()
            assert await (await harness.inbox(topic, name="keep")).consume(1) == [""]
            await harness.admin.delete_topic(topic, force=True)
        await letters.aclose(HANG)
        assert (kept, moved) == ([topic] * 2, [True] * 2)
        await harness.stop()
