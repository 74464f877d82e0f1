"""``Watch``: notices a lost connection to the broker, or of one subscription, without pending operations.

pulsar-client reconnects by itself and only logs it. It exposes whether a consumer or a producer is connected (half a
microsecond to read), and how a request ends. So all of them are checked every second, and while no record arrives one
consumer requests the last message id of its topic: this uses the consumer's own connection, and detects a connection
that is silent but not closed, which pulsar-client itself notices after 30 to 60 s.

A loss that ends within a second or two is not reported: pulsar-client logs it only at its level INFO, without saying
whose connection it was. While no consumer is open, another request is sent to the broker.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

import _pulsar
import attrs

from jmsaio.errors import BrokerUnavailableError, JMSError, JMSSecurityError
from jmsaio.transport.base import Admin, LinkChange, LinkListener
from jmsaio.transport.pulsar.native.binding.bridge import Bridge
from jmsaio.transport.pulsar.native.binding.connecting import again
from jmsaio.transport.pulsar.native.binding.handles import LinkedHandle, Result
from jmsaio.transport.pulsar.native.binding.native_log import NATIVE_LOG
from jmsaio.transport.pulsar.native.binding.results import NO_ANSWER, translate
from jmsaio.transport.pulsar.native.consumers.receiver import PulsarReceiver
from jmsaio.transport.pulsar.native.producers.sender import PulsarSender
from jmsaio.transport.pulsar.native.watching.missing import NO_RIGHT, MissingReceivers, StalledReceivers

#: Seconds between two checks.
LOOK = 1.0
#: Checks without a connection that count as a loss: a single one might coincide with pulsar-client's move to another
#: broker.
UNCONNECTED = 2
#: Seconds without a record before a request is sent to the broker.
QUIET = 1.5
#: Maximum seconds for its answer.
SILENT = 7.0
#: Seconds without an answer before another request is sent while the connection is lost: pulsar-client repeats each
#: request at growing intervals.
AGAIN = 3.0
#: Seconds between two checks whether the broker refuses the credentials, while it is lost.
REFUSAL = 5.0
_log = logging.getLogger(__name__)

_Result = _pulsar.Result


@attrs.define(eq=False)
class Question:
    """A request that might be pending.

    Attributes:
        asked: loop time of its start.
        result: result of the request, or None.
    """

    asked: float
    result: int | None = None

    @property
    def answered(self) -> bool:
        """Whether the broker has answered, even with a refusal."""
        return self.result is not None and self.result not in NO_ANSWER


@attrs.define(eq=False)
class Watch:
    """Watches the senders and receivers of one transport.

    Args:
        address: address of the broker, for messages.
        senders: returns the open senders.
        receivers: returns the open receivers.
        ask_broker: starts a request that needs no consumer, with the native callback.
        admin: admin interface to find out why a subscription is missing, or None.
        refusal: checks within a second whether the broker refuses the credentials (``Probe.refusal``).

    Attributes:
        listeners: called with each change.
    """

    bridge: Bridge
    address: str
    senders: Callable[[], Sequence[PulsarSender]]
    receivers: Callable[[], Sequence[PulsarReceiver]]
    ask_broker: Callable[[Callable[..., None]], object]
    admin: Admin | None = None
    refusal: Callable[[], Awaitable[JMSError | None]] | None = None
    listeners: set[LinkListener] = attrs.field(factory=set, init=False)
    _task: asyncio.Task[None] | None = attrs.field(default=None, init=False)
    _lost: float | None = attrs.field(default=None, init=False)
    _dropped: bool = attrs.field(default=False, init=False)  # whether nothing was connected at some time since the loss
    _away: int = attrs.field(default=0, init=False)
    _excused: bool = attrs.field(default=False, init=False)  # whether the broker answers although nothing is connected
    _received: int = attrs.field(default=0, init=False)
    _quiet: float = attrs.field(default=0.0, init=False)
    _question: Question | None = attrs.field(default=None, init=False)
    _refused: JMSError | None = attrs.field(default=None, init=False)  # at the last check
    _refusal_due: float = attrs.field(default=0.0, init=False)
    _denied: set[PulsarSender] = attrs.field(factory=set, init=False)  # senders that lost the permission to send
    _turn: int = attrs.field(default=0, init=False)
    _missing: MissingReceivers = attrs.field(init=False)
    _stalled: StalledReceivers = attrs.field(init=False)
    _log: int = attrs.field(factory=lambda: NATIVE_LOG.read(), init=False)  # number of its lines at the last check

    def __attrs_post_init__(self) -> None:
        self._missing = MissingReceivers(self.report, self.admin)
        self._stalled = StalledReceivers(self.admin)

    def start(self) -> None:
        """Start to check every second. Idempotent."""
        if self._task is None:
            self._task = self.bridge.loop.create_task(self._run(), name="jmsaio watch")

    async def aclose(self) -> None:
        """Stop checking. Idempotent."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _run(self) -> None:
        loop = self.bridge.loop
        self._quiet = loop.time()
        while self.bridge.failure is None:
            await asyncio.sleep(LOOK)
            try:
                await self.look_for_refusal(loop.time())
                self.look(loop.time())
                await self.look_for_reasons(loop.time())
            except Exception:
                _log.exception("looking after the connection to %s failed; please report this", self.address)

    def look(self, now: float) -> None:
        """Check connections and answers, and report changes since the last check."""
        receivers = self.receivers()
        consumers = [native for receiver in receivers for native in receiver.natives]
        producers = [native for sender in self.senders() for native in sender.natives]
        linked: list[LinkedHandle] = [*consumers, *producers]
        watched = bool(linked)
        if not (watched or receivers or self.listeners):
            self._refused = None
            self._lost, self._question, self._away, self._excused = None, None, 0, False
            return
        connected = any(native.is_connected() for native in linked)
        if not watched:  # only the broker's answers show it
            connected = self._lost is None
        responding = self._is_responding(now, receivers)
        self._away = 0 if connected else self._away + 1
        if self._away == 1:  # no answer arrives over a lost connection
            self._question = None
        self._excused = not connected and (self._excused or responding)
        question = self._question
        if self._lost is not None:
            self._dropped = self._dropped or not connected
            if responding or (connected and self._dropped):
                self._find(now)
        elif self._away >= UNCONNECTED and (self._refused is not None or not self._excused):
            self._lose(now, "pulsar-client is not connected")
        elif question is not None and now - question.asked >= SILENT:
            self._lose(now, f"the broker has not answered for {SILENT:g} s")
        urgent = self._lost is not None or not (connected or self._excused)
        late = question is not None and self._lost is not None and now - question.asked >= AGAIN
        if (self._question is None or late) and (urgent or now - self._quiet >= QUIET):
            self._ask(now, receivers)
        self._missing.look(now, receivers, self._log)
        self._look_at_rights()
        self._log = NATIVE_LOG.read()

    def _look_at_rights(self) -> None:
        """Refuse messages to topics for which this client lost the permission, until it is connected there again."""
        refusals = NATIVE_LOG.refusals_of_topics(self._log)
        senders = self.senders()
        self._denied = {sender for sender in self._denied if sender in senders}
        for sender in senders if refusals or self._denied else ():
            away = {str(native.topic()) for native in sender.natives if not native.is_connected()}
            denied = [topic for topic in away & refusals.keys() if refusals[topic].name == NO_RIGHT]
            if not away and sender in self._denied:
                self._denied.discard(sender)
                sender.refuse(None)
            elif denied and sender not in self._denied:
                self._denied.add(sender)
                what = (
                    f"the broker closed the producer of {denied[0]}; it reconnects when the permission is granted again"
                )
                error = translate(_Result.AuthorizationError, what, refusals[denied[0]].reason)
                assert isinstance(error, JMSSecurityError)
                sender.refuse(error)
                self.report(LinkChange(str(error), error))

    def _is_responding(self, now: float, receivers: Sequence[PulsarReceiver]) -> bool:
        """Return whether the broker sent a record or an answer since the last check."""
        count, question = sum(receiver.received_count for receiver in receivers), self._question
        responding = count > self._received or (question is not None and question.answered)
        self._received = count
        if responding:
            self._quiet = now
        if responding or (question is not None and question.result is not None):
            self._question = None
        return responding

    def _ask(self, now: float, receivers: Sequence[PulsarReceiver]) -> None:
        """Send a request to the broker, over the connection of a consumer if there is one, each in turn."""
        question = Question(now)

        def answered(result: Result, *answer: object) -> None:
            question.result = int(result)
            if question.answered and self._lost is not None:  # also an earlier request, which was repeated meanwhile
                self._question = question

        def arrived(*answer: object) -> None:
            self.bridge.post(answered, *answer)

        consumers = [
            native
            for receiver in receivers
            if receiver.subscription.pattern is None  # pulsar-client does not support this for several topics
            for native in receiver.natives
            if native.is_connected()
        ]
        if consumers:
            self._turn += 1
            self._question = question
            consumers[self._turn % len(consumers)].get_last_message_id_async(arrived)
        else:
            self._question = question
            self.ask_broker(arrived)

    async def look_for_refusal(self, now: float) -> None:
        """Check whether the broker refuses the credentials while nothing is connected; report a change."""
        if self.refusal is None or not (self._away or self._lost is not None):
            return
        if self._lost is not None and now < self._refusal_due:
            return
        self._refusal_due = now + REFUSAL
        before, self._refused = self._refused, await self.refusal()
        if self._lost is not None and type(before) is not type(self._refused):
            self._report_loss("pulsar-client is not connected")

    def _lose(self, now: float, why: str) -> None:
        self._lost, self._dropped = now, False
        self._refusal_due = now + REFUSAL
        self._report_loss(why)

    def _report_loss(self, why: str) -> None:
        """Report why the connection is lost; while the credentials are refused, nothing is sent."""
        lost = f"the connection to {self.address} is lost"
        unknown = BrokerUnavailableError(f"{lost}: {why}; it connects again by itself when it can")
        error = unknown if self._refused is None else again(lost, self._refused)
        self._refuse()
        self.report(LinkChange(str(error), error, whole=True))

    def _refuse(self) -> None:
        refused = self._refused if isinstance(self._refused, JMSSecurityError) else None
        for sender in self.senders():
            sender.refuse(refused)

    def _find(self, now: float) -> None:
        since, self._lost, self._refused = self._lost, None, None
        self._refuse()
        self._question, self._quiet = None, now
        self._missing.restart(now)
        if since is not None:
            self.report(LinkChange(f"the connection to {self.address} is back after {now - since:.0f} s", whole=True))

    def report(self, change: LinkChange) -> bool:
        """Report a change to the listeners; return False if there are none.

        If one raises, the error is logged, the others are still called, and the watch continues.
        """
        listeners = list(self.listeners)
        for listener in listeners:
            try:
                listener(change)
            except Exception:
                _log.exception("a listener raised an error when it was called with: %s", change.text)
        return bool(listeners)

    async def look_for_reasons(self, now: float) -> None:
        """Determine why consumers are missing or receive nothing while the broker answers, and report it once."""
        if self._lost is None:
            await self._missing.look_for_reasons(now)
            await self._stalled.look(now, self.receivers())
