"""``Filter``: selects the records of a subscription for one consumer."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from jmsaio.client.subscriptions.selectors import SubscriptionSelectors
from jmsaio.codec.headers import expiration, header
from jmsaio.errors import MalformedMessageError
from jmsaio.model.wire import ReceivedRecord
from jmsaio.rules.fate import Fate, Rejection, fate
from jmsaio.selector import Selector


@attrs.frozen
class Filter:
    """Selects the records of a subscription for one consumer."""

    selector: Selector | None = None
    is_local: Callable[[ReceivedRecord], bool] | None = None
    shared: bool = True  # other consumers share the subscription, so that rejected records can't be dropped
    acknowledge_rejected: bool = False  # rejected records can be dropped
    dead_letter_expired: bool = False
    subscription: SubscriptionSelectors | None = None  # set by operators
    concerns_others: bool = attrs.field(init=False)  # they might select rejected records: filter without a receive

    @concerns_others.default
    def _whether_others_are_concerned(self) -> bool:
        return self.shared and (self.selector is not None or self.is_local is not None)

    @property
    def plain(self) -> bool:
        """Whether only expiry has to be checked."""
        excluding = self.subscription is not None and bool(self.subscription.by_topic)
        return self.selector is None and self.is_local is None and not excluding

    def rejects(self, record: ReceivedRecord, now: int) -> Rejection | None:
        """Return why ``record`` is rejected at ``now`` (ms), or None. Raises MalformedMessageError."""
        if record.may_expire and 0 < expiration(record) <= now:
            return Rejection.EXPIRED
        if self.subscription is not None:
            rejection = self.subscription.rejects(record)
            if rejection is not None:
                return rejection
        if self.is_local is not None and self.is_local(record):
            return Rejection.NO_LOCAL
        if self.selector is not None and self.selector.matches_record(record, header) is not True:
            return Rejection.SELECTOR
        return None

    def fate(self, rejection: Rejection) -> Fate:
        return fate(rejection, self.shared, self.acknowledge_rejected, self.dead_letter_expired)


def may_expire(records: Iterable[ReceivedRecord]) -> bool:
    try:
        for record in records:
            if record.may_expire:
                return True
    except MalformedMessageError:
        return True
    return False
