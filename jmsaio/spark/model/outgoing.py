"""Counts of sent rows."""

from __future__ import annotations

from collections.abc import Iterable

import attrs


@attrs.frozen
class Sent:
    """Counts of the rows that a task sent to one topic.

    Attributes:
        topic: full name.
        rows: rows confirmed by the broker, including duplicates.
        duplicates: rows that the broker dropped because it had stored them already.
        producers: names of the task's producers; empty without deduplication.
    """

    topic: str
    rows: int
    duplicates: int
    producers: tuple[str, ...] = ()


def count_by_topic(sent: Iterable[Sent]) -> dict[str, tuple[int, int]]:
    """Return the numbers of sent rows and of duplicates among them, by topic."""
    counts: dict[str, tuple[int, int]] = {}
    for each in sent:
        rows, duplicates = counts.get(each.topic, (0, 0))
        counts[each.topic] = (rows + each.rows, duplicates + each.duplicates)
    return counts
