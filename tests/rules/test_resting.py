"""When records that no one wants go back."""

from __future__ import annotations

import gc
import weakref

import pytest

from jmsaio.model.wire import WireId
from jmsaio.rules.resting import BUNDLE, BURST, FIRST, GAIN, GONE, GROWTH, LONGEST, RATE, Bundle, Resting
from tests.kit.records import Record


def record(entry: int, index: int = -1) -> Record:
    return Record(message_id=WireId(1, entry, -1, index))


def add(resting: Resting, entries: range, now: float, owner: object = "o") -> None:
    for entry in entries:
        resting.add(owner, record(entry), now)


def entries(bundle: Bundle) -> list[int]:
    """The entry of each record."""
    return [record.message_id.entry for record in bundle.records if not isinstance(record, tuple)]


def taken(resting: Resting, now: float) -> list[int]:
    """The entries of everything that goes back at ``now``."""
    found: list[int] = []
    while (bundle := resting.pop(now)) is not None:
        found += entries(bundle)
    return found


def test_they_go_back_soon_and_then_less_and_less_often() -> None:
    resting, now, delays = Resting(), 0.0, []
    for _ in range(40):
        add(resting, range(1), now)
        assert taken(resting, now) == []
        wait = resting.wait(now)
        assert wait is not None
        delays.append(wait)
        now += wait
        assert taken(resting, now) == [0]
        assert resting.wait(now) is None
    assert delays[0] < 0.2 and sum(delays[:5]) < 2 and delays[-1] == LONGEST


def test_those_of_one_entry_go_back_together() -> None:
    resting = Resting()
    for index in range(2 * BUNDLE):
        resting.add("o", record(1, index), 0.0)
    add(resting, range(2, 4), 0.0)
    bundles = []
    while (bundle := resting.pop(1.0)) is not None:
        bundles.append(entries(bundle))
    assert sorted(bundles) == [[1] * 2 * BUNDLE, [2, 3]]


def test_a_place_stands_for_a_record() -> None:
    resting = Resting()
    places = [(1, 0, -1, index) for index in range(3)]
    for place in places:
        resting.add("o", place, 0.0)
    bundle = resting.pop(1.0)
    assert bundle is not None and (bundle.turns, bundle.records) == (0, places)
    assert resting.add("o", places[0], 1.0)
    again = resting.pop(2.0)
    assert again is not None and (again.turns, again.records) == (1, places[:1])


def test_many_that_only_come_back_are_limited() -> None:
    """After the first burst only so many a second go back, those that came least often and latest first."""
    resting = Resting()
    many = range(20 * int(BURST))
    add(resting, many, 0.0)
    assert resting.count("o") == len(many)
    first = taken(resting, 1.0)
    assert BURST <= len(first) <= BURST + BUNDLE + RATE
    now = 1.0
    for _ in range(10):
        for entry in first:
            resting.add("o", record(entry), now)
        now += 1
        first = taken(resting, now)
        assert len(first) <= RATE + BUNDLE
    add(resting, range(-5, 0), now)
    assert taken(resting, now + 10)[:5] == list(range(-5, 0))


def test_what_others_take_makes_room_for_more() -> None:
    resting = Resting()
    add(resting, range(10 * int(BURST)), 0.0)
    gone, now = len(taken(resting, 1.0)), 1.0
    for _ in range(20):
        now += GONE
        gone += len(taken(resting, now))
    assert gone == 10 * BURST and resting.wait(now) is None and resting.count("o") == 0


@pytest.mark.slow
def test_what_only_took_long_is_no_reason_for_more() -> None:
    resting = Resting()
    add(resting, range(5 * int(BURST)), 0.0)
    now, returned = 0.0, 0
    for _ in range(10):
        now += GONE + 1
        entries = taken(resting, now)
        returned += len(entries)
        taken(resting, now + GONE)
        add(resting, range(0, 0), now)
        for entry in entries:
            resting.add("o", record(entry), now + GONE)
        now += GONE
    assert returned < 10 * 2 * (BURST + BUNDLE)


@pytest.mark.slow
def test_one_owner_or_all_can_have_theirs_back_at_once() -> None:
    resting = Resting()
    add(resting, range(10 * int(BURST)), 0.0, "a")
    add(resting, range(-3, 0), 0.0, "b")
    resting.hasten("b")
    assert resting.wait(0.0) == 0.0
    bundle = resting.pop_hastened("b", 0.0)
    assert bundle is not None and bundle.owner == "b" and len(bundle.records) == 3
    assert resting.pop_hastened("b", 0.0) is None and resting.count("b") == 0
    resting.hasten()
    assert len(taken(resting, 0.0)) == 10 * BURST


