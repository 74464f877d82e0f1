"""Messages that are damaged between a real broker and its consumer: they are delivered all the same, or told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import anyio
import attrs
import pytest

from jmsaio.config import ConsumerConfig, ProducerConfig, load
from jmsaio.errors import TransportError
from jmsaio.model.wire import ReceivedRecord, WireId
from jmsaio.testing import Command, FaultProxy, Part
from jmsaio.transport.base import LinkChange, ReaderOptions, SubscriptionType
from jmsaio.transport.pulsar import open_transport
from jmsaio.transport.pulsar.native.binding.bridge import Bridge
from jmsaio.transport.pulsar.native.binding.native_log import Damage
from jmsaio.transport.pulsar.native.consumers import rereading
from jmsaio.transport.pulsar.native.consumers.rereading import Rereading
from tests.kit.records import texts
from tests.support.broker import TestBroker
from tests.transport.pulsar.conftest import HANG, Box, Kit, new_topic, send

SHARED, EXCLUSIVE = SubscriptionType.SHARED, SubscriptionType.EXCLUSIVE


@attrs.define
class Line:
    """A kit whose transport goes through the proxy, another beside it, and what is told of the former's link."""

    proxy: FaultProxy
    kit: Kit
    direct: Kit
    told: list[LinkChange] = attrs.field(factory=list)

    async def send(self, count: int, batch: int, topic: str = "") -> list[str]:
        """Send as many numbers, in batches of this size, beside the proxy; a slow machine does not divide them."""
        config = ProducerConfig(
            batching_enabled=batch > 1, batching_max_messages=max(2, batch), batching_max_publish_delay=5
        )
        sender = await self.direct.sender(topic or self.kit.topic, config=config)
        numbers = [str(number) for number in range(count)]
        assert (await send(sender, *numbers)).failures == []
        return numbers

    async def losses(self, count: int) -> list[str]:
        """What was told, once there is so much of it."""
        with anyio.fail_after(HANG):
            while len(self.told) < count:
                await anyio.sleep(0.05)
        assert all(isinstance(change.error, TransportError) for change in self.told)
        return [change.text for change in self.told]


@pytest.fixture
async def line(pulsar_broker: TestBroker, kit: Kit) -> AsyncIterator[Line]:
    async with FaultProxy.of(pulsar_broker.service_url) as proxy:
        transport = await open_transport(load(proxy.url, web_service_url=pulsar_broker.web_service_url))
        line = Line(proxy, Kit(transport, new_topic()), kit)
        transport.link_listeners.add(line.told.append)
        yield line
        await transport.aclose(10)


async def take_all(box: Box, numbers: list[str], seconds: float = 60) -> list[ReceivedRecord]:
    """Take and acknowledge until all numbers have come."""
    missing, taken = set(numbers), []
    with anyio.fail_after(seconds):
        while missing:
            records = await box.take(1, seconds)
            records += box.receiver.receive(500)
            box.receiver.acknowledge(records)
            missing.difference_update(texts(records))
            taken += records
    return taken


@pytest.mark.parametrize("kind", SubscriptionType)
@pytest.mark.parametrize("batch", [1, 100])
@pytest.mark.parametrize("part", [Part.PAYLOAD, Part.METADATA, Part.CHECKSUM])
async def test_a_damaged_message_is_delivered(line: Line, kind: SubscriptionType, batch: int, part: Part) -> None:
    """All of its batch comes, once, marked as redelivered, and nothing is left behind."""
    box = await line.kit.box(kind)
    fault = line.proxy.flip(Command.MESSAGE, part)
    numbers = await line.send(3 * batch, batch)
    taken = await take_all(box, numbers)
    assert fault.hits == 1
    assert sorted(texts(taken), key=int) == numbers
    damaged = min((one.message_id.ledger, one.message_id.entry) for one in taken)  # a busy sender divides its batches
    entry = [one for one in taken if (one.message_id.ledger, one.message_id.entry) == damaged]
    assert [one for one in entry if not one.redelivery_count] == []
    await box.receiver.settle(HANG, receipt=True)
    await box.receiver.aclose(HANG)
    await (await line.kit.box(kind)).nothing()
    assert line.told == []


@pytest.mark.parametrize("kind", [SHARED, EXCLUSIVE])
async def test_a_damaged_batch_does_not_stop_the_consumer(line: Line, kind: SubscriptionType) -> None:
    """pulsar-client gives one permit back for the whole batch: without being opened anew it would get no more."""
    box = await line.kit.box(kind, receiver_queue_size=100)
    line.proxy.flip(Command.MESSAGE)
    numbers = await line.send(1000, 100)
    await take_all(box, numbers)


