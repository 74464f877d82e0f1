"""Messages of an archive are sent again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import attrs
import httpx
import pytest
from pyspark.sql import SparkSession

import jmsaio
from jmsaio.config import load
from jmsaio.errors import ConfigurationError
from jmsaio.model.values import Long
from jmsaio.spark.jobs.archive import ArchiveOrder, Pace, archive
from jmsaio.spark.jobs.replay import (
    ORIGINAL_ID,
    ReplayOrder,
    ReplayTarget,
    _matches,
    check_targets,
    map_targets,
    replay,
    same_partitions,
    values_of,
)
from tests.spark.session import patiently
from tests.spark.use import deduplicate, read, send
from tests.support.broker import TestBroker

SPACE = "persistent://public/default/"
COUNTS = [
    ReplayTarget("queue://orders", 5, 0, 0, f"{SPACE}orders"),
    ReplayTarget("topic://news", 3, 1, 2, f"{SPACE}news-partition-1"),
]


def test_messages_go_where_they_are_mapped_to_and_the_rest_where_it_came_from() -> None:
    targets = map_targets(COUNTS, {"orders": "copy"})
    assert [(each.source, each.target, each.rows) for each in targets] == [
        ("queue://orders", "queue://copy", 5),
        ("topic://news", "topic://news", 3),
    ]
    assert map_targets(COUNTS, {"topic://news": "queue://x"})[1].target == "queue://x"


def test_a_mapping_of_what_is_not_archived_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="bills is not in the archive, which has queue://orders, topic://news"):
        map_targets(COUNTS, {"bills": "x"})


@pytest.mark.parametrize("target", ["orders", "topic://orders", "queue://persistent://public/default/orders"])
def test_the_source_is_found_under_each_of_its_names(target: str) -> None:
    with pytest.raises(ConfigurationError, match="--allow-same"):
        check_targets(map_targets(COUNTS[:1], {"orders": target}), "public/default")


def test_the_source_of_other_messages_is_refused_too() -> None:
    targets = map_targets(COUNTS, {"orders": "topic://news", "news": "other"})
    with pytest.raises(ConfigurationError, match="queue://orders would be sent to topic://news"):
        check_targets(targets, "public/default")
    check_targets(map_targets(COUNTS, {"orders": "a", "news": "b"}), "public/default")


def test_the_source_is_known_by_its_topic_whatever_namespace_short_names_have_now() -> None:
    targets = map_targets(COUNTS[:1], {"orders": "persistent://public/default/orders"})
    with pytest.raises(ConfigurationError, match="would be sent to queue://orders"):
        check_targets(targets, "other/space")
    check_targets(map_targets(COUNTS[:1], {}), "other/space")


def test_another_archive_or_selector_has_other_producers() -> None:
    order = ReplayOrder(connection={}, folder="/a", dedup=True)
    names = {order.job("one"), order.job("other"), attrs.evolve(order, selector="a = 1").job("one")}
    assert len(names) == 3
    assert attrs.evolve(order, folder="/moved").job("one") == order.job("one")
    assert attrs.evolve(order, dedup=False).job("one") is None


def partition(broker: TestBroker, queue: str) -> None:
    url = f"{broker.web_service_url}/admin/v2/persistent/public/default/{queue}/partitions"
    httpx.put(url, json=2, timeout=30).raise_for_status()


def test_targets_keep_partitions_where_they_can_and_must_deduplicate_where_asked(
    pulsar_broker: TestBroker, name: Callable[[str], str]
) -> None:
    queue, configuration = name("target"), load(pulsar_broker.url)
    target = ReplayTarget("queue://orders", 5, 0, 2, f"{SPACE}orders-partition-0", f"queue://{queue}")
    assert asyncio.run(same_partitions(configuration, [target], dedup=False)) == []
    with pytest.raises(ConfigurationError, match=f"queue://{queue} does not exist; create it first"):
        asyncio.run(same_partitions(configuration, [target], dedup=True))
    partition(pulsar_broker, queue)
    assert asyncio.run(same_partitions(configuration, [target], dedup=False)) == ["queue://orders"]
    assert asyncio.run(same_partitions(configuration, [attrs.evolve(target, partitions=3)], dedup=False)) == []
    with pytest.raises(ConfigurationError, match=f"does not deduplicate queue://{queue}"):
        asyncio.run(same_partitions(configuration, [target], dedup=True))
    deduplicate(pulsar_broker, queue)
    assert asyncio.run(same_partitions(configuration, [target], dedup=True)) == ["queue://orders"]


def test_a_replay_that_is_repeated_sends_each_message_once_in_the_order_of_its_partition(
    spark: SparkSession, pulsar_broker: TestBroker, name: Callable[[str], str], tmp_path: Path
) -> None:
    queue, copy, folder = name("parts"), name("parts-copy"), str(tmp_path / "archive")
    partition(pulsar_broker, queue)
    messages = []
    for number in range(12):
        message = jmsaio.TextMessage(f"text {number}")
        message.set_int_property("n", number)
        message.jms_type = "order"
        messages.append(message)
    ids = send(pulsar_broker.url, queue, messages)
    connection = {"url": pulsar_broker.url}
    archived = ArchiveOrder(connection=connection, destination=f"queue://{queue}", folder=folder)
    patiently(lambda: archive(spark, archived, Pace(entries=5)))

    with pytest.raises(ConfigurationError, match="--map-destination"):
        replay(spark, ReplayOrder(connection=connection, folder=folder))
    order = ReplayOrder(
        connection=connection, folder=folder, mapping={queue: copy}, selector="n >= 2 AND JMSType = 'order'",
        dedup=True,
    )  # fmt: skip
    partition(pulsar_broker, copy)
    planned = replay(spark, attrs.evolve(order, dedup=False), dry_run=True)
    assert (planned["rows"], planned["destinations"][0]["target"]) == (10, f"queue://{copy}")
    assert planned["deduplicated"] is False
    deduplicate(pulsar_broker, copy)
    for _ in range(2):
        summary = replay(spark, order)
        assert (summary["rows"], summary["deduplicated"]) == (10, True)

    frame = read(spark, pulsar_broker, queue=f"multi:{queue},{copy}")
    rows = frame.orderBy("partition", "position").collect()
    sent = [row for row in rows if row.destination == f"queue://{queue}" and int(row.properties["n"]) >= 2]
    found = [row for row in rows if row.destination == f"queue://{copy}"]
    assert [(row.partition, row.text) for row in found] == [(row.partition, row.text) for row in sent]
    assert sorted(int(row.properties["n"]) for row in found) == list(range(2, 12))
    assert [row.properties[ORIGINAL_ID] for row in found] == [row.JMSMessageID for row in sent]
    assert {row.JMSType for row in found} == {"order"} and {row.partition for row in found} == {0, 1}
    assert not {row.JMSMessageID for row in found} & set(ids)


def test_properties_have_the_values_of_their_type_words() -> None:
    values = values_of(
        {"n": "5", "l": "5", "t": "true", "s": "5", "none": None}, {"n": "int", "l": "long", "t": "boolean"}
    )
    assert values == {"n": 5, "l": Long(5), "t": True, "s": "5"}
    assert type(values["l"]) is Long
    assert values_of(None, None) == {}


@pytest.mark.parametrize(
    ("selector", "is_selected"),
    [
        ("n > 3", True),
        ("n > 5", False),
        ("s > 3", False),
        ("JMSPriority = 7 AND JMSType = 'x'", True),
        ("JMSDeliveryMode = 'PERSISTENT'", True),
        ("JMSTimestamp BETWEEN 1000 AND 2000", True),
        ("JMSCorrelationID IS NULL", True),
        ("missing = 1", False),
    ],
)
def test_headers_and_properties_are_seen_as_in_jms(selector: str, is_selected: bool) -> None:
    found = _matches(selector, 1500, {"n": "5", "s": "5"}, {"n": "int"}, "ID:1", None, "x", "PERSISTENT", 7)
    assert found is is_selected
