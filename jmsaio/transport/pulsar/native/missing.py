"""``MissingReceivers``: receivers some of whose consumers are not connected, though the broker answers.

pulsar-client connects them again by itself, and writes only to its log why it can't: another consumer took an exclusive
subscription, or the topic or the subscription was deleted.
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

#: Seconds that consumers may be missing while the broker answers, before the reason is looked for.
MISSING = 4.0
#: Seconds after which that is reported without a known reason: pulsar-client waits up to 60 s between two attempts.
MISSING_LONG = 75.0
#: Refusals that stay until someone removes their cause.
_STAYS = frozenset(
    {"TopicNotFound", "SubscriptionNotFound", "ConsumerBusy", "AuthorizationError", "AuthenticationError"}
    | {"IncompatibleSchema"}
)
#: The refusal of a client that had the right before: it is reported at once, and nothing is sent or received meanwhile.
NO_RIGHT = "AuthorizationError"
#: Seconds that looking for the reason may take.
_REASON_TIMEOUT = 3.0

_Result = _pulsar.Result


class ReceiverPart(Protocol):
    """A receiver, as far as it is watched."""

    @property
    def subscription(self) -> Subscription:
        """Its subscription."""

    @property
    def natives(self) -> Sequence[WatchedConsumerHandle]:
        """Its ``_pulsar.Consumer`` objects."""

    @property
    def heard(self) -> int:
        """Records that came."""

    @property
    def waiting(self) -> Sequence[tuple[WatchedConsumerHandle, int]]:
        """While all records are settled: the consumers that wait for one, with the number of those that came."""

    def renew(self) -> None:
        """Subscribe again."""


@attrs.define(eq=False)
class Missing:
    """One of them.

    Attributes:
        since: loop time.
        due: loop time at which the reason is looked for.
        log: lines of pulsar-client's log before.
        reported: the listeners know.
    """

    since: float
    due: float
    log: int
    reported: bool = False


@attrs.define(eq=False)
class MissingReceivers:
    """Those of one transport.

    Args:
        report: reports a change to the listeners.
        admin: asked why a subscription is missing, or None.
    """

    report: Callable[[LinkChange], object]
    admin: Admin | None
    _missing: dict[ReceiverPart, Missing] = attrs.field(factory=dict, init=False)

    def look(self, now: float, receivers: Sequence[ReceiverPart], log: int) -> None:
        """Note the receivers whose consumers are not connected, and report those that are complete again.

        Args:
            now: the loop's time.
            receivers: those that are open.
            log: lines of pulsar-client's log at the look before.
        """
        for receiver in [each for each in self._missing if each not in receivers]:
            del self._missing[receiver]
        for receiver in receivers:
            if not receiver.natives:  # it is reopened, and looked at then
                continue
            if not all(native.is_connected() for native in receiver.natives):
                self._missing.setdefault(receiver, Missing(now, now + MISSING, log))
            elif (missing := self._missing.pop(receiver, None)) is not None and missing.reported:
                text = f"subscription {receiver.subscription.name} receives again"
                self.report(LinkChange(text, receiver=receiver))

    def restart(self, now: float) -> None:
        """The link is back: all of them have been missing only from now on."""
        for missing in self._missing.values():
            missing.since, missing.due = now, now + MISSING

    async def look_for_reasons(self, now: float) -> None:
        """Find out why consumers are missing although the broker answers, and report it once."""
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

    async def _reason(self, receiver: ReceiverPart) -> JMSError | None:
        """An error if, by the broker's statistics, another consumer has the exclusive subscription."""
        if self.admin is None or receiver.subscription.type is not SubscriptionType.EXCLUSIVE:
            return None
        topics = [str(native.topic()) for native in receiver.natives if not native.is_connected()]
        with anyio.move_on_after(_REASON_TIMEOUT):
            for topic in topics:
                try:
                    found = (await self.admin.stats(topic)).subscriptions.get(receiver.subscription.name)
                except JMSError:  # it is asked again, and at last reported without a reason
                    return None
                if found is not None and found.consumers:
                    return ConsumerBusyError(
                        f"{_words(receiver)} was lost to another consumer, which connected while this one was away; "
                        "it comes back when that one leaves"
                    )
        return None


def _refusal(receiver: ReceiverPart, missing: Missing) -> Refusal | None:
    """The last refusal of one of its consumers, as far as pulsar-client's log has it."""
    subscription = receiver.subscription
    topics = {str(native.topic()) for native in receiver.natives if not native.is_connected()}
    denied = NATIVE_LOG.refusals_of_topics(missing.log)
    for topic in topics if subscription.pattern is None else (None,):
        found = NATIVE_LOG.refusal_of_return(missing.log, topic, subscription.name) or denied.get(topic or "")
        if found is not None:
            return found
    return None


def _refused(receiver: ReceiverPart, refusal: Refusal) -> JMSError:
    what = f"{_words(receiver)} is lost; it comes back by itself when the cause is removed"
    return translate(getattr(_Result, refusal.name), what, refusal.reason)


def _words(receiver: ReceiverPart) -> str:
    subscription = receiver.subscription
    return f"subscription {subscription.name} of {subscription.pattern or ', '.join(subscription.topics)}"
