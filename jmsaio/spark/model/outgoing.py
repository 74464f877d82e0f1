"""Rows on their way to the broker, and what became of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import attrs

from jmsaio.model.wire import OutgoingRecord


class OutgoingRow(NamedTuple):
    """A row that is ready to be sent.

    Attributes:
        destination: its queue or topic, as ``queue://name`` or ``topic://name``.
        record: the record. Its ``sequence_id`` is set with ``dedup`` only; its ``sticky_key`` is the index of the
            partition that the row names, which the topic may not have.
        number: of the row in the task, from 0.
        producer: name of its producer with ``dedup``, else None.
    """

    destination: str
    record: OutgoingRecord
    number: int
    producer: str | None = None


@attrs.frozen
class Sent:
    """What a task sent to one topic.

    Attributes:
        topic: full name.
        rows: how many rows the broker confirmed, the duplicates among them.
        duplicates: how many of them it left out because it had them already.
        producers: names of the producers that sent; empty without deduplication.
    """

    topic: str
    rows: int
    duplicates: int
    producers: tuple[str, ...] = ()


def count_by_topic(sent: Iterable[Sent]) -> dict[str, tuple[int, int]]:
    """How many rows several tasks sent to each topic, and how many of them the broker had already."""
    counts: dict[str, tuple[int, int]] = {}
    for each in sent:
        rows, duplicates = counts.get(each.topic, (0, 0))
        counts[each.topic] = (rows + each.rows, duplicates + each.duplicates)
    return counts