async def test_it_is_delivered_to_a_consumer_that_holds_others(line: Line) -> None:
    """What the application holds does not keep the consumer from being opened anew, and comes not twice."""
    box = await line.kit.box(receiver_queue_size=100)
    held = await line.send(3, 1)
    records = await box.take(3)
    line.proxy.flip(Command.MESSAGE)
    numbers = await line.send(1000, 100)
    taken = await take_all(box, numbers)
    box.receiver.acknowledge(records)
    await box.receiver.settle(HANG)
    await box.receiver.aclose(HANG)
    await (await line.kit.box()).nothing()
    assert len(taken) == 1000 and texts(records) == held


@pytest.mark.parametrize("kind", [SHARED, EXCLUSIVE])
async def test_the_connection_breaks_while_the_consumer_is_opened_anew(line: Line, kind: SubscriptionType) -> None:
    """Closing the old one has no good answer then; the new one is opened all the same."""
    box = await line.kit.box(kind)
    line.proxy.stall()
    box.receiver.renew()
    box.receiver.receive(1)
    await anyio.sleep(0.5)
    line.proxy.reset()
    line.proxy.resume()
    numbers = await line.send(20, 10)
    await take_all(box, numbers)


async def test_a_partition_of_a_topic(line: Line) -> None:
    """The ids are those of the partition."""
    assert line.direct.transport.admin is not None
    await line.direct.transport.admin.create_topic(line.kit.topic, partitions=2)
    box = await line.kit.box()
    line.proxy.flip(Command.MESSAGE, times=2)
    numbers = await line.send(20, 10)
    taken = await take_all(box, numbers)
    again = [one for one in taken if one.redelivery_count]
    assert again
    assert {one.topic.rpartition("-")[2] == str(one.message_id.partition) for one in taken} == {True}


async def test_a_damaged_record_of_a_pattern_is_read_again_from_its_topic(line: Line) -> None:
    topic = new_topic("many")
    await send(await line.direct.sender(topic), "first")
    box = await line.kit.box(pattern=f"{topic}.*")
    box.receiver.acknowledge(await box.take(1))
    line.proxy.flip(Command.MESSAGE)
    numbers = await line.send(20, 10, topic)
    taken = await take_all(box, numbers)
    assert {one.topic for one in taken} == {topic}


@pytest.mark.parametrize("kind", [SHARED, EXCLUSIVE])
async def test_given_back_it_comes_again(line: Line, kind: SubscriptionType) -> None:
    """The broker would not send it again, so it comes from here, also after the receiver has stopped meanwhile."""
    box = await line.kit.box(kind)
    line.proxy.flip(Command.MESSAGE)
    await line.send(1, 1)
    [record] = await box.take(1)
    box.receiver.negative_acknowledge([record], 0.0)
    [record] = await box.take(1)
    assert record.redelivery_count == 2
    box.receiver.negative_acknowledge([record], 60.0 if kind is SHARED else 0.0)
    await box.receiver.stop(HANG)
    await box.receiver.resume(HANG)
    [record] = await box.take(1)
    assert texts([record]) == ["0"]
    box.receiver.acknowledge([record])
    await box.receiver.aclose(HANG)
    assert line.told == []


async def test_what_is_set_aside_keeps_its_payload(line: Line) -> None:
    """The payload of other records comes again from the broker."""
    box = await line.kit.box()
    line.proxy.flip(Command.MESSAGE)
    await line.send(1, 1)
    records = await box.take(1)
    box.receiver.set_aside(records)
    box.receiver.negative_acknowledge(records, 0.0, counted=False)
    assert texts(await box.take(1)) == ["0"]


async def test_what_was_not_acknowledged_is_told_when_the_receiver_closes(line: Line) -> None:
    """Nobody else gets it."""
    box = await line.kit.box()
    line.proxy.flip(Command.MESSAGE)
    await line.send(10, 10)
    records = await box.take(10)
    box.receiver.acknowledge(records[:4])
    await box.receiver.aclose(HANG)
    [text] = await line.losses(1)
    place = f"{records[0].message_id.ledger}:{records[0].message_id.entry}"
    assert f"{place} of {line.kit.topic} " in text and "subscription sub," in text and "6 of its messages" in text


