from __future__ import annotations

import asyncio

from jmsaio.testing import EmbeddedBroker
from tests.kit.records import Outcomes, record
from tests.transport.memory.connecting import connect


async def test_a_cancelled_commit_leaves_the_transaction_open(embedded: EmbeddedBroker) -> None:
    harness = await connect(embedded, memory_limit=1)
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await harness.fill(topic, "first")
    sender, transaction = await harness.sender(topic), await harness.transport.begin(60)
    sender.send(record("second"), Outcomes(), transaction)
    committing = asyncio.ensure_future(transaction.commit())
    await asyncio.sleep(0.01)
    committing.cancel()
    await asyncio.gather(committing, return_exceptions=True)
    assert await inbox.consume(1) == ["first"]
    assert await inbox.rest(0.05) == []
    await transaction.commit()
    assert await inbox.consume(1) == ["second"]
    await harness.stop()


async def test_abort_does_not_wait_for_sends(embedded: EmbeddedBroker) -> None:
    harness = await connect(embedded, memory_limit=1)
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    await harness.fill(topic, "first")
    sender, transaction, outcomes = await harness.sender(topic), await harness.transport.begin(60), Outcomes()
    sender.send(record("never"), outcomes, transaction)
    await transaction.abort()
    assert await inbox.consume(1) == ["first"]
    assert await inbox.rest(0.05) == []
    assert "aborted already" in str(outcomes.errors[0])
    await harness.stop()
