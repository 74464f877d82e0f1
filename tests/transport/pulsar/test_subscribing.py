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


@pytest.mark.parametrize("milliseconds", [0, 1, 2, 3, 5, 8])
async def test_a_cancelled_one_leaves_no_consumer(kit: Kit, milliseconds: int) -> None:
    """Neither one that was made nor one that is on its way, although cancelling is repeated until it is heard."""
    admin = kit.transport.admin
    assert admin is not None
    await admin.create_topic(kit.topic, 4)
    with anyio.move_on_after(milliseconds / 1000) as scope:
        box = await kit.box(SubscriptionType.EXCLUSIVE)
    if not scope.cancelled_caught:
        await box.receiver.aclose(HANG)
    with anyio.fail_after(HANG):
        while any(one.consumers for one in (await admin.stats(kit.topic)).subscriptions.values()):
            await anyio.sleep(0.05)
    await kit.box(SubscriptionType.EXCLUSIVE)
