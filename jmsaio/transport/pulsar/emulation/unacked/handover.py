"""``Handover``: what the receivers of one subscription in this process must know of each other's records.

The broker gives the records of a receiver that stops to the others. What its application still has must not be
delivered there, and what was delivered before must say so (``PriorDeliveries``).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from functools import partial

from jmsaio.transport.pulsar.emulation.unacked.ack_grouping import AckGrouping
from jmsaio.transport.pulsar.emulation.unacked.prior_deliveries import Entry, PriorDeliveries
from jmsaio.transport.pulsar.emulation.unacked.unsettled import Unsettled
from jmsaio.transport.pulsar.native.record import PulsarRecord


class Handover:
    """One receiver's side.

    Args:
        prior: the deliveries of receivers that stopped, one for all receivers of a transport.
        name: the subscription.
        unsettled: the receiver's records.
        acks: the receiver's acknowledgements.
        redeliver: gets records that were kept back as copies and are to be delivered now.

    Attributes:
        left: the application has records that a stop gave to others, and may settle them.
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

    def entries(self, topic: str | None) -> list[Container[Entry]]:
        """What has the entries of a topic of which something was delivered before; see ``PriorDeliveries.entries``."""
        return self._prior.entries(topic, self._name)

    def was_delivered(self, record: PulsarRecord) -> bool:
        """Whether another receiver's application had a record, whatever the broker counts."""
        return record in self._prior.marked

    def keep_copy(self, record: PulsarRecord) -> bool:
        """Keep a record back if the application of a stopped receiver has it, or has acknowledged it since.

        One that was given back there is marked as redelivered.

        Returns:
            True when it was kept back.
        """
        delivery = self._prior.find(self._name, record) if self._prior else None
        if delivery is None:
            return False
        record.redelivery_count = max(1, record.redelivery_count)  # for one that was given back
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
        """The native consumers close, which gives everything to others.

        Args:
            seen: records that the application had and gave back.
            unseen: other records that are given back.
            briefly: they are reopened at once, so that copies stay here.
        """
        unsettled = self._unsettled
        self.pass_on(unsettled.remove(unseen))
        self._prior.add(self._name, unsettled.remove(seen), held=False)
        if not briefly:
            self.pass_on(unsettled.drop_aside())
            unsettled.remove(self._prior.take_copies(self._name, unsettled.out))
        # After a long stop, what is still given back is on its way to the dead letters: it is settled from here.
        kept = [record for record, given_back in unsettled.out.items() if not (briefly and given_back)]
        self._prior.add(self._name, kept, held=True)
        self.left = self.left or bool(kept)

    def close(self, unseen: Container[PulsarRecord]) -> None:
        """The receiver is closed: what its application did not settle comes to others, marked as redelivered.

        Args:
            unseen: records that were given back although no application had them.
        """
        out = self._unsettled.out
        copies = self._prior.take_copies(self._name, out)
        own = [record for record in out if record not in copies]
        self.settled(own, acknowledged=False)
        self.pass_on(record for record in own if record in unseen)
        self.pass_on(self._unsettled.drop_aside())
        self._prior.add(self._name, [record for record in own if record not in unseen], held=False)

    def pass_on(self, records: Iterable[PulsarRecord]) -> None:
        """Records go back that no application got from here: those delivered before say so when redelivered."""
        self._prior.add(self._name, [record for record in records if record.redelivery_count], held=False)

    def settled(self, records: Iterable[object], acknowledged: bool) -> None:
        """The application settled records: receivers that keep copies of them acknowledge or deliver those."""
        if self.left:
            known = [record for record in records if isinstance(record, PulsarRecord)]
            self._prior.settled(self._name, known, acknowledged)

    def forget(self, concerned: Callable[[str], bool]) -> None:
        """The subscription was moved on some topics, or their ids start over."""
        self._prior.forget(self._name, concerned)
