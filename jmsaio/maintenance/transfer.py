"""The transfer of one range of messages: each is sent to its target, and acknowledged when it is stored there."""

from __future__ import annotations

import asyncio
import enum
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from random import random
from typing import Final

import anyio
import attrs

from jmsaio.codec import headers
from jmsaio.config import Configuration
from jmsaio.errors import (
    InvalidDestinationError,
    JMSError,
    JMSSecurityError,
    NotFoundError,
    OperationTimeoutError,
    TransportError,
)
from jmsaio.maintenance.dead_letters import origin_of, redrive_count, redriven, require_admin
from jmsaio.model.destinations import Queue, Topic, resolve
from jmsaio.model.schema import Schema
from jmsaio.model.topic_names import split_partition
from jmsaio.model.wire import EntryId, OutgoingRecord, ReceivedRecord, SetAside, WireId
from jmsaio.rules.routing import make_route
from jmsaio.selector import Selector
from jmsaio.transport.administration import Admin, Cursor, Ledger
from jmsaio.transport.base import Receiver, Sender, Settled, StartPosition, Subscription, SubscriptionType, Transport
from jmsaio.transport.copy_senders import INCOMPATIBLE, CopySenders
from jmsaio.transport.sending import has_room, longest_wait, sender_options

#: Records inspected per batch.
_AT_ONCE: Final = 500
#: Maximum number of records in flight before more are received; about as many are sent again after a killed process.
_IN_FLIGHT: Final = 1000
#: Seconds to wait until fewer records are in flight.
_CONFIRMED: Final = 300.0
#: Seconds to wait until the broker has received all acknowledgements.
_ACKNOWLEDGED: Final = 30.0
#: Maximum number of different errors reported.
MAX_ERRORS: Final = 5


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


#: Reasons why a message was not sent.
TOO_OFTEN: Final = "redriven too often"
NO_ORIGIN: Final = "no origin"
FAILED: Final = "failed"


@attrs.define(kw_only=True)
class TransferResult:
    """Result for the messages of one topic.

    Attributes:
        sent: number of messages sent, or to be sent in a dry run, by target topic; of a purge, the number acknowledged.
        left: number left, by reason.
        errors: reasons why some failed, or the call failed after it had begun; a few sentences.
        complete: False if other consumers hold some messages up to the end, or the call failed.
    """

    topic: str
    sent: Counter[str] = attrs.field(factory=Counter)
    not_selected: int = 0
    left: Counter[str] = attrs.field(factory=Counter)
    errors: Sequence[str] = ()
    complete: bool = False

    def report(self, text: str) -> None:
        if text and text not in self.errors and len(self.errors) < MAX_ERRORS:
            self.errors = (*self.errors, text)


@attrs.define(eq=False)
class TransferProgress:
    """Progress of a request over all its topics; ``changed`` is called with it after each change.

    ``total``: number of messages on the subscriptions at the beginning; None if it is unknown.
    """

    changed: Callable[[TransferProgress], object] = lambda _: None
    total: int | None = None
    seen: int = 0
    sent: int = 0


async def transfer_range(
    transport: Transport, configuration: Configuration, request: TransferRequest, part: TransferRange,
    progress: TransferProgress,
) -> TransferResult:  # fmt: skip
    """Transfer the messages of one topic or partition, at least once.

    If the acknowledgement of a sent message does not reach the broker, the next call sends it again; redriven copies
    have the same property ``jmsaio_origin_message_id``. The configuration's dead letter policy does not apply.

    Raises ConsumerBusyError, or TransportError if nothing was sent. A later failure is reported in ``errors``.
    Cancelling loses nothing: no message is acknowledged before the broker has stored its copy.
    """
    consumed: Cursor | None = None
    if part.copied_from is not None:
        consumed = await require_admin(transport).cursor(part.topic, part.copied_from)
    elif request.transfer is Transfer.COPY:
        raise ValueError(f"{part} has no subscription of the copy's own")
    selector = None if request.selector is None else Selector(request.selector)
    target, woken = request.target(configuration), asyncio.Event()
    subscription = Subscription(
        topics=(part.topic,),
        name=part.subscription,
        type=SubscriptionType.SHARED,
        # Retained records must not be redelivered, and must not become dead letters of a dead letter topic.
        config=attrs.evolve(configuration.consumer, dead_letter=None, ack_timeout=None),
        position=StartPosition.EARLIEST,
        durable=part.durable,
        selective=True,
    )
    receiver = await transport.open_receiver(subscription, woken.set)
    work = _Work(transport, configuration, request, part, selector, target, receiver, woken, progress, consumed)
    try:
        failed = False
        try:
            await work.run()
        except JMSError as error:  # messages sent before are also reported
            failed = True
            work.result.errors = (str(error), *work.result.errors)
        await work.finish(failed)
    finally:
        with anyio.CancelScope(shield=True):
            await work.aclose()
    return work.result


