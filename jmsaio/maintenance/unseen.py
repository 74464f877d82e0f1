"""Check for dead letters on a subscription that a redrive did not receive: other consumers hold them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from jmsaio.model.wire import WireId
from jmsaio.transport.administration import Admin, Cursor, Ledger


async def has_unseen(admin: Admin, topic: str, subscription: str, end: WireId, seen: Collection[WireId]) -> bool:
    """Return True if an entry is neither acknowledged nor seen.

    Args:
        admin: admin client of the broker.
        topic: full name of a topic without partitions, or of one partition.
        subscription: name of a durable subscription.
        end: the last entry that counts.
        seen: ids of received messages; one of a batch stands for its entry.

    Raises:
        NotFoundError: the topic or subscription does not exist.
        AdminError: the broker failed.

    Cancelling changes nothing.
    """
    entries = {(place.ledger, place.entry) for place in seen}
    log = await admin.log(topic)
    for place in unacknowledged(log.ledgers, await admin.cursor(topic, subscription), end):
        # A chunked message is received under the id of its last chunk.
        if place not in entries and not await admin.is_incomplete(topic, WireId(*place, end.partition)):
            return True
    return False


def unacknowledged(ledgers: Sequence[Ledger], cursor: Cursor, end: WireId) -> Iterator[tuple[int, int]]:
    """Yield the entries up to ``end`` that are not acknowledged completely, as (ledger, entry), in order.

    Args:
        ledgers: ledgers of the topic, oldest first.
        cursor: cursor of the subscription.
        end: the last entry that counts.
    """
    mark = (-1, -1) if cursor.mark_delete is None else (cursor.mark_delete.ledger, cursor.mark_delete.entry)
    spans = sorted(cursor.deleted, reverse=True)  # the next span is the last item
    for ledger in ledgers:
        if not mark[0] <= ledger.id <= end.ledger:
            continue
        first = mark[1] + 1 if ledger.id == mark[0] else 0
        stop = end.entry + 1 if ledger.id == end.ledger else ledger.entries
        for place in ((ledger.id, entry) for entry in range(first, stop)):
            while spans and spans[-1][1] < place:
                spans.pop()
            if not spans or place < spans[-1][0]:
                yield place
