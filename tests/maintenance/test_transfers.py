"""A request is carried out for all topics of a destination, and its results are combined.

A copy that was interrupted continues: what was recorded as copied is not copied again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, cast

import attrs
import pytest

from jmsaio.config import load
from jmsaio.errors import BrokerUnavailableError, InvalidDestinationError
from jmsaio.maintenance import transfer as transferring, transfers as module
from jmsaio.maintenance.dead_letters import require_admin
from jmsaio.maintenance.transfer import (
    Transfer,
    TransferProgress,
    TransferRange,
    TransferRequest,
    TransferResult,
    transfer_range,
)
from jmsaio.maintenance.transfers import CopyCursors, describe, plan_transfer, transfer_all
from jmsaio.model.destinations import Queue
from jmsaio.model.schema import Schema
from jmsaio.model.topic_names import COPY_PREFIX, JOB_PREFIX, SUBSCRIPTION_PREFIX
from jmsaio.model.wire import ReceivedRecord
from jmsaio.testing import embedded_broker
from jmsaio.transport.base import (
    FILTERING,
    SELECTOR,
    Receiver,
    StartPosition,
    Subscription,
    SubscriptionType,
    Transport,
)
from jmsaio.transport.registry import connected
from tests.kit.records import ORDER, texts
from tests.maintenance.letters import QUEUE, Letters, message
from tests.transport.contract.harness import GUARD

LATER = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": "string", "default": "-"}]}
CHUNKED: dict[str, Any] = {"batching_enabled": False, "chunking_enabled": True}


def transfer_of(letters: Letters, transfer: Transfer, source: str, target: str) -> Any:
    """Carry out a transfer of a queue's messages."""
    request = TransferRequest(
        destination=Queue(source), to=Queue(target), transfer=transfer, patience=10.0, max_redrives=3
    )  # fmt: skip
    return transfer_all(letters.harness.transport, letters.harness.configuration, request)


@pytest.mark.parametrize("transfer", [Transfer.REDRIVE, Transfer.MOVE, Transfer.COPY])
async def test_each_message_keeps_its_schema_whatever_its_size(
    letters: Letters, transfer: Transfer, broker_kind: str
) -> None:
    """The target has the versions in the same order, although the last one is needed first. No option is set."""
    large = 6_000_000 if broker_kind == "pulsar" else 1_000_000  # only Pulsar has chunks
    harness, source, target = letters.harness, letters.harness.topic("typed"), letters.harness.topic("target")
    await harness.admin.create_subscription(source, QUEUE, StartPosition.EARLIEST)
    schemas = {"first": Schema("AVRO", ORDER), "later": Schema("AVRO", LATER)}
    for schema in schemas.values():
        await (await harness.sender(source, schema=schema)).aclose(GUARD)
    for text in ("plain", "later", "first"):
        sender = await harness.sender(source, schema=schemas.get(text), **CHUNKED)
        await harness.send(sender, message(text), message(text.ljust(large, "x")))
        await sender.aclose(GUARD)
    (done,) = await transfer_of(letters, transfer, source, target)
    assert (done.sent, done.errors, done.complete) == ({target: 6}, (), True)
    found = [
        (text.rstrip("x"), len(text), record.schema_version)
        for record in await letters.waiting(target)
        for text in texts([record])
    ]
    versions = {"plain": None, "first": bytes(8), "later": (1).to_bytes(8, "big")}
    assert sorted(found) == [
        (text, size, version) for text, version in sorted(versions.items()) for size in (len(text), large)
    ]
    assert await harness.admin.schemas(target) == await harness.admin.schemas(source)


