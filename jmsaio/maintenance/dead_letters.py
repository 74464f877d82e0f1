"""Dead letters: their contents and topics.

A client that moves a message to its dead letter topic adds properties with its origin: jmsaio, pulsar-client and the
Java client write ``REAL_TOPIC`` and ``ORIGIN_MESSAGE_ID``, jmsaio and Java ``REAL_SUBSCRIPTION``. The redriven record
has none of them: the Java client keeps an existing ``REAL_TOPIC``, whatever topic the message fails on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jmsaio.codec import headers, properties
from jmsaio.codec.headers import expiration
from jmsaio.errors import ConfigurationError, NotFoundError
from jmsaio.model.destinations import Resolved
from jmsaio.model.topic_names import JOB_PREFIX, dead_letter_topic
from jmsaio.model.wire import (
    EXPIRATION,
    FAILED_DELIVERIES,
    ORIGIN_MESSAGE_ID,
    REAL_SUBSCRIPTION,
    REAL_TOPIC,
    TYPE_SUFFIX,
    OutgoingRecord,
    ReceivedRecord,
)
from jmsaio.transport.administration import Admin
from jmsaio.transport.base import Transport
from jmsaio.transport.subscriptions import list_partitions, list_topics

#: Property of a redriven message: its number of redrives, an int.
REDRIVE_COUNT: Final = "jmsaio_redrive_count"
#: Property of a redriven message: its id at its origin when it failed for the first time, the same for all copies.
ORIGINAL_PLACE: Final = "jmsaio_origin_message_id"
#: Further properties of the Java client, also written for later delivery (``reconsumeLater``). The last name is a slip
#: of its authors.
_OF_JAVA: Final = ("RECONSUMETIMES", "DELAY_TIME", "RETRY_TOPIC", "ORIGIN_MESSAGE_IDY_TIME")
_OF_LETTERS: Final = frozenset(
    {REAL_TOPIC, ORIGIN_MESSAGE_ID, REAL_SUBSCRIPTION, *_OF_JAVA}
    | {name + suffix for name in (properties.EXPIRED_AT, FAILED_DELIVERIES) for suffix in ("", TYPE_SUFFIX)}
)
#: Subscription of a dead letter topic without a queue's one: it records what was redriven.
REDRIVE_CURSOR: Final = f"{JOB_PREFIX}redrive"


def origin_of(wire: Mapping[str, str]) -> str | None:
    """Return the full name of the topic or partition that a dead letter comes from; None if it is unknown."""
    topic = wire.get(REAL_TOPIC, "")
    return topic if topic.startswith(("persistent://", "non-persistent://")) else None


def redrive_count(wire: Mapping[str, str]) -> int:
    """Return a message's number of redrives; 0 if the property is not a number."""
    text = wire.get(REDRIVE_COUNT, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0


def redriven(letter: ReceivedRecord, now: int) -> OutgoingRecord:
    """Build the record to send in place of a dead letter, with one more redrive; ``now`` is in ms since the epoch.

    A JMSExpiration that has passed, or had passed before the message was moved (``JMS_jmsaio_expired_at``), is left
    out: the message would expire at once. Raises MalformedMessageError.
    """
    found = letter.properties
    wire = {name: text for name, text in found.items() if name not in _OF_LETTERS}
    message_id = str(letter.message_id).removeprefix("ID:")
    wire.setdefault(ORIGINAL_PLACE, found.get(ORIGIN_MESSAGE_ID) or message_id)
    properties.write({REDRIVE_COUNT: redrive_count(found) + 1}, wire)
    if 0 < expiration(letter) <= now:
        wire.pop(EXPIRATION, None)
        wire.pop(EXPIRATION + TYPE_SUFFIX, None)
    return OutgoingRecord(letter.payload, wire, letter.key, letter.event_time, priority=headers.priority(wire))


def require_admin(transport: Transport) -> Admin:
    """Return the administration of a broker. Raises ConfigurationError if it is switched off."""
    if transport.admin is None:
        reason = "subscriptions are listed by the administration only; set jms.usePulsarAdmin=true and webServiceUrl"
        raise ConfigurationError(reason, key="jms.usePulsarAdmin")
    return transport.admin


async def letter_topics(admin: Admin, resolved: Resolved, of: str | None) -> list[str]:
    """Return the full names of a destination's topics, or of its dead letter topics for the subscription ``of``.

    Each partition has its own; a Java client with later delivery (``enableRetry``) has one for the whole topic. Raises
    NotFoundError if the destination has no dead letter topic.
    """
    topics = await list_topics(admin, resolved)
    if of is None:
        return topics
    names = [name for topic in topics for name in dict.fromkeys([topic, *await list_partitions(admin, topic)])]
    letters = [dead_letter_topic(name, of) for name in names]
    found = [topic for topic in letters if await list_partitions(admin, topic)]
    if not found:
        raise NotFoundError(
            f"{resolved.visible_name} has no topic with dead letters of the subscription {of}: check both names; where "
            "a policy names a dead letter topic, give that as the destination"
        )
    return found
