"""Decides what happens to a message that a consumer rejects; all such decisions are made here.

=====================  ================================  =====================================
rejected by            exclusive or failover, browser    shared (and every queue)
=====================  ================================  =====================================
selector, noLocal      acknowledged / skipped            for others, in this process or elsewhere
expiry                 acknowledged / skipped            acknowledged: it is expired for every consumer
expiry, by choice      -                                 queues: to the dead letters, if configured
subscription           acknowledged                      acknowledged: it is excluded for every consumer
unsure                 redelivered after a second        redelivered after a second
=====================  ================================  =====================================

Starlight also acknowledges on exclusive and negatively acknowledges on shared subscriptions. jmsaio differs in two
points: messages are returned after a growing delay and at a limited rate (``jmsaio.rules.resting``), so no consumer
spins; and an expired message is removed, while Starlight returns it every second forever.
"""

from __future__ import annotations

import enum
from collections import OrderedDict

import attrs

from jmsaio.config import ConsumerConfig
from jmsaio.model.wire import WireId


class Rejection(enum.Enum):
    """Reason why a consumer rejects a message."""

    SELECTOR = "selector"
    NO_LOCAL = "noLocal"
    EXPIRED = "expired"
    SUBSCRIPTION = "the subscription's selector"
    UNSURE = "the subscription's selector, which is to be read again first"


class Fate(enum.Enum):
    """Next step for a rejected message."""

    ACKNOWLEDGE = "acknowledge"
    GIVE_BACK = "give back"
    DEAD_LETTER = "dead letter"
    LATER = "give back for a second"


def fate(rejection: Rejection, shared: bool, acknowledge_rejected: bool, dead_letter_expired: bool = False) -> Fate:
    """Decide the fate of a rejected message; ``shared``: whether other consumers might select it."""
    if rejection is Rejection.EXPIRED and dead_letter_expired:
        return Fate.DEAD_LETTER
    if rejection is Rejection.UNSURE:
        return Fate.LATER
    if rejection in (Rejection.EXPIRED, Rejection.SUBSCRIPTION) or acknowledge_rejected or not shared:
        return Fate.ACKNOWLEDGE
    return Fate.GIVE_BACK


@attrs.define
class GiveBackDelays:
    """Delays for messages that are returned repeatedly: 1 s doubling to 60 s for each message.

    Unless they are ``exact``, each delay is lengthened by up to a half, by a number derived from the message's position
    and its turn: messages returned together are redelivered separately, so that a shared subscription with round-robin
    delivery does not deliver them to the same wrong consumers each time.

    Bounded: beyond ``capacity`` messages the one returned longest ago is forgotten and starts again.

    Attributes:
        longest: longest delay in seconds, 60 or the first if that is longer.
        exact: whether the delays are configured by the application, and not lengthened.
    """

    first: float = 1.0
    longest: float = 60.0
    multiplier: float = 2.0
    exact: bool = False
    capacity: int = 10_000
    _times: OrderedDict[WireId, int] = attrs.field(factory=OrderedDict, init=False, repr=False)

    def next(self, message_id: WireId) -> float:
        """Return the seconds until the message at ``message_id`` is to be redelivered."""
        times = self._times.pop(message_id, 0)
        self._times[message_id] = times + 1
        if len(self._times) > self.capacity:
            self._times.popitem(last=False)
        spread = 0.0
        if not self.exact:
            spread = (
                (message_id.entry * 0x9E3779B1 + message_id.batch_index * 0x85EBCA6B + times * 0xC2B2AE35) % 1024 / 2048
            )
        grown = self.first * self.multiplier ** min(times, 32) * (1 + spread)
        return float(min(grown, max(self.longest, self.first)))

    def forget(self, message_id: WireId) -> None:
        self._times.pop(message_id, None)


def asks_for_delay(config: ConsumerConfig) -> bool:
    """Return whether the configuration sets a delay for messages that the application returns."""
    return config.negative_ack_backoff is not None or config.negative_ack_redelivery_delay is not None


def give_back_delays(config: ConsumerConfig) -> GiveBackDelays:
    """Return the delays of messages that the application returns: exactly as configured, else growing ones."""
    backoff, delay = config.negative_ack_backoff, config.negative_ack_redelivery_delay
    if backoff is not None:
        return GiveBackDelays(backoff.min_delay, backoff.max_delay, backoff.multiplier, exact=True)
    if delay is not None:
        return GiveBackDelays(delay, delay)  # the first is the longest, so it neither grows nor is lengthened
    return GiveBackDelays()
