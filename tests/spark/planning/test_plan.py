"""Plans: what is stored and wanted, cut into ranges."""

from __future__ import annotations

from itertools import pairwise, product

import attrs
import pytest
from hypothesis import given, strategies as st

from jmsaio.model.wire import WireId
from jmsaio.spark.model.place import Place
from jmsaio.spark.planning.plan import Stored, locate, pending, share_tasks, split, stored, whole
from jmsaio.spark.planning.ranges import BEGINNING, Range
from jmsaio.transport.administration import Cursor, Ledger, TopicLog
from tests.spark.planning.ledgers import STEPS, Ledgers

T = "persistent://public/default/t"
LEDGERS = (Ledger(5, 4, 400), Ledger(7, 0, 0), Ledger(8, 3, 30))
STORE = Stored(LEDGERS, Place(8, 2))


def log(
    last: WireId | None, readable: WireId | None, known: bool = True, ledgers: tuple[Ledger, ...] = LEDGERS
) -> TopicLog:
    return TopicLog(ledgers, last, readable, is_readable_known=known, deduplication=False)


@pytest.mark.parametrize(
    ("of", "last", "end"),
    [
        (log(WireId(8, 2), WireId(8, 2)), None, (8, 3)),
        (log(WireId(8, 2), WireId(5, 1)), WireId(8, 2), (5, 2)),  # a transaction is open
        (log(WireId(8, 2), None, known=False), WireId(8, 0, -1, 7), (8, 1)),
        (log(WireId(8, 2), None, known=False), None, (5, 0)),
        (log(WireId(8, 2), None), None, (5, 0)),  # a transaction began with the first entry
        (log(None, None), None, (8, 3)),  # all of it was deleted
        (None, WireId(8, 2), (8, 3)),
    ],
)
def test_what_is_stored_ends_behind_the_last_entry_for_readers(
    of: TopicLog | None, last: WireId | None, end: tuple[int, int]
) -> None:
    found = stored(of, last)
    assert found == Stored(() if of is None else LEDGERS, Place(*end))


def test_a_topic_that_never_stored_anything_has_no_end() -> None:
    assert stored(None, None) == stored(log(None, None, ledgers=()), None) == Stored((), None)
    assert whole(T, Stored((), None), BEGINNING) is None


@pytest.mark.parametrize(
    ("place", "found", "lost"),
    [
        ((5, 0), (5, 0), False),
        ((5, 3), (5, 3), False),
        ((5, 4), (8, 0), False),  # all of a closed ledger
        ((7, 0), (8, 0), False),
        ((6, 0), (8, 0), False),  # an empty ledger, deleted from between others
        ((8, 3), (8, 3), False),  # all of the open one
        ((8, 1, 4), (8, 1, 4), False),
        ((0, 0), (5, 0), False),
        ((4, 9), (5, 0), True),
        ((8, 4), (8, 2), True),
        ((9, 0), (8, 2), True),
    ],
)
def test_a_place_is_found_again_or_what_was_there_is_lost(
    place: tuple[int, ...], found: tuple[int, ...], lost: bool
) -> None:
    now, loss = locate(T, Place(*place), STORE)
    assert now == Place(*found)
    assert (loss is not None) == lost
    assert loss is None or (loss.topic, loss.wanted, loss.found) == (T, Place(*place), now)


@given(STEPS)
def test_places_compare_as_the_messages_are_ordered_whatever_happened_to_their_ledgers(steps: list[str]) -> None:
    """Any two places compare by how many entries were written before them, once each has its normal form."""
    model = Ledgers()
    for step in steps:
        model.do("acknowledge" if step == "batch" else step)
    store, oldest = model.stored(), min(model.counts)
    places = {Place(ledger, 0) for ledger in model.ids} | {Place(ledger, n) for ledger, n in model.counts.items()}
    places |= {each._replace(entry=each.entry + change) for each in model.written for change in (0, 1)}
    normal = {place: store.normal(place) for place in places if place.ledger >= oldest}
    rank = {place: sum(entry < place for entry in model.written) for place in normal}
    for one, other in product(normal, repeat=2):
        assert (normal[one] < normal[other]) == (rank[one] < rank[other])
        assert (normal[one] == normal[other]) == (rank[one] == rank[other])
    assert all(store.normal(place) == place for place in normal.values())
    assert store.end in normal.values()
    assert store.end == max(normal.values())
    assert all(locate(T, place, store) == (normal[place], None) for place in normal)