@pytest.mark.parametrize("transfer", [Transfer.REDRIVE, Transfer.MOVE, Transfer.COPY])
async def test_a_target_that_refuses_a_schema_is_told_before_anything_is_sent(
    letters: Letters, transfer: Transfer
) -> None:
    harness, source, target = letters.harness, letters.harness.topic("typed"), letters.harness.topic("target")
    for topic in (source, target):
        await harness.admin.create_subscription(topic, QUEUE, StartPosition.EARLIEST)
    await (await harness.sender(target, schema=Schema("STRING"))).aclose(GUARD)
    await harness.send(await harness.sender(source), message("plain"))
    await harness.send(await harness.sender(source, schema=Schema("AVRO", ORDER)), message("typed"))
    with pytest.raises(InvalidDestinationError, match=f"{target} can't take the messages of {source} with their"):
        await transfer_of(letters, transfer, source, target)
    assert texts(await letters.waiting(source)) == ["plain", "typed"]
    assert await letters.waiting(target) == []


@pytest.mark.parametrize("dry_run", [True, False])
async def test_progress_counts_what_is_received_and_what_is_sent(letters: Letters, dry_run: bool) -> None:
    await letters.put(*(message(str(number), region="EU" if number < 3 else "US") for number in range(5)))
    seen = []
    progress = TransferProgress(lambda now: seen.append((now.total, now.seen, now.sent)))
    request = TransferRequest(destination=Queue(letters.dead), selector="region = 'EU'", dry_run=dry_run, patience=3.0)
    await transfer_all(letters.harness.transport, letters.harness.configuration, request, progress)
    assert (progress.total, progress.seen, progress.sent) == (5, 5, 3)
    assert (5, 5, 3) in seen


async def purge(letters: Letters, destination: str, **changes: Any) -> int:
    """Purge; return the number of deleted messages."""
    request = TransferRequest(destination=Queue(destination), transfer=Transfer.PURGE, patience=1.0, **changes)
    outcomes = await transfer_all(letters.harness.transport, letters.harness.configuration, request)
    assert all(one.complete and not one.errors for one in outcomes), outcomes
    return sum(sum(one.sent.values()) for one in outcomes)


@pytest.mark.parametrize("type", [SubscriptionType.SHARED, SubscriptionType.EXCLUSIVE, SubscriptionType.FAILOVER])
async def test_a_purge_removes_what_a_consumer_holds(letters: Letters, type: SubscriptionType) -> None:
    """The consumer acknowledges what it holds, receives later messages, and nothing is redelivered when it closes."""
    topic, admin = letters.harness.topic("held"), letters.harness.admin
    consumer = await letters.harness.inbox(topic, name="sub", type=type, ack_receipt_enabled=True)
    await letters.harness.fill(topic, *(message(text) for text in "abcde"))
    held = await consumer.take(5)
    assert await purge(letters, f"{topic}:sub", dry_run=True) == 5
    assert await admin.backlog(topic, "sub") == 5
    assert await purge(letters, f"{topic}:sub") == 5
    assert await admin.backlog(topic, "sub") == 0
    consumer.receiver.acknowledge(held[:2])
    await consumer.receiver.settle(GUARD, receipt=True)
    await letters.harness.fill(topic, message("later"))
    (later,) = await consumer.take(1)
    assert texts([later]) == ["later"]
    consumer.receiver.acknowledge([later])
    await consumer.receiver.settle(GUARD, receipt=True)
    await consumer.close()
    again = await letters.harness.inbox(topic, name="sub", type=type)
    assert await again.rest(1.0) == []
    assert await admin.backlog(topic, "sub") == 0
    await again.close()


async def test_a_purge_with_a_selector_leaves_what_a_consumer_holds(letters: Letters) -> None:
    await letters.put(message("a", n="1"), message("b", n="2"))
    consumer = await letters.inbox(letters.dead)
    await consumer.take(2)
    request = TransferRequest(
        destination=Queue(letters.dead), transfer=Transfer.PURGE, patience=1.0, selector="n = '1'"
    )  # fmt: skip
    (done,) = await transfer_all(letters.harness.transport, letters.harness.configuration, request)
    assert (done.sent, done.complete) == ({}, False)
    await consumer.close()
    assert sorted(texts(await letters.waiting(letters.dead))) == ["a", "b"]


