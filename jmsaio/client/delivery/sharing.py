"""``SharingReceiver``: the receiver of an inbox that hands records to its siblings.

A record is settled by the receiver that received it, whichever consumer delivers it.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import attrs

from jmsaio.errors import ObjectClosedError
from jmsaio.model.wire import ReceivedRecord
from jmsaio.transport.base import Receiver, Transaction, Transport

_log = logging.getLogger("jmsaio")


class Adopter(Protocol):
    """The interface of an inbox to the receivers whose records it has."""

    def keep(self, inbox: Any, transport: Transport) -> bool:
        """Make its session keep another inbox until that is settled; return False if the session can't."""


@attrs.define(eq=False)
class SharingReceiver:
    """A ``Receiver`` that settles each record at the receiver that received it.

    Attributes:
        own: the transport's receiver of the inbox.
        most: maximum number of its records that rest (see ``Siblings``).
        transferred: the inboxes of siblings that have records of ``own``, by the record's ``id``.
    """

    own: Receiver
    most: float = math.inf
    transferred: dict[int, Adopter] = attrs.field(factory=dict, init=False)
    _adopted: dict[int, tuple[ReceivedRecord, SharingReceiver]] = attrs.field(factory=dict, init=False)
    _unsettled: dict[SharingReceiver, None] = attrs.field(factory=dict, init=False)

    def adopt(self, record: ReceivedRecord, owner: SharingReceiver, adopter: Adopter) -> None:
        """Settle ``record``, which is in the inbox ``adopter`` now, at ``owner``."""
        self._adopted[id(record)] = record, owner
        owner.transferred[id(record)] = adopter

    @property
    def has_adopted(self) -> bool:
        """Whether it has records that other receivers received."""
        return bool(self._adopted)

    def owner(self, record: ReceivedRecord) -> SharingReceiver:
        """Return the receiver that received ``record``."""
        adopted = self._adopted.get(id(record))
        return self if adopted is None else adopted[1]

    def release(self, record: ReceivedRecord) -> SharingReceiver:
        """Drop ``record`` from this inbox; return the receiver that received it."""
        adopted = self._adopted.pop(id(record), None)
        if adopted is None:
            return self
        adopted[1].transferred.pop(id(record), None)
        return adopted[1]

    def _apart(
        self, records: Sequence[ReceivedRecord], keep: bool = False
    ) -> dict[SharingReceiver, list[ReceivedRecord]]:
        """Group records by the receiver that received them."""
        find = self.owner if keep else self.release
        parts: dict[SharingReceiver, list[ReceivedRecord]] = {}
        for record in records:
            parts.setdefault(find(record), []).append(record)
        return parts

    def acknowledge(self, records: Sequence[ReceivedRecord], transaction: Transaction | None = None) -> None:
        """Acknowledge records; those of a receiver that was closed meanwhile are redelivered, with a warning."""
        if not self._adopted:
            self.own.acknowledge(records, transaction)
            return
        parts = self._apart(records)
        own = parts.pop(self, None)
        for owner, part in parts.items():
            self._unsettled[owner] = None
            try:
                owner.own.acknowledge(part, transaction)
            except ObjectClosedError as error:
                _log.warning("%d acknowledged messages are redelivered: %s", len(part), error)
        if own is not None:  # last: its error is raised, and must not affect the others
            self.own.acknowledge(own, transaction)

    def negative_acknowledge(self, records: Sequence[ReceivedRecord], delay: float, *, counted: bool = True) -> None:
        """Return records to the broker; those of a receiver that was closed meanwhile have already been returned."""
        if not self._adopted:
            self.own.negative_acknowledge(records, delay, counted=counted)
            return
        parts = self._apart(records)
        own = parts.pop(self, None)
        for owner, part in parts.items():
            try:
                owner.own.negative_acknowledge(part, delay, counted=counted)
            except ObjectClosedError as error:
                _log.info("%d messages were given back before: %s", len(part), error)
        if own is not None:
            self.own.negative_acknowledge(own, delay, counted=counted)

    def dead_letter(self, record: ReceivedRecord, properties: Mapping[str, str]) -> None:
        """Move a record to the dead letters."""
        self.release(record).own.dead_letter(record, properties)

    def count_delivery(self, records: Sequence[ReceivedRecord]) -> None:
        """Count one more delivery of records."""
        for owner, part in self._apart(records, keep=True).items():
            owner.own.count_delivery(part)

    async def settle(self, timeout: float, *, receipt: bool = False) -> None:
        """Wait until all acknowledgements so far are sent, whichever receiver sends them."""
        others, self._unsettled = self._unsettled, {}
        await self.own.settle(timeout, receipt=receipt)
        for owner in others:
            try:
                await owner.own.settle(timeout, receipt=receipt)
            except ObjectClosedError as error:
                _log.info("acknowledgements were sent before: %s", error)

    async def aclose(self, timeout: float) -> None:
        """Return the unsettled records of other receivers, and close the inbox's own receiver."""
        rest = [record for record, _ in self._adopted.values()]
        if rest:
            self.negative_acknowledge(rest, 0.0)
        await self.own.aclose(timeout)
