"""Partitions by priority, group and sticky key."""

from __future__ import annotations

import math
from itertools import islice

import pytest

from jmsaio.model.wire import OutgoingRecord
from jmsaio.rules.routing import (
    java_string_hash,
    linear_partition,
    make_route,
    make_turns,
    non_linear_partition,
    partition_of,
)

LINEAR = {
    4: [0, 0, 0, 1, 1, 2, 2, 2, 3, 3],
    5: [0, 0, 1, 1, 2, 2, 3, 3, 4, 4],
    6: [0, 0, 1, 1, 2, 3, 3, 4, 4, 5],
    7: [0, 0, 1, 2, 2, 3, 4, 4, 5, 6],
    8: [0, 0, 1, 2, 3, 4, 4, 5, 6, 7],
    9: [0, 0, 1, 2, 3, 4, 5, 6, 7, 8],
    10: list(range(10)),
    1: [0] * 10,
    2: [0] * 5 + [1] * 5,
    3: [0] * 4 + [1] + [2] * 5,
}
#: partitions -> inclusive ranges for low, default and high priorities
NON_LINEAR = {
    1: ((0, 0), (0, 0), (0, 0)),
    2: ((0, 0), (0, 0), (1, 1)),
    3: ((0, 0), (1, 1), (2, 2)),
    4: ((0, 0), (1, 2), (3, 3)),
    5: ((0, 1), (2, 4), (4, 4)),
    6: ((0, 1), (2, 4), (5, 5)),
    7: ((0, 1), (2, 5), (6, 6)),
    8: ((0, 1), (2, 5), (6, 7)),
    9: ((0, 2), (3, 7), (7, 8)),
    10: ((0, 2), (3, 7), (8, 9)),
    18: ((0, 4), (5, 13), (14, 17)),
    20: ((0, 4), (5, 14), (15, 19)),
}
UNIFORM = [0.0, 0.25, 0.5, 0.75, 0.999999]


@pytest.mark.parametrize("partitions", LINEAR)
def test_priorities_are_spread_over_partitions_as_the_table_says(partitions: int) -> None:
    assert [linear_partition(priority, partitions, 0.0) for priority in range(10)] == LINEAR[partitions]


def test_linear_spreads_one_priority_over_its_partitions() -> None:
    assert {linear_partition(0, 20, uniform) for uniform in UNIFORM} == {0, 1}
    assert {linear_partition(9, 18, uniform) for uniform in UNIFORM} == {16, 17}


def test_linear_takes_a_priority_out_of_range_as_the_nearest() -> None:
    assert (linear_partition(-1, 20, 0.0), linear_partition(12, 20, 0.0)) == (0, 18)


@pytest.mark.parametrize("partitions", NON_LINEAR)
def test_non_linear_table(partitions: int) -> None:
    for priority in range(10):
        low, high = NON_LINEAR[partitions][0 if priority < 4 else 1 if priority == 4 else 2]
        found = [non_linear_partition(priority, partitions, uniform) for uniform in UNIFORM]
        assert (min(found), max(found)) == (low, high), priority


@pytest.mark.parametrize(
    ("text", "expected"), [("grp", 102629), ("", 0), ("a", 97), ("polygenelubricants", 0), ("é", 233), ("😀", 1772899)]
)
def test_java_string_hash(text: str, expected: int) -> None:
    assert java_string_hash(text) == expected


def test_route_prefers_sticky_then_priority_then_key() -> None:
    record = OutgoingRecord(b"", {}, key="grp", priority=9, sticky_key=7)
    assert make_route("linear", True, lambda: 0.0)(record, 10) == 7
    assert make_route("linear", False, lambda: 0.0)(record, 10) == 9
    assert make_route(None, False, lambda: 0.0)(record, 10) == 102629 % 10
    assert make_route(None, False, lambda: 0.0)(OutgoingRecord(b"", {}), 10) is None
    assert make_route("linear", True, lambda: 0.0)(OutgoingRecord(b"", {}, priority=9), 10) == 9


@pytest.mark.parametrize(("priority", "partition"), [(-1, 4), (0, 0), (9, 9), (10, 4)])
def test_a_priority_out_of_range_is_routed_as_the_default(priority: int, partition: int) -> None:
    assert make_route("linear", False, lambda: 0.0)(OutgoingRecord(b"", {}, priority=priority), 10) == partition


@pytest.mark.parametrize("partitions", range(1, 41))
def test_the_largest_random_number_stays_within_the_partitions(partitions: int) -> None:
    """Just below 1, so that adding it may round up to the next whole number."""
    largest = math.nextafter(1.0, 0.0)
    assert max(linear_partition(priority, partitions, largest) for priority in range(10)) < partitions


def test_records_without_a_group_take_turns_or_stay_together() -> None:
    assert list(islice(make_turns("RoundRobinPartition", lambda: 0.9), 3)) == [0, 1, 2]
    for uniform, partition in ((0.0, 0), (0.5, 0), (1 - 2**-53, 3)):
        assert {turn % 4 for turn in islice(make_turns("SinglePartition", lambda: uniform), 9)} == {partition}  # noqa: B023  # used at once


def test_a_route_comes_before_the_key_and_the_key_before_the_turn() -> None:
    keyed, turns = OutgoingRecord(b"", {}, "b"), iter([7, 8])
    assert partition_of(keyed, 4, lambda record, count: count + 1, turns) == 1
    assert partition_of(keyed, 4, lambda record, count: None, turns) == java_string_hash("b") % 4
    assert partition_of(OutgoingRecord(b"", {}), 4, None, turns) == 3
    assert next(turns) == 8
