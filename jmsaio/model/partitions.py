"""Names that Pulsar derives from a topic's: of its partitions, and of what its dead letters go to."""

from __future__ import annotations

import re
from typing import Final

_PARTITION: Final = re.compile(r"(.+)-partition-([0-9]{1,9})", re.DOTALL)


def partition_name(topic: str, index: int) -> str:
    """The name of one partition."""
    return f"{topic}-partition-{index}"


def partition_names(topic: str, count: int) -> list[str]:
    """The names of all ``count`` partitions; the topic's own name where it has none."""
    return [partition_name(topic, index) for index in range(count)] if count else [topic]


def split_partition(name: str) -> tuple[str, int]:
    """Name of the topic and index of the partition that ``name`` names; ``name`` and -1 where it names none."""
    match = _PARTITION.fullmatch(name)
    return (name, -1) if match is None else (match[1], int(match[2]))


def dead_letter_topic(topic: str, subscription: str) -> str:
    """The full name of the topic that dead letters go to where no policy names one.

    Args:
        topic: full name of the topic, or of the partition, whose messages fail.
        subscription: the subscription that gives them up.
    """
    return f"{topic}-{subscription}-DLQ"
