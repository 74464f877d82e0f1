"""How far a subscription is acknowledged, and when something was last used."""

from __future__ import annotations

from jmsaio.model.wire import WireId
from jmsaio.transport.administration import Cursor, latest


def test_a_cursor_tells_what_is_acknowledged_and_what_came_after_it() -> None:
    cursor = Cursor(WireId(5, 10), (((5, 12), (5, 13)), ((6, 0), (6, 0))))
    acknowledged = [(5, 10), (5, 9), (4, 99), (5, 12), (5, 13), (6, 0)]
    assert all(cursor.is_acknowledged(WireId(*place)) for place in acknowledged)
    assert not any(cursor.is_acknowledged(WireId(*place)) for place in [(5, 11), (5, 14), (6, 1)])
    assert not Cursor(None).is_acknowledged(WireId(0, 0))
    assert not Cursor(None).is_newer(WireId(0, 0))  # nobody knows
    cursor = Cursor(None, last=WireId(5, 10, 0, 3))
    newer = [cursor.is_newer(WireId(*place)) for place in [(4, 99), (5, 10, 0, 7), (5, 11), (6, 0)]]
    assert newer == [False, False, True, True]


def test_the_latest_of_unknown_times_is_unknown() -> None:
    assert latest([3, 5, 4]) == 5
    assert latest([3, None]) is None
    assert latest([]) is None
