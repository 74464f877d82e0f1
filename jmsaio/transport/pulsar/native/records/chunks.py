"""Returns messages in chunks to the broker, which stores each chunk as an entry.

All chunks must be returned: the last one alone would be redelivered to no one, and the subscription would stop.
pulsar-client 3.13 returns only that one, and an id shows only the first and the last chunk. Between those, other
producers can store entries, which must not be returned: a chunk without the rest of its message would be lost.
"""

from __future__ import annotations

from jmsaio.model.wire import WireId
from jmsaio.transport.pulsar.native.binding.record import Chunks, PulsarRecord
from jmsaio.transport.pulsar.native.records.settled import ENTRIES, Settled
from jmsaio.transport.pulsar.native.records.unsettled import Unsettled


def chunk_ids(record: PulsarRecord, chunks: Chunks, unsettled: Unsettled, settled: Settled) -> list[WireId] | None:
    """Return the ids of the chunks of a message, in order; None if other entries can't be told from them.

    A consumer receives the chunks of a message, and each entry stored between them is another consumer's, was received
    here before the message, or belongs to another message in chunks.

    Args:
        record: the message, no longer in ``unsettled``.
        chunks: its chunks.
        unsettled: the receiver's other records.
        settled: its acknowledged records.
    """
    first, (ledger, last, partition, _) = chunks.first, record.message_id
    if first[0] != ledger or last - first[1] > ENTRIES:
        return None
    settled.fold()
    others = set()
    for entry, of_other in unsettled.entries(record.native_consumer, first):
        if of_other is not None and of_other.first < (ledger, last):
            return None
        others.add(entry)
    between = [number for number in range(first[1] + 1, last) if (ledger, number) not in others]
    numbers = [first[1], *(number for number in between if not settled.has((ledger, number))), last]
    return [WireId(ledger, number, partition) for number in numbers] if len(numbers) <= max(2, chunks.most) else None
