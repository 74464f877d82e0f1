"""Whether a subscription has dead letters that a redrive was not given: other consumers hold them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from jmsaio.model.wire import WireId
from jmsaio.transport.administration import Admin, Cursor, Ledger


async def has_unseen(admin: Admin, topic: str, subscription: str, end: WireId, seen: Collection[WireId]) -> bool:
    """Whether an entry is neither acknowledged nor seen.

    Args:
        admin: of the broker.
        topic: full name of a topic without partitions, or of one partition.
        subscription: name of a durable one.
        end: the last entry that counts.
        seen: what was received; one of a batch stands for its entry.

    Raises:
        NotFoundError: no such topic or subscription.
        AdminError: the broker failed.

    Cancelling changes nothing.
    """
    entries = {(place.ledger, place.entry) for place in seen}
    log = await admin.log(topic)
    for place in unacknowledged(log.ledgers, await admin.cursor(topic, subscription), end):
        # A message in chunks is received under the place of its last one.
        if place not in entries and not await admin.is_incomplete(topic, WireId(*place, end.partition)):
            return True
    return False


def unacknowledged(ledgers: Sequence[Ledger], cursor: Cursor, end: WireId) -> Iterator[tuple[int, int]]:
    """The entries up to ``end`` that are not acknowledged as a whole, as (ledger, entry), in order.

    Args:
        ledgers: of the topic, oldest first.
        cursor: of the subscription.
        end: the last entry that counts.
    """
    mark = (-1, -1) if cursor.mark_delete is None else (cursor.mark_delete.ledger, cursor.mark_delete.entry)
    spans = sorted(cursor.deleted, reverse=True)  # the next one is the last
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