def test_what_a_durable_subscription_has_not_reached_was_not_deleted() -> None:
    ledgers, last = (Ledger(13, 2, 20),), WireId(13, 1)
    store = stored(attrs.evolve(log(last, last, ledgers=ledgers), kept_after=WireId(10, 4)), None)
    for place in (Place(10, 5), Place(11, 0), Place(13, 0)):
        assert locate(T, place, store) == (Place(13, 0), None)
    for place in (Place(10, 4), Place(9, 0)):
        _, loss = locate(T, place, store)
        assert loss is not None
        assert (loss.wanted, loss.found) == (place, Place(13, 0))


def test_a_place_is_what_it_is_where_the_ledgers_are_not_known() -> None:
    assert locate(T, Place(4, 9), Stored((), Place(8, 0))) == (Place(4, 9), None)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ((5, 0), None, Range(T, Place(5, 0), Place(8, 2), ((5, 4), (7, 0), (8, 3)))),
        ((8, 0), (9, 0), Range(T, Place(8, 0), Place(8, 2), ((8, 3),))),
        ((5, 1, 2), (5, 3, 1), Range(T, Place(5, 1, 2), Place(5, 3, 1), ((5, 4),))),
        ((8, 2), None, None),
        ((5, 3), (5, 3), None),
    ],
)
def test_a_range_never_ends_behind_what_readers_are_given(
    start: tuple[int, ...], end: tuple[int, ...] | None, expected: Range | None
) -> None:
    assert whole(T, STORE, Place(*start), None if end is None else Place(*end)) == expected


@pytest.mark.parametrize(
    ("cursor", "start", "entries"),
    [
        (Cursor(None), (5, 0), 6),
        (Cursor(WireId(5, 1)), (5, 2), 4),
        (Cursor(WireId(5, 3)), (5, 4), 2),
        (Cursor(WireId(5, 0), (((5, 2), (5, 3)), ((8, 1), (8, 1)))), (5, 1), 2),
        (Cursor(WireId(8, 1)), None, 0),
        (Cursor(WireId(5, 3), (((8, 0), (8, 1)),)), None, 0),
    ],
)
def test_what_is_pending_begins_behind_the_cursor_and_leaves_out_its_holes(
    cursor: Cursor, start: tuple[int, int] | None, entries: int
) -> None:
    everything = whole(T, STORE, Place(5, 0))
    assert everything is not None
    left = pending(everything, cursor)
    assert (None if left is None else left.start) == (None if start is None else Place(*start))
    assert left is None or left.entries() == entries


def test_a_range_whose_ledgers_are_not_known_is_not_cut() -> None:
    one = Range(T, BEGINNING, Place(8, 2000))
    assert split([one], 9, 10) == [one]


@attrs.frozen
class Case:
    """Ranges of some topics, and how they are to be cut."""

    ranges: list[Range]
    min_partitions: int | None
    max_entries: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    ranges = []
    for number in range(draw(st.integers(1, 4))):
        counts = draw(st.lists(st.integers(0, 40), min_size=1, max_size=4))
        ledgers = tuple((3 * index, entries) for index, entries in enumerate(counts))
        places = [
            Place(ledger, entry, batch) for ledger, count in ledgers for entry in range(count) for batch in (0, 2)
        ]
        places.append(Place(ledgers[-1][0], ledgers[-1][1]))
        start, end = sorted((draw(st.sampled_from(places)), draw(st.sampled_from(places))))
        entry = st.tuples(st.integers(0, 9), st.integers(0, 40))
        bounds = sorted(draw(st.lists(entry, max_size=6, unique=True)))
        spans = tuple(zip(bounds[::2], bounds[1::2], strict=False))
        ranges.append(Range(f"{T}{number}", start, end, ledgers, spans))
    return Case(ranges, draw(st.none() | st.integers(1, 30)), draw(st.integers(1, 50)))