def test_a_record_that_arrives_after_its_like_went_back_goes_back_too() -> None:
    resting = Resting()
    add(resting, range(1, 2), 0.0)
    resting.hasten()
    assert taken(resting, 0.0) == [1]
    add(resting, range(2, 3), 0.0)
    assert (resting.count("o"), taken(resting, 1.0)) == (1, [2])


def test_an_owner_gets_none_of_anothers_back() -> None:
    resting = Resting()
    for owner, entry in (("a", 1), ("b", 2), ("a", 3)):
        add(resting, range(entry, entry + 1), 0.0, owner)
    resting.hasten()
    bundle = resting.pop_hastened("b", 0.0)
    assert bundle is not None and entries(bundle) == [2]
    assert resting.pop_hastened("b", 0.0) is None
    assert sorted(taken(resting, 0.0)) == [1, 3]


def test_nothing_is_credited_where_receiving_pauses() -> None:
    """Returned records wait unseen then; no one else took them."""
    resting = Resting()
    add(resting, range(10 * int(BURST)), 0.0)
    resting.full.add("paused")
    taken(resting, 1.0)
    assert len(taken(resting, 2.0 + GONE)) <= RATE * (1 + GONE) + BUNDLE


def test_of_many_entries_the_last_that_went_back_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that returns waits longer than one that was never here; the oldest is like new."""
    monkeypatch.setattr("jmsaio.rules.resting.REMEMBERED", 3)

    def wait(entries: list[int], last: int) -> float | None:
        resting, now = Resting(), 0.0
        for entry in entries:
            add(resting, range(entry, entry + 1), now)
            now += 1
            assert taken(resting, now) == [entry]
        add(resting, range(last, last + 1), now)
        return resting.wait(now)

    again, new = wait([3], 3), wait([], 3)
    assert again != pytest.approx(new)
    assert wait([0, 1, 2, 3], 3) == wait([0, 3, 1, 2], 3) == pytest.approx(again)
    assert wait([3, 0, 1, 2], 3) == pytest.approx(new)


def test_no_more_entries_are_remembered_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several of them may go back in one bundle."""
    monkeypatch.setattr("jmsaio.rules.resting.REMEMBERED", 3)
    resting = Resting()
    add(resting, range(10), 0.0)
    assert sorted(taken(resting, 10.0)) == list(range(10))
    assert len(resting._returned) == 3


def test_a_long_pause_saves_up_no_more_than_one_burst() -> None:
    resting = Resting()
    assert resting.pop(0.0) is None
    assert resting.pop(1e6) is None
    add(resting, range(3 * int(BURST)), 1e6)
    first = len(taken(resting, 1e6 + LONGEST))
    assert BURST <= first <= BURST + BUNDLE


def test_a_bundle_has_a_bounded_number_of_records() -> None:
    resting = Resting()
    add(resting, range(BUNDLE + 1), 0.0)
    sizes = []
    while (bundle := resting.pop(1.0)) is not None:
        sizes.append(len(bundle.records))
    assert sorted(sizes) == [1, BUNDLE]


def test_the_delays_of_entries_in_a_row_are_spread_evenly_over_half_a_delay() -> None:
    delays = []
    for entry in range(1024):
        resting = Resting()
        add(resting, range(entry, entry + 1), 0.0)
        wait = resting.wait(0.0)
        assert wait is not None
        delays.append(wait)
    assert sorted(delays) == pytest.approx([FIRST * (1 + step / 2048) for step in range(1024)])


def test_a_delay_is_drawn_from_entry_and_turn_and_not_by_chance() -> None:
    resting = Resting()
    add(resting, range(2, 3), 0.0)
    assert resting.wait(0.0) == pytest.approx(FIRST * (1 + 866 / 2048))
    assert taken(resting, 1.0) == [2]
    add(resting, range(2, 3), 1.0)
    assert resting.wait(1.0) == pytest.approx(FIRST * GROWTH * (1 + 407 / 2048))


def test_records_that_come_soon_after_each_other_share_a_bundle() -> None:
    """Until an eighth of its delay is over; `add` tells when the next wait may be another one."""
    until = FIRST * (1 + 433 / 2048) / 8
    resting = Resting()
    assert resting.add("o", record(1), 0.0)
    assert not resting.add("o", record(1), 0.0)
    assert not resting.add("o", record(2), until)
    assert resting.add("o", record(3), until + 0.0001)


def test_entries_of_the_same_number_in_two_ledgers_are_two() -> None:
    resting = Resting()
    for index in range(BUNDLE):
        resting.add("o", (1, 5, -1, index), 0.0)
    assert resting.add("o", (2, 5, -1, 0), 0.0)


def test_two_owners_bundles_may_be_due_at_the_same_time() -> None:
    resting = Resting()
    for owner in ("a", "b"):
        add(resting, range(1), 0.0, owner)
    assert taken(resting, 1.0) == [0, 0]


