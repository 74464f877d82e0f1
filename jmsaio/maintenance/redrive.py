"""Redrive of the dead letters of one topic or partition; moving, copying and purging of a queue's messages.

Each message is sent to its target, and acknowledged when the broker has stored it there.
"""

from __future__ import annotations

import asyncio
import enum
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

import anyio
import attrs

from jmsaio.codec.headers import header
from jmsaio.config import Configuration
from jmsaio.errors import JMSError, OperationTimeoutError
from jmsaio.maintenance.dead_letters import (
    LetterRange,
    RedriveRequest,
    Transfer,
    has_unseen,
    origin_of,
    redrive_count,
    redriven,
    require_admin,
    unchanged,
)
from jmsaio.maintenance.outlets import Outlets
from jmsaio.model.destinations import Queue
from jmsaio.model.topic_names import split_partition
from jmsaio.model.wire import ReceivedRecord, SetAside, WireId
from jmsaio.selector import Selector
from jmsaio.transport.base import (
    Cursor,
    Receiver,
    StartPosition,
    Subscription,
    SubscriptionType,
    Transport,
)

#: Records inspected per batch.
_AT_ONCE: Final = 500
#: Maximum number of records in flight before more are taken; about as many are sent again after a killed process.
_IN_FLIGHT: Final = 1000
#: Seconds to wait until fewer records are in flight.
_CONFIRMED: Final = 300.0
#: Seconds to wait until the broker has received all acknowledgements.
_ACKNOWLEDGED: Final = 30.0
#: Maximum number of different errors reported.
MAX_ERRORS: Final = 5


class Left(enum.Enum):
    """Reason why a dead letter was not sent."""

    TOO_OFTEN = "redriven too often"
    NO_ORIGIN = "no origin"
    FAILED = "failed"


@attrs.frozen(kw_only=True)
class Redriven:
    """Result for the dead letters of one topic.

    Attributes:
        topic: full name of the dead letter topic.
        sent: number of dead letters sent, or to be sent in a dry run, by the full name of the target topic.
        not_selected: number that did not match the selector.
        left: number left, by the value of the reason (``Left``).
        errors: reasons why some failed, or the call failed after it had begun; a few sentences.
        complete: all unacknowledged dead letters up to the end were received; False if other consumers hold some, or
            the call failed.
    """

    topic: str
    sent: Mapping[str, int]
    not_selected: int
    left: Mapping[str, int]
    errors: Sequence[str]
    complete: bool


@attrs.define(eq=False)
class Progress:
    """Progress of a request over all its topics.

    Attributes:
        changed: called with this object after each change.
        total: number of messages on the subscriptions when the request began; None if it is unknown.
        seen: number of messages received.
        sent: number of messages sent, or in a dry run to be sent; of a purge, acknowledged.
    """

    changed: Callable[[Progress], object]
    total: int | None = None
    seen: int = 0
    sent: int = 0


async def redrive(
    transport: Transport, configuration: Configuration, request: RedriveRequest, letters: LetterRange,
    progress: Progress | None = None,
) -> Redriven:  # fmt: skip
    """Redrive the dead letters of one topic or partition, at least once.

    If the acknowledgement of a sent dead letter does not reach the broker, the next call sends it again; copies have
    the same property ``jmsaio_origin_message_id``. All others stay on the subscription.

    Args:
        transport: client of the broker.
        configuration: configuration of the transport. Its ``consumer`` and ``producer`` apply, except for the dead
            letter policy.
        request: selects dead letters, and names their target.
        letters: one of the request's ranges.
        progress: updated while messages are received and sent.

    Raises:
        ValueError: a copy without a subscription of its own.
        InvalidSelectorError: the selector is invalid.
        InvalidDestinationError: ``to`` stands for several topics.
        ConsumerBusyError: the subscription has a consumer that does not share it.
        TransportError: the broker does not answer; nothing was sent. A later failure is reported in ``errors``; dead
            letters sent before it can be unacknowledged.

    Cancelling loses nothing: no dead letter is acknowledged before the broker has stored its copy.
    """
    async with _opened(transport, configuration, request, letters, progress) as work:
        try:
            await work.run()
        except JMSError as error:  # messages sent before are reported, too
            work.fail(error)
        await work.finish()
    return work.outcome()


async def find_last(
    transport: Transport, configuration: Configuration, request: RedriveRequest, letters: LetterRange
) -> tuple[int, WireId | None]:  # fmt: skip
    """Return how many messages of a range a request selects, and the last of them. Nothing is sent or acknowledged.

    Raises:
        As ``redrive``; any failure of the broker is raised.

    Cancelling changes nothing.
    """
    dry = attrs.evolve(request, dry_run=True)
    async with _opened(transport, configuration, dry, letters, None) as work:
        await work.run()
    return work.selected, work.last