async def test_a_purge_keeps_what_is_sent_after_the_start(letters: Letters, monkeypatch: pytest.MonkeyPatch) -> None:
    await letters.put("a")

    async def plan(*arguments: Any) -> list[TransferRange]:
        ranges = await plan_transfer(*arguments)
        await letters.put("later")
        return ranges

    monkeypatch.setattr(module, "plan_transfer", plan)
    assert await purge(letters, letters.dead) == 1
    assert texts(await letters.waiting(letters.dead)) == ["later"]


async def test_each_partition_is_purged(letters: Letters) -> None:
    topic = letters.harness.topic("parted")
    await letters.harness.admin.create_topic(topic, 2)
    await letters.harness.admin.create_subscription(topic, QUEUE, StartPosition.EARLIEST)
    for index in range(2):
        await letters.harness.fill(f"{topic}-partition-{index}", *(message(text) for text in "ab"))
    assert await purge(letters, topic) == 4
    assert await letters.harness.admin.backlog(topic, QUEUE) == 0
    assert await purge(letters, topic) == 0


def test_a_summary_adds_up_what_became_of_each_topic() -> None:
    one = TransferResult(topic="a", sent=Counter(t=2), not_selected=1, left=Counter(failed=1), complete=True)
    one.report("why")
    other = attrs.evolve(one, topic="b", sent=Counter(t=1, s=4), not_selected=0, left=Counter(failed=2), complete=False)
    request = TransferRequest(destination=Queue("a"))
    found = describe("move", request, [one, other], 0.0)
    assert found.pop("seconds") > 0
    assert found == {
        "job": "move", "dry_run": False, "destination": "queue://a",
        "sent": 7, "not_selected": 1, "targets": {"s": 4, "t": 3}, "left": {"failed": 3}, "unseen": ["b"],
        "errors": ["why"],
    }  # fmt: skip


@attrs.define(eq=False)
class Copying:
    """A queue and the queue that it is copied to."""

    letters: Letters
    target: str

    @classmethod
    async def of(cls, letters: Letters, *sent: Any) -> Copying:
        """Send messages, one to an entry, to the queue."""
        sender = await letters.harness.sender(letters.topic, batching_enabled=False)
        await letters.harness.send(sender, *[message(one) if isinstance(one, str) else one for one in sent])
        await sender.aclose(GUARD)
        return cls(letters, letters.harness.topic("target"))

    def request(self, **changes: Any) -> TransferRequest:
        """The copy."""
        return TransferRequest(**{
            "destination": Queue(self.letters.topic), "to": Queue(self.target), "transfer": Transfer.COPY,
            "patience": 3.0, **changes,
        })  # fmt: skip

    async def copy(self, **changes: Any) -> int:
        """Copy, or continue; return the number of copies."""
        outcomes = await self.outcomes(**changes)
        assert all(one.complete and not one.errors for one in outcomes), outcomes
        return sum(sum(one.sent.values()) for one in outcomes)

    async def outcomes(self, **changes: Any) -> list[TransferResult]:
        """Copy, or continue."""
        harness = self.letters.harness
        return await transfer_all(harness.transport, harness.configuration, self.request(**changes))

    async def cursors(self, **changes: Any) -> CopyCursors:
        """The copy's subscriptions."""
        harness = self.letters.harness
        return await CopyCursors.of(harness.transport, harness.configuration, self.request(**changes))

    async def copies(self) -> Counter[str]:
        """How often each message is in the target."""
        reader, found = await self.letters.harness.reader(self.target), list[ReceivedRecord]()
        while not await reader.at_end():
            found += await reader.read(100, GUARD)
        await reader.aclose(GUARD)
        return Counter(texts(found))

    async def unrecorded(self) -> set[str]:
        """The messages that are not recorded as copied; all of them if no copy has begun."""
        name, topic, admin = (await self.cursors()).name, self.letters.topic, self.letters.harness.admin
        cursor = await admin.cursor(topic, name) if name in (await admin.stats(topic)).subscriptions else None
        waiting = await self.letters.waiting()
        return set(texts([one for one in waiting if cursor is None or not cursor.is_acknowledged(one.message_id)]))

    async def subscriptions(self, topic: str | None = None) -> set[str]:
        """Names of the subscriptions of the queue's topic."""
        return set((await self.letters.harness.admin.stats(topic or self.letters.topic)).subscriptions)