def test_a_record_that_returns_while_its_owners_others_rest_goes_back_again() -> None:
    resting = Resting()
    add(resting, range(1, 2), 0.0)
    add(resting, range(2, 3), 0.05)
    bundle = resting.pop(1.0)
    assert bundle is not None and entries(bundle) == [2]
    assert resting.add("o", record(2), 1.0)
    assert sorted(taken(resting, 10.0)) == [1, 2]


def test_what_goes_back_at_once_goes_in_the_order_in_which_it_came() -> None:
    resting = Resting()
    add(resting, range(7, 8), 0.0)
    add(resting, range(1), 0.02)  # due before the one above
    resting.hasten()
    assert taken(resting, 0.02) == [7, 0]


def test_the_others_wait_for_the_first_of_them_when_one_owner_has_left() -> None:
    resting = Resting()
    add(resting, range(7, 8), 0.0, "b")
    add(resting, range(1), 0.0, "a")
    add(resting, range(1024, 1025), 0.02, "b")
    resting.hasten("a")
    assert taken(resting, 0.02) == [0]
    assert resting.wait(0.02) == pytest.approx(FIRST)


def test_one_owner_can_have_back_at_once_what_has_to_wait_for_the_budget() -> None:
    resting = Resting()
    add(resting, range(2 * int(BURST)), 0.0, "a")
    add(resting, range(1), 0.0, "b")
    first = taken(resting, 1.0)
    for owner in ("b", None):
        resting.hasten(owner)
        first += taken(resting, 1.0)
    assert sorted(first) == sorted([0, *range(2 * int(BURST))])
    assert resting.wait(1.0) is None


def test_an_owner_whose_records_all_went_back_is_forgotten() -> None:
    class Owner:
        pass

    owner, resting = Owner(), Resting()
    add(resting, range(3), 0.0, owner)
    gone = weakref.ref(owner)
    assert taken(resting, 1.0) == [0, 1, 2]
    del owner
    gc.collect()
    assert gone() is None


def spent(owner: str = "a") -> Resting:
    """One whose budget is 0 at time 1; what went back has returned, so that no one else took it."""
    resting = Resting()
    add(resting, range(1, int(BURST) + 1), 0.0, owner)
    assert len(taken(resting, 1.0)) == BURST
    add(resting, range(1, int(BURST) + 1), 1.0, owner)
    return resting


def budget(resting: Resting, now: float) -> float:
    """What may go back at ``now``, less what goes back, as the wait for the next bundle tells."""
    before = resting.count("a")
    taken(resting, now)
    wait = resting.wait(now)
    assert wait is not None
    return 1 - wait * RATE + (before - resting.count("a"))


def test_a_bundle_waits_until_the_budget_is_above_zero() -> None:
    resting = spent()
    assert resting.wait(1.5) == pytest.approx(1 / RATE)
    assert budget(resting, 2.0) == pytest.approx(RATE)


def test_nothing_goes_back_when_the_budget_is_spent_to_the_last_record() -> None:
    resting = Resting()
    add(resting, range(4096, 4097), 0.0, "b")
    add(resting, range(1, int(BURST) + 1), 0.0, "a")
    assert sorted(taken(resting, 1.0)) == list(range(1, int(BURST) + 1))
    assert taken(resting, 1.0 + 1 / RATE) == [4096]


def test_each_record_that_another_consumer_took_is_credited() -> None:
    resting = spent()
    for index in range(5):
        resting.add("b", record(-1 - index // 3, index), 1.0)
    resting.hasten("b")
    assert len(taken(resting, 1.0)) == 5
    assert budget(resting, 1.0 + GONE) == pytest.approx(GONE * RATE + 5 * GAIN)


def test_the_credit_of_a_record_that_was_only_slow_is_taken_back() -> None:
    resting = spent()
    for index in range(3):
        resting.add("b", record(-1, index), 1.0)
    resting.hasten("b")
    assert len(taken(resting, 1.0)) == 3
    _, left = (budget(resting, 1.0 + GONE) for _ in range(2))
    resting.add("b", record(-1), 1.0 + GONE)
    assert budget(resting, 1.0 + GONE) == pytest.approx(left - 3 * GAIN)


def test_a_record_that_went_back_twice_is_credited_once_it_stays_away() -> None:
    resting = spent()
    for now in (1.0, 2.5):
        resting.add("b", record(-1), now)
        resting.hasten("b")
        assert resting.pop_hastened("b", now) is not None
    assert budget(resting, 1.0 + GONE) == pytest.approx(GONE * RATE)
    _, left = (budget(resting, 2.4 + GONE) for _ in range(2))
    assert budget(resting, 2.5 + GONE) == pytest.approx(left + 0.1 * RATE + GAIN)
