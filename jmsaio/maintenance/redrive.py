"""Redrive of dead letters: each is sent to its origin, and acknowledged when the broker has stored it."""

from __future__ import annotations

import asyncio
import enum
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import anyio
import attrs

from jmsaio.codec.view import header
from jmsaio.config import Configuration
from jmsaio.errors import JMSError, OperationTimeoutError
from jmsaio.maintenance.dead_letters import origin_of, redrive_count, redriven
from jmsaio.maintenance.outlets import Outlets
from jmsaio.maintenance.unseen import has_unseen
from jmsaio.model.partitions import split_partition
from jmsaio.model.wire import ReceivedRecord, SetAside, WireId
from jmsaio.selector import Selector
from jmsaio.transport.base import Position, Receiver, Subscription, SubscriptionType, Transport

#: Records inspected per batch.
_AT_ONCE: Final = 500
#: Maximum number of records in flight before more are taken; about as many are sent again after a killed process.
_FLYING: Final = 1000
#: Seconds to wait until fewer records are in flight.
_LANDED: Final = 300.0
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
class RedriveOrder:
    """Dead letters of one topic to send, and their target.

    Attributes:
        topic: full name of a dead letter topic without partitions, or of one partition.
        subscription: subscription that delivers and acknowledges them.
        durable: the subscription is kept after the redrive; if False, it is new and ends with the redrive.
        end: the last dead letter inspected.
        selector: selector that dead letters must match; None: all match.
        to: full name of the target topic; None: each one's origin.
        max_redrives: skip dead letters that were already redriven this many times.
        dry_run: only count: nothing is sent, and everything is returned to the broker.
        patience: seconds without a delivery after which the rest counts as unreachable.
    """

    topic: str
    subscription: str
    durable: bool = True
    end: WireId
    selector: str | None = None
    to: str | None = None
    max_redrives: int = 3
    dry_run: bool = False
    patience: float = 5.0


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


async def redrive(transport: Transport, configuration: Configuration, order: RedriveOrder) -> Redriven:
    """Redrive dead letters, at least once.

    If the acknowledgement of a sent dead letter does not reach the broker, the next call sends it again; copies have
    the same property ``jmsaio_origin_message_id``. All others stay on the subscription.

    Args:
        transport: client of the broker.
        configuration: configuration of the transport. Its ``consumer`` and ``producer`` apply, except for the dead
            letter policy.
        order: dead letters to send, and their target.

    Raises:
        InvalidSelectorError: the selector is invalid.
        ConsumerBusyError: the subscription has a consumer that does not share it.
        TransportError: the broker does not answer; nothing was sent. A later failure is reported in ``errors``; dead
            letters sent before it can be unacknowledged.

    Cancelling loses nothing: no dead letter is acknowledged before the broker has stored its copy.
    """
    work = _Redriving(transport, configuration, order)
    try:
        await work.open()
        try:
            await work.run()
        except JMSError as error:  # what was sent before is reported, too
            work.fail(error)
        await work.finish()
    finally:
        with anyio.CancelScope(shield=True):
            await work.aclose()
    return work.outcome()


class _Refused(Exception):
    """A dead letter can't be sent."""

    def __init__(self, why: Left, text: str = "") -> None:
        super().__init__(text)
        self.why = why


class _Copy(NamedTuple):
    """Copy sent in place of a dead letter.

    Attributes:
        receiver: receiver of the dead letter.
        letter: position of the dead letter.
        target: topic that the copy was sent to.
    """

    receiver: Receiver
    letter: WireId
    target: str