@attrs.define
class BreakingReceiver:
    """Gives some records, then the broker is lost."""

    inner: Receiver
    left: int

    def receive(self, count: int) -> Sequence[ReceivedRecord]:
        if not self.left:
            raise BrokerUnavailableError("the broker is gone")
        records = self.inner.receive(min(count, self.left))
        self.left -= len(records)
        return records

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@attrs.define
class BreakingTransport:
    """Loses the broker after some records of topics whose name ends with a text, but only after some receivers."""

    inner: Transport
    left: int
    ending: str
    whole: int

    async def open_receiver(self, subscription: Subscription, wake: Callable[[], None]) -> Receiver:
        receiver = await self.inner.open_receiver(subscription, wake)
        if not subscription.topics[0].endswith(self.ending):
            return receiver
        self.whole -= 1
        return receiver if self.whole >= 0 else cast("Receiver", BreakingReceiver(receiver, self.left))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


async def interrupt(copying: Copying, left: int, *, ending: str = "", whole: int = 0, **changes: Any) -> int:
    """Copy until the broker is lost after some records; return the number of copies."""
    letters = copying.letters
    transport = cast("Transport", BreakingTransport(letters.harness.transport, left, ending, whole))
    broken = attrs.evolve(letters, harness=attrs.evolve(letters.harness, transport=transport))
    outcomes = await attrs.evolve(copying, letters=broken).outcomes(**changes)
    assert any("the broker is gone" in one.errors for one in outcomes)
    return sum(sum(one.sent.values()) for one in outcomes)


async def test_a_repeated_copy_continues_and_one_after_a_complete_one_starts_again(letters: Letters) -> None:
    copying = await Copying.of(letters, *"abcdef")
    assert await interrupt(copying, 4) == 4
    (name,) = await copying.subscriptions() - {QUEUE}
    assert name == (await copying.cursors()).name
    assert await copying.copy() == 2
    assert await copying.copies() == Counter("abcdef")
    assert await copying.subscriptions() == {QUEUE}
    assert await copying.copy() == 6
    assert await copying.copies() == Counter("abcdef" * 2)
    assert sorted(texts(await letters.waiting())) == list("abcdef")


async def test_a_copy_that_version_0_2_0_began_continues() -> None:
    configuration = load("memory://upgraded")
    request = TransferRequest(destination=Queue("orders"), to=Queue("archive"), transfer=Transfer.COPY)
    async with connected(configuration) as transport:
        await require_admin(transport).create_topic("persistent://public/default/orders")
        for selector, mark in ((None, "156616f2"), ("a = 1", "f198b57c")):
            cursors = await CopyCursors.of(transport, configuration, attrs.evolve(request, selector=selector))
            assert cursors.name == f"jmsaio-copy-archive-{mark}"


#: Steps of the event loop, and seconds: the embedded broker is done before any time passes.
MOMENTS = ((1, 0.0), (3, 0.0), (6, 0.0), (8, 0.0), (12, 0.0), (0, 0.1), (0, 0.3))


async def test_whatever_was_recorded_before_a_cancellation_is_copied_once(
    letters: Letters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transferring, "_AT_ONCE", 5)
    monkeypatch.setattr(transferring, "_IN_FLIGHT", 5)
    sent = [str(number) for number in range(40)]
    copying, in_the_middle = await Copying.of(letters, *sent), 0
    for steps, seconds in MOMENTS:
        copying.target = letters.harness.topic("target")
        work = asyncio.create_task(copying.copy())
        for _ in range(steps):
            await asyncio.sleep(0)
        await asyncio.sleep(seconds)
        work.cancel()
        await asyncio.wait([work])
        unrecorded = await copying.unrecorded()
        in_the_middle += 0 < len(unrecorded) < 40
        assert await copying.copy(patience=GUARD) == len(unrecorded)
        copies, found = await copying.copies(), f"cancelled after {steps} steps and {seconds} s"
        assert set(copies) == set(sent), found
        assert all(count == 1 or (count == 2 and text in unrecorded) for text, count in copies.items()), found
        assert await copying.subscriptions() == {QUEUE}, found
    if letters.harness.capabilities.acknowledges_at_once:  # where the moments are always the same
        assert in_the_middle >= 3


