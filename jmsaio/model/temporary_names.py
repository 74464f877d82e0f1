"""Names of temporary things: topics behind temporary destinations, jmsaio's and Java's, and jmsaio's subscriptions."""

from __future__ import annotations

from typing import Final

QUEUE_PREFIX: Final = "jms-temp-queue-"
TOPIC_PREFIX: Final = "jms-temp-topic-"
#: Of jmsaio's subscriptions that have no name of their own and end with their consumer.
SUBSCRIPTION_PREFIX: Final = "jmsaio-nd-"
#: Of subscriptions that jobs make to know how far they came. They stay until ``jmsaio spark cleanup`` deletes them.
JOB_PREFIX: Final = "jmsaio-spark-"


def is_temporary(topic: str) -> bool:
    """Whether a full topic name is that of a temporary destination, jmsaio's or Java's."""
    return topic.rpartition("/")[2].startswith((QUEUE_PREFIX, TOPIC_PREFIX))
