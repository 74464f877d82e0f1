"""``TimeHeap``: the earliest first, of the same time in the order of adding."""

from __future__ import annotations

from jmsaio.transport.time_heap import TimeHeap


def drain(heap: TimeHeap[str], now: float) -> list[str]:
    found = []
    while (entry := heap.pop(now)) is not None:
        found.append(entry[1])
    return found


def test_items_come_in_the_order_of_their_times_and_of_adding() -> None:
    heap: TimeHeap[str] = TimeHeap()
    for due, item in ((3.0, "c"), (1.0, "a"), (3.0, "b"), (2.0, "x")):
        heap.add(due, item)
    assert heap.due == 1.0
    assert drain(heap, 2.0) == ["a", "x"]
    assert heap.due == 3.0
    assert drain(heap, 2.9) == []
    assert drain(heap, 3.0) == ["c", "b"]
    assert heap.due is None and heap.pop(9.0) is None


def test_items_are_never_compared() -> None:
    heap: TimeHeap[object] = TimeHeap()
    items = [object(), object()]
    tokens = [heap.add(1.0, item) for item in items]
    assert [heap.pop(1.0), heap.pop(1.0)] == list(zip(tokens, items, strict=True))


def test_the_first_one_is_known_by_its_token() -> None:
    heap: TimeHeap[str] = TimeHeap()
    assert [heap.is_first(heap.add(due, "x")) for due in (5.0, 7.0, 3.0, 3.0)] == [True, False, True, False]
    assert not TimeHeap[str]().is_first(1)


def test_what_was_cancelled_never_comes_and_takes_no_memory() -> None:
    heap: TimeHeap[str] = TimeHeap()
    heap.add(5.0, "kept")
    for _ in range(1000):
        heap.cancel(heap.add(1.0, "dropped"))
    assert len(heap) < 100
    assert heap.due == 5.0
    assert drain(heap, 9.0) == ["kept"]


def test_all_can_be_taken_at_once_but_for_the_cancelled_ones() -> None:
    heap: TimeHeap[str] = TimeHeap()
    tokens = [heap.add(due, item) for due, item in ((2.0, "b"), (1.0, "a"), (3.0, "c"))]
    heap.cancel(tokens[2])
    assert sorted(heap.take_all()) == ["a", "b"]
    assert heap.take_all() == [] and heap.due is None
    heap.add(1.0, "d")
    assert drain(heap, 1.0) == ["d"]


class Counted(float):
    """A time that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return super().__eq__(other)

    def __lt__(self, other: float) -> bool:
        Counted.compared += 1
        return super().__lt__(other)

    __hash__ = float.__hash__


def test_cancelling_many_items_compares_few_of_them() -> None:
    heap: TimeHeap[str] = TimeHeap()
    tokens = [heap.add(Counted(number), "x") for number in range(1000)]
    Counted.compared = 0
    for token in tokens[:600]:
        heap.cancel(token)
    assert Counted.compared < 5000
    assert heap.due == 600.0


def test_the_first_item_is_taken_past_those_cancelled_before_it() -> None:
    heap: TimeHeap[str] = TimeHeap()
    for token in [heap.add(1.0, "dropped"), heap.add(1.0, "dropped, too")]:
        heap.cancel(token)
    heap.add(1.0, "kept")
    assert drain(heap, 1.0) == ["kept"]
