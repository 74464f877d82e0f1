"""Dead letters: their origin, their number of redrives, and the record that is sent in their place.

A client that moves a message to its dead letter topic adds properties with its origin: jmsaio, pulsar-client and the
Java client write ``REAL_TOPIC`` and ``ORIGIN_MESSAGE_ID``, and only Java ``REAL_SUBSCRIPTION``. The redriven record has
none of them: the Java client keeps an existing ``REAL_TOPIC``, whatever topic the message fails on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jmsaio.codec import headers, properties
from jmsaio.codec.view import expiration
from jmsaio.model.destinations import Resolved
from jmsaio.model.partitions import dead_letter_topic
from jmsaio.model.wire import EXPIRATION, ORIGIN_MESSAGE_ID, REAL_TOPIC, TYPE_SUFFIX, OutgoingRecord, ReceivedRecord
from jmsaio.transport.administration import Admin
from jmsaio.transport.topics import list_partitions, list_topics

#: Property with the subscription where the message failed, as Pulsar's Java client writes it.
REAL_SUBSCRIPTION: Final = "REAL_SUBSCRIPTION"
#: Property of a redriven message: its number of redrives, an int.
REDRIVE_COUNT: Final = "jmsaio_redrive_count"
#: Property of a redriven message: its id at its origin when it failed for the first time. Copies of one message have
#: the
#: same.
ORIGINAL_PLACE: Final = "jmsaio_origin_message_id"
#: Further properties of the Java client, also written for later delivery (``reconsumeLater``). The last name is a slip
#: of its authors.
_OF_JAVA: Final = ("RECONSUMETIMES", "DELAY_TIME", "RETRY_TOPIC", "ORIGIN_MESSAGE_IDY_TIME")
_OF_LETTERS: Final = frozenset(
    {REAL_TOPIC, ORIGIN_MESSAGE_ID, REAL_SUBSCRIPTION, *_OF_JAVA}
    | {properties.EXPIRED_AT, properties.EXPIRED_AT + TYPE_SUFFIX}
)


def origin_of(wire: Mapping[str, str]) -> str | None:
    """Return the full name of the topic or partition that a dead letter comes from; None if it is unknown.

    Args:
        wire: the record's properties.
    """
    topic = wire.get(REAL_TOPIC, "")
    return topic if topic.startswith(("persistent://", "non-persistent://")) else None


def redrive_count(wire: Mapping[str, str]) -> int:
    """Return a message's number of redrives; 0 if the property is not a number.

    Args:
        wire: the record's properties.
    """
    text = wire.get(REDRIVE_COUNT, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0


def redriven(letter: ReceivedRecord, now: int) -> OutgoingRecord:
    """Build the record to send in place of a dead letter.

    It has no properties of a dead letter, counts one more redrive, and has ``ORIGINAL_PLACE``. A JMSExpiration that has
    passed is left out: the message would expire at once. So is one that had passed before the message was moved
    (``JMS_jmsaio_expired_at``).

    Args:
        letter: the received dead letter.
        now: current time in milliseconds since the epoch.

    Raises:
        MalformedMessageError: the properties can't be decoded.
    """
    found = letter.properties
    wire = {name: text for name, text in found.items() if name not in _OF_LETTERS}
    place = str(letter.message_id).removeprefix("ID:")
    wire.setdefault(ORIGINAL_PLACE, found.get(ORIGIN_MESSAGE_ID) or place)
    properties.write({REDRIVE_COUNT: redrive_count(found) + 1}, wire)
    if 0 < expiration(letter) <= now:
        wire.pop(EXPIRATION, None)
        wire.pop(EXPIRATION + TYPE_SUFFIX, None)
    return OutgoingRecord(letter.payload, wire, letter.key, letter.event_time, priority=headers.priority(wire))


async def find_dead_letter_topics(admin: Admin, origin: Resolved, subscription: str) -> list[str]:
    """Return the full names of a subscription's dead letter topics; for partitioned ones, the name of the whole.

    Each partition has its own, since consumers are consumers of partitions; a Java client with later delivery
    (``enableRetry``) has one for the whole topic.

    Args:
        admin: admin client of the broker.
        origin: destination whose messages fail.
        subscription: subscription where they fail.

    Raises:
        TransportError: the broker does not answer.

    Cancelling changes nothing.
    """
    topics = await list_topics(admin, origin)
    names = [name for topic in topics for name in dict.fromkeys([topic, *await list_partitions(admin, topic)])]
    letters = [dead_letter_topic(name, subscription) for name in names]
    return [topic for topic in letters if await list_partitions(admin, topic)]
