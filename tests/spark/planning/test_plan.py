"""Contents of topics, the ranges of a read, and the batches of a stream: nothing is left out and nothing is twice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import chain, pairwise, product

import attrs
import pytest
from hypothesis import given, strategies as st

from jmsaio.errors import ConfigurationError
from jmsaio.model.wire import WireId
from jmsaio.spark.model.place import Place
from jmsaio.spark.planning.plan import (
    Behind,
    Stored,
    advance,
    between,
    clipped,
    from_json,
    lag,
    locate,
    pending,
    share,
    share_tasks,
    split,
    stored,
    to_json,
    whole,
)
from jmsaio.spark.planning.ranges import BEGINNING, Loss, Range
from jmsaio.transport.administration import Cursor, Ledger, TopicLog
from tests.spark.planning.ledgers import STEPS, TOPIC, Ledgers

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
    ],
)
def test_what_is_stored_ends_behind_the_last_entry_for_readers(
    of: TopicLog, last: WireId | None, end: tuple[int, int]
) -> None:
    assert stored(of, last) == Stored(LEDGERS, Place(*end))


def test_a_topic_that_never_stored_anything_has_no_end() -> None:
    assert stored(log(None, None, ledgers=()), None) == Stored((), None)
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


def test_a_range_estimates_the_size_of_its_entries_by_its_own_ledgers() -> None:
    store = attrs.evolve(STORE, ledgers=(Ledger(5, 4, 400), Ledger(8, 3, 6000)))
    for start, size in (((5, 0), (400 + 4000) // 6), ((8, 0), 2000)):
        found = whole(T, store, Place(*start))
        assert found is not None and found.size == size
    unknown = whole(T, Stored((), Place(8, 2)), BEGINNING)
    assert unknown is not None and unknown.size == 0


A, B, C = "persistent://public/default/a", "persistent://public/default/b", "persistent://public/default/c"
TWO = Stored((Ledger(5, 4, 400), Ledger(8, 3, 30)), Place(8, 2))


def one_ledger(entries: int, size: int = 10) -> Stored:
    return Stored((Ledger(3, entries, entries * size),), Place(3, entries))


def test_offsets_are_read_back_from_what_is_written() -> None:
    written = to_json({B: Place(9, 2), A: Place(12, 0)})
    assert written == {"v": 1, "p": {A: "12:0", B: "9:2"}}
    assert from_json(json.loads(json.dumps(written))) == {A: Place(12, 0), B: Place(9, 2)}


@pytest.mark.parametrize("written", [{}, {"v": 2, "p": {}}, {"v": 1}, {"v": 1, "p": "1:2"}, {"i": 3}])
def test_offsets_of_another_version_are_refused(written: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match="the checkpoint is of another version"):
        from_json(written)


def test_a_damaged_offset_is_refused_with_its_topic() -> None:
    with pytest.raises(ConfigurationError, match=f"checkpoint, {A}: a position is written"):
        from_json({"v": 1, "p": {A: "seven"}})


def moved(start: Mapping[str, Place], end: Mapping[str, Place], stores: Mapping[str, Stored]) -> int:
    return sum(one.entries() for one in between(start, end, stores)[0])


@pytest.mark.parametrize(
    ("start", "limit", "end", "entries"),
    [
        ((5, 0), None, (8, 2), 6),
        ((5, 0), 3, (5, 3), 3),
        ((5, 0), 4, (8, 0), 4),  # all of a closed ledger is the start of the next
        ((5, 2), 3, (8, 1), 3),
        ((8, 2), None, (8, 2), 0),
        ((5, 4), 1, (8, 1), 1),
    ],
)
def test_a_batch_ends_at_the_limit_and_not_behind_what_readers_are_given(
    start: tuple[int, int], limit: int | None, end: tuple[int, int], entries: int
) -> None:
    step = advance({A: Place(*start)}, {A: TWO}, max_entries=limit)
    assert (step.end, step.losses) == ({A: Place(*end)}, ())
    assert moved({A: Place(*start)}, step.end, {A: TWO}) == entries


def test_an_offset_stays_valid_when_its_ledger_is_deleted() -> None:
    read = advance({A: Place(5, 0)}, {A: TWO}, max_entries=4).end
    trimmed = Stored(TWO.ledgers[1:], TWO.end)
    assert advance(read, {A: trimmed}).losses == ()
    [loss] = advance({A: Place(5, 3)}, {A: trimmed}).losses
    assert (loss.wanted, loss.found) == (Place(5, 3), Place(8, 0))
    assert advance({A: Place(5, 3)}, {A: trimmed}, retained={A}).losses == ()
    assert advance({A: Place(5, 3)}, {A: trimmed}, retained={B}).losses == (loss,)
    [made_anew] = advance({A: Place(9, 3)}, {A: TWO}, retained={A}).losses
    assert made_anew.wanted == Place(9, 3)


def test_a_topic_made_anew_with_lower_ledgers_is_one_loss_and_what_comes_later_is_read() -> None:
    """What the new topic stores by then is not read: the loss tells between which places."""
    read = {A: Place(90, 3)}
    step = advance(read, {A: TWO})
    [loss] = step.losses
    assert (step.end, loss.wanted, loss.found) == ({A: TWO.end}, Place(90, 3), TWO.end)
    assert between(read, step.end, {A: TWO}) == ([], (loss,))
    grown = Stored((TWO.ledgers[0], Ledger(8, 6, 60)), Place(8, 6))
    later = advance(step.end, {A: grown})
    assert later.losses == ()
    ranges, losses = between(step.end, later.end, {A: grown})
    assert (losses, sum(one.entries() for one in ranges)) == ((), 4)


def test_a_new_partition_begins_at_its_start_and_an_empty_one_waits() -> None:
    start, stores = {A: Place(8, 2)}, {A: TWO, B: TWO, C: Stored((), None)}
    step = advance(start, stores)
    assert step.end == {A: Place(8, 2), B: Place(8, 2)}
    assert moved(start, step.end, stores) == 6


def test_a_vanished_partition_is_a_loss() -> None:
    step = advance({A: Place(8, 2), B: Place(1, 1)}, {A: TWO})
    [loss] = step.losses
    assert (loss.topic, loss.wanted, loss.found, set(step.end)) == (B, Place(1, 1), None, {A})


def test_a_run_over_what_is_there_now_ends_there_and_takes_no_new_partition() -> None:
    until = {A: Place(5, 2)}
    step = advance({A: Place(5, 0)}, clipped({A: TWO, B: TWO}, until))
    assert step.end == until
    assert advance(step.end, clipped({A: TWO, B: TWO}, until)).end == until


@pytest.mark.parametrize(("store", "until"), [(Stored((), None), None), (TWO, {B: Place(8, 2)})])
def test_a_partition_of_which_nothing_is_read_keeps_its_offset(store: Stored, until: dict[str, Place] | None) -> None:
    stores = {A: store, B: TWO}
    step = advance({A: Place(5, 0)}, stores if until is None else clipped(stores, until))
    assert step.end == {A: Place(5, 0), B: Place(8, 2)}
    assert step.losses == ()


def test_an_offset_stays_while_a_topic_that_closes_reports_an_earlier_end() -> None:
    step = advance({A: Place(8, 2)}, {A: attrs.evolve(TWO, end=Place(5, 0))})
    assert (step.end, step.losses) == ({A: Place(8, 2)}, ())


@pytest.mark.parametrize(("limit", "entries"), [(1, 1), (55, 5), (10**9, 110)])
def test_a_limit_of_bytes_goes_by_the_mean_size_but_reads_something(limit: int, entries: int) -> None:
    stores = {A: one_ledger(10), B: one_ledger(100)}
    assert moved({}, advance({}, stores, max_bytes=limit).end, stores) == entries


def test_the_smaller_of_two_limits_counts() -> None:
    stores = {A: one_ledger(100)}
    assert moved({}, advance({}, stores, max_entries=7, max_bytes=500).end, stores) == 7
    assert moved({}, advance({}, stores, max_entries=70, max_bytes=500).end, stores) == 50


def test_lag_is_entries_and_bytes_behind_each_partition() -> None:
    found = lag({A: Place(5, 2), C: Place(3, 7)}, {A: TWO, B: TWO, C: one_ledger(7)})
    assert found == {A: Behind(4, 220), B: Behind(6, 420), C: Behind(0, 0)}


LEFT = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 10_000), min_size=1)


@given(LEFT, st.integers(1, 20_000), st.integers(0, 100))
def test_shares_sum_to_the_limit_and_starve_nobody(left: dict[str, int], limit: int, turn: int) -> None:
    shares = share(left, limit, turn)
    assert sum(shares.values()) == min(limit, sum(left.values()))
    assert all(0 <= shares[topic] <= left[topic] for topic in left)
    if limit >= len(left):
        assert all(shares[topic] for topic in left if left[topic])


@given(st.integers(2, 8), st.integers(1, 7))
def test_few_entries_for_many_partitions_go_round(partitions: int, limit: int) -> None:
    stores = {f"{A}{index}": one_ledger(1000) for index in range(partitions)}
    offsets: dict[str, Place] = {}
    for _ in range(partitions):
        offsets = advance(offsets, stores, max_entries=limit).end
    assert {place.entry for place in offsets.values()} == {limit}


def test_the_larger_backlog_gets_the_larger_share() -> None:
    assert share({"a": 901, "b": 101}, 102) == {"a": 91, "b": 11}


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4), min_size=1, max_size=4), st.integers(1, 9))
def test_batches_read_everything_once(topics: list[list[int]], limit: int) -> None:
    """Batch after batch the offsets advance by the limit, never behind the end, until nothing is left."""
    stores, counts = {}, {f"{A}{index}": each for index, each in enumerate(topics)}
    for index, each in enumerate(topics):
        ledgers = tuple(Ledger(2 * number, entries, entries) for number, entries in enumerate(each))
        stores[f"{A}{index}"] = Stored(ledgers, Place(ledgers[-1].id, ledgers[-1].entries))
    offsets: dict[str, Place] = {}
    left, read = sum(map(sum, topics)), 0
    while read < left:
        step = advance(offsets, stores, max_entries=limit)
        entries = sum(
            Range(topic, offsets.get(topic, store.first), step.end.get(topic, store.first), store.entries).entries()
            for topic, store in stores.items()
        )
        assert entries == min(limit, left - read)
        assert all(
            step.end[topic] <= (store.end or Place(0, 0)) for topic, store in stores.items() if topic in step.end
        )
        assert {topic for topic in stores if topic not in step.end} == {
            each for each in stores if not any(counts[each])
        }
        offsets, read = step.end, read + entries
    assert sum(one.entries for one in lag(offsets, stores).values()) == 0
    assert advance(offsets, stores).end == offsets


@attrs.define
class Stream:
    """A stream that reads a model of a topic, and the entries that its batches had."""

    model: Ledgers
    offsets: dict[str, Place] = attrs.field(factory=dict)
    read: list[Place] = attrs.field(factory=list)
    losses: list[Loss] = attrs.field(factory=list)

    def batch(self, limit: int | None, meanwhile: list[str]) -> None:
        """Plan a batch, let things happen as while Spark restarts, and read it: what is gone of it must be told."""
        step = advance(self.offsets, {TOPIC: self.model.stored()}, max_entries=limit)
        start = self.offsets.get(TOPIC, BEGINNING)
        end = step.end.get(TOPIC, start)
        before = self.model.kept
        for each in meanwhile:
            self.model.do(each)
        ranges, losses = between(self.offsets, step.end, {TOPIC: self.model.stored()})
        found = [Place(run[0], entry) for one in ranges for run in one.runs() for entry in range(run[1], run[2])]
        wanted = [place for place in self.model.written if start <= place < end]
        if start == BEGINNING:
            wanted = [place for place in wanted if place in before]
        assert found == [place for place in wanted if place in self.model.kept]
        assert losses or found == wanted
        assert from_json(to_json(step.end)) == step.end
        self.read += found
        self.losses += [*step.losses, *losses]
        self.offsets = step.end


@given(STEPS, st.lists(STEPS, max_size=8), st.none() | st.integers(1, 4))
def test_a_stream_reads_all_once_and_loses_nothing_that_a_subscription_keeps_for_it(
    steps: list[str], meanwhile: list[list[str]], limit: int | None
) -> None:
    """Whatever is unloaded, closed, trimmed and written, also between planning a batch and reading it."""
    stream = Stream(Ledgers())
    written = sum(int(step) for step in chain(steps, *meanwhile) if step.isdigit())
    for step in (*steps, *["batch"] * (written + len(meanwhile) + 1)):
        if step == "batch":
            stream.batch(limit, meanwhile.pop() if meanwhile else [])
            stream.model.acknowledge(stream.offsets.get(TOPIC))
        else:
            stream.model.do(step)
    assert stream.losses == []
    assert stream.read == stream.model.written


@given(STEPS, st.lists(STEPS, max_size=8), st.none() | st.integers(1, 4))
def test_a_stream_that_nothing_is_kept_for_is_told_of_what_is_gone_and_of_nothing_else(
    steps: list[str], meanwhile: list[list[str]], limit: int | None
) -> None:
    """Without a subscription it is not known whether a ledger that is gone had more entries than were read."""
    stream = Stream(Ledgers(has_subscription=False))
    for step in steps:
        if step == "batch":
            start = stream.offsets.get(TOPIC, stream.model.stored().first)
            is_gone = start.ledger < min(stream.model.counts)
            then = [] if is_gone or not meanwhile else [each for each in meanwhile.pop() if each != "trim"]
            told = len(stream.losses)
            stream.batch(limit, then)
            assert (len(stream.losses) > told) == is_gone
        else:
            stream.model.do(step)


@pytest.mark.parametrize("subscription", [True, False])
def test_an_offset_of_an_unused_topic_waits_for_the_first_message(subscription: bool) -> None:
    model = Ledgers(subscription)
    assert advance({}, {TOPIC: model.stored()}).end == {}
    model.unload()
    assert advance({}, {TOPIC: model.stored()}).end == {}
    model.append(2)
    step = advance({}, {TOPIC: model.stored()})
    assert (step.end, step.losses) == ({TOPIC: Place(model.ids[-1], 2)}, ())


def test_offsets_that_earlier_versions_wrote_at_an_empty_ledger_are_read() -> None:
    """They wrote the end of a closed ledger in either form, and could not read the empty batch between the two."""
    model = Ledgers()
    model.append(2)
    model.unload()
    old, new = {TOPIC: Place(3, 2)}, {TOPIC: Place(5, 0)}
    for start, end in ((old, new), (new, old), (old, old), ({TOPIC: Place(3, 0)}, old), ({TOPIC: Place(3, 0)}, new)):
        ranges, losses = between(start, end, {TOPIC: model.stored()})
        assert losses == ()
        assert sum(one.entries() for one in ranges) == (2 if start[TOPIC].entry == 0 and start != new else 0)
    assert advance(old, {TOPIC: model.stored()}).end == new == advance(new, {TOPIC: model.stored()}).end


def test_a_batch_is_cut_into_ranges_between_its_offsets() -> None:
    stores = {A: TWO, B: one_ledger(2)}
    ranges, losses = between({A: Place(5, 2)}, {A: Place(8, 2), B: Place(3, 2)}, stores)
    ranges = split(ranges, None, 3)
    assert losses == ()
    assert [(one.topic, one.start, one.end) for one in ranges] == [
        (A, Place(5, 2), Place(5, 4)),
        (A, Place(8, 0), Place(8, 2)),
        (B, Place(3, 0), Place(3, 2)),
    ]


def test_equal_offsets_need_no_look_at_the_broker() -> None:
    assert between({A: Place(5, 2)}, {A: Place(5, 2)}, {}) == ([], ())


@pytest.mark.parametrize(
    ("start", "end", "wanted", "left"),
    [
        ((4, 0), (8, 1), (4, 0), 5),  # the start was deleted
        ((3, 0), (4, 5), (3, 0), 0),  # all of it was
        ((8, 0), (8, 3), (8, 2), 2),  # the last entry is not for readers any more
        ((8, 0), (9, 1), (9, 1), 2),
    ],
)
def test_a_batch_that_is_not_stored_any_more_is_one_loss(
    start: tuple[int, int], end: tuple[int, int], wanted: tuple[int, int], left: int
) -> None:
    ranges, [loss] = between({A: Place(*start)}, {A: Place(*end)}, {A: TWO})
    assert (loss.wanted, sum(one.entries() for one in ranges)) == (Place(*wanted), left)


def test_a_ledger_that_a_subscription_has_passed_may_be_gone_before_the_batch_behind_it_is_read() -> None:
    trimmed = Stored(TWO.ledgers[1:], TWO.end)
    start, end = {A: Place(5, 4)}, {A: Place(8, 2)}
    assert [str(one.start) for one in between(start, end, {A: trimmed}, retained={A})[0]] == ["8:0"]
    assert between(start, end, {A: trimmed}, retained={A})[1] == ()
    assert len(between(start, end, {A: trimmed})[1]) == 1
    assert len(between({A: Place(5, 1)}, {A: Place(5, 3)}, {A: trimmed}, retained={A})[1]) == 1


@pytest.mark.parametrize("start", [{}, {A: BEGINNING}, {A: Place(2, 0)}, {A: Place(2, 7)}])
def test_an_empty_batch_up_to_an_empty_ledger_that_is_gone_is_no_loss_behind_a_subscription(
    start: dict[str, Place],
) -> None:
    trimmed = Stored(TWO.ledgers[1:], TWO.end)
    assert between(start, {A: Place(4, 0)}, {A: trimmed}, retained={A}) == ([], ())
    assert len(between(start, {A: Place(4, 0)}, {A: trimmed}, retained={B})[1]) == 1
    assert len(between(start, {A: Place(4, 1)}, {A: trimmed}, retained={A})[1]) == 1


def test_a_batch_of_a_partition_that_is_gone_is_a_loss() -> None:
    assert between({A: Place(5, 0)}, {A: Place(8, 2)}, {})[0] == []
    [loss] = between({A: Place(5, 0)}, {A: Place(8, 2)}, {})[1]
    assert (loss.topic, loss.wanted) == (A, Place(5, 0))
