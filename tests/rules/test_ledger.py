"""The acknowledgement ledger (Jakarta Messaging 3.1, 6.2.10 Message acknowledgment)."""

from __future__ import annotations

from collections.abc import Iterator

from jmsaio.rules.ledger import DeliveryLedger, Scope


def filled(scope: Scope) -> tuple[DeliveryLedger[str, int], list[int]]:
    ledger: DeliveryLedger[str, int] = DeliveryLedger(scope)
    return ledger, [ledger.delivered(inbox, record) for record, inbox in enumerate(["a", "b", "a", "b"])]


def test_session_scope_settles_everything_grouped_by_channel() -> None:
    ledger, numbers = filled(Scope.SESSION)
    assert ledger.acknowledge(numbers[0]) == [("a", [0, 2]), ("b", [1, 3])]
    assert len(ledger) == 0
    assert ledger.acknowledge(numbers[0]) == []


def test_group_scope_settles_what_came_before() -> None:
    ledger, numbers = filled(Scope.GROUP)
    assert ledger.acknowledge(numbers[1]) == [("a", [0]), ("b", [1])]
    assert ledger.acknowledge(numbers[0]) == []
    assert ledger.remove_all() == [("a", [2]), ("b", [3])]


def test_individual_scope_settles_one() -> None:
    ledger, numbers = filled(Scope.INDIVIDUAL)
    assert ledger.acknowledge(numbers[2]) == [("a", [2])]
    assert ledger.acknowledge(numbers[2]) == []
    assert ledger.remove_all() == [("a", [0]), ("b", [1, 3])]


def test_taken_deliveries_are_no_longer_there() -> None:
    ledger, numbers = filled(Scope.SESSION)
    assert ledger.remove(numbers[3]) == ("b", 3)
    assert ledger.remove(numbers[3]) is None
    assert ledger.remove_all() == [("a", [0, 2]), ("b", [1])]
    assert len(ledger) == 0


def test_group_scope_looks_at_no_more_than_it_settles() -> None:
    looked_at = 0

    class Entries(dict[int, tuple[str, int]]):
        def __iter__(self) -> Iterator[int]:
            nonlocal looked_at
            for number in super().__iter__():
                looked_at += 1
                yield number

    ledger, numbers = filled(Scope.GROUP)
    ledger._entries = Entries(ledger._entries)
    ledger.acknowledge(numbers[0])
    assert looked_at == 2


def test_a_channel_is_concerned_until_its_last_delivery_is_settled() -> None:
    ledger, numbers = filled(Scope.INDIVIDUAL)
    ledger.acknowledge(numbers[0])
    assert ledger.concerns("a")
    ledger.acknowledge(numbers[2])
    assert not ledger.concerns("a")
    assert ledger.concerns("b")


def test_a_closed_ledger_knows_what_was_left() -> None:
    ledger, numbers = filled(Scope.SESSION)
    ledger.remove(numbers[0])
    assert ledger.close() == [("b", [1, 3]), ("a", [2])]
    assert [ledger.was_left(number) for number in numbers] == [False, True, True, True]
    assert ledger.close() == [] and ledger.was_left(numbers[1])
