"""The identity of rows: their numbers, their order, and their partition."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from jmsaio.errors import IllegalArgumentError
from jmsaio.model.wire import OutgoingRecord
from jmsaio.rules.routing import make_route
from jmsaio.spark.model.dedup import AscendingCheck, check_tasks, choose_partition


def test_rows_of_a_producer_must_ascend() -> None:
    check = AscendingCheck()
    for producer, sequence, row in (("a", 5, 0), ("b", 1, 1), ("a", 6, 2), ("b", 1 << 62, 3)):
        check.check(producer, sequence, None, row)
    for sequence in (6, 5, 0):
        words = f"row 4: dedup_sequence {sequence} of producer 'a' must lie above 6 of row 2"
        with pytest.raises(IllegalArgumentError, match=words):
            check.check("a", sequence, None, 4)
    check.check("a", 7, None, 5)


def test_a_row_must_follow_the_one_that_it_names() -> None:
    check = AscendingCheck(True)
    check.check("a", 5, None, 0)
    for producer, previous, here in (("a", 4, "has sent 5 last"), ("a", None, "has sent 5 last"), ("b", 5, "none")):
        with pytest.raises(IllegalArgumentError, match=f"producer '{producer}'.*{here}"):
            check.check(producer, 6, previous, 1)
    check.check("a", 6, 5, 1)
    check.check("b", 6, None, 1)


def test_a_producer_with_rows_in_two_tasks_is_refused() -> None:
    check_tasks([["a", "b"], ["c"], [], ["d", "d"]])
    with pytest.raises(IllegalArgumentError, match="rows of producer 'b' came from two tasks"):
        check_tasks([["a", "b"], ["c", "b"]])


def test_a_row_names_its_partition() -> None:
    assert choose_partition(2, "k", 5, 3) == 2
    for wrong in (3, -1):
        with pytest.raises(IllegalArgumentError, match=f"there is no partition {wrong}: the topic has 3"):
            choose_partition(wrong, "k", 5, 3)


@given(st.text(), st.integers(1, 50))
def test_the_partition_of_a_key_is_that_of_any_other_sender(key: str, partitions: int) -> None:
    record = OutgoingRecord(None, {}, key)
    assert choose_partition(None, key, 5, partitions) == make_route(None, False, float)(record, partitions)


def test_a_row_without_partition_and_key_goes_by_its_number() -> None:
    assert [choose_partition(None, None, number, 3) for number in range(5)] == [0, 1, 2, 0, 1]
    assert choose_partition(None, None, None, 3) is None