@asynccontextmanager
async def _opened(
    transport: Transport, configuration: Configuration, request: RedriveRequest, letters: LetterRange,
    progress: Progress | None,
) -> AsyncIterator[_Redriving]:  # fmt: skip
    """Receive a range; at the end, return what is left to the broker."""
    consumed: Cursor | None = None
    if letters.copied_from is not None:
        consumed = await require_admin(transport).cursor(letters.topic, letters.copied_from)
    elif request.transfer is Transfer.COPY:
        raise ValueError(f"{letters} has no subscription of the copy's own")
    selector = None if request.selector is None else Selector(request.selector)
    target = request.target(configuration)
    woken = asyncio.Event()
    receiver = await transport.open_receiver(_subscription(configuration, letters), woken.set)
    progress = progress or Progress(changed=lambda _: None)
    work = _Redriving(transport, configuration, request, letters, selector, target, receiver, woken, progress, consumed)
    try:
        yield work
    finally:
        with anyio.CancelScope(shield=True):
            await work.aclose()


def _subscription(configuration: Configuration, letters: LetterRange) -> Subscription:
    # Held records must not be redelivered, and must not become dead letters of a dead letter topic.
    return Subscription(
        topics=(letters.topic,),
        name=letters.subscription,
        type=SubscriptionType.SHARED,
        config=attrs.evolve(configuration.consumer, dead_letter=None, ack_timeout=None),
        position=StartPosition.EARLIEST,
        durable=letters.durable,
        selective=True,
    )


class _Copy(NamedTuple):
    """Copy sent in place of a dead letter.

    Attributes:
        letter: position of the dead letter.
        target: topic that the copy was sent to.
    """

    letter: WireId
    target: str


