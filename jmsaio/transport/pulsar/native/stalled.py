"""``StalledReceivers``: receivers of failover subscriptions that the broker no longer serves.

Pulsar 4.0.7 waits ``activeConsumerFailoverDelayTimeMillis`` before it reads for a new active consumer. If that one
closes just when this time ends, the next one becomes active, but nothing is read for it until the consumers change
again. So its receiver subscribes again.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import anyio
import attrs

from jmsaio.errors import JMSError
from jmsaio.transport.base import Admin, SubscriptionType
from jmsaio.transport.pulsar.native.handles import WatchedConsumerHandle
from jmsaio.transport.pulsar.native.missing import WatchedReceiver

#: Seconds between two checks of a consumer's statistics.
LOOK = 10.0
#: Seconds until the next check if the broker did not return the statistics.
LATER = 60.0
#: Number of consecutive checks that must show it; doubled each time that subscribing again did not help.
LOOKS = 2
#: Maximum seconds for the broker's answer.
_TIMEOUT = 3.0
_log = logging.getLogger("jmsaio")


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
    _quiet: dict[tuple[WatchedReceiver, str], Quiet] = attrs.field(factory=dict, init=False)

    async def look(self, now: float, receivers: Sequence[WatchedReceiver]) -> None:
        """Check the statistics of at most one consumer: among those that are due, the one that waits longest."""
        if self.admin is None:
            return
        failover = [one for one in receivers if one.subscription.type is SubscriptionType.FAILOVER]
        for key in [key for key in self._quiet if key[0] not in failover]:
            del self._quiet[key]
        due: list[tuple[Quiet, WatchedReceiver, WatchedConsumerHandle]] = []
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

    async def _look_at(
        self, now: float, quiet: Quiet, receiver: WatchedReceiver, native: WatchedConsumerHandle
    ) -> None:
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
            )
            receiver.renew()