async def test_messages_sent_after_the_first_start_are_not_copied(letters: Letters) -> None:
    copying = await Copying.of(letters, *"abc")
    await interrupt(copying, 1)
    await letters.harness.fill(letters.topic, message("later"))
    assert await copying.copy() == 2
    assert await copying.copies() == Counter("abc")


async def test_what_the_queue_has_acknowledged_is_not_copied_and_what_consumers_hold_is(letters: Letters) -> None:
    await letters.harness.admin.create_subscription(letters.topic, "keeper", StartPosition.EARLIEST)
    copying = await Copying.of(letters, *"abcdef")
    consumer = await letters.harness.inbox(letters.topic, name=QUEUE, ack_receipt_enabled=True)
    records = await consumer.take(6)
    consumer.receiver.acknowledge([one for one in records if one.payload in (b"a", b"c")])
    await consumer.receiver.settle(GUARD, receipt=True)
    assert await copying.copy(dry_run=True) == 4
    assert await copying.copy() == 4
    assert await copying.copies() == Counter("bdef")
    consumer.receiver.acknowledge(records)
    await consumer.receiver.settle(GUARD, receipt=True)
    assert await copying.copy() == 0


async def test_a_selector_is_applied_once_to_each_message(letters: Letters) -> None:
    copying = await Copying.of(letters, *(message(text, n=str(index % 2)) for index, text in enumerate("abcdef")))
    assert await interrupt(copying, 3, selector="n = '0'") == 2
    (rest,) = await copying.outcomes(selector="n = '0'")
    assert (sum(rest.sent.values()), rest.not_selected) == (1, 2)
    assert await copying.copies() == Counter("ace")
    assert await copying.copy() == 6


async def test_a_selector_of_the_queue_applies_to_a_copy(letters: Letters) -> None:
    copying = await Copying.of(letters, message("a", n="0"), message("b", n="1"))
    wanted = {FILTERING: "true", SELECTOR: "n = '1'"}
    await letters.harness.admin.set_subscription_properties(letters.topic, QUEUE, wanted)
    await interrupt(copying, 0)
    (name,) = await copying.subscriptions() - {QUEUE}
    assert (await letters.harness.admin.subscription_properties(letters.topic, name)).items() >= wanted.items()


async def test_a_dry_run_reports_what_is_left_and_changes_nothing(letters: Letters) -> None:
    copying = await Copying.of(letters, *"abcdef")
    assert await copying.copy(dry_run=True) == 6
    assert await copying.subscriptions() == {QUEUE}
    await interrupt(copying, 4)
    assert await copying.copy(dry_run=True) == 2
    assert await copying.copy() == 2


async def test_a_partition_that_is_copied_is_not_copied_again(letters: Letters) -> None:
    topic = letters.harness.topic("parted")
    await letters.harness.admin.create_topic(topic, 2)
    await letters.harness.admin.create_subscription(topic, QUEUE, StartPosition.EARLIEST)
    one, other = (f"{topic}-partition-{index}" for index in range(2))
    for part, sent in ((one, "abc"), (other, "def")):
        await Copying.of(attrs.evolve(letters, topic=part), *sent)
    copying = Copying(attrs.evolve(letters, topic=topic), letters.harness.topic("target"))
    assert await interrupt(copying, 1, ending=other) == 4
    assert await copying.copy() == 2
    assert await copying.copies() == Counter("abcdef")
    assert [await copying.subscriptions(part) for part in (one, other)] == [{QUEUE}, {QUEUE}]


