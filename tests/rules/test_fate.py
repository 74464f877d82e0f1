"""What happens to rejected messages."""

from __future__ import annotations

import attrs
import pytest

from jmsaio.config import Backoff, ConsumerConfig
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
    (Rejection.SUBSCRIPTION, True, False, Fate.ACKNOWLEDGE),
    (Rejection.SUBSCRIPTION, False, False, Fate.ACKNOWLEDGE),
    (Rejection.UNSURE, True, True, Fate.LATER),
    (Rejection.UNSURE, False, False, Fate.LATER),
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


def test_the_delays_of_messages_in_a_row_are_spread_evenly_over_half_a_delay() -> None:
    evenly = [1 + step / 2048 for step in range(1024)]
    in_entries = GiveBackDelays()
    assert sorted(in_entries.next(WireId(1, entry, 0, 0)) for entry in range(1024)) == evenly
    in_a_batch = GiveBackDelays()
    assert sorted(in_a_batch.next(WireId(1, 0, 0, index)) for index in range(1024)) == evenly
    of_one_message = GiveBackDelays(multiplier=1.0)
    assert sorted(of_one_message.next(WireId(1, 0, 0, 0)) for _ in range(1024)) == evenly


def test_a_delay_is_drawn_from_place_and_turn_and_not_by_chance() -> None:
    delays = GiveBackDelays()
    assert [delays.next(WireId(1, 2, 0, 3)) for _ in range(2)] == [1 + 675 / 2048, 2 * (1 + 216 / 2048)]


def test_delays_grow_for_32_turns_so_that_no_count_is_too_large_for_a_number() -> None:
    delays, place = GiveBackDelays(first=1.0, longest=1e300, multiplier=2.0, exact=True), WireId(1, 1)
    grown = [delays.next(place) for _ in range(2000)]
    assert grown[:33] == [2.0**turn for turn in range(33)] and set(grown[33:]) == {2.0**32}


def test_as_many_messages_are_remembered_as_there_is_room_for() -> None:
    delays = GiveBackDelays(capacity=2, exact=True)
    for entry in range(3):
        delays.next(WireId(1, entry))
    assert [delays.next(WireId(1, entry)) for entry in (1, 2, 0)] == [2, 2, 1]


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
    assert asks_for_delay(ConsumerConfig(negative_ack_backoff=Backoff(min_delay=1.0, max_delay=5.0, multiplier=3.0)))


def test_delays_begin_at_the_first_even_above_the_longest_and_stay_below_it() -> None:
    delays = GiveBackDelays(first=90.0, longest=60.0)
    assert delays.next(WireId(1, 1)) == 90
    quick = GiveBackDelays(first=0.01, longest=0.02, multiplier=1.0)
    assert all(0.01 <= quick.next(WireId(1, 1)) <= 0.015 for _ in range(5))
