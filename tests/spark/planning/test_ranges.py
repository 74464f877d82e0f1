"""Ranges, and the check of what comes of them."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import attrs
import pytest
from hypothesis import given, strategies as st

from jmsaio.model.wire import WireId
from jmsaio.spark.model.place import Place, parse_place, place_of
from jmsaio.spark.planning.ranges import EntryRun, Gap, Range, RangeCheck, Selected

T = "persistent://public/default/t"
LEDGERS = ((5, 4), (7, 0), (8, 3))


def ids(*texts: str) -> list[WireId]:
    """Ids written as ``ledger:entry`` or ``ledger:entry:batch``."""
    places = [parse_place(text, "id") for text in texts]
    return [
        WireId(place.ledger, place.entry, -1, place.batch if text.count(":") > 1 else -1)
        for place, text in zip(places, texts, strict=True)
    ]


@pytest.mark.parametrize(
    ("start", "end", "acknowledged", "runs"),
    [
        ((5, 0), (8, 3), (), [(5, 0, 4), (8, 0, 3)]),
        ((5, 2), (8, 1), (), [(5, 2, 4), (8, 0, 1)]),
        ((5, 2, 1), (8, 1, 2), (), [(5, 2, 4), (8, 0, 2)]),
        ((5, 4), (7, 0), (), []),
        ((5, 1), (5, 3), (), [(5, 1, 3)]),
        ((5, 0), (8, 3), (((5, 1), (5, 1)), ((5, 3), (8, 0))), [(5, 0, 1), (5, 2, 3), (8, 1, 3)]),
        ((5, 0), (8, 3), (((4, 0), (5, 1)), ((8, 2), (9, 7))), [(5, 2, 4), (8, 0, 2)]),
        ((5, 0), (8, 3), (((4, 0), (9, 0)),), []),
    ],
)
def test_a_range_is_runs_of_entries_that_are_not_acknowledged(
    start: tuple[int, ...], end: tuple[int, ...], acknowledged: tuple[object, ...], runs: list[tuple[int, int, int]]
) -> None:
    found = Range(T, Place(*start), Place(*end), LEDGERS, acknowledged)  # type: ignore[arg-type]  # plain tuples
    assert found.runs() == [EntryRun(*run) for run in runs]
    assert found.entries() == sum(stop - first for _, first, stop in runs)


def test_a_pickled_range_is_small() -> None:
    ledgers = tuple((10**12 + number, 50_000) for number in range(20))
    span = ((10**12, 40), (10**12, 50))
    assert len(pickle.dumps(Range("t" * 255, Place(10**12, 3), Place(10**12 + 19, 7), ledgers, (span,) * 5))) < 1000


def test_repeated_records_and_those_before_the_start_are_dropped() -> None:
    check = RangeCheck(Range(T, Place(5, 1, 1), Place(8, 1), LEDGERS))
    taken = check.select(ids("5:0", "5:1:0", "5:1:1", "5:1:2", "5:2"))
    assert (taken.wanted, taken.used, taken.gap) == ([2, 3, 4], 5, None)
    assert check.place == Place(5, 2)
    taken = check.select(ids("5:1:1", "5:2", "5:3"))
    assert (taken.wanted, taken.gap, check.done) == ([2], None, False)


@pytest.mark.parametrize(
    ("end", "come", "wanted", "done"),
    [
        ((8, 1), ["5:3", "8:0"], 2, True),  # the last entry holds one record: nothing more can come
        ((8, 1), ["5:3", "8:0:0", "8:0:1"], 3, False),  # the batch may go on
        ((8, 1), ["5:3", "8:0:0", "8:0:1", "8:1:0"], 3, True),
        ((8, 0, 1), ["5:3", "8:0:0", "8:0:1"], 2, True),
        ((8, 0), ["5:3"], 1, True),
        ((5, 4), ["5:3", "9:0"], 1, True),
    ],
)
def test_a_range_ends_with_the_first_record_behind_it_or_its_last(
    end: tuple[int, ...], come: list[str], wanted: int, done: bool
) -> None:
    check = RangeCheck(Range(T, Place(5, 3), Place(*end), LEDGERS))
    taken = check.select(ids(*come))
    assert (len(taken.wanted), check.done, taken.gap) == (wanted, done, None)
    assert check.is_last


@pytest.mark.parametrize(
    ("come", "used", "missing"),
    [
        (["5:2", "5:3"], 0, [(5, 1, 2)]),
        (["5:1", "5:3"], 1, [(5, 2, 3)]),
        (["5:1", "8:0"], 1, [(5, 2, 4)]),
        (["5:1", "5:2", "5:3", "8:2"], 3, [(8, 0, 2)]),
        (["5:1", "8:2"], 1, [(5, 2, 4), (8, 0, 2)]),
        (["9:0"], 0, [(5, 1, 4), (8, 0, 3)]),
    ],
)
def test_entries_that_do_not_come_are_a_gap(come: list[str], used: int, missing: list[tuple[int, int, int]]) -> None:
    check = RangeCheck(Range(T, Place(5, 1), Place(8, 3), LEDGERS))
    taken = check.select(ids(*come))
    end = min(place_of(ids(*come)[used]), Place(8, 3))
    assert (taken.used, taken.gap, check.done) == (used, Gap(tuple(EntryRun(*run) for run in missing), end), False)
    assert taken.gap is not None
    check.accept(taken.gap)
    rest = check.select(ids(*come)[used:])
    assert rest.gap is None
    assert check.done == (come[-1] in ("9:0", "8:2"))


def test_what_is_missing_at_the_end_is_a_gap_until_it_is_accepted() -> None:
    check = RangeCheck(Range(T, Place(5, 1), Place(8, 1, 1), LEDGERS))
    check.select(ids("5:1", "5:2"))
    gap = check.finish()
    assert gap == Gap((EntryRun(5, 3, 4), EntryRun(8, 0, 2)), Place(8, 1, 1))
    assert not check.done
    check.accept(gap)
    assert (check.finish(), check.done) == (None, True)


def test_acknowledged_entries_are_left_out_and_not_missed() -> None:
    acknowledged = (((5, 1), (5, 2)), ((8, 0), (8, 1)))
    check = RangeCheck(Range(T, Place(5, 0), Place(8, 3), LEDGERS, acknowledged))
    taken = check.select(ids("5:0", "5:1", "5:3", "8:2"))
    assert (taken.wanted, taken.gap, check.done) == ([0, 2, 3], None, True)


def test_a_batch_index_behind_a_batch_misses_nothing() -> None:
    check = RangeCheck(Range(T, Place(5, 0, 9), Place(5, 2), LEDGERS))
    taken = check.select(ids("5:0:0", "5:0:1", "5:1"))
    assert (taken.wanted, taken.gap, check.done) == ([2], None, True)


@attrs.frozen
class Log:
    """Records of a topic in their order, and the range that is read of it."""

    records: list[WireId]
    range: Range


@st.composite
def logs(draw: st.DrawFn) -> Log:
    ledgers = draw(st.lists(st.lists(st.integers(0, 3), max_size=5), min_size=1, max_size=4))
    records = [
        WireId(number * 2, entry, -1, batch if size else -1)
        for number, entries in enumerate(ledgers)
        for entry, size in enumerate(entries)
        for batch in range(size or 1)
    ]
    places = [Place(number * 2, entry) for number, entries in enumerate(ledgers) for entry in range(len(entries) + 1)]
    start, end = sorted((draw(st.sampled_from(places)), draw(st.sampled_from(places))))
    counts = tuple((number * 2, len(entries)) for number, entries in enumerate(ledgers))
    return Log(records, Range(T, start, end, counts))


def size_in(log: Log, some: list[WireId]) -> Callable[[int], int]:
    """Gives the size of the batch of each of some records; 0 where it holds none."""
    return lambda index: sum(each[:2] == some[index][:2] and each.batch_index >= 0 for each in log.records)


@given(logs(), st.data())
def test_a_reader_that_repeats_and_leaves_out_brings_each_record_once(log: Log, data: st.DataObject) -> None:
    """What is wanted is what came of the range, each record once and in order; gaps are what did not come."""
    expected = [each for each in log.records if log.range.start <= place_of(each) < log.range.end]
    hidden = data.draw(st.sets(st.sampled_from(expected))) if expected else set()
    visible = [each for each in log.records if each not in hidden]
    check, got, missed = RangeCheck(log.range), [], set()
    at = 0
    while at < len(visible) and not check.done:
        some = visible[at : at + data.draw(st.integers(1, 5))]
        taken = check.select(some, size_in(log, some))
        got += [some[index] for index in taken.wanted]
        if taken.gap is not None:
            missed |= {(run.ledger, entry) for run in taken.gap.missing for entry in range(run.first, run.stop)}
            check.accept(taken.gap)
        at += taken.used
        at -= data.draw(st.sampled_from([0, 0, 0, min(2, at)]))  # the connection broke: some come again
    gap = None if check.done else check.finish()
    if gap is not None:
        missed |= {(run.ledger, entry) for run in gap.missing for entry in range(run.first, run.stop)}
    assert got == [each for each in expected if each not in hidden]
    assert missed == {each[:2] for each in hidden}


@given(logs(), st.data())
def test_a_record_that_others_overtook_is_wanted_when_it_comes(log: Log, data: st.DataObject) -> None:
    """However many entries were given up before, and once only, if a reader repeats it."""
    expected = [each for each in log.records if log.range.start <= place_of(each) < log.range.end]
    given = expected[:-1]
    for _ in range(data.draw(st.integers(0, 3)) if given else 0):
        late = given.pop(data.draw(st.integers(0, len(given) - 1)))
        given.insert(data.draw(st.integers(0, len(given))), late)
    check, got, at = RangeCheck(log.range), [], 0
    given += expected[-1:]
    while at < len(given) and not check.done:
        some = given[at : at + data.draw(st.integers(1, 5))]
        taken = check.select(some, size_in(log, some))
        got += [some[index] for index in taken.wanted]
        if taken.gap is not None:
            check.accept(taken.gap)
        at += taken.used
        at -= data.draw(st.sampled_from([0, 0, 0, min(2, at)]))
    assert sorted(got) == expected


def test_a_record_that_is_acknowledged_is_not_wanted_late_either() -> None:
    check = RangeCheck(Range(T, Place(5, 0), Place(8, 3), LEDGERS, (((5, 1), (5, 1)),)))
    gap = check.select(ids("5:3")).gap
    assert gap is not None
    check.accept(gap)
    assert check.select(ids("5:3", "5:0", "5:1", "5:2", "5:0")) == Selected([0, 1, 3], 5, None)


@pytest.mark.parametrize(
    ("end", "before", "come", "hole"),
    [
        ((8, 3), ["5:0:0"], ["5:0:2"], (5, 0, 1)),
        ((8, 3), ["5:0:0", "5:0:1"], ["5:1:0"], (5, 0, 2)),  # of three
        ((8, 3), ["5:0:0", "5:0:1"], ["8:0:0"], (5, 0, 2)),
        ((8, 3), [], ["5:0:1"], (5, 0, 0)),
        ((8, 3), ["5:0:0", "5:0:1", "5:0:2"], ["5:1:1"], (5, 1, 0)),
        ((5, 0, 2), ["5:0:0"], ["5:0:2"], (5, 0, 1)),
        ((5, 1), ["5:0:0", "5:0:1"], ["5:1:0"], (5, 0, 2)),
    ],
)
def test_what_is_missing_of_a_batch_is_a_hole_until_it_comes_or_is_accepted(
    end: tuple[int, ...], before: list[str], come: list[str], hole: tuple[int, ...]
) -> None:
    for accepted in (True, False):
        check = RangeCheck(Range(T, Place(5, 0), Place(*end), LEDGERS))
        assert len(check.select(ids(*before), lambda index: 3).wanted) == len(before)
        taken = check.select(ids(*come), lambda index: 3)
        gap = taken.gap
        assert gap is not None
        assert (gap.hole, taken.wanted, check.done) == (Place(*hole), [], False)
        assert EntryRun(hole[0], hole[1], hole[1] + 1) in gap.missing
        if accepted:
            check.accept(gap)
            assert check.select(ids(*come), lambda index: 3).gap is None
        else:
            rest = [f"{hole[0]}:{hole[1]}:{index}" for index in range(hole[2], 3)]
            taken = check.select(ids(*rest), lambda index: 3)
            assert (taken.wanted[:1], taken.gap) == ([0], None)


def test_the_rest_of_the_last_batch_is_missing_until_it_comes() -> None:
    check = RangeCheck(Range(T, Place(8, 2), Place(8, 3), LEDGERS))
    check.select(ids("8:2:0", "8:2:1"), lambda index: 3)
    assert (check.is_last, check.finish(), check.done) == (
        True,
        Gap((EntryRun(8, 2, 3),), Place(8, 3), Place(8, 2, 2)),
        False,
    )
    assert (check.select(ids("8:1", "8:2:1"), lambda index: 3).wanted, check.done) == ([], False)
    assert (check.select(ids("8:2:2"), lambda index: 3).wanted, check.done) == ([0], True)


@pytest.mark.parametrize("end", [(5, 0, 2), (5, 0, 9), (5, 1)])
def test_a_range_may_begin_in_a_batch_and_end_behind_it(end: tuple[int, ...]) -> None:
    check = RangeCheck(Range(T, Place(5, 0, 1), Place(*end), LEDGERS))
    assert check.select(ids("5:0:0", "5:0:1"), lambda index: 2) == Selected([1], 2, None)
    assert check.finish() is None


def test_acknowledged_batches_have_no_holes() -> None:
    acknowledged = (((5, 0), (5, 1)),)
    check = RangeCheck(Range(T, Place(5, 0), Place(8, 3), LEDGERS, acknowledged))
    come = ids("5:0:1", "5:1:0", "5:2:0", "5:2:1")
    assert check.select(come, lambda index: 2) == Selected([2, 3], 4, None)
