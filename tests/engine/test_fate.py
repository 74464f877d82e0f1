"""What happens to rejected messages."""

from __future__ import annotations

import pytest

from jmsaio.engine.fate import Fate, GiveBackDelays, Rejection, fate
from jmsaio.model.wire import WireId

TABLE = [
    (Rejection.SELECTOR, False, False, Fate.ACKNOWLEDGE),
    (Rejection.SELECTOR, True, False, Fate.GIVE_BACK),
    (Rejection.SELECTOR, True, True, Fate.ACKNOWLEDGE),
    (Rejection.NO_LOCAL, False, False, Fate.ACKNOWLEDGE),
    (Rejection.NO_LOCAL, True, False, Fate.GIVE_BACK),
    (Rejection.EXPIRED, True, False, Fate.ACKNOWLEDGE),
    (Rejection.EXPIRED, False, False, Fate.ACKNOWLEDGE),
]


@pytest.mark.parametrize(("rejection", "shared", "acknowledge", "expected"), TABLE)
def test_fate(rejection: Rejection, shared: bool, acknowledge: bool, expected: Fate) -> None:
    assert fate(rejection, shared, acknowledge) is expected


def test_delays_grow_for_each_message_and_are_bounded() -> None:
    delays = GiveBackDelays(capacity=3)
    first = WireId(1, 1)
    assert [delays.next(first) for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert delays.next(WireId(1, 2)) == 1
    delays.forget(first)
    assert delays.next(first) == 1
    for entry in range(3, 6):
        delays.next(WireId(1, entry))
    assert delays.next(first) == 1
