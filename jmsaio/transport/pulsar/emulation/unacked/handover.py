"""``Handover``: shares knowledge of records between the receivers of one subscription in this process.

The broker sends the records of a stopped receiver to the others. Records still held by its application must not be
delivered there, and records delivered before must be marked as redelivered (``PriorDeliveries``).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from functools import partial

from jmsaio.model.wire import EntryId
from jmsaio.transport.pulsar.emulation.unacked.ack_grouping import AckGrouping
from jmsaio.transport.pulsar.emulation.unacked.prior_deliveries import PriorDeliveries
from jmsaio.transport.pulsar.emulation.unacked.unsettled import Unsettled
from jmsaio.transport.pulsar.native.record import PulsarRecord


class Handover:
    """One receiver's part.

    Args:
        prior: deliveries of stopped receivers, shared by all receivers of a transport.
        name: name of the subscription.
        unsettled: the receiver's records.
        acks: the receiver's acknowledgements.
        redeliver: called with copies kept back that are to be delivered now.

    Attributes:
        left: whether the application can still settle records that a stop returned to others.
    """

    def __init__(
        self,
        prior: PriorDeliveries,
        name: str,
        unsettled: Unsettled,
        acks: AckGrouping,
        redeliver: Callable[[list[PulsarRecord]], None],
    ) -> None:
        self._prior = prior
        self._name = name
        self._unsettled = unsettled
        self._acks = acks
        self._redeliver = redeliver
        self.left = False

    def entries(self, topic: str | None) -> list[Container[EntryId]]:
        """Return containers of a topic's entries with earlier deliveries; see ``PriorDeliveries.entries``."""
        return self._prior.entries(topic, self._name)

    def was_delivered(self, record: PulsarRecord) -> bool:
        """Return whether another receiver's application had a record, whatever the broker counts."""
        return record in self._prior.marked

    def keep_copy(self, record: PulsarRecord) -> bool:
        """Keep a record back if a stopped receiver's application holds it, or has acknowledged it since.

        A record returned there is marked as redelivered.

        Returns:
            True if it was kept back.
        """
        delivery = self._prior.find(self._name, record) if self._prior else None
        if delivery is None:
            return False
        record.redelivery_count = max(1, record.redelivery_count)  # for a returned one
        if not delivery.held and not delivery.acknowledged:
            return False
        self._unsettled.out[record] = True
        if delivery.acknowledged:
            self._acks.acknowledge((record,), given_back=True)
        else:
            delivery.copies[record] = partial(self._settled_elsewhere, record)
        return True

    def _settled_elsewhere(self, record: PulsarRecord, acknowledged: bool) -> None:
        if acknowledged:
            self._acks.acknowledge((record,), given_back=True)
        elif self._unsettled.out.get(record):
            self._redeliver([record])

    def stop(self, seen: Iterable[PulsarRecord], unseen: Iterable[PulsarRecord], *, briefly: bool) -> None:
        """Prepare for closing the native consumers, which returns all records to others.

        Args:
            seen: records that the application had and returned.
            unseen: other returned records.
            briefly: the consumers are reopened at once, so copies stay here.
        """
        unsettled = self._unsettled
        self.pass_on(unsettled.remove(unseen))
        self._prior.add(self._name, unsettled.remove(seen), held=False)
        if not briefly:
            self.pass_on(unsettled.drop_aside())
            unsettled.remove(self._prior.take_copies(self._name, unsettled.out))
        # After a long stop, records still marked as returned are being moved to the dead letters, and settled from
        # here.
        kept = [record for record, given_back in unsettled.out.items() if not (briefly and given_back)]
        self._prior.add(self._name, kept, held=True)
        self.left = self.left or bool(kept)

    def close(self, unseen: Container[PulsarRecord]) -> None:
        """Release the unsettled records to other receivers, marked as redelivered.

        Args:
            unseen: returned records that no application had.
        """
        out = self._unsettled.out
        copies = self._prior.take_copies(self._name, out)
        own = [record for record in out if record not in copies]
        self.settled(own, acknowledged=False)
        self.pass_on(record for record in own if record in unseen)
        self.pass_on(self._unsettled.drop_aside())
        self._prior.add(self._name, [record for record in own if record not in unseen], held=False)

    def pass_on(self, records: Iterable[PulsarRecord]) -> None:
        """Register returned records not delivered here: those delivered before are marked when redelivered."""
        self._prior.add(self._name, [record for record in records if record.redelivery_count], held=False)

    def settled(self, records: Iterable[object], acknowledged: bool) -> None:
        """Settle records of the application: receivers with copies of them acknowledge or deliver those."""
        if self.left:
            known = [record for record in records if isinstance(record, PulsarRecord)]
            self._prior.settled(self._name, known, acknowledged)

    def forget(self, concerned: Callable[[str], bool]) -> None:
        """Forget deliveries of a subscription moved on some topics, or of topics whose ids start over."""
        self._prior.forget(self._name, concerned)