@attrs.define(eq=False)
class _Redriving:
    """The work on one range.

    Args:
        woken: set when records arrive.
        target: None if each letter has its own.
        consumed: of a copy, what the queue's subscription had acknowledged at the beginning: it is not copied.

    Attributes:
        selected: number of messages selected.
        last: the last of them; None if there is none.
    """

    _transport: Transport
    _configuration: Configuration
    _request: RedriveRequest
    _letters: LetterRange
    _selector: Selector | None
    _target: str | None
    _receiver: Receiver
    _woken: asyncio.Event
    _progress: Progress
    _consumed: Cursor | None
    _outlets: Outlets = attrs.field(init=False)
    _confirmed: asyncio.Event = attrs.field(init=False, factory=asyncio.Event)
    _seen: set[WireId] = attrs.field(init=False, factory=set)
    # Dead letters whose copies are in flight, and those whose copies are stored.
    _in_flight: dict[WireId, list[ReceivedRecord]] = attrs.field(init=False, factory=dict)
    _stored: set[WireId] = attrs.field(init=False, factory=set)
    _held: list[SetAside] = attrs.field(init=False, factory=list)
    _sent: Counter[str] = attrs.field(init=False, factory=Counter)
    _left: Counter[Left] = attrs.field(init=False, factory=Counter)
    _errors: dict[str, None] = attrs.field(init=False, factory=dict)
    _not_selected: int = attrs.field(init=False, default=0)
    selected: int = attrs.field(init=False, default=0)
    last: WireId | None = attrs.field(init=False, default=None)
    _at_end: bool = attrs.field(init=False, default=False)
    _failed: bool = attrs.field(init=False, default=False)
    _complete: bool = attrs.field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        self._outlets = Outlets(self._transport, self._configuration, self._settled)

    async def run(self) -> None:
        """Receive dead letters and send each, or hold it, until the last one, or until the broker delivers no more."""
        loop = asyncio.get_running_loop()
        last = loop.time()
        while not (self._at_end or self._is_limited()):
            self._woken.clear()
            records = self._receiver.receive(_AT_ONCE)
            for record in records:
                await self._take(record)
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
        """Wait until few enough records are in flight."""
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(_CONFIRMED):
                while len(self._in_flight) > _IN_FLIGHT:
                    self._confirmed.clear()
                    await self._confirmed.wait()
        except TimeoutError:
            raise OperationTimeoutError(f"the broker has confirmed nothing for {_CONFIRMED:g} s") from None

    async def _take(self, record: ReceivedRecord) -> None:
        message_id, end = record.message_id, self._letters.end
        if _in_order(message_id) >= _in_order(end):
            self._at_end = True
        if _in_order(message_id) > _in_order(end) or (self._is_limited() and message_id not in self._seen):
            self._hold(record)
        elif message_id not in self._seen:
            self._seen.add(message_id)
            self._progress.seen += 1
            await self._decide(record)
        elif message_id in self._in_flight:  # here and below: the connection was lost meanwhile
            self._in_flight[message_id].append(record)
        elif message_id in self._stored:
            self._acknowledge([record])
        else:
            self._hold(record)

    def _is_limited(self) -> bool:
        """Return True if no further message is to be selected."""
        return self._request.limit is not None and self.selected >= self._request.limit

    async def _decide(self, record: ReceivedRecord) -> None:
        """Send, acknowledge or hold a message."""
        try:
            if self._consumed is not None and self._consumed.is_acknowledged(record.message_id):
                self._pass(record)
                return
            if self._selector is not None and self._selector.matches_record(record, header) is not True:
                self._not_selected += 1
                if self._request.transfer is Transfer.COPY:
                    self._pass(record)
                    return
            elif self._request.transfer is Transfer.PURGE:
                self._select(record)
                self._count(self._letters.topic)
                self._pass(record)
                return
            elif (target := self._find_target(record.properties)) is not None:
                self._select(record)
                if await self._send(record, target):
                    return
        except JMSError as error:
            self._leave(Left.FAILED, f"{record.message_id}: {error}")
        self._hold(record)

    def _select(self, record: ReceivedRecord) -> None:
        self.selected += 1
        self.last = max(self.last or record.message_id, record.message_id, key=_in_order)

    def _pass(self, record: ReceivedRecord) -> None:
        """Acknowledge a message without a copy; hold it in a dry run."""
        if self._request.dry_run:
            self._hold(record)
        else:
            self._stored.add(record.message_id)
            self._acknowledge([record])

    async def _send(self, record: ReceivedRecord, target: str) -> bool:
        """Send a copy; return False in a dry run, which only checks the target."""
        plain = self._request.transfer is not Transfer.REDRIVE
        outgoing = unchanged(record) if plain else redriven(record, round(self._transport.clock.now() * 1000))
        if not self._request.dry_run:
            sender, message_id = await self._outlets.sender(target, outgoing, record), record.message_id
            sender.send(outgoing, _Copy(message_id, target))
            self._in_flight[message_id] = [record]  # outcomes are never reported during the call
            return True
        if not isinstance(self._request.to, Queue):  # the queue would be created
            await self._outlets.check(target)
        self._count(target)
        return False

    def _count(self, target: str) -> None:
        self._sent[target] += 1
        self._progress.sent += 1

    def _find_target(self, wire: Mapping[str, str]) -> str | None:
        """Return the topic to send a dead letter to; None if it is left, for a reason that is counted."""
        target = self._target or origin_of(wire)
        if self._request.transfer is not Transfer.REDRIVE:
            return target  # the plan has checked it
        if target is None:
            text = "a dead letter without REAL_TOPIC does not name its origin: name a destination (--to)"
            self._leave(Left.NO_ORIGIN, text)
        elif split_partition(target)[0] == split_partition(self._letters.topic)[0]:
            text = f"{target} is the dead letter topic itself: name another destination (--to)"
            self._leave(Left.FAILED, text)
        elif redrive_count(wire) >= self._request.max_redrives:
            self._leave(Left.TOO_OFTEN, "")
        else:
            return target
        return None

    def _settled(self, copies: Sequence[_Copy], message_id: WireId | None, error: JMSError | None) -> None:
        self._confirmed.set()
        for letter, target in copies:
            records = self._in_flight.pop(letter)
            if error is None:
                self._count(target)
                self._stored.add(letter)
                self._acknowledge(records)
            else:
                self._leave(Left.FAILED, f"{target}: {error}")
                for record in records:
                    self._hold(record)
        self._progress.changed(self._progress)

    def _acknowledge(self, records: Sequence[ReceivedRecord]) -> None:
        try:
            self._receiver.acknowledge(records)
        except JMSError as error:  # the broker has lost this consumer, and redelivers them
            self._report(str(error))

    def _hold(self, record: ReceivedRecord) -> None:
        self._held += self._receiver.set_aside([record])

    def _leave(self, why: Left, text: str) -> None:
        self._left[why] += 1
        self._report(text)

    def _report(self, text: str) -> None:
        if text and len(self._errors) < MAX_ERRORS:
            self._errors[text] = None

    def fail(self, error: JMSError) -> None:
        """Record an error after which no more is received: the result is incomplete."""
        self._failed = True
        self._errors = {str(error): None, **self._errors}

    async def finish(self) -> None:
        """Wait for the outcomes and acknowledgements, then check whether other consumers hold dead letters."""
        try:
            await self._outlets.drain()
            await self._receiver.settle(_ACKNOWLEDGED, receipt=True)
        except JMSError as error:  # sent dead letters are counted, and can be sent again
            self._report(str(error))
        try:
            self._complete = not self._failed and await self._has_seen_all()
        except JMSError as error:
            self._report(str(error))

    async def _has_seen_all(self) -> bool:
        """Return True if no other consumer holds any: whether the last one was received does not show that."""
        if self._is_limited():
            return True
        admin = self._transport.admin
        if admin is None or not self._letters.durable:  # a subscription that ends with this call is not shared
            return self._at_end
        return not await has_unseen(admin, self._letters, self._seen)

    async def aclose(self) -> None:
        """Return held records to the broker, and close. Records in flight still count if they are stored in time."""
        await self._outlets.aclose()
        try:
            self._receiver.negative_acknowledge(self._held, 0.0, counted=False)
        except JMSError:
            pass  # closed already: the broker redelivers them
        finally:
            await self._receiver.aclose(self._configuration.close_timeout)

    def outcome(self) -> Redriven:
        """Return the result."""
        return Redriven(
            topic=self._letters.topic,
            sent=dict(self._sent),
            not_selected=self._not_selected,
            left={why.value: count for why, count in self._left.items()},
            errors=tuple(self._errors),
            complete=self._complete,
        )


def _in_order(message_id: WireId) -> tuple[int, int, int]:
    return message_id.ledger, message_id.entry, message_id.batch_index
