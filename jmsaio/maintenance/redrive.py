"""Sends dead letters to where they come from: each is sent, and acknowledged when the broker has it."""

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

#: Records that are looked at at a time.
_AT_ONCE: Final = 500
#: Records on their way at most when others are taken: a process that is killed leaves about as many to be sent again.
_FLYING: Final = 1000
#: Seconds to wait until fewer are on their way.
_LANDED: Final = 300.0
#: Seconds to wait until the broker has all acknowledgements.
_ACKNOWLEDGED: Final = 30.0
#: Different errors that are told.
_ERRORS: Final = 5


class Left(enum.Enum):
    """Why a dead letter was left where it is."""

    TOO_OFTEN = "redriven too often"
    NO_ORIGIN = "no origin"
    FAILED = "failed"


@attrs.frozen(kw_only=True)
class RedriveOrder:
    """Which dead letters of one topic are sent where.

    Attributes:
        topic: full name of a dead letter topic without partitions, or of one partition.
        subscription: where they are taken from and acknowledged.
        durable: False: the subscription does not exist, and ends with the redrive.
        end: the last one that is looked at.
        selector: others are left alone; None: all are sent.
        to: full name of the topic that all are sent to; None: each goes to where it comes from.
        max_redrives: one that was sent so often already is left.
        dry_run: only count: nothing is sent, and everything is given back.
        patience: seconds without another one after which the rest counts as out of reach.
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
    """What became of the dead letters of one topic.

    Attributes:
        topic: its full name.
        sent: how many were sent, or would be, by the full name of the topic that they went to.
        not_selected: how many the selector did not select.
        left: how many were left, by the value of the reason (``Left``).
        errors: why some failed, or the call did after it had begun; a few sentences.
        complete: all up to the end that are not acknowledged were seen; else others hold the rest, or the call failed.
    """

    topic: str
    sent: Mapping[str, int]
    not_selected: int
    left: Mapping[str, int]
    errors: Sequence[str]
    complete: bool


def summarize(outcomes: Iterable[Redriven]) -> dict[str, Any]:
    """What became of the dead letters of several topics, for a summary in JSON.

    Args:
        outcomes: of each topic.

    Returns:
        ``sent``, ``not_selected``: how many; ``targets``: how many were sent, or would be, by topic; ``left``: how many
        by reason; ``unseen``: topics of which others hold some; ``errors``: a few sentences.
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
    """Send dead letters again, at least once.

    One that was sent, but whose acknowledgement did not reach the broker, is sent again by the next call; the property
    ``jmsaio_origin_message_id`` tells such copies. All others stay on the subscription.

    Args:
        transport: client of the broker.
        configuration: of the transport. Its ``consumer`` and ``producer`` count, but for the dead letter policy.
        order: which, and where to.

    Raises:
        InvalidSelectorError: ``order.selector`` is none.
        ConsumerBusyError: the subscription has a consumer that does not share it.
        TransportError: the broker does not answer; nothing was sent. If it fails later, ``errors`` tells that, and what
            was sent by then may be acknowledged or not.

    Cancelling loses nothing: no dead letter is acknowledged before the broker has what was sent in its place.
    """
    work = _Redriving(transport, configuration, order)
    try:
        await work.open()
        try:
            await work.run()
        except JMSError as error:  # what was sent by then is told, too
            work.fail(error)
        await work.finish()
    finally:
        with anyio.CancelScope(shield=True):
            await work.aclose()
    return work.outcome()


class _Refused(Exception):
    """A dead letter is not sent."""

    def __init__(self, why: Left, text: str = "") -> None:
        super().__init__(text)
        self.why = why


class _Copy(NamedTuple):
    """What was sent in the place of a dead letter.

    Attributes:
        receiver: got the letter.
        letter: where the letter is stored.
        target: topic that it was sent to.
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
        self._flying: dict[WireId, list[ReceivedRecord]] = {}  # what was sent in their place is on its way
        self._stored: set[WireId] = set()  # what was sent in their place is stored
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
        # What is held must not come again, and must not become a dead letter of a dead letter topic.
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
        """Take and send until the end, or until nothing comes any more."""
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
        """Let outcomes come in, until few enough records are on their way."""
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
        """Send one, or hold it back."""
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
        self._flying[place] = [record]  # the outcome is never told inside the call

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
        except JMSError as error:  # the broker has lost this consumer, and sends them again
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
        """No more are taken: the rest was not seen."""
        self._failed = True
        self._errors = {str(error): None, **self._errors}

    async def finish(self) -> None:
        """Wait for outcomes, then until the broker has the acknowledgements, and look whether others hold some."""
        assert self._receiver is not None
        try:
            await self._outlets.drain()
            await self._receiver.settle(_ACKNOWLEDGED, receipt=True)
        except JMSError as error:  # what was sent is counted, and may be sent again
            self._tell(str(error))
        try:
            self._complete = not self._failed and await self._has_seen_all()
        except JMSError as error:
            self._tell(str(error))

    async def _has_seen_all(self) -> bool:
        """Whether nobody else holds any: neither the last one's arrival nor its absence tells that."""
        admin, order = self._transport.admin, self._order
        if admin is None or not order.durable:  # nobody shares a subscription that ends with this call
            return self._at_end
        return not await has_unseen(admin, order.topic, order.subscription, order.end, self._seen)

    async def aclose(self) -> None:
        """Give back what was left, and close. What is on its way still counts, as far as it is stored in time."""
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
        """What became of them."""
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
