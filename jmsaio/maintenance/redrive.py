"""Redrive of dead letters, and moving, copying and purging of a queue's messages.

Each message is sent to its target, and acknowledged when the broker has stored it there.
"""

from __future__ import annotations

import asyncio
import enum
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import anyio
import attrs

from jmsaio.codec.headers import header
from jmsaio.config import Configuration
from jmsaio.errors import JMSError, NotFoundError, OperationTimeoutError
from jmsaio.maintenance.dead_letters import (
    LetterRange,
    RedriveRequest,
    Transfer,
    has_unseen,
    origin_of,
    plan_redrive,
    redrive_count,
    redriven,
    require_admin,
    unchanged,
)
from jmsaio.maintenance.outlets import Outlets
from jmsaio.model.destinations import Queue
from jmsaio.model.partitions import split_partition
from jmsaio.model.wire import ReceivedRecord, SetAside, WireId
from jmsaio.selector import Selector
from jmsaio.transport.base import (
    Admin,
    Receiver,
    StartPosition,
    Subscription,
    SubscriptionType,
    Transport,
)
from jmsaio.transport.waiting import together

#: Records inspected per batch.
_AT_ONCE: Final = 500
#: Maximum number of records in flight before more are taken; about as many are sent again after a killed process.
_IN_FLIGHT: Final = 1000
#: Seconds to wait until fewer records are in flight.
_CONFIRMED: Final = 300.0
#: Seconds to wait until the broker has received all acknowledgements.
_ACKNOWLEDGED: Final = 30.0
#: Maximum number of different errors reported.
_ERRORS: Final = 5


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


def summarize(outcomes: Iterable[Redriven]) -> dict[str, Any]:
    """Combine the results of several topics for a summary in JSON.

    Args:
        outcomes: result of each topic.

    Returns:
        ``sent``, ``not_selected``: numbers; ``targets``: number sent, or to be sent, by topic; ``left``: number by
        reason; ``unseen``: topics where other consumers hold dead letters; ``errors``: a few sentences.
    """
    outcomes = list(outcomes)
    targets: Counter[str] = sum((Counter(each.sent) for each in outcomes), Counter())
    left: Counter[str] = sum((Counter(each.left) for each in outcomes), Counter())
    errors = dict.fromkeys(text for each in outcomes for text in each.errors)
    return {
        "sent": targets.total(),
        "not_selected": sum(each.not_selected for each in outcomes),
        "targets": dict(sorted(targets.items())),
        "left": dict(left),
        "unseen": [each.topic for each in outcomes if not each.complete],
        "errors": list(errors)[:_ERRORS],
    }


def describe(job: str, request: RedriveRequest, outcomes: Iterable[Redriven], began: float) -> dict[str, Any]:
    """Return the summary of a command that carried out a request; ``began`` is a time of ``time.monotonic``."""
    return {
        "job": job,
        "dry_run": request.dry_run,
        "destination": str(request.destination),
        **summarize(outcomes),
        "seconds": round(time.monotonic() - began, 3),
    }


async def redrive_all(
    transport: Transport, configuration: Configuration, request: RedriveRequest, progress: Progress | None = None
) -> list[Redriven]:  # fmt: skip
    """Carry out a request for all topics and partitions, concurrently unless it has a limit.

    See ``plan_redrive`` and ``redrive``.
    """
    ranges = await plan_redrive(transport, configuration, request)
    if progress is not None:
        progress.total = await _backlog(require_admin(transport), ranges)
    if request.limit is None:
        return await together(redrive(transport, configuration, request, letters, progress) for letters in ranges)
    found: list[Redriven] = []
    for letters in ranges:
        done = sum(sum(each.sent.values()) for each in found)
        if done >= request.limit:
            break
        rest = attrs.evolve(request, limit=request.limit - done)
        found.append(await redrive(transport, configuration, rest, letters, progress))
    return found


async def _backlog(admin: Admin, ranges: Iterable[LetterRange]) -> int | None:
    """Return the number of messages on the subscriptions; None if one does not exist yet."""
    try:
        return sum([await admin.backlog(letters.topic, letters.subscription) for letters in ranges])
    except NotFoundError:
        return None


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
        InvalidSelectorError: the selector is invalid.
        InvalidDestinationError: ``to`` stands for several topics.
        ConsumerBusyError: the subscription has a consumer that does not share it.
        TransportError: the broker does not answer; nothing was sent. A later failure is reported in ``errors``; dead
            letters sent before it can be unacknowledged.

    Cancelling loses nothing: no dead letter is acknowledged before the broker has stored its copy.
    """
    selector = None if request.selector is None else Selector(request.selector)
    target = request.target(configuration)
    woken = asyncio.Event()
    receiver = await transport.open_receiver(_subscription(configuration, letters), woken.set)
    progress = progress or Progress(changed=lambda _: None)
    work = _Redriving(transport, configuration, request, letters, selector, target, receiver, woken, progress)
    try:
        try:
            await work.run()
        except JMSError as error:  # messages sent before are reported, too
            work.fail(error)
        await work.finish()
    finally:
        with anyio.CancelScope(shield=True):
            await work.aclose()
    return work.outcome()


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
    """One call of ``redrive``. ``woken`` is set when records arrive; ``target`` is None if each letter has its own."""

    _transport: Transport
    _configuration: Configuration
    _request: RedriveRequest
    _letters: LetterRange
    _selector: Selector | None
    _target: str | None
    _receiver: Receiver
    _woken: asyncio.Event
    _progress: Progress
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
    # Number of messages selected, for the limit.
    _selected: int = attrs.field(init=False, default=0)
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
            self._release([record])
        else:
            self._hold(record)

    def _is_limited(self) -> bool:
        """Return True if no further message is to be selected."""
        return self._request.limit is not None and self._selected >= self._request.limit

    async def _decide(self, record: ReceivedRecord) -> None:
        """Send, acknowledge or hold a message."""
        try:
            if self._selector is not None and self._selector.matches_record(record, header) is not True:
                self._not_selected += 1
            elif self._request.transfer is Transfer.PURGE:
                self._selected += 1
                self._count(self._letters.topic)
                if not self._request.dry_run:
                    self._stored.add(record.message_id)
                    self._acknowledge([record])
                    return
            elif (target := self._find_target(record.properties)) is not None:
                self._selected += 1
                if await self._send(record, target):
                    return
        except JMSError as error:
            self._leave(Left.FAILED, f"{record.message_id}: {error}")
        self._hold(record)

    async def _send(self, record: ReceivedRecord, target: str) -> bool:
        """Send a copy; return False in a dry run, which only checks the target."""
        plain = self._request.transfer is not Transfer.REDRIVE
        outgoing = unchanged(record) if plain else redriven(record, round(self._transport.clock.now() * 1000))
        if not self._request.dry_run:
            sender, message_id = await self._outlets.sender(target), record.message_id
            sender.send(outgoing, _Copy(message_id, target))
            self._in_flight[message_id] = [record]  # outcomes are never reported during the call
            return True
        if not (plain and isinstance(self._request.to, Queue)):  # the queue would be created
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
                self._release(records)
            else:
                self._leave(Left.FAILED, f"{target}: {error}")
                for record in records:
                    self._hold(record)
        self._progress.changed(self._progress)

    def _release(self, records: Sequence[ReceivedRecord]) -> None:
        """Acknowledge messages whose copies are stored; hold those that are only copied."""
        if self._request.transfer is not Transfer.COPY:
            self._acknowledge(records)
            return
        for record in records:
            self._hold(record)

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
        if text and len(self._errors) < _ERRORS:
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
