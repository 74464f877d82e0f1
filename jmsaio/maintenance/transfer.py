"""What a transfer is: the messages that it selects, what becomes of them, and the ranges that it consists of."""

from __future__ import annotations

import enum
import itertools
import uuid
from collections.abc import Collection, Iterator, Sequence

import attrs

from jmsaio.config import Configuration
from jmsaio.errors import InvalidDestinationError, NotFoundError
from jmsaio.maintenance.dead_letters import REDRIVE_CURSOR, letter_topics, require_admin
from jmsaio.maintenance.outlets import Outlets
from jmsaio.model.destinations import Queue, Resolved, Topic, resolve
from jmsaio.model.topic_names import SUBSCRIPTION_PREFIX
from jmsaio.model.wire import EntryId, WireId
from jmsaio.selector import Selector
from jmsaio.transport.administration import Admin, Cursor, Ledger
from jmsaio.transport.base import Transport
from jmsaio.transport.clock import LoopTimers
from jmsaio.transport.subscriptions import list_partitions, precreate


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
class TransferRequest:
    """Dead letters to redrive, or messages to move, copy or purge, and their target.

    Attributes:
        destination: the messages. A queue's subscription is ``jms-queue``, or the one that the name ends with
            (``name:subscription``); if the name has none and a redrive has created its own subscription, that one is
            used.
        of: name of a subscription: ``destination`` is where messages failed, and the dead letters are those of this
            subscription. None: ``destination`` has the dead letters.
        selector: selector that messages must match; None: all match.
        to: target of all messages; None: each dead letter's origin.
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
class TransferRange:
    """Messages of one topic, from the first unacknowledged one to the last one when the transfer was planned.

    Attributes:
        topic: full name of a topic without partitions, or of one partition.
        subscription: subscription that delivers and acknowledges them.
        durable: the subscription is kept after the transfer; if False, it is new and ends with the transfer.
        end: the last message inspected.
        copied_from: of a copy, the subscription whose unacknowledged messages are copied; ``subscription`` is the
            copy's own.
    """

    topic: str
    subscription: str
    durable: bool = True
    end: WireId
    copied_from: str | None = None


async def plan_transfer(
    transport: Transport, configuration: Configuration, request: TransferRequest
) -> list[TransferRange]:
    """Return one range for each topic without partitions, or partition, that has messages to transfer.

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
        raise InvalidDestinationError(f"{request.destination} is also the target: name another destination")
    ranges = []
    for topic in await find_partitions(admin, topics):
        name, durable, exists = await _subscription(admin, configuration, resolved, request, topic)
        end = await transport.end(topic)
        if end is None or (exists and await is_done(admin, topic, name, end)):
            continue
        ranges.append(TransferRange(topic=topic, subscription=name, durable=durable, end=end))
    if target is not None and not request.dry_run:
        await Outlets(transport, configuration, lambda *_: None).register(target, [each.topic for each in ranges])
    return ranges


async def find_partitions(admin: Admin, topics: Sequence[str]) -> list[str]:
    """Return topics with their partitions listed one by one. Raises NotFoundError for a missing topic."""
    found = [await list_partitions(admin, topic) for topic in topics]
    missing = [topic for topic, names in zip(topics, found, strict=True) if not names]
    if missing:
        raise NotFoundError(f"topic {', '.join(missing)} does not exist: check its name")
    return list(itertools.chain(*found))


async def _subscription(
    admin: Admin, configuration: Configuration, resolved: Resolved, request: TransferRequest, topic: str
) -> tuple[str, bool, bool]:
    """Return the name of the subscription, whether it outlives the transfer, and whether it exists already."""
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


async def has_unseen(admin: Admin, part: TransferRange, seen: Collection[WireId]) -> bool:
    """Return True if an entry of a range is neither acknowledged nor seen: another consumer holds it.

    Of a batch, one seen message stands for its entry. Raises NotFoundError, and AdminError if the broker failed.
    """
    entries = {(one.ledger, one.entry) for one in seen}
    log, cursor = await admin.log(part.topic), await admin.cursor(part.topic, part.subscription)
    for entry in unacknowledged(log.ledgers, cursor, part.end):
        place = WireId(*entry, part.end.partition)
        if entry in entries:
            continue
        # A chunked message is received under the id of its last chunk.
        if cursor.is_newer(place) or not (await admin.entry(part.topic, place)).chunks_left:
            return True
    return False


def unacknowledged(ledgers: Sequence[Ledger], cursor: Cursor, end: WireId) -> Iterator[EntryId]:
    """Yield the entries up to ``end`` that are not acknowledged completely, in the order of the ledgers."""
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
