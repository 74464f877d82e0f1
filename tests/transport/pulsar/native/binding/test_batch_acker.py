"""``BatchAcker``: which messages belong to it, and its id as a whole."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import _pulsar
import pytest
from hypothesis import given, strategies as st

from jmsaio.transport.pulsar.native import SUPPORTED
from jmsaio.transport.pulsar.native.binding.batch_acker import (
    BatchAcker,
    batch_size,
    begin_batch,
    directly_follows,
    first_chunk,
)
from tests.kit.native_fakes import FakeMessage


def batch_of(size: int, entry: int = 0) -> list[FakeMessage]:
    return [FakeMessage(entry, index, batch_size=size) for index in range(size)]


def begun(messages: list[FakeMessage]) -> BatchAcker:
    batch = begin_batch(messages[0])
    assert batch is not None
    return batch


@pytest.mark.parametrize(
    "message", [FakeMessage(3), FakeMessage(3, 1, batch_size=4), FakeMessage(3, 0, batch_size=1), FakeMessage(3, 0)]
)
def test_what_begins_no_batch(message: FakeMessage) -> None:
    """No batch, not its first record, a batch of one, and one whose size is not told."""
    assert begin_batch(message) is None


@given(st.integers(0, 2**62), st.integers(0, 2**62), st.integers(-1, 2**31 - 1), st.integers(2, 127))
def test_the_id_of_the_whole(ledger: int, entry: int, partition: int, size: int) -> None:
    first = _pulsar.MessageId(partition, ledger, entry, 0).serialize() + b"\x30" + bytes([size])

    class Message(FakeMessage):
        def message_id(self) -> Any:
            return _pulsar.MessageId.deserialize(first)

        def publish_timestamp(self) -> int:
            return 5

    batch = begin_batch(Message())
    assert batch is not None and batch.left == size
    assert batch.whole() == _pulsar.MessageId(partition, ledger, entry, -1)


def test_a_batch_that_comes_in_pieces_is_extended_until_complete() -> None:
    messages = [*batch_of(5, 1), *batch_of(2, 2)]
    batch = begun(messages)
    assert batch.extend(messages[:3], 0) == 3
    assert batch.extend(messages[3:], 0) == 2
    assert batch.extend(messages[3:], 2) == 2  # it is complete
    assert begun(messages[5:]).extend(messages, 5) == 7


@pytest.mark.parametrize(
    "places",
    [
        [(1, 0), (1, 2), (1, 3), (2, 0)],  # the broker left one out
        [(1, 0), (1, 1), (2, 0), (2, 1)],  # it broke off
        [(1, 0), (1, 1), (1, 0), (1, 1)],  # it broke off and comes again
    ],
)
def test_others_are_not_taken(places: list[tuple[int, int]]) -> None:
    messages = [FakeMessage(*place, batch_size=4) for place in places]
    assert begun(messages).extend(messages, 0) == 0


@given(st.data())
def test_whatever_comes_each_record_is_taken_once(data: st.DataObject) -> None:
    """Any pieces of any entries: what a batch takes are its records in order, each once."""
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=6))
    messages = [
        message
        for entry, size in enumerate(sizes)
        for message in batch_of(size, entry)
        if data.draw(st.integers(0, 9)) > 0
    ]
    open_batch: BatchAcker | None = None
    taken: dict[BatchAcker, list[tuple[int, int]]] = {}
    start = 0
    while start < len(messages):
        upto = start + data.draw(st.integers(1, len(messages) - start))
        end = start if open_batch is None else open_batch.extend(messages[:upto], start)
        if end == start:
            open_batch = begin_batch(messages[start])
            end = start if open_batch is None else open_batch.extend(messages[:upto], start)
        if open_batch is not None and end > start:
            taken.setdefault(open_batch, []).extend((one.entry, one.index) for one in messages[start:end])
        start = max(end, start + 1)
    for batch, places in taken.items():
        assert places == [(places[0][0], index) for index in range(len(places))]
        assert len(places) <= batch.left


def test_the_versions_that_may_be_installed_are_those_whose_ids_are_read() -> None:
    """A wider range in ``pyproject.toml`` needs a look at ``MessageIdData`` as the new versions serialize it."""
    project = tomllib.loads((Path(__file__).parents[5] / "pyproject.toml").read_text(encoding="utf-8"))
    assert any(each.startswith(f"pulsar-client{SUPPORTED};") for each in project["project"]["dependencies"])
    one, last = (
        _pulsar.MessageId.deserialize(bytes(data))
        for data in (
            (0x08, 7, 0x10, 0xAC, 0x02, 0x18, 2, 0x20, 5, 0x30, 9),
            (0x08, 7, 0x10, 9, 0x3A, 5, 0x08, 6, 0x10, 0xC8, 0x01),
        )
    )
    assert (one.ledger_id(), one.entry_id(), one.partition(), one.batch_index()) == (7, 300, 2, 5)
    assert (batch_size(one), first_chunk(one), batch_size(last), first_chunk(last)) == (9, None, 0, (6, 200))


@pytest.mark.parametrize(
    ("last", "place", "follows"),
    [
        ((7,), (8,), True),
        ((7,), (9,), False),
        ((7,), (7,), False),
        ((7,), (6,), False),
        ((7,), (8, 0, 3), True),
        ((7,), (8, 1, 3), False),
        ((7, 1, 3), (7, 2, 3), True),
        ((7, 0, 3), (7, 2, 3), False),
        ((7, 2, 3), (8,), True),
        ((7, 1, 3), (8,), False),
        ((7, 2, 3), (8, 0, 2), True),
        ((7, 1, 3), (8, 0, 2), False),
    ],
)
def test_ids_between_which_nothing_is_stored(last: tuple[int, ...], place: tuple[int, ...], follows: bool) -> None:
    def made(entry: int, index: int = -1, size: int = 0) -> _pulsar.MessageId:
        return FakeMessage(entry, index, batch_size=size).message_id()

    assert directly_follows(made(*place), made(*last)) is follows


def test_what_follows_the_last_entry_of_a_ledger_is_not_known() -> None:
    assert not directly_follows(_pulsar.MessageId(-1, 2, 0, -1), _pulsar.MessageId(-1, 1, 7, -1))