def entries_of(ranges: list[Range]) -> list[tuple[str, int, int]]:
    return [(one.topic, run[0], entry) for one in ranges for run in one.runs() for entry in range(run[1], run[2])]


@given(cases())
def test_cut_ranges_cover_every_entry_once_and_keep_to_the_limits(case: Case) -> None:
    cut = split(case.ranges, case.min_partitions, case.max_entries)
    assert entries_of(cut) == entries_of(case.ranges)  # the same, in the same order, none twice
    assert all(0 < one.entries() <= case.max_entries for one in cut)
    assert len(cut) >= min(case.min_partitions or 0, len(entries_of(case.ranges)))
    for one in case.ranges:
        pieces = [piece for piece in cut if piece.topic == one.topic]
        if pieces:
            assert (pieces[0].start, pieces[-1].end) == (one.start, one.end)
        sizes = [piece.entries() for piece in pieces]
        assert not sizes or max(sizes) - min(sizes) <= 1
        assert all(before.end <= after.start for before, after in pairwise(pieces))


@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=6), st.integers(1, 60))
def test_ranges_go_by_the_backlog_of_their_topics(entries: list[int], wanted: int) -> None:
    ranges = [Range(f"{T}{index}", Place(1, 0), Place(1, count), ((1, count),)) for index, count in enumerate(entries)]
    cut = split(ranges, wanted, 10**6)
    for index, count in enumerate(entries):
        pieces = sum(one.topic == f"{T}{index}" for one in cut)
        assert pieces == -(-count * min(wanted, sum(entries)) // sum(entries))
    assert len(cut) < min(wanted, sum(entries)) + len(entries)


@given(cases(), st.booleans())
def test_tasks_share_what_is_small_in_order_and_within_the_limits(case: Case, are_large: bool) -> None:
    size = 300_000 if are_large else 10
    cut = [attrs.evolve(one, size=size) for one in split(case.ranges, case.min_partitions, case.max_entries)]
    tasks = share_tasks(cut, case.min_partitions, case.max_entries)
    assert [one for task in tasks for one in task] == cut
    assert all(sum(one.entries() for one in task) <= case.max_entries for task in tasks)
    assert all(len(task) == 1 or sum(one.entries() for one in task) * size <= 4 * 1024 * 1024 for task in tasks)
    assert len(tasks) >= min(case.min_partitions or 0, len(cut))


def test_large_ranges_have_tasks_of_their_own_and_small_ones_a_bounded_number() -> None:
    def topic(number: int, entries: int, size: int = 100) -> Range:
        return Range(f"{T}{number}", Place(1, 0), Place(1, entries), ((1, entries),), size=size)

    small = [topic(number, 10) for number in range(100)]
    assert [len(task) for task in share_tasks(small)] == [32, 32, 32, 4]
    assert [len(task) for task in share_tasks(small, 10)] == [10] * 10
    mixed = [topic(0, 10), topic(1, 2000), topic(2, 10), topic(3, 10, 500_000), topic(4, 10), topic(5, 990)]
    tasks = [",".join(one.topic[len(T) :] for one in task) for task in share_tasks(mixed)]
    assert tasks == ["0", "1", "2", "3", "4,5"]
    unknown = [Range(f"{T}{number}", BEGINNING, Place(8, 2)) for number in range(3)]
    assert share_tasks(unknown) == [(one,) for one in unknown]


def test_a_range_estimates_the_size_of_its_entries_by_its_own_ledgers() -> None:
    store = attrs.evolve(STORE, ledgers=(Ledger(5, 4, 400), Ledger(8, 3, 6000)))
    for start, size in (((5, 0), (400 + 4000) // 6), ((8, 0), 2000)):
        found = whole(T, store, Place(*start))
        assert found is not None and found.size == size
    unknown = whole(T, Stored((), Place(8, 2)), BEGINNING)
    assert unknown is not None and unknown.size == 0
