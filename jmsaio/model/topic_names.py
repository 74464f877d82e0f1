"""Names of topics: partitions, and temporary destinations."""

from __future__ import annotations

import re
from typing import Final

from jmsaio.errors import InvalidDestinationError
from jmsaio.model.arguments import shown

_PARTITION: Final = re.compile(r"(.+)-partition-([0-9]{1,9})", re.DOTALL)


def partition_name(topic: str, index: int) -> str:
    return f"{topic}-partition-{index}"


def partition_names(topic: str, count: int) -> list[str]:
    return [partition_name(topic, index) for index in range(count)] if count else [topic]


def split_partition(name: str) -> tuple[str, int]:
    """Split a partition's name into topic and index; return ``name`` and -1 if it names no partition."""
    match = _PARTITION.fullmatch(name)
    return (name, -1) if match is None else (match[1], int(match[2]))


def dead_letter_topic(topic: str, subscription: str) -> str:
    """Return the full name of the dead letter topic of a topic or partition if no policy names one."""
    return f"{topic}-{subscription}-DLQ"


def topic_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a topics pattern, to be matched against whole full names of topics, without partition.

    Only the last part of ``persistent://tenant/namespace/expression`` is an expression.
    """
    *front, expression = pattern.split("/", 4)
    try:
        return re.compile(re.escape("/".join(front)) + f"/(?:{expression})", re.DOTALL)
    except re.error as error:
        raise InvalidDestinationError(f"topics pattern {shown(pattern)}: {error}") from error


QUEUE_PREFIX: Final = "jms-temp-queue-"
TOPIC_PREFIX: Final = "jms-temp-topic-"
#: Prefix of jmsaio's unnamed subscriptions, which end with their consumer.
SUBSCRIPTION_PREFIX: Final = "jmsaio-nd-"
#: Prefix of subscriptions in which jobs record their progress. ``jmsaio subscriptions delete`` removes them.
JOB_PREFIX: Final = "jmsaio-spark-"

#: Prefix of subscriptions that record the progress of a copy.
COPY_PREFIX: Final = "jmsaio-copy-"
#: The non-persistent topic on which jmsaio checks that a REST interface belongs to the broker's cluster.
PROBE_TOPIC: Final = "jmsaio-same-cluster"


def is_temporary(topic: str) -> bool:
    return topic.rpartition("/")[2].startswith((QUEUE_PREFIX, TOPIC_PREFIX))
