"""What happens to rejected messages."""

from __future__ import annotations

import attrs
import pytest

from jmsaio.config import ConsumerConfig
from jmsaio.config.consumer import Backoff
from jmsaio.model.wire import WireId
from jmsaio.rules.fate import Fate, GiveBackDelays, Rejection, asks_for_delay, fate, give_back_delays

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
def test_each_rejection_has_its_fate(rejection: Rejection, shared: bool, acknowledge: bool, expected: Fate) -> None:
    assert fate(rejection, shared, acknowledge) is expected
    buried = Fate.DEAD_LETTER if rejection is Rejection.EXPIRED else expected
    assert fate(rejection, shared, acknowledge, dead_letter_expired=True) is buried


def test_delays_grow_for_each_message_and_are_bounded() -> None:
    delays = GiveBackDelays(capacity=3)
    first = WireId(1, 1)
    for least in (1, 2, 4, 8, 16, 32):
        assert least <= delays.next(first) <= min(1.5 * least, 60)
    assert [delays.next(first) for _ in range(2)] == [60, 60]
    assert 1 <= delays.next(WireId(1, 2)) <= 1.5
    delays.forget(first)
    assert 1 <= delays.next(first) <= 1.5
    for entry in range(3, 6):
        delays.next(WireId(1, entry))
    assert 1 <= delays.next(first) <= 1.5


def test_messages_given_back_together_are_redelivered_apart() -> None:
    delays = GiveBackDelays()
    assert len({delays.next(WireId(1, entry)) for entry in range(20)}) > 10


def test_a_configured_delay_is_the_delay() -> None:
    """A configured delay stays the same, a backoff grows exactly as it says, and ours grows from one second."""
    place = WireId(1, 1)
    assert not asks_for_delay(ConsumerConfig())
    assert 1 <= give_back_delays(ConsumerConfig()).next(place) <= 1.5
    fixed = ConsumerConfig(negative_ack_redelivery_delay=0.3)
    delays = give_back_delays(fixed)
    assert asks_for_delay(fixed) and [delays.next(place) for _ in range(3)] == [0.3] * 3
    growing = attrs.evolve(fixed, negative_ack_backoff=Backoff(min_delay=1.0, max_delay=5.0, multiplier=3.0))
    delays = give_back_delays(growing)
    assert asks_for_delay(growing) and [delays.next(place) for _ in range(3)] == [1.0, 3.0, 5.0]


def test_delays_begin_at_the_first_even_above_the_longest_and_stay_below_it() -> None:
    delays = GiveBackDelays(first=90.0, longest=60.0)
    assert delays.next(WireId(1, 1)) == 90
    quick = GiveBackDelays(first=0.01, longest=0.02, multiplier=1.0)
    assert all(0.01 <= quick.next(WireId(1, 1)) <= 0.015 for _ in range(5))
