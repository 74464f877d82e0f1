"""The buffer that returns higher priorities first."""

from __future__ import annotations

import pytest

from jmsaio.codec.headers import priority
from jmsaio.rules.priority import PriorityBuffer
from tests.kit.records import Record, texts


def record(name: str, priority: str | None) -> Record:
    return Record(name.encode(), {} if priority is None else {"JMSPriority": priority})


def test_higher_priorities_come_first_each_in_its_order() -> None:
    inbox = PriorityBuffer(priority)
    inbox.extend([record("a", None), record("b", "9"), record("c", "0"), record("d", "9"), record("e", "4")])
    inbox.extendleft([record("f", "9")])
    assert len(inbox) == 6
    assert texts(inbox) == ["f", "b", "d", "a", "e", "c"]
    assert inbox.popleft().payload == b"f"
    assert len(inbox) == 5
    inbox.clear()
    assert len(inbox) == 0
    inbox.append(record("g", "2"))
    assert inbox.popleft().payload == b"g"
    with pytest.raises(IndexError):
        inbox.popleft()


def test_a_record_put_back_stands_first_of_its_own_priority() -> None:
    inbox = PriorityBuffer(priority)
    inbox.extend([record("a", "9"), record("b", "2")])
    inbox.appendleft(record("c", "2"))
    assert texts(inbox) == ["a", "c", "b"]
    assert len(inbox) == 3
