"""Names of temporary things: topics of jmsaio's and Java's temporary destinations, and what only jmsaio uses."""

from __future__ import annotations

from typing import Final

QUEUE_PREFIX: Final = "jms-temp-queue-"
TOPIC_PREFIX: Final = "jms-temp-topic-"
#: Prefix of jmsaio's unnamed subscriptions, which end with their consumer.
SUBSCRIPTION_PREFIX: Final = "jmsaio-nd-"
#: Prefix of subscriptions in which jobs record their progress. They exist until ``jmsaio spark cleanup`` deletes them.
JOB_PREFIX: Final = "jmsaio-spark-"

#: Prefix of subscriptions that record the progress of a copy.
COPY_PREFIX: Final = "jmsaio-copy-"
#: The non-persistent topic on which jmsaio checks that a REST interface belongs to the broker's cluster.
PROBE_TOPIC: Final = "jmsaio-same-cluster"


def is_temporary(topic: str) -> bool:
    """Return whether a full topic name is that of a temporary destination, jmsaio's or Java's."""
    return topic.rpartition("/")[2].startswith((QUEUE_PREFIX, TOPIC_PREFIX))
