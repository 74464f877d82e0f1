"""What a destination stands for, by an administration that answers from fixed topics; a broker's own: the contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import attrs
import pytest

from jmsaio.errors import BrokerUnavailableError, InvalidDestinationError, NotFoundError
from jmsaio.model.destinations import Queue, resolve
from jmsaio.model.partitions import partition_names
from jmsaio.transport.administration import Admin
from jmsaio.transport.topics import list_matching, list_partitions, list_topics


@attrs.define
class FixedTopics:
    """The questions of an administration that are asked here; ``asked`` has them."""

    counts: Mapping[str, int]
    asked: list[str] = attrs.field(factory=list)

    async def topics(self, namespace: str) -> list[str]:
        self.asked.append(namespace)
        names = [name for topic, count in self.counts.items() for name in partition_names(topic, count)]
        return [name for name in names if name.startswith(f"persistent://{namespace}/")]

    async def partitions(self, topic: str) -> int:
        self.asked.append(topic)
        if topic not in self.counts:
            raise NotFoundError(topic)
        return self.counts[topic]


def full(name: str) -> str:
    return f"persistent://public/default/{name}"


async def topics_of(name: str, **counts: int) -> list[str]:
    """The topics of a queue where topics of ``public/default`` have so many partitions."""
    admin = FixedTopics({full(topic): count for topic, count in counts.items()})
    return await list_topics(cast(Admin, admin), resolve(Queue(name)))


async def test_listed_topics_keep_their_order_and_nothing_is_asked() -> None:
    admin = FixedTopics({})
    assert await list_topics(cast(Admin, admin), resolve(Queue("multi:b,a"))) == [full("b"), full("a")]
    assert await list_topics(cast(Admin, admin), resolve(Queue("one:sub"))) == [full("one")]
    assert admin.asked == []


async def test_a_pattern_finds_existing_topics_by_name_each_once() -> None:
    assert await topics_of("regex:[a-c].*", c=0, b2=3, b1=0, d=0) == [full("b1"), full("b2"), full("c")]
    assert await topics_of("regex:none", c=0) == []


async def test_a_pattern_fits_the_whole_name_with_all_its_branches() -> None:
    assert await topics_of("regex:a|b", a=0, ab=0, b=0) == [full("a"), full("b")]


async def test_only_the_last_part_of_a_pattern_is_an_expression() -> None:
    """A dot in the namespace is a dot, and the expression may have slashes."""
    names = ["persistent://t/n.s/x", "persistent://t/nxs/x"]
    admin = FixedTopics(dict.fromkeys(names, 0))
    assert await list_topics(cast(Admin, admin), resolve(Queue("regex:persistent://t/n.s/(a/b|x)"))) == names[:1]
    assert admin.asked == ["t/n.s"]


async def test_a_pattern_that_is_no_expression_is_refused() -> None:
    with pytest.raises(InvalidDestinationError, match=r"topics pattern 'persistent://public/default/\('"):
        await topics_of("regex:(")


@pytest.mark.parametrize(("topic", "parts"), [("plain", [""]), ("parted", ["-partition-0", "-partition-1"])])
async def test_partitions_come_in_order_and_a_topic_without_is_its_own(topic: str, parts: list[str]) -> None:
    admin = cast(Admin, FixedTopics({full("plain"): 0, full("parted"): 2}))
    assert await list_partitions(admin, full(topic)) == [full(topic) + part for part in parts]


async def test_a_topic_that_does_not_exist_has_no_partitions() -> None:
    assert await list_partitions(cast(Admin, FixedTopics({})), full("unknown")) == []


async def test_a_silent_broker_is_not_taken_for_a_missing_topic() -> None:
    class Silent(FixedTopics):
        async def partitions(self, topic: str) -> int:
            raise BrokerUnavailableError("no answer")

    with pytest.raises(BrokerUnavailableError):
        await list_partitions(cast(Admin, Silent({})), full("t"))


async def test_a_pattern_finds_each_partition_by_its_number_in_one_call() -> None:
    admin = FixedTopics({full("b"): 11, full("a"): 0, full("c"): 0})
    found = await list_matching(cast(Admin, admin), "persistent://public/default/[ab]")
    assert found == [full("a"), *partition_names(full("b"), 11)]
    assert admin.asked == ["public/default"]
