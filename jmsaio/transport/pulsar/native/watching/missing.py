"""Receivers that receive nothing although the broker answers.

``MissingReceivers`` have disconnected consumers. pulsar-client reconnects them by itself, and only logs why it can't:
another consumer took an exclusive subscription, or the topic or the subscription was deleted.

``StalledReceivers`` have failover subscriptions that the broker no longer serves. Pulsar 4.0.7 waits
``activeConsumerFailoverDelayTimeMillis`` before it reads for a new active consumer. If that one closes just when this
time ends, the next one becomes active, but nothing is read for it until the consumers change again. So its receiver
subscribes again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import _pulsar
import anyio
import attrs

from jmsaio.errors import ConsumerBusyError, JMSError, TransportError
from jmsaio.model.log_fields import log_fields
from jmsaio.transport.base import Admin, LinkChange, SubscriptionType
from jmsaio.transport.pulsar.native.binding.handles import ConsumerHandle
from jmsaio.transport.pulsar.native.binding.native_log import NATIVE_LOG, Refusal
from jmsaio.transport.pulsar.native.binding.results import translate
from jmsaio.transport.pulsar.native.consumers.receiver import PulsarReceiver

#: Seconds that consumers can be missing while the broker answers, before the reason is determined.
MISSING = 4.0
#: Seconds after which a loss without a known reason is reported: pulsar-client waits up to 60 s between two attempts.
MISSING_LONG = 75.0
#: Refusals that persist until their cause is removed.
_STAYS = frozenset(
    {"TopicNotFound", "SubscriptionNotFound", "ConsumerBusy", "AuthorizationError", "AuthenticationError"}
    | {"IncompatibleSchema"}
)
#: Refusal of a client that had the permission before: reported at once, and nothing is sent or received meanwhile.
NO_RIGHT = "AuthorizationError"
#: Maximum seconds to determine the reason.
_REASON_TIMEOUT = 3.0

_Result = _pulsar.Result


@attrs.define(eq=False)
class Missing:
    """State of a receiver with disconnected consumers.

    Attributes:
        since: loop time since which they are missing.
        due: loop time at which to determine the reason.
        log: number of lines in pulsar-client's log before the loss.
        reported: whether the listeners were called.
    """

    since: float
    due: float
    log: int
    reported: bool = False


@attrs.define(eq=False)
class MissingReceivers:
    """The receivers of one transport with disconnected consumers.

    Args:
        admin: admin interface to find out why a subscription is missing, or None.
    """

    report: Callable[[LinkChange], object]
    admin: Admin | None
    _missing: dict[PulsarReceiver, Missing] = attrs.field(factory=dict, init=False)

    def look(self, now: float, receivers: Sequence[PulsarReceiver], log: int) -> None:
        """Record the receivers with disconnected consumers, and report those that are complete again.

        Args:
            now: the loop's time.
            receivers: open receivers.
            log: number of lines in pulsar-client's log at the previous check.
        """
        for receiver in [each for each in self._missing if each not in receivers]:
            del self._missing[receiver]
        for receiver in receivers:
            if not receiver.natives:  # it is being reopened, and checked afterwards
                continue
            if not all(native.is_connected() for native in receiver.natives):
                self._missing.setdefault(receiver, Missing(now, now + MISSING, log))
            elif (missing := self._missing.pop(receiver, None)) is not None and missing.reported:
                text = f"subscription {receiver.subscription.name} receives again"
                self.report(LinkChange(text, receiver=receiver))

    def restart(self, now: float) -> None:
        """Restart the times of all missing receivers, because the connection to the broker is restored."""
        for missing in self._missing.values():
            missing.since, missing.due = now, now + MISSING

    async def look_for_reasons(self, now: float) -> None:
        """Find out why consumers are missing although the broker answers, and report each reason once."""
        for receiver, missing in list(self._missing.items()):
            if missing.reported or not receiver.natives:
                continue
            refusal = _refusal(receiver, missing)
            if now < missing.due and (refusal is None or refusal.name != NO_RIGHT):
                continue
            missing.due = now + MISSING
            if refusal is not None and refusal.name in _STAYS:
                error: JMSError | None = _refused(receiver, refusal)
            else:
                error = await self._reason(receiver)
            if error is None and now - missing.since >= MISSING_LONG:
                why = "pulsar-client gives no reason" if refusal is None else f"the broker refuses it: {refusal}"
                error = TransportError(
                    f"{_words(receiver)} is not connected, though the broker answers; {why}; it tries again by itself"
                )
            if error is not None and self._missing.get(receiver) is missing:
                missing.reported = True
                self.report(LinkChange(str(error), error, receiver=receiver))

    async def _reason(self, receiver: PulsarReceiver) -> JMSError | None:
        """Return an error if, by the broker's statistics, another consumer has the exclusive subscription."""
        if self.admin is None or receiver.subscription.type is not SubscriptionType.EXCLUSIVE:
            return None
        topics = [str(native.topic()) for native in receiver.natives if not native.is_connected()]
        with anyio.move_on_after(_REASON_TIMEOUT):
            for topic in topics:
                try:
                    found = (await self.admin.stats(topic)).subscriptions.get(receiver.subscription.name)
                except JMSError:  # repeated later, and finally reported without a reason
                    return None
                if found is not None and found.consumers:
                    return ConsumerBusyError(
                        f"{_words(receiver)} was lost to another consumer, which connected during an "
                        "interruption of this one; this one reconnects when the other closes"
                    )
        return None


