"""``Subscriber``: failures on the way leave nothing behind. The rest is in ``test_receiver``."""

from __future__ import annotations

import anyio
import pytest

from jmsaio.errors import ConsumerBusyError
from jmsaio.transport.base import SubscriptionType
from tests.transport.pulsar.conftest import HANG, Kit, new_topic


async def test_one_busy_topic_of_several_closes_the_others(kit: Kit) -> None:
    free, busy = new_topic(), new_topic()
    holder = await kit.box(SubscriptionType.EXCLUSIVE, busy)
    with pytest.raises(ConsumerBusyError):
        await kit.box(SubscriptionType.EXCLUSIVE, free, busy)
    await holder.receiver.aclose(HANG)
    both = await kit.box(SubscriptionType.EXCLUSIVE, free, busy)
    assert sorted(both.receiver.topics) == sorted([free, busy])


async def test_queue_sizes_share_the_total(kit: Kit) -> None:
    """Many partitions: each prefetches its part of maxTotalReceiverQueueSizeAcrossPartitions."""
    admin = kit.transport.admin
    assert admin is not None
    await admin.create_topic(kit.topic, 4)
    box = await kit.box(receiver_queue_size=1000, max_total_receiver_queue_size_across_partitions=40)
    assert len(box.receiver.topics) == 4
    with anyio.fail_after(HANG):
        await box.receiver.aclose(HANG)
