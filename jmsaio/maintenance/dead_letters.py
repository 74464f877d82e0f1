"""Dead letters: their contents and topics, and which are redriven or reported.

A client that moves a message to its dead letter topic adds properties with its origin: jmsaio, pulsar-client and the
Java client write ``REAL_TOPIC`` and ``ORIGIN_MESSAGE_ID``, jmsaio and Java ``REAL_SUBSCRIPTION``. The redriven record
has none of them: the Java client keeps an existing ``REAL_TOPIC``, whatever topic the message fails on.
"""

from __future__ import annotations

import enum
import itertools
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import attrs

from jmsaio.codec import headers, properties
from jmsaio.codec.headers import expiration
from jmsaio.config import Configuration
from jmsaio.errors import ConfigurationError, InvalidDestinationError, NotFoundError
from jmsaio.maintenance.outlets import Outlets
from jmsaio.model.destinations import Queue, Resolved, Topic, resolve
from jmsaio.model.topic_names import JOB_PREFIX, SUBSCRIPTION_PREFIX, dead_letter_topic
from jmsaio.model.wire import (
    EXPIRATION,
    FAILED_DELIVERIES,
    ORIGIN_MESSAGE_ID,
    REAL_SUBSCRIPTION,
    REAL_TOPIC,
    TYPE_SUFFIX,
    EntryId,
    OutgoingRecord,
    ReceivedRecord,
    WireId,
)
from jmsaio.selector import Selector
from jmsaio.transport.administration import Admin, Cursor, Ledger
from jmsaio.transport.base import Transport
from jmsaio.transport.clock import LoopTimers
from jmsaio.transport.subscriptions import list_partitions, list_topics, precreate

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


class Transfer(enum.Enum):
    """What is done with each selected message.

    Attributes:
        REDRIVE: a dead letter is sent to its origin or to ``to``, without the properties of a dead letter, and then
            acknowledged.
        MOVE: a message is sent to ``to`` unchanged, and then acknowledged.
        COPY: a message is sent to ``to`` unchanged, and stays where it is; a subscription of the copy's own is
            acknowledged.
        PURGE: a message is acknowledged.
    """

    REDRIVE = "redrive"
    MOVE = "move"
    COPY = "copy"
    PURGE = "purge"


@attrs.frozen(kw_only=True)
class RedriveRequest:
    """Dead letters to redrive, or messages to move, copy or purge, and their target.

    Attributes:
        destination: the dead letters. A queue's subscription is ``jms-queue``, or the one that the name ends with
            (``name:subscription``); if the name has none and a redrive has created its own subscription, that one is
            used.
        of: name of a subscription: ``destination`` is where messages failed, and the dead letters are those of this
            subscription. None: ``destination`` has the dead letters.
        selector: selector that dead letters must match; None: all match.
        to: target of all dead letters; None: each one's origin.
        max_redrives: skip dead letters that were already redriven this many times.
        dry_run: only count: nothing is sent, and everything is returned to the broker.
        patience: seconds without a delivery after which the rest of a topic counts as unreachable.
        transfer: what is done with each one. ``MOVE`` and ``COPY`` need ``to``, and only ``REDRIVE`` has
            ``max_redrives``.
        limit: maximum number of messages selected; None: all.
    """

    destination: Queue | Topic
    of: str | None = None
    selector: str | None = None
    to: Queue | Topic | None = None
    max_redrives: int = 3
    dry_run: bool = False
    patience: float = 5.0
    transfer: Transfer = Transfer.REDRIVE
    limit: int | None = None

    def target(self, configuration: Configuration) -> str | None:
        """Return the full name of the topic ``to``; None if each dead letter is sent to its origin.

        Raises:
            InvalidDestinationError: ``to`` stands for several topics.
        """
        if self.to is None:
            return None
        resolved = resolve(self.to, configuration.system_namespace)
        if resolved.virtual:
            raise InvalidDestinationError(f"{self.to} stands for several topics; name one to send to")
        return resolved.topics[0]


@attrs.frozen(kw_only=True)
class LetterRange:
    """Dead letters of one topic, from the first unacknowledged one to the last one when the redrive was planned.

    Attributes:
        topic: full name of a dead letter topic without partitions, or of one partition.
        subscription: subscription that delivers and acknowledges them.
        durable: the subscription is kept after the redrive; if False, it is new and ends with the redrive.
        end: the last dead letter inspected.
        copied_from: of a copy, the subscription whose unacknowledged messages are copied; ``subscription`` is the
            copy's own.
    """

    topic: str
    subscription: str
    durable: bool = True
    end: WireId
    copied_from: str | None = None


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


