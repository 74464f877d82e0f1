"""The topics of temporary destinations are known by the front of their names."""

from __future__ import annotations

import pytest

from jmsaio.errors import InvalidDestinationError
from jmsaio.model.destinations import full_name
from jmsaio.model.topic_names import is_temporary, partition_name, partition_names, split_partition, topic_pattern

TOPIC = "persistent://t/n/x"


def test_a_name_and_its_parts() -> None:
    assert partition_name(TOPIC, 3) == "persistent://t/n/x-partition-3"
    assert split_partition("persistent://t/n/x-partition-3") == (TOPIC, 3)
    assert split_partition("x-partition-1-partition-12") == ("x-partition-1", 12)


@pytest.mark.parametrize(
    "name",
    [TOPIC, "x-partition-", "x-partition-y", "x-partition-1-DLQ", "-partition-1", "x-partition-1234567890",
     "x-partition-\u0661", "x-partition--1"],
)  # fmt: skip
def test_names_of_no_partition(name: str) -> None:
    assert split_partition(name) == (name, -1)


def test_a_topic_has_the_names_of_its_partitions_or_without_any_its_own() -> None:
    assert partition_names(TOPIC, 2) == [f"{TOPIC}-partition-0", f"{TOPIC}-partition-1"]
    assert partition_names(TOPIC, 1) == [f"{TOPIC}-partition-0"]
    assert partition_names(TOPIC, 0) == [TOPIC]


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("persistent://t/n/a.*", "persistent://t/n/abc", True),
        ("persistent://t/n/a.*", "persistent://t/n/ba", False),
        ("persistent://t/n/a", "persistent://t/n/ab", False),
        ("persistent://t/n/a|b", "persistent://t/n/b", True),
        ("persistent://t/n.x/a.*", "persistent://t/nyx/a", False),
        ("persistent://t/n/.*", "non-persistent://t/n/a", False),
        (full_name("short.*"), "persistent://public/default/shorter", True),
    ],
)
def test_a_pattern_must_fit_the_whole_name(pattern: str, name: str, fits: bool) -> None:
    assert (topic_pattern(pattern).fullmatch(name) is not None) is fits


def test_a_bad_pattern_is_refused() -> None:
    with pytest.raises(InvalidDestinationError, match="pattern"):
        topic_pattern("persistent://t/n/a(")


@pytest.mark.parametrize(
    ("topic", "temporary"),
    [
        ("persistent://public/default/jms-temp-queue-1", True),
        ("persistent://public/default/jms-temp-topic-1", True),
        ("jms-temp-queue-1", True),
        ("persistent://public/default/orders", False),
        ("persistent://public/jms-temp-queue-1/orders", False),
        ("persistent://public/default/my-jms-temp-queue-1", False),
    ],
)
def test_only_the_last_part_of_a_name_tells_a_temporary_destination(topic: str, temporary: bool) -> None:
    assert is_temporary(topic) is temporary