@pytest.mark.parametrize("gone", [0, 1])
async def test_a_copy_that_was_killed_while_its_subscriptions_were_deleted_is_complete(
    letters: Letters, gone: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin, topic = letters.harness.admin, letters.harness.topic("parted")
    await admin.create_topic(topic, 2)
    await admin.create_subscription(topic, QUEUE, StartPosition.EARLIEST)
    for index in range(2):
        await Copying.of(attrs.evolve(letters, topic=f"{topic}-partition-{index}"), "a")
    copying, delete = Copying(attrs.evolve(letters, topic=topic), letters.harness.topic("target")), CopyCursors.delete

    async def killed(cursors: CopyCursors) -> None:
        await delete(attrs.evolve(cursors, admin=cast("Any", FailingAdmin(cursors.admin, gone))))

    with monkeypatch.context() as patch:
        patch.setattr(CopyCursors, "delete", killed)
        with pytest.raises(BrokerUnavailableError):
            await copying.copy()
    assert await copying.copy() == 0
    assert await copying.copies() == Counter({"a": 2})
    assert [await copying.subscriptions(f"{topic}-partition-{index}") for index in range(2)] == [{QUEUE}, {QUEUE}]


@attrs.define
class FailingAdmin:
    """Deletes some subscriptions, then the broker is lost."""

    inner: Any
    left: int

    async def delete_subscription(self, topic: str, name: str) -> None:
        if not self.left:
            raise BrokerUnavailableError("the broker is gone")
        self.left -= 1
        await self.inner.delete_subscription(topic, name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


async def test_a_copy_that_was_killed_before_it_began_begins_again(letters: Letters) -> None:
    copying = await Copying.of(letters, *"abc")
    cursors = await copying.cursors()
    await letters.harness.admin.create_subscription(letters.topic, cursors.name, StartPosition.EARLIEST)
    assert await cursors.find() is None
    assert await copying.copy() == 3
    assert await copying.copies() == Counter("abc")
    assert await copying.subscriptions() == {QUEUE}


async def test_each_request_has_a_subscription_of_its_own_which_no_sweep_deletes(letters: Letters) -> None:
    copying = await Copying.of(letters)
    requests: list[dict[str, Any]] = [{}, {"selector": "n = 1"}, {"to": Queue("other")}]
    names = {(await copying.cursors(**changes)).name for changes in requests}
    assert len(names) == 3
    assert all(name.startswith(COPY_PREFIX) for name in names)
    assert not COPY_PREFIX.startswith((JOB_PREFIX, SUBSCRIPTION_PREFIX))
    assert (await copying.cursors(patience=1.0, dry_run=True)).name in names


async def test_a_copy_never_acknowledges_on_the_subscription_of_the_queue(letters: Letters) -> None:
    await letters.put("a")
    request = TransferRequest(destination=Queue(letters.dead), to=Queue(letters.topic), transfer=Transfer.COPY)
    harness, part = letters.harness, await letters.range()
    with pytest.raises(ValueError, match="no subscription of the copy's own"):
        await transfer_range(harness.transport, harness.configuration, request, part, TransferProgress())


async def test_a_copy_continues_after_an_outage_of_the_broker() -> None:
    with embedded_broker() as broker:
        letters = await Letters.start(load(broker.url))
        copying = await Copying.of(letters, *"abcdef")
        await letters.harness.admin.create_subscription(copying.target, QUEUE, StartPosition.EARLIEST)
        broker.faults.delay_answers(0.5, 6, topic=copying.target)
        work = asyncio.create_task(copying.outcomes())
        await asyncio.sleep(0.1)
        broker.faults.take_down()
        await asyncio.wait([work])
        broker.faults.bring_up()
        unrecorded = await copying.unrecorded()
        assert unrecorded
        assert await copying.copy() == len(unrecorded)
        copies = await copying.copies()
        assert set(copies) == set("abcdef")
        assert max(copies.values()) <= 2
        await letters.stop()
