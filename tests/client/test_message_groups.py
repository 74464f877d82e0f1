"""Message groups: with ``jms.queueSubscriptionType=Key_Shared`` one consumer at a time gets a group's messages."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable

import attrs
import pytest

import jmsaio
from jmsaio.errors import ConfigurationError, ConsumerBusyError

Name = Callable[[str], str]


@attrs.define
class Work:
    """What the consumers of one queue did: the numbers of each group, and by which consumers they were processed."""

    busy: set[str] = attrs.field(factory=set)
    numbers: dict[str, list[int]] = attrs.field(factory=lambda: defaultdict(list))
    workers: dict[str, list[int]] = attrs.field(factory=lambda: defaultdict(list))
    overlaps: int = 0

    @property
    def count(self) -> int:
        return sum(map(len, self.numbers.values()))

    def listener(self, worker: int) -> Callable[[jmsaio.Message], object]:
        async def process(message: jmsaio.Message) -> None:
            group = str(message.get_string_property("JMSXGroupID"))
            self.overlaps += group in self.busy
            self.busy.add(group)
            await asyncio.sleep(0.005)
            self.busy.remove(group)
            self.numbers[group].append(int(message.get_body(str) or ""))
            self.workers[group].append(worker)

        return process

    async def until(self, count: int) -> None:
        async with asyncio.timeout(60):
            while self.count < count:
                await asyncio.sleep(0.01)


@pytest.mark.parametrize("by", ["connection", "destination"])
async def test_one_consumer_at_a_time_has_a_group_and_hands_it_on_when_it_closes(url: str, name: Name, by: str) -> None:
    option, work, consumers = "jms.queueSubscriptionType=Key_Shared", Work(), []
    queue = jmsaio.Queue(name("groups") + (f"?{option}" if by == "destination" else ""))
    other = jmsaio.connect(url)
    used = f"{url}{'&' if '?' in url else '?'}{option}" if by == "connection" else url
    async with jmsaio.connect(used) as connection, other as plain, connection.create_session() as sending:
        for worker in range(3):
            session = await connection.create_session()
            consumers.append(await session.create_consumer(queue))
            consumers[-1].set_message_listener(work.listener(worker))
        producer = await sending.create_producer(queue)
        sends = (producer.send(str(n), properties={"JMSXGroupID": f"g{n % 8}"}) for n in range(160))
        await asyncio.gather(*sends)  # in batches
        await work.until(40)
        with pytest.raises(ConsumerBusyError, match=r"Key_Shared|another type than Shared"):
            await (await plain.create_session()).create_consumer(jmsaio.Queue(queue.name.partition("?")[0]))
        await consumers[0].close()
        await work.until(160)
        assert {group: sorted(numbers) for group, numbers in work.numbers.items()} == {
            f"g{first}": list(range(first, 160, 8)) for first in range(8)
        }
        assert all(numbers == sorted(numbers) for numbers in work.numbers.values())
        assert work.overlaps == 0
        assert all(workers[-1] != 0 for workers in work.workers.values() if len(set(workers)) > 1)
        assert len({workers[-1] for workers in work.workers.values()}) > 1, "one consumer has all groups"


@pytest.mark.parametrize("option", ["jms.queueSubscriptionType=Exclusive", "jms.queueSubscriptionType"])
async def test_another_type_is_refused(session: jmsaio.Session, option: str) -> None:
    with pytest.raises(ConfigurationError, match=r"option jms\.queueSubscriptionType"):
        session.create_queue(f"q?{option}")
    with pytest.raises(ConfigurationError, match=r"unknown option 'jms\.queueSubscriptionType'"):
        session.create_topic(f"t?{option}")
