"""The names of topics behind temporary destinations, jmsaio's and Java's."""

from __future__ import annotations

from typing import Final

QUEUE_PREFIX: Final = "jms-temp-queue-"
TOPIC_PREFIX: Final = "jms-temp-topic-"


def is_temporary(topic: str) -> bool:
    """Whether a full topic name is that of a temporary destination, jmsaio's or Java's."""
    return topic.rpartition("/")[2].startswith((QUEUE_PREFIX, TOPIC_PREFIX))
