"""The native producer of one partition: records are sent in groups with one callback (group commit).

A Python callback costs pulsar-client 13 acquisitions of the GIL and three thread states; ``None`` costs nothing. A
producer's batches end in order, so Ok for the last record of a group covers the earlier ones unless one of their
batches failed alone. pulsar-client allows this in the following cases, reported only in its log:

* the broker found a batch damaged (checksum),
* a batch could not be created (larger than the broker accepts),
* the broker refused a reconnect because of its backlog quota, while part of a group was in pulsar-client,
* pulsar-client's own send time-out, which fails nothing sent a moment later: the time-out is implemented here instead.

Everything else fails all records from then on, or none. After a line in the log about a possible failure, the records
of a group outside the batch of its last one are in doubt. Messages that pulsar-client might refuse before queueing, or
send out of order, always have their own callback: see ``PartitionProducer.alone``.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator

import _pulsar
import attrs

from jmsaio.errors import JMSError, JMSSecurityError, ObjectClosedError, RefusedInDoubtError, SendInDoubtError
from jmsaio.model.topic_names import split_partition
from jmsaio.model.wire import WireId
from jmsaio.transport.base import Settled, Token
from jmsaio.transport.pulsar.native.binding.bridge import Bridge, Released, ignore
from jmsaio.transport.pulsar.native.binding.handles import MessageIdHandle, ProducerHandle, Result
from jmsaio.transport.pulsar.native.binding.native_log import NATIVE_LOG
from jmsaio.transport.pulsar.native.binding.results import OK, translate_send
from jmsaio.transport.pulsar.window import Window
from jmsaio.transport.waiting import SLICE

#: Maximum records in a group; a longer group would delay its first records.
GROUP = 1000
#: Larger groups wait for records that the same loop of sends adds in the next turns.
_FEW = 8
#: Maximum seconds of that wait. ``send_async`` yields to the event loop every millisecond; a callback for the records
#: of each millisecond would cost a quarter of the speed.
_LONGEST_WAIT = 0.005
#: Interval, in records, at which the time is checked in a turn that adds many.
_CHECK = 64
#: Seconds from opening to the first stored record after which the topic might have been deleted meanwhile.
UNTOUCHED = 1.0


@attrs.define(eq=False)
class SendGroup:
    """Records that share one callback."""

    tokens: list[Token]  # empty once all outcomes are reported
    count: int
    size: int
    doubts: int  # the log's count before the first record was sent
    deadline: float  # loop time at which they are in doubt
    stored: Callable[[], object] = ignore  # called before it is reported that they are stored
    # pulsar-client's answer, while groups before it have none: a record with a delivery time is sent outside the batch
    # and might be answered first, and outcomes are reported in the order of sending.
    answer: tuple[Result, MessageIdHandle] | None = None


@attrs.define(eq=False, repr=False)
class PartitionProducer:
    """Sends to one topic without partitions, or to one partition."""

    _bridge: Bridge
    native: ProducerHandle
    topic: str
    _window: Window
    _settled: Settled
    _timeout: float  # seconds until a record without an answer is in doubt; 0: never
    #: Called with the topic when it might have been recreated: its records are then stored in another ledger, as after
    #: an unload, or when a ledger is full.
    _changed: Callable[[str], object] = ignore
    _expired: Callable[[], object] = ignore  # called when a record had no answer in time
    _send: Callable[..., None] = attrs.field(init=False)
    _timer: asyncio.TimerHandle | None = attrs.field(default=None, init=False)
    _partition: int = attrs.field(init=False)  # pulsar-client reports -1 for a producer of one partition
    _messages: list[object] = attrs.field(factory=list, init=False)
    _tokens: list[Token] = attrs.field(factory=list, init=False)
    _size: int = attrs.field(default=0, init=False)
    _groups: OrderedDict[SendGroup, None] = attrs.field(factory=OrderedDict, init=False)  # in the order of sending
    #: Reported as in doubt; they stay in the window while pulsar-client holds them.
    _late: set[SendGroup] = attrs.field(factory=set, init=False)
    _armed: bool = attrs.field(default=False, init=False)  # whether a turn of the loop will check the current group
    _seen: int = attrs.field(default=0, init=False)  # its length at the last check
    _latest: float = attrs.field(default=0.0, init=False)  # latest loop time for sending it
    _opened: float = attrs.field(init=False)
    _last: tuple[int, int, int] | None = attrs.field(default=None, init=False)  # place of the last record stored

    def __attrs_post_init__(self) -> None:
        self._send = self.native.send_async
        self._partition = split_partition(self.topic)[1]
        self._opened = self._bridge.loop.time()
        if self.topic.startswith("non-persistent://"):
            self._changed = ignore
        self._bridge.made(self)

    def release(self) -> None:
        self.native = Released()  # type: ignore[assignment]  # its calls return nothing
        self._send = ignore

    def add(self, message: object, token: Token, size: int) -> None:
        """Add a message to the current group, which is sent once a turn of the loop adds nothing.

        If it is full, or after 5 ms, it is sent within a turn: the first of a thousand tasks are answered sooner.
        """
        self._messages.append(message)
        self._tokens.append(token)
        self._size += size
        count = len(self._messages)
        if not self._armed:
            self._armed = True
            self._seen = 0
            self._latest = self._bridge.loop.time() + _LONGEST_WAIT
            self._bridge.loop.call_soon(self._turn)
        elif count >= GROUP or (count % _CHECK == 0 and self._bridge.loop.time() >= self._latest):
            self.flush()
            self._latest = self._bridge.loop.time() + _LONGEST_WAIT

    def alone(self, message: object, token: Token, size: int, stored: Callable[[], object] = ignore) -> None:
        """Send with an own callback what a size limit might refuse, or what is sent outside a plain batch."""
        self.flush()
        self._submit(message, self._group([token], size, stored))

    def flush(self) -> None:
        messages = self._messages
        if not messages:
            return
        group = self._group(self._tokens, self._size)
        self._messages, self._tokens, self._size = [], [], 0
        last = messages.pop()
        send = self._send
        for message in messages:
            send(message, None)
        self._submit(last, group)

    def _turn(self) -> None:
        count = len(self._messages)
        if count > _FEW and count != self._seen and self._bridge.loop.time() < self._latest:
            self._seen = count
            self._bridge.loop.call_soon(self._turn)
            return
        self._armed = False
        self.flush()

    def _group(self, tokens: list[Token], size: int, stored: Callable[[], object] = ignore) -> SendGroup:
        deadline = self._bridge.loop.time() + self._timeout if self._timeout > 0 else math.inf
        return SendGroup(tokens, len(tokens), size, NATIVE_LOG.doubts, deadline, stored)

    def _submit(self, message: object, group: SendGroup) -> None:
        self._groups[group] = None
        if self._timer is None and group.deadline < math.inf:
            self._timer = self._bridge.loop.call_at(group.deadline, self._expire)
        post, answered = self._bridge.post, self._answered
        self._send(message, lambda result, message_id: post(answered, group, result, message_id))

    def _expire(self) -> None:
        """Report records without an answer in time as in doubt, one group per turn of the loop."""
        self._timer, loop = None, self._bridge.loop
        first = next(iter(self._groups), None)  # without an answer, or it would have been reported
        if first is not None and first.deadline <= loop.time():
            self._expired()
            self._give_up_first(translate_send(_pulsar.Result.Timeout, f"send to {self.topic}", False))
            first = next(iter(self._groups), None)
        if first is not None:
            self._timer = loop.call_at(first.deadline, self._expire)

    def _answered(self, group: SendGroup, result: Result, message_id: MessageIdHandle) -> None:
        if group in self._late:
            self._late.remove(group)
            self._window.remove(group.count, group.size)
        elif group in self._groups:  # otherwise the sender was closed and has reported all outcomes
            if int(result) == OK and message_id.ledger_id() >= 0:  # false for a duplicate discarded by the broker
                self._check_place(message_id.ledger_id(), message_id.entry_id(), message_id.batch_index())
            group.answer = result, message_id
            self._settle_answered()

    def _settle_answered(self) -> None:
        while (first := next(iter(self._groups), None)) is not None and first.answer is not None:
            self._settle(first, *first.answer)

    def _settle(self, group: SendGroup, result: Result, stored: MessageIdHandle) -> None:
        self._groups.pop(group, None)
        count, tokens = group.count, group.tokens
        self._window.remove(count, group.size)
        if int(result) != OK:
            self._fail(group, translate_send(result, f"send to {self.topic}", count == 1))
            return
        self._window.reported(count)
        ledger, entry, partition, index = stored.ledger_id(), stored.entry_id(), self._partition, stored.batch_index()
        group.stored()
        # Records are numbered in their batch in the order of sending: this many at the end are in the last one's batch.
        known = min(count, index + 1) if index >= 0 else 1
        if known < count:
            NATIVE_LOG.read()
            doubtful = NATIVE_LOG.doubts != group.doubts  # a line of a possible failure since it was sent
            refused = self._in_doubt("the broker or pulsar-client refused a batch") if doubtful else None
            self._report(tokens[:-known], None, refused)
        self._report(tokens[-known:], WireId(ledger, entry, partition, index - known + 1 if index >= 0 else -1), None)

    def _check_place(self, ledger: int, entry: int, index: int) -> None:
        """Report a change unless a record follows the previous one: the topic might have been recreated unreported."""
        last, self._last = self._last, (ledger, entry, index)
        if last is None:
            if self._bridge.loop.time() - self._opened > UNTOUCHED:
                self._changed(self.topic)
        elif ledger != last[0] or self._last <= last:  # a broker that lost its data might reuse a ledger's number
            self._changed(self.topic)

    def refuse(self, refusal: JMSSecurityError) -> None:
        """Report all records without an answer as in doubt, because pulsar-client will send them when it can again."""
        self.flush()
        while self._groups:
            error = RefusedInDoubtError(str(self._in_doubt(str(refusal))), refusal.error_code)
            error.__cause__ = refusal
            self._give_up_first(error)

    def _give_up_first(self, error: JMSError) -> None:
        first, _ = self._groups.popitem(last=False)
        self._late.add(first)
        self._fail(first, error)
        self._settle_answered()

    def abandon(self, reason: str) -> Iterator[None]:
        """Accept no more answers. Records without an outcome are in doubt, or unsent; each step reports a slice."""
        if self._timer is not None:
            self._timer.cancel()
        unsent, size = self._tokens, self._size
        self._messages, self._tokens, self._size = [], [], 0
        for group in self._late:
            self._window.remove(group.count, group.size)
        groups, self._groups, self._late = list(self._groups), OrderedDict(), set()
        rest = self._group(unsent, size)
        return self._report_all(groups, rest, reason)

    def _report_all(self, groups: Iterable[SendGroup], unsent: SendGroup, reason: str) -> Iterator[None]:
        reported = 0
        for group in groups:
            reported += group.count
            if reported > SLICE:
                reported = group.count
                yield
            if group.answer is not None:
                self._settle(group, *group.answer)
                continue
            self._window.remove(group.count, group.size)
            self._fail(group, self._in_doubt(f"{reason} before the answer arrived"))
        self._window.remove(unsent.count, unsent.size)
        self._fail(unsent, ObjectClosedError(f"send to {self.topic}: {reason} before it was sent"))

    def _in_doubt(self, reason: str) -> SendInDoubtError:
        return SendInDoubtError(
            f"send to {self.topic}: {reason}; the message might be stored: send it again only if a "
            "duplicate does no harm"
        )

    def _fail(self, group: SendGroup, error: JMSError) -> None:
        tokens, group.tokens = group.tokens, []
        if tokens:
            self._window.reported(len(tokens))
            self._report(tokens, None, error)

    def _report(self, tokens: list[Token], message_id: WireId | None, error: JMSError | None) -> None:
        try:
            self._settled(tokens, message_id, error)
        except Exception as raised:  # the outcomes of other records must still be reported
            context = {"message": "the callback of sent records raised", "exception": raised}
            self._bridge.loop.call_exception_handler(context)
