"""``SequenceIds``: the sequence ids of one sender's records, as stored by both transports."""

from __future__ import annotations

import attrs

from jmsaio.errors import IllegalArgumentError, IllegalStateError

#: The largest sequence id.
HIGHEST = 2**63 - 1


@attrs.define(eq=False)
class SequenceIds:
    """Sequence ids of one sender.

    Attributes:
        topic: full name of its topic, for errors.
        batching: whether the sender sends batches.
        last: last sequence id by the full name of the partition, or of the topic; see ``Sender.last_sequence_ids``.
    """

    topic: str
    batching: bool
    last: dict[str, int] = attrs.field(factory=dict)

    def checked(self, number: int) -> int:
        """Return ``number`` if a record can be sent with it.

        Raises:
            IllegalStateError: the sender sends batches.
            IllegalArgumentError: ``number`` is negative, or above 2**63 - 1.
        """
        if self.batching:
            raise IllegalStateError(
                f"a record with sequence id {number} to {self.topic}: the sender sends batches, and the broker keeps"
                " the first sequence id of each only; set producerConfig.batchingEnabled=false"
            )
        if not 0 <= number <= HIGHEST:
            raise IllegalArgumentError(f"a record to {self.topic}: sequence_id is {number}, and must be 0 to 2**63 - 1")
        return number

    def confirm(self, partition: str, number: int) -> None:
        """Store a sequence id that the broker has confirmed for ``partition``."""
        if number > self.last[partition]:
            self.last[partition] = number
