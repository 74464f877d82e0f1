"""``MissingReceivers``: receivers with disconnected consumers although the broker answers.

pulsar-client reconnects them by itself, and only logs why it can't: another consumer took an exclusive subscription, or
the topic or the subscription was deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import _pulsar
import anyio
import attrs

from jmsaio.errors import ConsumerBusyError, JMSError, TransportError
from jmsaio.transport.base import Admin, LinkChange, Subscription, SubscriptionType
from jmsaio.transport.pulsar.native.handles import WatchedConsumerHandle
from jmsaio.transport.pulsar.native.native_log import NATIVE_LOG, Refusal
from jmsaio.transport.pulsar.native.results import translate

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


class WatchedReceiver(Protocol):
    """The part of a receiver that is watched."""

    @property
    def subscription(self) -> Subscription:
        """Its subscription."""

    @property
    def natives(self) -> Sequence[WatchedConsumerHandle]:
        """Its ``_pulsar.Consumer`` objects."""

    @property
    def received_count(self) -> int:
        """Number of records received."""

    @property
    def waiting(self) -> Sequence[tuple[WatchedConsumerHandle, int]]:
        """While all records are settled: the consumers waiting for a record, with their numbers of received ones."""

    def renew(self) -> None:
        """Subscribe again."""


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
        report: reports a change to the listeners.
        admin: admin interface to find out why a subscription is missing, or None.
    """

    report: Callable[[LinkChange], object]
    admin: Admin | None
    _missing: dict[WatchedReceiver, Missing] = attrs.field(factory=dict, init=False)

    def look(self, now: float, receivers: Sequence[WatchedReceiver], log: int) -> None:
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

    async def _reason(self, receiver: WatchedReceiver) -> JMSError | None:
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


def _refusal(receiver: WatchedReceiver, missing: Missing) -> Refusal | None:
    """Return the last refusal of one of the receiver's consumers in pulsar-client's log."""
    subscription = receiver.subscription
    topics = {str(native.topic()) for native in receiver.natives if not native.is_connected()}
    denied = NATIVE_LOG.refusals_of_topics(missing.log)
    for topic in topics if subscription.pattern is None else (None,):
        found = NATIVE_LOG.refusal_of_return(missing.log, topic, subscription.name) or denied.get(topic or "")
        if found is not None:
            return found
    return None


def _refused(receiver: WatchedReceiver, refusal: Refusal) -> JMSError:
    what = f"{_words(receiver)} is lost; it reconnects by itself when the cause is removed"
    return translate(getattr(_Result, refusal.name), what, refusal.reason)


def _words(receiver: WatchedReceiver) -> str:
    subscription = receiver.subscription
    return f"subscription {subscription.name} of {subscription.pattern or ', '.join(subscription.topics)}"
