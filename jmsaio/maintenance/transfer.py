"""What a transfer is: the messages that it selects, what becomes of them, its ranges, and senders to its targets."""

from __future__ import annotations

import enum
import itertools
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from random import random

import attrs

from jmsaio.config import Configuration
from jmsaio.errors import (
    InvalidDestinationError,
    JMSError,
    JMSSecurityError,
    NotFoundError,
    OperationTimeoutError,
    TransportError,
)
from jmsaio.maintenance.dead_letters import REDRIVE_CURSOR, letter_topics, require_admin
from jmsaio.model.destinations import Queue, Resolved, Topic, resolve
from jmsaio.model.schema import Schema
from jmsaio.model.topic_names import SUBSCRIPTION_PREFIX, split_partition
from jmsaio.model.wire import EntryId, OutgoingRecord, ReceivedRecord, WireId
from jmsaio.rules.routing import make_route
from jmsaio.selector import Selector
from jmsaio.transport.administration import Admin, Cursor, Ledger
from jmsaio.transport.base import Sender, Settled, Transport
from jmsaio.transport.clock import LoopTimers
from jmsaio.transport.copy_senders import INCOMPATIBLE, CopySenders
from jmsaio.transport.sending import has_room, longest_wait, sender_options
from jmsaio.transport.subscriptions import list_partitions, precreate


class Transfer(enum.Enum):
    """What is done with each selected message.

    REDRIVE: a dead letter is sent to its origin or to ``to``, without the properties of a dead letter, then
    acknowledged. MOVE: it is sent to ``to`` unchanged, then acknowledged. COPY: it is sent to ``to`` unchanged, and
    acknowledged on a subscription of the copy's own. PURGE: it is acknowledged.
    """

    REDRIVE = "redrive"
    MOVE = "move"
    COPY = "copy"
    PURGE = "purge"


@attrs.frozen(kw_only=True)
class TransferRequest:
    """Dead letters to redrive, or messages to move, copy or purge, and their target.

    Attributes:
        destination: its queue's subscription is ``jms-queue`` or the one in ``name:subscription``; if the name has none
            and a redrive has created its own subscription, that one.
        of: name of a subscription of ``destination`` whose dead letters are meant.
        to: target of all messages; None: each dead letter's origin. ``MOVE`` and ``COPY`` need it.
        max_redrives: skip dead letters that were already redriven this many times.
        dry_run: only count: nothing is sent, and everything is returned to the broker.
        patience: seconds without a delivery after which the rest of a topic counts as unreachable.
        limit: maximum number of messages selected; None: all, as always for ``COPY``.
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
        """Return the full name of the topic ``to``; None if each dead letter is sent to its origin."""
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
        durable: the subscription is kept after the transfer; if False, it is new and ends with the transfer.
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

    Raises InvalidDestinationError if ``to`` stands for several topics or refuses a schema, and NotFoundError.
    Cancelling can leave the subscription of the queue ``to``, and schemas.
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

    Of a batch, one seen message stands for its entry.
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


@attrs.define(eq=False)
class Outlets:
    """Senders to the targets of redriven, moved and copied messages, one for each topic and schema.

    Outcomes are reported to ``settled``, see ``SenderOptions``.
    """

    _transport: Transport
    _configuration: Configuration
    _settled: Settled
    _senders: CopySenders = attrs.field(init=False)
    _checked: dict[str, JMSError | None] = attrs.field(init=False, factory=dict)
    _failed: dict[tuple[str, Schema | None], JMSError] = attrs.field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        config = self._configuration
        route = make_route(config.used_priority_mapping, False, random)
        # A target is known by its topic only, which might be a queue's.
        by_group = "Key_Shared" in (config.queue_subscription_type, config.topic_shared_subscription_type)
        options = sender_options(config, route, self._settled, by_group)
        self._senders = CopySenders(
            self._transport.open_sender, self._transport.admin, self._check_again, options,
            config.max_num_of_producers, config.close_timeout,
        )  # fmt: skip

    async def check(self, topic: str) -> None:
        """Raise an error for a topic that would not keep messages, or if the broker does not answer.

        Checked once, again before an outdated sender is replaced, and never without administration.
        """
        if topic not in self._checked:
            self._checked[topic] = await self._find_fault(topic)
        fault = self._checked[topic]
        if fault is not None:
            raise fault

    async def _check_again(self, topic: str) -> None:
        self._checked.pop(topic, None)
        await self.check(topic)

    async def _find_fault(self, topic: str) -> JMSError | None:
        admin = self._transport.admin
        if admin is None:
            return None
        try:
            if (await admin.stats(topic)).subscriptions:
                return None
        except NotFoundError:
            return NotFoundError(f"{topic} no longer exists: name another destination (--to)")
        except JMSError as error:
            return error
        return InvalidDestinationError(f"{topic} has no subscription that would keep a message: name another (--to)")

    async def register(self, topic: str, sources: Iterable[str]) -> None:
        """Register the schemas of some topics with the one that their messages are sent to.

        Raises as ``check``, and InvalidDestinationError if the topic refuses a schema.
        """
        for source in dict.fromkeys(split_partition(each)[0] for each in sources):
            try:
                missing = await self._senders.missing(topic, source)
            except JMSSecurityError:
                continue  # each message that has a schema reports it
            try:
                if missing:
                    await self.check(topic)
                    await self._senders.register(topic, missing)
            except TransportError as error:
                if error.error_code != INCOMPATIBLE:
                    raise
                text = f"{topic} can't take the messages of {source} with their schemas, so nothing was sent: {error}"
                raise InvalidDestinationError(text) from error

    async def sender(self, topic: str, copy: OutgoingRecord, record: ReceivedRecord) -> Sender:
        """Return the sender to a topic, with room for ``copy``, which is made from ``record``.

        A failure to open one is raised again for each record.
        """
        await self.check(topic)
        schema = await self._senders.schema_of(record)
        fault = self._failed.get((topic, schema))
        if fault is not None:
            raise fault
        try:
            sender = await self._senders.sender(topic, copy, schema, record.topic)
        except JMSError as error:
            self._failed[topic, schema] = error
            raise
        if sender.full and not await has_room(sender, self._configuration):
            waited = longest_wait(self._configuration)
            raise OperationTimeoutError(f"{topic}: the broker has confirmed nothing for {waited:g} s")
        return sender

    async def drain(self) -> None:
        """Wait until every record is confirmed or rejected; raise OperationTimeoutError otherwise."""
        await self._senders.drain()

    async def aclose(self) -> None:
        """Close every sender; records not stored within ``close_timeout`` seconds are in doubt. Idempotent."""
        await self._senders.aclose()