def _refusal(receiver: PulsarReceiver, missing: Missing) -> Refusal | None:
    """Return the last refusal of one of the receiver's consumers in pulsar-client's log."""
    subscription = receiver.subscription
    topics = {str(native.topic()) for native in receiver.natives if not native.is_connected()}
    denied = NATIVE_LOG.refusals_of_topics(missing.log)
    for topic in topics if subscription.pattern is None else (None,):
        found = NATIVE_LOG.refusal_of_return(missing.log, topic, subscription.name) or denied.get(topic or "")
        if found is not None:
            return found
    return None


def _refused(receiver: PulsarReceiver, refusal: Refusal) -> JMSError:
    what = f"{_words(receiver)} is lost; it reconnects by itself when the cause is removed"
    return translate(getattr(_Result, refusal.name), what, refusal.reason)


def _words(receiver: PulsarReceiver) -> str:
    subscription = receiver.subscription
    return f"subscription {subscription.name} of {subscription.pattern or ', '.join(subscription.topics)}"


#: Seconds between two checks of a consumer's statistics.
LOOK = 10.0
#: Seconds until the next check if the broker did not return the statistics.
LATER = 60.0
#: Number of consecutive checks that must show it; doubled each time that subscribing again did not help.
LOOKS = 2
#: Maximum seconds for the broker's answer.
_TIMEOUT = 3.0
_log = logging.getLogger(__name__)


@attrs.define(eq=False)
class Quiet:
    """A consumer waiting for a record.

    Attributes:
        due: loop time of the next check of its statistics.
        received_count: number of records received before.
        seen: number of consecutive checks that showed it stalled.
        needed: number of checks required.
    """

    due: float
    received_count: int
    seen: int = 0
    needed: int = LOOKS


@attrs.define(eq=False)
class StalledReceivers:
    """The possibly stalled receivers of one transport.

    Args:
        admin: admin interface for the statistics; with None nothing is done.
    """

    admin: Admin | None
    _quiet: dict[tuple[PulsarReceiver, str], Quiet] = attrs.field(factory=dict, init=False)

    async def look(self, now: float, receivers: Sequence[PulsarReceiver]) -> None:
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
                    self._quiet[key] = Quiet(now + LOOK, received_count)
                elif now >= quiet.due:
                    due.append((quiet, receiver, native))
        if due:
            await self._look_at(now, *min(due, key=lambda one: one[0].due))

    async def _look_at(self, now: float, quiet: Quiet, receiver: PulsarReceiver, native: ConsumerHandle) -> None:
        assert self.admin is not None
        topic, name, found = str(native.topic()), receiver.subscription.name, None
        quiet.due = now + LATER
        with anyio.move_on_after(_TIMEOUT):
            try:
                found = (await self.admin.stats(topic)).subscriptions.get(name)
                quiet.due = now + LOOK
            except JMSError:  # no REST interface or no permission: nothing is detected
                return
        still = (native, quiet.received_count) in receiver.waiting
        stalled = still and found is not None and found.backlog and found.active_consumer == native.consumer_name()
        quiet.seen = quiet.seen + 1 if stalled else 0
        if quiet.seen >= quiet.needed:
            quiet.seen, quiet.needed = 0, 2 * quiet.needed
            _log.warning(
                "subscription %s of %s is subscribed again: its consumer is the active one and has a backlog, but gets "
                "nothing; if this is the broker's failover, activeConsumerFailoverDelayTimeMillis=0 prevents it",
                name,
                topic,
                extra=log_fields(destination=topic, subscription=name),
            )
            receiver.renew()
