"""Rows on their way, and what became of them."""

from __future__ import annotations

from jmsaio.spark.model.outgoing import Sent, count_by_topic


def test_rows_of_several_tasks_are_counted_by_topic() -> None:
    sent = [Sent("a", 3, 1), Sent("b", 2, 0), Sent("a", 4, 2)]
    assert count_by_topic(sent) == {"a": (7, 3), "b": (2, 0)}
    assert count_by_topic([]) == {}
