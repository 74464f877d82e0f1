"""``MixedBatches``: warns about batches of several groups on a key-shared subscription."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import attrs

from jmsaio.errors import MalformedMessageError
from jmsaio.model.log_fields import log_fields
from jmsaio.transport.base import Subscription
from jmsaio.transport.pulsar.native.binding.record import PulsarRecord

_log = logging.getLogger(__name__)


@attrs.define(eq=False)
class MixedBatches:
    """Warns once if a sender puts messages of several keys into one batch.

    The broker delivers a batch whole, to the consumer of the first message's key, so others of these keys can be with
    other consumers at the same time.
    """

    _subscription: Subscription
    _last: tuple[str, int, int, str | None] | None = attrs.field(default=None, init=False)
    _warned: bool = attrs.field(default=False, init=False)

    def look(self, records: Iterable[PulsarRecord]) -> None:
        """Compare the keys of consecutive records of one entry."""
        for record in () if self._warned else records:
            place = record.message_id
            try:
                here = record.topic, place.ledger, place.entry, record.key
            except MalformedMessageError:
                continue  # the application gets this error
            if self._last is not None and self._last[:3] == here[:3] and self._last != here:
                self._warned = True
                _log.warning(
                    "a batch of %s has messages of several groups, so a group of the Key_Shared subscription %s can "
                    "be with several consumers at once: set producerConfig.batcherBuilder=KEY_BASED, or "
                    "batchingEnabled=false, at its senders", record.topic, self._subscription.name,
                    extra=log_fields(destination=record.topic, subscription=self._subscription.name),
                )  # fmt: skip
                return
            self._last = here
