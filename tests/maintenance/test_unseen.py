"""What a subscription has not acknowledged, and a redrive was not given."""

from __future__ import annotations

from typing import cast

import pytest

from jmsaio.maintenance.unseen import has_unseen, unacknowledged
from jmsaio.model.wire import WireId
from jmsaio.transport.administration import Admin, Cursor, Ledger, TopicLog

LEDGERS = (Ledger(3, 4, 40), Ledger(7, 2, 20), Ledger(9, 5, 50))
END = WireId(9, 1)


@pytest.mark.parametrize(
    ("cursor", "left"),
    [
        (Cursor(None), [(3, 0), (3, 1), (3, 2), (3, 3), (7, 0), (7, 1), (9, 0), (9, 1)]),
        (Cursor(WireId(3, 2)), [(3, 3), (7, 0), (7, 1), (9, 0), (9, 1)]),
        (Cursor(WireId(3, 3), (((9, 1), (9, 4)), ((7, 1), (7, 1)))), [(7, 0), (9, 0)]),
        (Cursor(WireId(3, 0), (((3, 3), (9, 0)),)), [(3, 1), (3, 2), (9, 1)]),
        (Cursor(WireId(9, 1)), []),
        (Cursor(WireId(11, 0)), []),
    ],
)
def test_entries_up_to_the_end_are_left_until_they_are_acknowledged(
    cursor: Cursor, left: list[tuple[int, int]]
) -> None:
    assert list(unacknowledged(LEDGERS, cursor, END)) == left


class FakeAdmin:
    """A topic of three ledgers, whose entry 7:0 is the first chunk of the message 7:1."""

    async def log(self, topic: str) -> TopicLog:
        return TopicLog(LEDGERS, None, None, is_readable_known=True, deduplication=False)

    async def cursor(self, topic: str, subscription: str) -> Cursor:
        return Cursor(WireId(3, 3), (((9, 0), (9, 0)),))

    async def is_incomplete(self, topic: str, place: WireId) -> bool:
        return place == WireId(7, 0)


@pytest.mark.parametrize(
    ("seen", "unseen"),
    [({WireId(7, 1), WireId(9, 1, -1, 3)}, False), ({WireId(7, 1)}, True), ({WireId(9, 1)}, True)],
)
async def test_a_message_in_chunks_and_a_batch_are_seen_as_a_whole(seen: set[WireId], unseen: bool) -> None:
    assert await has_unseen(cast("Admin", FakeAdmin()), "t", "s", END, seen) is unseen
