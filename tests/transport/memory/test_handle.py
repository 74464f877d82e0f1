from __future__ import annotations

import asyncio

import pytest

from jmsaio.errors import SendError, TransactionInDoubtError, TransactionRolledBackError
from jmsaio.testing import EmbeddedBroker, ManualClock, embedded_broker
from tests.kit.records import Outcomes, record
from tests.transport.contract.harness import GUARD
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
    contexts: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: contexts.append(context))
    assert await inbox.consume(1) == ["first"]
    assert await inbox.rest(0.05) == []
    assert contexts == []
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


async def test_a_commit_goes_on_when_a_send_of_its_transaction_waited_too_long(
    embedded: EmbeddedBroker, clock: ManualClock
) -> None:
    harness = await connect(embedded, memory_limit=1)
    topic = harness.topic()
    await harness.inbox(topic)
    await harness.fill(topic, "takes all memory")
    sender, transaction = await harness.sender(topic, send_timeout=5), await harness.transport.begin(60)
    outcomes = Outcomes()
    sender.send(record("fails"), outcomes, transaction)
    committing = asyncio.ensure_future(transaction.commit())
    await asyncio.sleep(0)
    clock.advance(5)
    async with asyncio.timeout(GUARD):
        await committing
    assert [type(error) for error in outcomes.errors] == [SendError]
    await harness.stop()


def test_a_commit_that_waited_on_a_loop_that_has_ended_disturbs_nobody() -> None:
    topic = "persistent://public/default/t"

    async def careless() -> None:
        harness = await connect(broker, memory_limit=1)
        await harness.inbox(topic)
        await harness.fill(topic, "first")
        transaction = await harness.transport.begin(60)
        (await harness.sender(topic)).send(record("second"), Outcomes(), transaction)
        committing = asyncio.ensure_future(transaction.commit())
        await asyncio.sleep(0)
        assert not committing.done()

    async def careful() -> list[str]:
        harness = await connect(broker)
        texts = await (await harness.inbox(topic)).consume(1)
        await harness.stop()
        return texts

    with embedded_broker() as broker:
        asyncio.run(careless())
        assert asyncio.run(careful()) == ["first"]


async def test_a_commit_whose_answer_is_lost_has_happened(embedded: EmbeddedBroker) -> None:
    """One that is rolled back tells so all the same."""
    harness = await connect(embedded)
    topic = harness.topic()
    inbox = await harness.inbox(topic)
    sender = await harness.sender(topic, transacted=True)
    embedded.faults.lose_commits()
    undone, lost, plain = [await harness.transport.begin(60) for _ in range(3)]
    await undone.abort()
    with pytest.raises(TransactionRolledBackError):
        await undone.commit()
    await harness.send(sender, "1", transaction=lost)
    with pytest.raises(TransactionInDoubtError, match="answer to the commit was lost"):
        await lost.commit()
    await harness.send(sender, "2", transaction=plain)
    await plain.commit()
    assert await inbox.consume(2) == ["1", "2"]
    await harness.stop()