@attrs.define(eq=False)
class _Work:
    """The work on one range.

    ``woken`` is set when records arrive; ``target`` is None if each message has its own; of a copy, ``consumed`` is
    what the queue's subscription had acknowledged at the beginning, which is not copied.
    """

    _transport: Transport
    _configuration: Configuration
    _request: TransferRequest
    _part: TransferRange
    _selector: Selector | None
    _target: str | None
    _receiver: Receiver
    _woken: asyncio.Event
    _progress: TransferProgress
    _consumed: Cursor | None
    _outlets: Outlets = attrs.field(init=False)
    _confirmed: asyncio.Event = attrs.field(init=False, factory=asyncio.Event)
    _seen: set[WireId] = attrs.field(init=False, factory=set)
    # Messages whose copies are in flight, and those whose copies are stored.
    _in_flight: dict[WireId, list[ReceivedRecord]] = attrs.field(init=False, factory=dict)
    _stored: set[WireId] = attrs.field(init=False, factory=set)
    _retained: list[SetAside] = attrs.field(init=False, factory=list)
    _at_end: bool = attrs.field(init=False, default=False)
    _selected: int = attrs.field(init=False, default=0)
    result: TransferResult = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._outlets = Outlets(self._transport, self._configuration, self._settled)
        self.result = TransferResult(topic=self._part.topic)

    async def run(self) -> None:
        """Receive messages, and send or retain each, until the last one, or until the broker delivers no more."""
        loop = asyncio.get_running_loop()
        last = loop.time()
        while not (self._at_end or self._is_limited()):
            self._woken.clear()
            records = self._receiver.receive(_AT_ONCE)
            for record in records:
                await self._handle(record)
            self._progress.changed(self._progress)
            await self._wait_for_outcomes()
            if records:
                last = loop.time()
                continue
            try:
                async with asyncio.timeout_at(last + self._request.patience):
                    await self._woken.wait()
            except TimeoutError:
                return

    async def _wait_for_outcomes(self) -> None:
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(_CONFIRMED):
                while len(self._in_flight) > _IN_FLIGHT:
                    self._confirmed.clear()
                    await self._confirmed.wait()
        except TimeoutError:
            raise OperationTimeoutError(f"the broker has confirmed nothing for {_CONFIRMED:g} s") from None

    async def _handle(self, record: ReceivedRecord) -> None:
        message_id, end = record.message_id, self._part.end
        if _in_order(message_id) >= _in_order(end):
            self._at_end = True
        if _in_order(message_id) > _in_order(end) or (self._is_limited() and message_id not in self._seen):
            self._retain(record)
        elif message_id not in self._seen:
            self._seen.add(message_id)
            self._progress.seen += 1
            await self._decide(record)
        elif message_id in self._in_flight:  # here and below: the connection was lost meanwhile
            self._in_flight[message_id].append(record)
        elif message_id in self._stored:
            self._acknowledge([record])
        else:
            self._retain(record)

    def _is_limited(self) -> bool:
        return self._request.limit is not None and self._selected >= self._request.limit

    async def _decide(self, record: ReceivedRecord) -> None:
        try:
            if self._consumed is not None and self._consumed.is_acknowledged(record.message_id):
                self._pass(record)
                return
            if self._selector is not None and self._selector.matches_record(record, headers.header) is not True:
                self.result.not_selected += 1
                if self._request.transfer is Transfer.COPY:
                    self._pass(record)
                    return
            elif self._request.transfer is Transfer.PURGE:
                self._selected += 1
                self._count(self._part.topic)
                self._pass(record)
                return
            elif (target := self._find_target(record.properties)) is not None:
                self._selected += 1
                if await self._send(record, target):
                    return
        except JMSError as error:
            self._skip(FAILED, f"{record.message_id}: {error}")
        self._retain(record)

    def _pass(self, record: ReceivedRecord) -> None:
        if self._request.dry_run:
            self._retain(record)
        else:
            self._stored.add(record.message_id)
            self._acknowledge([record])

    async def _send(self, record: ReceivedRecord, target: str) -> bool:
        """Send a copy; return False in a dry run, which only checks the target."""
        plain = self._request.transfer is not Transfer.REDRIVE
        outgoing = _unchanged(record) if plain else redriven(record, round(self._transport.clock.now() * 1000))
        if not self._request.dry_run:
            sender, message_id = await self._outlets.sender(target, outgoing, record), record.message_id
            sender.send(outgoing, (message_id, target))
            self._in_flight[message_id] = [record]  # outcomes are never reported during the call
            return True
        if not isinstance(self._request.to, Queue):  # the queue would be created
            await self._outlets.check(target)
        self._count(target)
        return False

    def _count(self, target: str) -> None:
        self.result.sent[target] += 1
        self._progress.sent += 1

    def _find_target(self, wire: Mapping[str, str]) -> str | None:
        target = self._target or origin_of(wire)
        if self._request.transfer is not Transfer.REDRIVE:
            return target  # the plan has checked it
        if target is None:
            text = "a dead letter without REAL_TOPIC does not name its origin: name a destination (--to)"
            self._skip(NO_ORIGIN, text)
        elif split_partition(target)[0] == split_partition(self._part.topic)[0]:
            text = f"{target} is the dead letter topic itself: name another destination (--to)"
            self._skip(FAILED, text)
        elif redrive_count(wire) >= self._request.max_redrives:
            self._skip(TOO_OFTEN, "")
        else:
            return target
        return None

    def _settled(self, copies: Sequence[tuple[WireId, str]], message_id: WireId | None, error: JMSError | None) -> None:
        self._confirmed.set()
        for source, target in copies:
            records = self._in_flight.pop(source)
            if error is None:
                self._count(target)
                self._stored.add(source)
                self._acknowledge(records)
            else:
                self._skip(FAILED, f"{target}: {error}")
                for record in records:
                    self._retain(record)
        self._progress.changed(self._progress)

    def _acknowledge(self, records: Sequence[ReceivedRecord]) -> None:
        try:
            self._receiver.acknowledge(records)
        except JMSError as error:  # the broker has lost this consumer, and redelivers them
            self.result.report(str(error))

    def _retain(self, record: ReceivedRecord) -> None:
        self._retained += self._receiver.set_aside([record])

    def _skip(self, why: str, text: str) -> None:
        self.result.left[why] += 1
        self.result.report(text)

    async def finish(self, failed: bool) -> None:
        """Wait for the outcomes and acknowledgements, then check whether other consumers hold messages."""
        try:
            await self._outlets.senders.drain()
            await self._receiver.settle(_ACKNOWLEDGED, receipt=True)
        except JMSError as error:  # sent messages are counted, and can be sent again
            self.result.report(str(error))
        try:
            self.result.complete = not failed and (self._is_limited() or await self._has_seen_all())
        except JMSError as error:
            self.result.report(str(error))

    async def _has_seen_all(self) -> bool:
        admin = self._transport.admin
        if admin is None or not self._part.durable:  # a subscription that ends with this call is not shared
            return self._at_end
        return not await has_unseen(admin, self._part, self._seen)

    async def aclose(self) -> None:
        """Return retained records, and close. Records in flight still count if they are stored in time."""
        await self._outlets.senders.aclose()
        try:
            self._receiver.negative_acknowledge(self._retained, 0.0, counted=False)
        except JMSError:
            pass  # closed already: the broker redelivers them
        finally:
            await self._receiver.aclose(self._configuration.close_timeout)


