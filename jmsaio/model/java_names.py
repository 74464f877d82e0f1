"""Names of Java's API and what they are called here, for those who write them out of habit.

Methods need no table: Python itself suggests ``create_session`` for ``createSession``.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

_CLASSES: Final = {
    "ActiveMQConnectionFactory": "ConnectionFactory",
    "JMSConsumer": "MessageConsumer",
    "JMSContext": "Context",
    "PulsarConnectionFactory": "ConnectionFactory",
    "PulsarQueue": "Queue",
    "PulsarTopic": "Topic",
    "QueueConnection": "Connection",
    "QueueConnectionFactory": "ConnectionFactory",
    "QueueReceiver": "MessageConsumer",
    "QueueSender": "MessageProducer",
    "QueueSession": "Session",
    "RMQConnectionFactory": "ConnectionFactory",
    "TopicConnection": "Connection",
    "TopicConnectionFactory": "ConnectionFactory",
    "TopicPublisher": "MessageProducer",
    "TopicSession": "Session",
    "TopicSubscriber": "MessageConsumer",
}


def python_name(java: str, known: Collection[str]) -> str | None:
    """Return the name of a class of ``known`` that is ``java`` in Java; None if there is none.

    An exception is called an error, whether it is checked (``JMSException``) or not (``JMSRuntimeException``).
    """
    found = _CLASSES.get(java)
    if found is None and java.endswith("Exception"):
        found = f"{java.removesuffix('Exception').removesuffix('Runtime')}Error"
    return found if found in known else None
