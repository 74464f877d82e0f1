"""A batch of several groups on a key-shared subscription is reported, once."""

from __future__ import annotations

from typing import Literal

import pytest

from jmsaio.config import ProducerConfig
from jmsaio.transport.base import SubscriptionType
from tests.kit.records import record
from tests.transport.pulsar.conftest import Kit


@pytest.mark.parametrize(("builder", "warnings"), [("DEFAULT", 1), ("KEY_BASED", 0)])
async def test_a_batch_of_several_groups_is_reported_once(
    kit: Kit, builder: Literal["DEFAULT", "KEY_BASED"], warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    box = await kit.box(SubscriptionType.KEY_SHARED)
    sender = await kit.sender(config=ProducerConfig(batcher_builder=builder, batching_max_publish_delay=0.5))
    for number in range(6):
        outgoing = record(str(number))
        outgoing.key = f"key {number % 3}"
        sender.send(outgoing, lambda place, error: None)
    await sender.drain(20)
    await box.take(6)
    assert ["batcherBuilder=KEY_BASED" in one.message for one in caplog.records if one.levelname == "WARNING"] == [
        True
    ] * warnings
