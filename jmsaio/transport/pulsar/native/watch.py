"""``Watch``: notices a lost connection to the broker, or of one subscription, without pending operations.

pulsar-client reconnects by itself and only logs it. It exposes whether a consumer or a producer is connected (half a
microsecond to read), and how a request ends. So all of them are checked every second, and while no record arrives one
consumer requests the last message id of its topic: this uses the consumer's own connection, and detects a connection
that is silent but not closed, which pulsar-client itself notices after 30 to 60 s. A loss that ends within a second or
two is not reported: pulsar-client does not tell whose connection it was.

``MissingReceivers`` have disconnected consumers though the broker answers. pulsar-client only logs why: another
consumer took an exclusive subscription, or the topic or the subscription was deleted.

``StalledReceivers`` have failover subscriptions that the broker no longer serves. Pulsar 4.0.7 waits
``activeConsumerFailoverDelayTimeMillis`` before it reads for a new active consumer. If that one closes just then, the
next one becomes active, but nothing is read for it until the consumers change: its receiver subscribes again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

import _pulsar
import anyio
import attrs

from jmsaio.errors import BrokerUnavailableError, JMSError, JMSSecurityError, TransportError
from jmsaio.model.log_fields import log_fields
from jmsaio.transport.base import Admin, LinkChange, LinkListener, SubscriptionType
from jmsaio.transport.pulsar.native.binding.bridge import Bridge
from jmsaio.transport.pulsar.native.binding.connecting import again
from jmsaio.transport.pulsar.native.binding.handles import ConsumerHandle, LinkedHandle, Result
from jmsaio.transport.pulsar.native.binding.native_log import NATIVE_LOG, Refusal
from jmsaio.transport.pulsar.native.binding.results import NO_ANSWER, translate
from jmsaio.transport.pulsar.native.consumers.receiver import PulsarReceiver
from jmsaio.transport.pulsar.native.producers.sender import PulsarSender

#: Seconds between two checks.
INTERVAL = 1.0
#: Checks without a connection that count as a loss: one might coincide with a move to another broker.
UNCONNECTED = 2
#: Seconds without a record before a request is sent to the broker.
QUIET = 1.5
#: Maximum seconds for its answer.
SILENT = 7.0
#: The same for another request while the connection is lost: pulsar-client repeats one at growing intervals.
AGAIN = 3.0
#: Seconds between two checks whether the broker refuses the credentials, while it is lost.
REFUSAL = 5.0
#: Seconds that consumers can be missing while the broker answers, before the reason is determined.
MISSING = 4.0
#: Seconds after which a loss without a known reason is reported: pulsar-client waits up to 60 s between two attempts.
MISSING_LONG = 75.0
#: Refusal of a client that had the permission before: reported at once, and nothing is sent or received meanwhile.
NO_RIGHT = "AuthorizationError"
#: Refusals that persist until their cause is removed.
_STAYS = {
    "TopicNotFound", "SubscriptionNotFound", "ConsumerBusy", NO_RIGHT, "AuthenticationError", "IncompatibleSchema",
}  # fmt: skip
#: Seconds between two checks of a consumer's statistics.
STATS_INTERVAL = 10.0
#: Seconds until the next check if the broker did not return the statistics.
STATS_PAUSE = 60.0
#: Number of consecutive checks that must show that a consumer stalls; doubled when subscribing again did not help.
STALLED = 2
#: Maximum seconds for the broker's statistics.
_STATS_TIMEOUT = 3.0
_log = logging.getLogger(__name__)


@attrs.define(eq=False)
class Question:
    """A request that might be pending, with the loop time of its start."""

    asked: float
    result: int | None = None

    @property
    def answered(self) -> bool:
        return self.result is not None and self.result not in NO_ANSWER  # a refusal is an answer


@attrs.define(eq=False)
class Watch:
    """Watches the senders and receivers of one transport; ``listeners`` are called with each change."""

    bridge: Bridge
    address: str  # for messages
    senders: Callable[[], Sequence[PulsarSender]]
    receivers: Callable[[], Sequence[PulsarReceiver]]
    ask_broker: Callable[[Callable[..., None]], object]  # starts a request that needs no consumer
    admin: Admin | None = None  # for the statistics of failover subscriptions
    refusal: Callable[[], Awaitable[JMSError | None]] | None = None  # checks within a second, as ``Probe.refusal``
    listeners: set[LinkListener] = attrs.field(factory=set, init=False)
    _task: asyncio.Task[None] | None = attrs.field(default=None, init=False)
    _lost: float | None = attrs.field(default=None, init=False)
    _dropped: bool = attrs.field(default=False, init=False)  # whether nothing was connected at some time since the loss
    _unconnected: int = attrs.field(default=0, init=False)  # consecutive checks
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
        self._missing = MissingReceivers(self.report)
        self._stalled = StalledReceivers(self.admin)

    def start(self) -> None:
        if self._task is None:
            self._task = self.bridge.loop.create_task(self._run(), name="jmsaio watch")

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _run(self) -> None:
        loop = self.bridge.loop
        self._quiet = loop.time()
        while self.bridge.failure is None:
            await asyncio.sleep(INTERVAL)
            try:
                await self.check_refusal(loop.time())
                self.check(loop.time())
                await self.report_reasons(loop.time())
            except Exception:
                _log.exception("looking after the connection to %s failed; please report this", self.address)

    def check(self, now: float) -> None:
        receivers = self.receivers()
        consumers = [native for receiver in receivers for native in receiver.natives]
        producers = [native for sender in self.senders() for native in sender.natives]
        linked: list[LinkedHandle] = [*consumers, *producers]
        if not (linked or receivers or self.listeners):
            self._lost, self._question, self._refused, self._unconnected, self._excused = None, None, None, 0, False
            return
        # Without consumers and producers, only the broker's answers show it.
        connected = any(native.is_connected() for native in linked) if linked else self._lost is None
        responding = self._is_responding(now, receivers)
        self._unconnected = 0 if connected else self._unconnected + 1
        if self._unconnected == 1:  # no answer arrives over a lost connection
            self._question = None
        self._excused = not connected and (self._excused or responding)
        question = self._question
        if self._lost is not None:
            self._dropped = self._dropped or not connected
            if responding or (connected and self._dropped):
                self._restore(now)
        elif self._unconnected >= UNCONNECTED and (self._refused is not None or not self._excused):
            self._lose(now, "pulsar-client is not connected")
        elif question is not None and now - question.asked >= SILENT:
            self._lose(now, f"the broker has not answered for {SILENT:g} s")
        urgent = self._lost is not None or not (connected or self._excused)
        late = question is not None and self._lost is not None and now - question.asked >= AGAIN
        if (self._question is None or late) and (urgent or now - self._quiet >= QUIET):
            self._ask(now, receivers)
        self._missing.check(now, receivers, self._log)
        self._check_rights()
        self._log = NATIVE_LOG.read()

    def _check_rights(self) -> None:
        """Refuse messages to topics for which this client lost the permission, until it is connected there again."""
        refusals = NATIVE_LOG.refusals_of_topics(self._log)
        senders = self.senders()
        self._denied = {sender for sender in self._denied if sender in senders}
        for sender in senders if refusals or self._denied else ():
            lost = {str(native.topic()) for native in sender.natives if not native.is_connected()}
            denied = [topic for topic in lost & refusals.keys() if refusals[topic].name == NO_RIGHT]
            if not lost and sender in self._denied:
                self._denied.discard(sender)
                sender.refuse(None)
            elif denied and sender not in self._denied:
                self._denied.add(sender)
                what = (
                    f"the broker closed the producer of {denied[0]}; it reconnects when the permission is granted again"
                )
                error = translate(_pulsar.Result.AuthorizationError, what, refusals[denied[0]].reason)
                assert isinstance(error, JMSSecurityError)
                sender.refuse(error)
                self.report(LinkChange(str(error), error))

    def _is_responding(self, now: float, receivers: Sequence[PulsarReceiver]) -> bool:
        count, question = sum(receiver.received_count for receiver in receivers), self._question
        responding = count > self._received or (question is not None and question.answered)
        self._received = count
        if responding:
            self._quiet = now
        if responding or (question is not None and question.result is not None):
            self._question = None
        return responding

    def _ask(self, now: float, receivers: Sequence[PulsarReceiver]) -> None:
        question = self._question = Question(now)

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
            consumers[self._turn % len(consumers)].get_last_message_id_async(arrived)
        else:
            self.ask_broker(arrived)

    async def check_refusal(self, now: float) -> None:
        if self.refusal is None or not (self._unconnected or self._lost is not None):
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

    def _restore(self, now: float) -> None:
        since, self._lost, self._refused = self._lost, None, None
        self._refuse()
        self._question, self._quiet = None, now
        self._missing.restart(now)
        if since is not None:
            self.report(LinkChange(f"the connection to {self.address} is back after {now - since:.0f} s", whole=True))

    def report(self, change: LinkChange) -> bool:
        """Report a change; return False without listeners. An error of one is logged, and the next is called."""
        listeners = list(self.listeners)
        for listener in listeners:
            try:
                listener(change)
            except Exception:
                _log.exception("a listener raised an error when it was called with: %s", change.text)
        return bool(listeners)

    async def report_reasons(self, now: float) -> None:
        if self._lost is None:
            self._missing.report_reasons(now)
            await self._stalled.check(now, self.receivers())


@attrs.define(eq=False)
class Missing:
    """State of a receiver with disconnected consumers."""

    since: float  # loop time since which they are missing
    log: int  # number of lines in pulsar-client's log before the loss
    reported: bool = False


@attrs.define(eq=False)
class MissingReceivers:
    """The receivers of one transport with disconnected consumers."""

    report: Callable[[LinkChange], object]
    _missing: dict[PulsarReceiver, Missing] = attrs.field(factory=dict, init=False)

    def check(self, now: float, receivers: Sequence[PulsarReceiver], log: int) -> None:
        """Record the open receivers with disconnected consumers, and report those that are complete again."""
        for receiver in [each for each in self._missing if each not in receivers]:
            del self._missing[receiver]
        for receiver in receivers:
            if not receiver.natives:  # it is being reopened, and checked afterwards
                continue
            if not all(native.is_connected() for native in receiver.natives):
                self._missing.setdefault(receiver, Missing(now, log))
            elif (missing := self._missing.pop(receiver, None)) is not None and missing.reported:
                text = f"subscription {receiver.subscription.name} receives again"
                self.report(LinkChange(text, receiver=receiver))

    def restart(self, now: float) -> None:
        for missing in self._missing.values():
            missing.since = now

    def report_reasons(self, now: float) -> None:
        for receiver, missing in list(self._missing.items()):
            if missing.reported or not receiver.natives:
                continue
            refusal = _refusal(receiver, missing)
            if now - missing.since < MISSING and (refusal is None or refusal.name != NO_RIGHT):
                continue
            if refusal is not None and refusal.name in _STAYS:
                what = f"{_words(receiver)} is lost; it reconnects by itself when the cause is removed"
                error: JMSError = translate(getattr(_pulsar.Result, refusal.name), what, refusal.reason)
            elif now - missing.since >= MISSING_LONG:
                why = "pulsar-client gives no reason" if refusal is None else f"the broker refuses it: {refusal}"
                error = TransportError(
                    f"{_words(receiver)} is not connected, though the broker answers; {why}; it tries again by itself"
                )
            else:
                continue
            missing.reported = True
            self.report(LinkChange(str(error), error, receiver=receiver))


def _refusal(receiver: PulsarReceiver, missing: Missing) -> Refusal | None:
    subscription = receiver.subscription
    denied = NATIVE_LOG.refusals_of_topics(missing.log)
    lost = (str(native.topic()) for native in receiver.natives if not native.is_connected())
    for topic in lost if subscription.pattern is None else (None,):
        found = NATIVE_LOG.refusal(missing.log, topic, subscription.name, "consumer") or denied.get(topic or "")
        if found is not None:
            return found
    return None


def _words(receiver: PulsarReceiver) -> str:
    subscription = receiver.subscription
    return f"subscription {subscription.name} of {subscription.pattern or ', '.join(subscription.topics)}"


@attrs.define(eq=False)
class Quiet:
    """A consumer waiting for a record."""

    due: float  # loop time of the next check of its statistics
    received_count: int  # number of records received before
    seen: int = 0  # number of consecutive checks that showed it stalled
    needed: int = STALLED


@attrs.define(eq=False)
class StalledReceivers:
    """The possibly stalled receivers of one transport; nothing is done without the admin interface."""

    admin: Admin | None
    _quiet: dict[tuple[PulsarReceiver, str], Quiet] = attrs.field(factory=dict, init=False)

    async def check(self, now: float, receivers: Sequence[PulsarReceiver]) -> None:
        """Check the statistics of at most one consumer: among those that are due, the one that waits longest."""
        if self.admin is None:
            return
        failover = [one for one in receivers if one.subscription.type is SubscriptionType.FAILOVER]
        for key in [key for key in self._quiet if key[0] not in failover]:
            del self._quiet[key]
        due: list[tuple[Quiet, PulsarReceiver, ConsumerHandle]] = []
        for receiver in failover:
            for native, received_count in receiver.waiting:
                key = receiver, str(native.topic())
                quiet = self._quiet.get(key)
                if quiet is None or quiet.received_count != received_count:
                    self._quiet[key] = Quiet(now + STATS_INTERVAL, received_count)
                elif now >= quiet.due:
                    due.append((quiet, receiver, native))
        if not due:
            return
        quiet, receiver, native = min(due, key=lambda one: one[0].due)
        topic, name = str(native.topic()), receiver.subscription.name
        quiet.due = now + STATS_PAUSE
        try:
            with anyio.fail_after(_STATS_TIMEOUT):
                found = (await self.admin.stats(topic)).subscriptions.get(name)
        except (JMSError, TimeoutError):  # no REST interface or no permission: nothing is detected
            return
        quiet.due = now + STATS_INTERVAL
        still = (native, quiet.received_count) in receiver.waiting
        stalled = still and found is not None and found.backlog and found.active_consumer == native.consumer_name()
        quiet.seen = quiet.seen + 1 if stalled else 0
        if quiet.seen >= quiet.needed:
            quiet.seen, quiet.needed = 0, 2 * quiet.needed
            _log.warning(
                "subscription %s of %s is subscribed again: its consumer is the active one and has a backlog, but gets "
                "nothing; if this is the broker's failover, activeConsumerFailoverDelayTimeMillis=0 prevents it",
                name, topic, extra=log_fields(destination=topic, subscription=name),
            )  # fmt: skip
            receiver.renew()
