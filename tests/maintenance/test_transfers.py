"""A request is carried out for all topics of a destination, and its results are combined."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from jmsaio.errors import InvalidDestinationError
from jmsaio.maintenance import transfers as module
from jmsaio.maintenance.transfer import Transfer, TransferRange, TransferRequest, plan_transfer
from jmsaio.maintenance.transferring import TransferProgress, TransferResult
from jmsaio.maintenance.transfers import describe, transfer_all
from jmsaio.model.destinations import Queue
from jmsaio.model.schema import Schema
from jmsaio.transport.base import StartPosition, SubscriptionType
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
    one = TransferResult(topic="a", sent={"t": 2}, not_selected=1, left={"failed": 1}, errors=("why",), complete=True)
    other = attrs.evolve(one, topic="b", sent={"t": 1, "s": 4}, not_selected=0, left={"failed": 2}, complete=False)
    request = TransferRequest(destination=Queue("a"))
    found = describe("move", request, [one, other], 0.0)
    assert found.pop("seconds") > 0
    assert found == {
        "job": "move", "dry_run": False, "destination": "queue://a",
        "sent": 7, "not_selected": 1, "targets": {"s": 4, "t": 3}, "left": {"failed": 3}, "unseen": ["b"],
        "errors": ["why"],
    }  # fmt: skip
