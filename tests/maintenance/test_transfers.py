"""A request is carried out for all topics of a destination, and its results are combined."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from jmsaio.maintenance import transfers as module
from jmsaio.maintenance.dead_letters import LetterRange, RedriveRequest, Transfer, plan_redrive
from jmsaio.maintenance.redrive import Progress, Redriven
from jmsaio.maintenance.transfers import redrive_all, summarize
from jmsaio.model.destinations import Queue
from jmsaio.transport.base import StartPosition, SubscriptionType
from tests.kit.records import texts
from tests.maintenance.letters import QUEUE, Letters, message
from tests.transport.contract.harness import GUARD


@pytest.mark.parametrize("dry_run", [True, False])
async def test_progress_counts_what_is_received_and_what_is_sent(letters: Letters, dry_run: bool) -> None:
    await letters.put(*(message(str(number), region="EU" if number < 3 else "US") for number in range(5)))
    seen = []
    progress = Progress(lambda now: seen.append((now.total, now.seen, now.sent)))
    request = RedriveRequest(destination=Queue(letters.dead), selector="region = 'EU'", dry_run=dry_run, patience=3.0)
    await redrive_all(letters.harness.transport, letters.harness.configuration, request, progress)
    assert (progress.total, progress.seen, progress.sent) == (5, 5, 3)
    assert (5, 5, 3) in seen


async def purge(letters: Letters, destination: str, **changes: Any) -> int:
    """Purge; return the number of deleted messages."""
    request = RedriveRequest(destination=Queue(destination), transfer=Transfer.PURGE, patience=1.0, **changes)
    outcomes = await redrive_all(letters.harness.transport, letters.harness.configuration, request)
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
    request = RedriveRequest(
        destination=Queue(letters.dead), transfer=Transfer.PURGE, patience=1.0, selector="n = '1'"
    )  # fmt: skip
    (done,) = await redrive_all(letters.harness.transport, letters.harness.configuration, request)
    assert (done.sent, done.complete) == ({}, False)
    await consumer.close()
    assert sorted(texts(await letters.waiting(letters.dead))) == ["a", "b"]


async def test_a_purge_keeps_what_is_sent_after_the_start(letters: Letters, monkeypatch: pytest.MonkeyPatch) -> None:
    await letters.put("a")

    async def plan(*arguments: Any) -> list[LetterRange]:
        ranges = await plan_redrive(*arguments)
        await letters.put("later")
        return ranges

    monkeypatch.setattr(module, "plan_redrive", plan)
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
    one = Redriven(topic="a", sent={"t": 2}, not_selected=1, left={"failed": 1}, errors=("why",), complete=True)
    other = attrs.evolve(one, topic="b", sent={"t": 1, "s": 4}, not_selected=0, left={"failed": 2}, complete=False)
    assert summarize([one, other]) == {
        "sent": 7, "not_selected": 1, "targets": {"s": 4, "t": 3}, "left": {"failed": 3}, "unseen": ["b"],
        "errors": ["why"],
    }  # fmt: skip
