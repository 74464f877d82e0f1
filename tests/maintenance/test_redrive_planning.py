"""Which dead letter topics a redrive goes through, where each is acknowledged, and up to where."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from jmsaio.errors import ConfigurationError, InvalidDestinationError, InvalidSelectorError, NotFoundError
from jmsaio.maintenance.redrive import RedriveOrder
from jmsaio.maintenance.redrive_planning import (
    REDRIVE_CURSOR,
    RedriveRequest,
    plan_redrive,
    redrive_all,
    require_admin,
)
from jmsaio.model.destinations import Queue, Topic
from jmsaio.transport.base import Position
from jmsaio.transport.registry import connected
from tests.kit.records import texts
from tests.maintenance.letters import QUEUE, Letters
from tests.transport.contract.harness import Harness


async def plan(harness: Harness, destination: Queue | Topic, **more: Any) -> list[RedriveOrder]:
    request = RedriveRequest(destination=destination, **more)
    return await plan_redrive(harness.transport, harness.configuration, request)


async def test_letters_of_a_queue_are_acknowledged_on_its_subscription(letters: Letters) -> None:
    await letters.put("x")
    (order,) = await plan(letters.harness, Queue(letters.dead))
    assert (order.topic, order.subscription, order.durable) == (letters.dead, QUEUE, True)
    assert [order] == await plan(letters.harness, Queue(letters.topic), of=QUEUE)


async def test_a_subscription_that_the_name_ends_with_is_used_if_it_is_there(letters: Letters) -> None:
    await letters.harness.admin.create_subscription(letters.dead, "kept", Position.EARLIEST)
    await letters.put("x")
    (order,) = await plan(letters.harness, Queue(f"{letters.dead}:kept"))
    assert order.subscription == "kept"
    with pytest.raises(NotFoundError, match="no subscription other"):
        await plan(letters.harness, Queue(f"{letters.dead}:other"))


async def test_letters_without_a_queue_get_a_cursor_that_knows_what_was_redriven(letters: Letters) -> None:
    await letters.put("x")
    (dry,) = await plan(letters.harness, Topic(letters.dead), dry_run=True)
    assert (dry.subscription.startswith("jmsaio-nd-"), dry.durable) == (True, False)
    request = RedriveRequest(destination=Topic(letters.dead))
    for sent in ([{letters.topic: 1}], []):
        done = await redrive_all(letters.harness.transport, letters.harness.configuration, request)
        assert [each.sent for each in done] == sent
    assert set((await letters.harness.admin.stats(letters.dead)).subscriptions) == {QUEUE, REDRIVE_CURSOR}
    await letters.put("y")
    (order,) = await plan(letters.harness, Topic(letters.dead))
    assert (order.subscription, order.durable) == (REDRIVE_CURSOR, True)


async def test_letters_are_sent_once_when_the_subscription_of_the_queue_comes_later(letters: Letters) -> None:
    admin = letters.harness.admin
    await admin.create_subscription(letters.dead, "keeper", Position.EARLIEST)
    await admin.delete_subscription(letters.dead, QUEUE)
    await letters.put("pay")
    request = RedriveRequest(destination=Queue(letters.dead))
    await redrive_all(letters.harness.transport, letters.harness.configuration, request)
    await admin.create_subscription(letters.dead, QUEUE, Position.EARLIEST)
    await letters.put("later")
    await redrive_all(letters.harness.transport, letters.harness.configuration, request)
    assert texts(await letters.waiting()) == ["pay", "later"]
    (named,) = await plan(letters.harness, Queue(f"{letters.dead}:{QUEUE}"))
    assert named.subscription == QUEUE


async def test_topics_without_letters_need_no_work(letters: Letters) -> None:
    assert await plan(letters.harness, Queue(letters.dead)) == []


async def test_each_partition_is_redriven_on_its_own(letters: Letters) -> None:
    topic = letters.harness.topic("parted")
    await letters.harness.admin.create_topic(topic, 2)
    orders = []
    for index in range(2):
        part = attrs.evolve(letters, topic=f"{topic}-partition-{index}")
        await letters.harness.admin.create_subscription(part.dead, QUEUE, Position.EARLIEST)
        await part.put("x")
        orders.append(part.dead)
    assert [order.topic for order in await plan(letters.harness, Queue(topic), of=QUEUE)] == orders


async def test_a_queue_that_all_are_sent_to_is_made_before_unless_nothing_is_sent(letters: Letters) -> None:
    await letters.put("x")
    target = letters.harness.topic("repaired")
    await plan(letters.harness, Queue(letters.dead), to=Queue(target), dry_run=True)
    with pytest.raises(NotFoundError):
        await letters.harness.admin.stats(target)
    request = RedriveRequest(destination=Queue(letters.dead), to=Queue(target))
    (done,) = await redrive_all(letters.harness.transport, letters.harness.configuration, request)
    assert done.sent == {target: 1}
    assert texts(await letters.waiting(target)) == ["x"]


async def test_what_can_not_be_planned_is_refused_in_one_sentence(letters: Letters) -> None:
    dead = Queue(letters.dead)
    with pytest.raises(InvalidSelectorError):
        await plan(letters.harness, dead, selector="a =")
    with pytest.raises(InvalidDestinationError, match="several topics"):
        await plan(letters.harness, dead, to=Queue("multi:a,b"))
    with pytest.raises(NotFoundError, match="no topic with dead letters of the subscription other"):
        await plan(letters.harness, Queue(letters.topic), of="other")
    with pytest.raises(NotFoundError, match="does not exist: check its name"):
        await plan(letters.harness, Queue(letters.harness.topic("missing")))


async def test_without_administration_the_option_is_named(letters: Letters) -> None:
    config = attrs.evolve(letters.harness.configuration, use_pulsar_admin=False)
    async with connected(config) as transport:
        with pytest.raises(ConfigurationError, match="usePulsarAdmin=true"):
            require_admin(transport)