def unchanged(record: ReceivedRecord) -> OutgoingRecord:
    """Build the record of a moved or copied message: its JMSMessageID, JMSTimestamp and all properties are kept."""
    wire = dict(record.properties)
    return OutgoingRecord(record.payload, wire, record.key, record.event_time, priority=headers.priority(wire))


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
    message_id = str(letter.message_id).removeprefix("ID:")
    wire.setdefault(ORIGINAL_PLACE, found.get(ORIGIN_MESSAGE_ID) or message_id)
    properties.write({REDRIVE_COUNT: redrive_count(found) + 1}, wire)
    if 0 < expiration(letter) <= now:
        wire.pop(EXPIRATION, None)
        wire.pop(EXPIRATION + TYPE_SUFFIX, None)
    return OutgoingRecord(letter.payload, wire, letter.key, letter.event_time, priority=headers.priority(wire))


def require_admin(transport: Transport) -> Admin:
    """Return the administration of a broker.

    Raises:
        ConfigurationError: it is switched off.
    """
    if transport.admin is None:
        reason = "subscriptions are listed by the administration only; set jms.usePulsarAdmin=true and webServiceUrl"
        raise ConfigurationError(reason, key="jms.usePulsarAdmin")
    return transport.admin


async def letter_topics(admin: Admin, resolved: Resolved, of: str | None) -> list[str]:
    """Return the full names of a destination's topics, or of its dead letter topics for the subscription ``of``.

    For partitioned ones, the name of the whole. Each partition of a topic has its own dead letter topic, since
    consumers are consumers of partitions; a Java client with later delivery (``enableRetry``) has one for the whole
    topic.

    Raises:
        NotFoundError: the destination has no dead letter topic.
        TransportError: the broker does not answer.

    Cancelling changes nothing.
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


async def plan_redrive(
    transport: Transport, configuration: Configuration, request: RedriveRequest
) -> list[LetterRange]:
    """Return one range for each topic without partitions, or partition, that has dead letters.

    Args:
        transport: client of the broker.
        configuration: configuration of the transport.
        request: dead letters to redrive, and their target.

    Raises:
        ConfigurationError: there is no administration.
        InvalidDestinationError: ``to`` stands for several topics, or refuses a schema of the messages' topics.
        InvalidSelectorError: the selector is invalid.
        NotFoundError: a topic or the subscription does not exist.
        TransportError: the broker does not answer.

    Cancelling changes nothing, except that the subscription of the queue ``to``, and schemas, can exist already.
    """
    if request.selector is not None:
        Selector(request.selector)
    admin = require_admin(transport)
    resolved = resolve(request.destination, configuration.system_namespace)
    target = request.target(configuration)
    if target is not None and isinstance(request.to, Queue) and not request.dry_run:
        name = configuration.queue_subscription(resolve(request.to, configuration.system_namespace).subscription)
        await precreate(transport, configuration, target, name, LoopTimers(transport.clock))
    topics = await letter_topics(admin, resolved, request.of)
    if request.transfer is not Transfer.REDRIVE and target in topics:
        raise InvalidDestinationError(f"{request.destination} is the target, too: name another destination")
    ranges = []
    for topic in await find_partitions(admin, topics):
        name, durable, exists = await _subscription(admin, configuration, resolved, request, topic)
        end = await transport.end(topic)
        if end is None or (exists and await is_done(admin, topic, name, end)):
            continue
        ranges.append(LetterRange(topic=topic, subscription=name, durable=durable, end=end))
    if target is not None and not request.dry_run:
        await Outlets(transport, configuration, lambda *_: None).register(target, [each.topic for each in ranges])
    return ranges


async def find_partitions(admin: Admin, topics: list[str]) -> list[str]:
    """Return topics with their partitions listed one by one. Raises NotFoundError for a missing topic."""
    found = [await list_partitions(admin, topic) for topic in topics]
    missing = [topic for topic, names in zip(topics, found, strict=True) if not names]
    if missing:
        raise NotFoundError(f"topic {', '.join(missing)} does not exist: check its name")
    return list(itertools.chain(*found))


async def _subscription(
    admin: Admin, configuration: Configuration, resolved: Resolved, request: RedriveRequest, topic: str
) -> tuple[str, bool, bool]:
    """Return the name of the subscription, whether it outlives the redrive, and whether it exists already."""
    known = (await admin.stats(topic)).subscriptions
    named = None if request.of is not None else resolved.subscription
    # A queue's subscription that was created later has every dead letter, including sent ones.
    if named is None and REDRIVE_CURSOR in known and request.transfer is Transfer.REDRIVE:
        return REDRIVE_CURSOR, True, True
    queue = configuration.queue_subscription(named)
    if (isinstance(request.destination, Queue) or request.of is not None) and queue in known:
        return queue, True, True
    if request.transfer is not Transfer.REDRIVE:
        raise NotFoundError(f"{topic} has no subscription {queue}: {request.destination} is not a queue")
    if named is not None:
        raise NotFoundError(f"{topic} has no subscription {named}, which {request.destination} names")
    if request.dry_run:
        return f"{SUBSCRIPTION_PREFIX}{uuid.uuid4()}", False, False
    return REDRIVE_CURSOR, True, False


async def is_done(admin: Admin, topic: str, name: str, end: WireId) -> bool:
    """Return True if everything up to the end is acknowledged."""
    done = (await admin.cursor(topic, name)).mark_delete
    return done is not None and (end.ledger, end.entry) <= (done.ledger, done.entry)


async def has_unseen(admin: Admin, letters: LetterRange, seen: Collection[WireId]) -> bool:
    """Return True if an entry of a range is neither acknowledged nor seen: another consumer holds it.

    Args:
        admin: admin client of the broker.
        letters: the range; its subscription is durable.
        seen: ids of received messages; one of a batch stands for its entry.

    Raises:
        NotFoundError: the topic or subscription does not exist.
        AdminError: the broker failed.

    Cancelling changes nothing.
    """
    entries = {(one.ledger, one.entry) for one in seen}
    log = await admin.log(letters.topic)
    cursor = await admin.cursor(letters.topic, letters.subscription)
    for entry in unacknowledged(log.ledgers, cursor, letters.end):
        # A chunked message is received under the id of its last chunk.
        if entry not in entries and not await admin.is_incomplete(letters.topic, WireId(*entry, letters.end.partition)):
            return True
    return False


def unacknowledged(ledgers: Sequence[Ledger], cursor: Cursor, end: WireId) -> Iterator[EntryId]:
    """Yield the entries up to ``end`` that are not acknowledged completely, as (ledger, entry), in order.

    Args:
        ledgers: ledgers of the topic, oldest first.
        cursor: cursor of the subscription.
        end: the last entry that counts.
    """
    mark = (-1, -1) if cursor.mark_delete is None else (cursor.mark_delete.ledger, cursor.mark_delete.entry)
    spans = sorted(cursor.deleted, reverse=True)  # the next span is the last item
    for ledger in ledgers:
        if not mark[0] <= ledger.id <= end.ledger:
            continue
        first = mark[1] + 1 if ledger.id == mark[0] else 0
        stop = end.entry + 1 if ledger.id == end.ledger else ledger.entries
        for entry in ((ledger.id, number) for number in range(first, stop)):
            while spans and spans[-1][1] < entry:
                spans.pop()
            if not spans or entry < spans[-1][0]:
                yield entry


async def report_topics(
    admin: Admin, resolved: Resolved, of: str | None, *, pending: bool
) -> tuple[list[str], str | None]:  # fmt: skip
    """Return the full names of the topics to report on, and the subscription that a redrive created there.

    Args:
        admin: admin client of the broker.
        resolved: destination with the dead letters, or where messages failed.
        of: name of the subscription where they failed; None: ``resolved`` has the dead letters.
        pending: leave out messages that the queue's subscription has acknowledged.

    Returns:
        No topics if the destination is sufficient; no subscription if the queue's one is used.

    Raises:
        ConfigurationError: only some of the topics have the subscription.
        NotFoundError: a topic does not exist.
        TransportError: the broker does not answer.

    Cancelling changes nothing.
    """
    topics = await letter_topics(admin, resolved, of)
    asked_for = topics if of is not None else []
    if not pending or (of is None and resolved.subscription is not None):
        return asked_for, None
    own = [topic for topic in topics if REDRIVE_CURSOR in (await admin.stats(topic)).subscriptions]
    if not own:
        return asked_for, None
    if own != topics:
        reason = f"{', '.join(own)} has a subscription {REDRIVE_CURSOR}, and other topics have none: report them apart"
        raise ConfigurationError(reason, key="pending")
    return topics, REDRIVE_CURSOR


def describe_group(group: Mapping[str, Any], chosen: Sequence[str], now: int) -> dict[str, Any]:
    """Describe a group of dead letters for the summary of a report.

    Args:
        group: ``origin``, ``subscription``, ``type``; ``p0``, ``p1`` ... for the chosen properties; the numbers
            ``letters``, ``bytes``, ``redriven``; ``first`` and ``last`` in ms since the epoch; ``samples``.
        chosen: names of the chosen properties.
        now: current time in ms since the epoch.
    """
    first, last = group["first"], group["last"]
    return {
        **{name: group[name] for name in ("origin", "subscription", "type")},
        "properties": {name: group[f"p{index}"] for index, name in enumerate(chosen)},
        **{name: group[name] for name in ("letters", "bytes", "redriven")},
        "first": _iso(first),
        "last": _iso(last),
        "oldest_age": _age(first, now),
        "newest_age": _age(last, now),
        "samples": list(group["samples"] or ()),
    }


def _age(milliseconds: int | None, now: int) -> int | None:
    """Return the seconds since a time."""
    return None if milliseconds is None else round(max(0, now - milliseconds) / 1000)


def _iso(milliseconds: int | None) -> str | None:
    if milliseconds is None:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