def _unchanged(record: ReceivedRecord) -> OutgoingRecord:
    """Build the record of a moved or copied message: its JMSMessageID, JMSTimestamp and all properties are kept."""
    wire = dict(record.properties)
    return OutgoingRecord(record.payload, wire, record.key, record.event_time, priority=headers.priority(wire))


def _in_order(message_id: WireId) -> tuple[int, int, int]:
    return message_id.ledger, message_id.entry, message_id.batch_index


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
    """Senders to the targets of messages, one for each topic and schema; ``settled`` is as in ``SenderOptions``."""

    _transport: Transport
    _configuration: Configuration
    _settled: Settled
    senders: CopySenders = attrs.field(init=False)
    _checked: dict[str, JMSError | None] = attrs.field(init=False, factory=dict)
    _failed: dict[tuple[str, Schema | None], JMSError] = attrs.field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        config = self._configuration
        route = make_route(config.used_priority_mapping, False, random)
        # A target is known by its topic only, which might be a queue's.
        by_group = "Key_Shared" in (config.queue_subscription_type, config.topic_shared_subscription_type)
        options = sender_options(config, route, self._settled, by_group)
        self.senders = CopySenders(
            self._transport.open_sender, self._transport.admin, partial(self.check, again=True), options,
            config.max_num_of_producers, config.close_timeout,
        )  # fmt: skip

    async def check(self, topic: str, again: bool = False) -> None:
        """Raise an error, the same each time, for a topic that would not keep messages, or can't be checked."""
        if again or topic not in self._checked:
            self._checked[topic] = await self._find_fault(topic)
        fault = self._checked[topic]
        if fault is not None:
            raise fault

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
        """Register the schemas of topics with the one that their messages are sent to, which must accept them all."""
        for source in dict.fromkeys(split_partition(each)[0] for each in sources):
            try:
                missing = await self.senders.missing(topic, source)
            except JMSSecurityError:
                continue  # each message that has a schema reports it
            try:
                if missing:
                    await self.check(topic)
                    await self.senders.register(topic, missing)
            except TransportError as error:
                if error.error_code != INCOMPATIBLE:
                    raise
                text = f"{topic} can't take the messages of {source} with their schemas, so nothing was sent: {error}"
                raise InvalidDestinationError(text) from error

    async def sender(self, topic: str, copy: OutgoingRecord, record: ReceivedRecord) -> Sender:
        """Return the sender to a topic, with room for ``copy``; a failure to open one is raised for each record."""
        await self.check(topic)
        schema = await self.senders.schema_of(record)
        fault = self._failed.get((topic, schema))
        if fault is not None:
            raise fault
        try:
            sender = await self.senders.sender(topic, copy, schema, record.topic)
        except JMSError as error:
            self._failed[topic, schema] = error
            raise
        if sender.full and not await has_room(sender, self._configuration):
            waited = longest_wait(self._configuration)
            raise OperationTimeoutError(f"{topic}: the broker has confirmed nothing for {waited:g} s")
        return sender
