"""Entries that can't be read: those damaged in transit are requested again, the others are reported."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import attrs

from jmsaio.errors import ProtocolError
from jmsaio.model.wire import EntryId

_log = logging.getLogger(__name__)
#: Seconds after which the broker is asked again for an entry, one after the other.
_AGAIN: Final = (0.1, 1.0, 10.0)
#: Entries of which is known how often they arrived damaged.
_MOST: Final = 1000


@attrs.define(eq=False)
class Damages:
    """The damaged entries of one consumer, which stay unacknowledged: the broker keeps them.

    Args:
        topic: full name of the topic or partition, for texts.
        subscription: name of the subscription, for texts.
        stored: whether the topic stores its entries.
        report: reports what no call reports.
    """

    _topic: str
    _subscription: str
    _stored: bool
    _report: Callable[[str], object]
    _times: dict[EntryId, int] = attrs.field(factory=dict, init=False)

    def take(self, key: EntryId) -> int:
        """Return how often an entry arrived damaged that can be read now, and forget it."""
        return self._times.pop(key, 0) if self._times else 0

    def add(self, key: EntryId, error: ProtocolError, as_sent: bool) -> float | None:
        """Take that an entry can't be read.

        Args:
            key: its id.
            error: why.
            as_sent: whether it is as its sender made it, so that it arrives no better again.

        Returns:
            The seconds after which it is to be requested again; None: not.
        """
        times = self._times[key] = self._times.get(key, 0) + 1
        if len(self._times) > _MOST:
            del self._times[next(iter(self._times))]
        place = f"{self._topic} (subscription {self._subscription}, ID:{key[0]}:{key[1]})"
        text = f"an entry of {place} can't be read: {error}"
        most = len(_AGAIN) if self._stored and not as_sent else 0
        if times <= most:
            if times == 1:
                _log.warning("%s; it is requested again", text)
            return _AGAIN[times - 1]
        if times == most + 1 or not self._stored:
            kept = "it stays unacknowledged" if self._stored else "the topic does not store it"
            self._report(f"{text}; {kept}; see 'jmsaio guide reliability' for how to look at it")
        return None