class _Redriving:
    """One call of ``redrive``."""

    def __init__(self, transport: Transport, configuration: Configuration, order: RedriveOrder) -> None:
        self._transport = transport
        self._configuration = configuration
        self._order = order
        self._selector = None if order.selector is None else Selector(order.selector)
        self._woken = asyncio.Event()
        self._landed = asyncio.Event()
        self._receiver: Receiver | None = None
        self._outlets = Outlets(transport, configuration, self._settled)
        self._seen: set[WireId] = set()
        self._flying: dict[WireId, list[ReceivedRecord]] = {}  # their copies are in flight
        self._stored: set[WireId] = set()  # their copies are stored
        self._held: list[SetAside] = []
        self._sent: Counter[str] = Counter()
        self._left: Counter[Left] = Counter()
        self._errors: dict[str, None] = {}
        self._not_selected = 0
        self._at_end = False
        self._failed = False
        self._complete = False

    async def open(self) -> None:
        """Subscribe."""
        # Held records must not be redelivered, and must not become dead letters of a dead letter topic.
        config = attrs.evolve(self._configuration.consumer, dead_letter=None, ack_timeout=None)
        subscription = Subscription(
            topics=(self._order.topic,),
            name=self._order.subscription,
            type=SubscriptionType.SHARED,
            config=config,
            position=Position.EARLIEST,
            durable=self._order.durable,
            selective=True,
        )
        self._receiver = await self._transport.open_receiver(subscription, self._woken.set)

    async def run(self) -> None:
        """Receive and send until the end, or until no more is delivered."""
        assert self._receiver is not None
        loop = asyncio.get_running_loop()
        last = loop.time()
        while not self._at_end:
            self._woken.clear()
            records = self._receiver.receive(_AT_ONCE)
            for record in records:
                await self._take(self._receiver, record)
            await self._land()
            if records:
                last = loop.time()
                continue
            try:
                async with asyncio.timeout_at(last + self._order.patience):
                    await self._woken.wait()
            except TimeoutError:
                return

    async def _land(self) -> None:
        """Process outcomes until few enough records are in flight."""
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(_LANDED):
                while len(self._flying) > _FLYING:
                    self._landed.clear()
                    await self._landed.wait()
        except TimeoutError:
            raise OperationTimeoutError(f"the broker has confirmed nothing for {_LANDED:g} s") from None

    async def _take(self, receiver: Receiver, record: ReceivedRecord) -> None:
        place = record.message_id
        if _in_order(place) >= _in_order(self._order.end):
            self._at_end = True
        if _in_order(place) > _in_order(self._order.end):
            self._hold(receiver, record)
        elif place not in self._seen:
            self._seen.add(place)
            await self._decide(receiver, record)
        elif place in self._flying:  # here and below: the connection was lost meanwhile
            self._flying[place].append(record)
        elif place in self._stored:
            self._acknowledge(receiver, [record])
        else:
            self._hold(receiver, record)

    async def _decide(self, receiver: Receiver, record: ReceivedRecord) -> None:
        """Send a dead letter, or hold it."""
        try:
            if self._is_selected(record):
                await self._send(receiver, record)
                return
            self._not_selected += 1
        except _Refused as refused:
            self._leave(refused.why, str(refused))
        except JMSError as error:
            self._leave(Left.FAILED, f"{record.message_id}: {error}")
        self._hold(receiver, record)

    def _is_selected(self, record: ReceivedRecord) -> bool:
        return self._selector is None or self._selector.matches_record(record, header) is True

    async def _send(self, receiver: Receiver, record: ReceivedRecord) -> None:
        wire, order = record.properties, self._order
        target = origin_of(wire) if order.to is None else order.to
        if target is None:
            text = "a dead letter without REAL_TOPIC does not tell where it comes from: name a destination (--to)"
            raise _Refused(Left.NO_ORIGIN, text)
        if split_partition(target)[0] == split_partition(order.topic)[0]:
            raise _Refused(Left.FAILED, f"{target} is the dead letter topic itself: name another destination (--to)")
        if redrive_count(wire) >= order.max_redrives:
            raise _Refused(Left.TOO_OFTEN)
        outgoing = redriven(record, round(self._transport.clock.now() * 1000))
        if order.dry_run:
            await self._outlets.check(target)
            self._sent[target] += 1
            self._hold(receiver, record)
            return
        sender, place = await self._outlets.sender(target), record.message_id
        sender.send(outgoing, _Copy(receiver, place, target))
        self._flying[place] = [record]  # outcomes are never reported during the call

    def _settled(self, copies: Sequence[_Copy], place: WireId | None, error: JMSError | None) -> None:
        self._landed.set()
        for receiver, letter, target in copies:
            records = self._flying.pop(letter)
            if error is None:
                self._sent[target] += 1
                self._stored.add(letter)
                self._acknowledge(receiver, records)
            else:
                self._leave(Left.FAILED, f"{target}: {error}")
                for record in records:
                    self._hold(receiver, record)

    def _acknowledge(self, receiver: Receiver, records: Sequence[ReceivedRecord]) -> None:
        try:
            receiver.acknowledge(records)
        except JMSError as error:  # the broker has lost this consumer, and redelivers them
            self._tell(str(error))

    def _hold(self, receiver: Receiver, record: ReceivedRecord) -> None:
        self._held += receiver.set_aside([record])

    def _leave(self, why: Left, text: str) -> None:
        self._left[why] += 1
        self._tell(text)

    def _tell(self, text: str) -> None:
        if text and len(self._errors) < _ERRORS:
            self._errors[text] = None

    def fail(self, error: JMSError) -> None:
        """Record an error after which no more is received: the result is incomplete."""
        self._failed = True
        self._errors = {str(error): None, **self._errors}

    async def finish(self) -> None:
        """Wait for the outcomes and acknowledgements, then check whether other consumers hold dead letters."""
        assert self._receiver is not None
        try:
            await self._outlets.drain()
            await self._receiver.settle(_ACKNOWLEDGED, receipt=True)
        except JMSError as error:  # sent dead letters are counted, and can be sent again
            self._tell(str(error))
        try:
            self._complete = not self._failed and await self._has_seen_all()
        except JMSError as error:
            self._tell(str(error))

    async def _has_seen_all(self) -> bool:
        """Return True if no other consumer holds any: whether the last one was received does not show that."""
        admin, order = self._transport.admin, self._order
        if admin is None or not order.durable:  # a subscription that ends with this call is not shared
            return self._at_end
        return not await has_unseen(admin, order.topic, order.subscription, order.end, self._seen)

    async def aclose(self) -> None:
        """Return held records to the broker, and close. Records in flight still count if they are stored in time."""
        await self._outlets.aclose()
        receiver, self._receiver = self._receiver, None
        if receiver is None:
            return
        try:
            receiver.negative_acknowledge(self._held, 0.0, counted=False)
        except JMSError:
            pass  # closed already: the broker redelivers them
        finally:
            await receiver.aclose(self._configuration.close_timeout)

    def outcome(self) -> Redriven:
        """Return the result."""
        return Redriven(
            topic=self._order.topic,
            sent=dict(self._sent),
            not_selected=self._not_selected,
            left={why.value: count for why, count in self._left.items()},
            errors=tuple(self._errors),
            complete=self._complete,
        )


def _in_order(place: WireId) -> tuple[int, int, int]:
    return place.ledger, place.entry, place.batch_index