async def test_what_can_not_be_read_is_told(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every frame is damaged, those to the reader, too; the next one after that arrives."""
    monkeypatch.setattr(rereading, "TIMEOUT", 2.0)
    box = await line.kit.box()
    line.proxy.flip(Command.MESSAGE, times=None)
    await line.send(1, 1)
    [text] = await line.losses(1)
    assert line.kit.topic in text and "within 2 s" in text
    line.proxy.clear()
    await line.send(1, 1)
    assert len(await box.take(1)) == 1


async def test_what_the_topic_has_no_more_is_told(line: Line) -> None:
    """A reader that starts there begins with the next one."""
    await line.kit.box()
    await line.send(1, 1)
    assert rereading.reread(Damage(line.kit.topic, "sub", 0, 0))
    [text] = await line.losses(1)
    assert f"0:0 of {line.kit.topic} " in text and "no longer has it" in text


async def test_a_topic_that_is_not_persistent(line: Line) -> None:
    """Nothing is stored of it: that is told, and what comes later is delivered."""
    topic = new_topic().replace("persistent://", "non-persistent://")
    box = await line.kit.box(SHARED, topic, receiver_queue_size=100)
    line.proxy.flip(Command.MESSAGE)
    sender = await line.direct.sender(topic)
    await send(sender, "lost")
    [text] = await line.losses(1)
    assert f"of {topic} " in text and "not persistent" in text
    with anyio.fail_after(HANG):
        while not (found := box.receiver.receive(1)):
            await send(sender, "later")
            await anyio.sleep(0.1)
    assert texts(found) == ["later"]


@pytest.mark.timeout(200)
@pytest.mark.parametrize("truncated", [True, False])
async def test_a_truncated_or_garbled_frame(line: Line, truncated: bool) -> None:
    """pulsar-client connects anew, at once or when nothing makes sense any more, and what is missing comes again."""
    box = await line.kit.box()
    fault = line.proxy.cut(Command.MESSAGE) if truncated else line.proxy.flip(Command.MESSAGE, Part.SIZE)
    numbers = await line.send(5000, 100)
    await take_all(box, numbers, 150)
    assert fault.hits == 1


async def test_a_receiver_that_stopped_leaves_it_to_another_one(line: Line) -> None:
    """What its application holds keeps it open, but it delivers nothing."""
    stopped = await line.kit.box()
    await line.send(1, 1)
    await stopped.take(1)
    await stopped.receiver.stop(HANG)
    other = await line.kit.box()
    await other.nothing()
    fault = line.proxy.flip(Command.MESSAGE)
    await send(await line.direct.sender(line.kit.topic), "damaged")
    assert texts(await other.take(1)) == ["damaged"]
    assert fault.hits == 1


@attrs.define(eq=False)
class Receiver:
    """A receiver of one subscription, and what it was asked for."""

    topic: str
    renewed: int = 0
    stopped: bool = False
    closed: bool = False

    def receives(self, damage: Damage) -> bool:
        return damage.topic == self.topic and damage.subscription == "s" and not self.closed

    def renew(self) -> None:
        self.renewed += 1

    def deliver_again(self, topic: str, natives: list[Any]) -> None:
        raise AssertionError(topic)

    def unsettled(self, ledger: int, entry: int) -> int:
        return 0

    def close(self, reading: Rereading) -> None:
        self.closed = True
        reading.closed(cast(Any, self))


async def no_reader(options: ReaderOptions) -> Any:
    raise TransportError("no reader")


def part(
    broker: str, topic: str, told: list[LinkChange], open_reader: Callable[[ReaderOptions], Any] = no_reader
) -> tuple[Rereading, Receiver]:
    def tell(change: LinkChange) -> bool:
        told.append(change)
        return True

    receiver = Receiver(topic)
    return Rereading(Bridge(), broker, lambda: cast(Any, [receiver]), open_reader, tell), receiver


@pytest.mark.parametrize("brokers", [["pulsar://a", "pulsar://a"], ["pulsar://a", "pulsar://b"]])
async def test_several_transports_of_a_process(brokers: list[str]) -> None:
    """One of them reads; where they have different brokers none does, for it may be the wrong one's entry."""
    topic, told = new_topic(), [list[LinkChange](), list[LinkChange]()]
    parts = [part(broker, topic, each) for broker, each in zip(brokers, told, strict=True)]
    assert not rereading.reread(Damage(new_topic(), "s", 1, 2))
    assert rereading.reread(Damage(topic, "s", 1, 2))
    await asyncio.sleep(0.1)
    assert [receiver.renewed for _, receiver in parts] == [1, 1]
    texts = [change.text for each in told for change in each]
    if brokers[0] == brokers[1]:
        assert ["no reader" in text for text in texts] == [True]
    else:
        assert [" pulsar://a, pulsar://b" in text for text in texts] == [True, True]
    for each, _ in parts:
        await each.aclose(HANG)


async def test_what_is_not_read_when_the_transport_closes_is_told() -> None:
    told: list[LinkChange] = []

    async def open_reader(options: ReaderOptions) -> Any:
        await asyncio.sleep(HANG)

    topic = new_topic()
    reading, _ = part("pulsar://a", topic, told, open_reader)
    reading.begin(Damage(topic, "s", 1, 2))
    await asyncio.sleep(0.01)
    reading.begin(Damage(topic, "s", 1, 3))
    await reading.aclose(HANG)
    assert ["closed before it was read again" in change.text for change in told] == [True, True]
    assert "1:2" in told[0].text and "1:3" in told[1].text


class Dead:
    """A reader on a dead link: it reads nothing, and its closing does not end before ``link`` does."""

    def __init__(self) -> None:
        self.link = asyncio.Event()
        self.opened: list[ReaderOptions] = []

    async def open(self, options: ReaderOptions) -> Any:
        self.opened.append(options)
        return self

    async def read(self, limit: int, timeout: float) -> list[ReceivedRecord]:
        await asyncio.sleep(HANG)
        return []

    async def aclose(self, timeout: float) -> None:
        await self.link.wait()


async def test_what_nobody_can_get_any_more_is_told_when_the_consumer_closes() -> None:
    """With the consumer, before anyone stops listening; another consumer of the subscription takes over the reading."""
    topic, told, reader = new_topic(), list[LinkChange](), Dead()
    reading, first = part("pulsar://a", topic, told, reader.open)
    second = Receiver(topic)
    reading.receivers = lambda: cast(Any, [first, second])
    reading.begin(Damage(topic, "s", 1, 2))
    await asyncio.sleep(0.01)
    first.close(reading)
    assert told == []
    second.close(reading)
    assert ["1:2" in change.text and "its consumer was closed" in change.text for change in told] == [True]
    reading.begin(Damage(topic, "s", 1, 3))
    assert ["1:3" in change.text for change in told] == [False, True]
    reader.link.set()
    await reading.aclose(HANG)
    assert len(told) == 2


async def test_closing_does_not_wait_for_a_reader_on_a_dead_link() -> None:
    topic, told, reader = new_topic(), list[LinkChange](), Dead()
    reading, _ = part("pulsar://a", topic, told, reader.open)
    reading.begin(Damage(topic, "s", 1, 2))
    await asyncio.sleep(0.01)
    with anyio.fail_after(HANG):
        await reading.aclose(0.01)
    assert len(told) == 1
    reader.link.set()


async def test_what_the_reader_drops_itself_is_no_loss() -> None:
    """It reads once more. What other readers of the topic drop is told, also while it reads."""
    topic, reader = new_topic(), Dead()
    reading, _ = part("pulsar://a", topic, [], reader.open)
    reading.begin(Damage(topic, "s", 1, 2))
    await asyncio.sleep(0.01)
    [options] = reader.opened
    own = Damage(topic, f"{options.prefix}-reader-abc", 1, 2)
    assert rereading.reread(own)
    for name in ("reader-abc", "other"):
        assert not rereading.reread(attrs.evolve(own, subscription=name))
    reader.link.set()
    await reading.aclose(HANG)


async def test_the_names_of_readers_subscriptions_tell_whose_they_are(kit: Kit) -> None:
    sender = await kit.sender()
    await send(sender, "x")
    for prefix in ("", "jmsaio-rereading"):
        reader = await kit.transport.open_reader(ReaderOptions(kit.topic, ConsumerConfig(), prefix=prefix))
        assert kit.transport.admin is not None
        [name] = (await kit.transport.admin.stats(kit.topic)).subscriptions
        assert name.startswith(f"{prefix}-reader-" if prefix else "reader-")
        await reader.aclose(HANG)


async def test_a_topic_is_asked_several_times_before_it_counts_as_without_the_record() -> None:
    told: list[LinkChange] = []
    opened: list[ReaderOptions] = []

    class Empty:
        async def read(self, limit: int, timeout: float) -> list[ReceivedRecord]:
            return []

        async def aclose(self, timeout: float) -> None:
            pass

    async def open_reader(options: ReaderOptions) -> Any:
        opened.append(options)
        return Empty()

    topic = new_topic()
    rereads, _ = part("pulsar://a", topic, told, open_reader)
    rereads.begin(Damage(topic, "s", 1, 2))
    with anyio.fail_after(HANG):
        while not told:
            await asyncio.sleep(0.01)
    await rereads.aclose(HANG)
    assert [options.start for options in opened] == [WireId(1, 2)] * rereading.ATTEMPTS
    assert rereading.ATTEMPTS > 1
    assert "the topic no longer has it" in told[0].text
