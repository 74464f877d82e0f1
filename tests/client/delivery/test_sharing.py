"""Records that are settled where they came from."""

from __future__ import annotations

from typing import Any

import pytest

from jmsaio.client.delivery.sharing import SharingReceiver
from jmsaio.errors import ObjectClosedError
from tests.client.delivery.test_inbox import Receiver, numbered

#: Stands for the inbox that has the records.
INBOX: Any = object()


class Closed(Receiver):
    """Refuses everything."""

    def acknowledge(self, records: Any, transaction: object = None) -> None:
        raise ObjectClosedError("closed")

    def negative_acknowledge(self, records: Any, delay: float, *, counted: bool = True) -> None:
        raise ObjectClosedError("closed")


def pair(owner: Receiver) -> tuple[SharingReceiver, SharingReceiver, Receiver]:
    mine = Receiver()
    return SharingReceiver(owner), SharingReceiver(mine), mine  # type: ignore[arg-type]  # what is used of one


async def test_each_record_is_settled_where_it_came_from() -> None:
    theirs = Receiver()
    owner, adopter, mine = pair(theirs)
    records: list[Any] = [numbered(number) for number in range(6)]
    for record in records[3:]:
        adopter.adopt(record, owner, INBOX)
    assert len(owner.transferred) == 3 and adopter.owner(records[3]) is owner and adopter.owner(records[0]) is adopter
    adopter.count_delivery([records[0], records[3]])
    adopter.acknowledge([records[0], records[3]])
    adopter.negative_acknowledge([records[1], records[4]], 2.0, counted=False)
    adopter.dead_letter(records[2], {})
    adopter.dead_letter(records[5], {})
    for receiver, first in ((mine, 0), (theirs, 3)):
        assert receiver.calls == [
            ("count", first), ("ack", first), ("nack", 2.0, False, first + 1), ("dead letter", first + 2, {}),
        ]  # fmt: skip
    assert not owner.transferred and adopter.owner(records[3]) is adopter


async def test_what_is_left_goes_back_at_close() -> None:
    theirs = Receiver()
    owner, adopter, mine = pair(theirs)
    adopter.adopt(numbered(1), owner, INBOX)
    await adopter.aclose(1.0)
    assert theirs.calls == [("nack", 0.0, True, 1)] and mine.calls == [("close",)]


async def test_a_receiver_that_is_closed_has_given_everything_back(caplog: Any) -> None:
    owner, adopter, _ = pair(Closed())
    records: list[Any] = [numbered(1), numbered(2)]
    for record in records:
        adopter.adopt(record, owner, INBOX)
    adopter.acknowledge(records[:1])
    adopter.negative_acknowledge(records[1:], 0.0)
    assert "are redelivered" in caplog.text and not owner.transferred


async def test_acknowledgements_are_settled_wherever_they_went_each_once() -> None:
    theirs = Receiver()
    owner, adopter, mine = pair(theirs)
    record: Any = numbered(1)
    adopter.adopt(record, owner, INBOX)
    adopter.acknowledge([record])
    for receipt in (True, False):
        await adopter.settle(2.0, receipt=receipt)
    assert theirs.calls == [("ack", 1), ("settle", 2.0, True)]
    assert mine.calls == [("settle", 2.0, True), ("settle", 2.0, False)]


async def test_a_borrowed_record_is_let_go_once() -> None:
    owner, adopter, _ = pair(Receiver())
    record: Any = numbered(1)
    adopter.adopt(record, owner, INBOX)
    assert adopter.release(record) is owner and not owner.transferred
    assert adopter.release(record) is adopter


async def test_a_refusal_of_the_inboxes_own_receiver_is_raised_and_costs_the_others_nothing() -> None:
    """Only the other receivers have closed by themselves."""
    theirs = Receiver()
    owner, adopter = SharingReceiver(theirs), SharingReceiver(Closed())  # type: ignore[arg-type]  # what is used of one
    records: list[Any] = [numbered(number) for number in range(4)]
    for transferred in records[1::2]:
        adopter.adopt(transferred, owner, INBOX)
    with pytest.raises(ObjectClosedError):
        adopter.acknowledge(records[:2])
    with pytest.raises(ObjectClosedError):
        adopter.negative_acknowledge(records[2:], 0.0)
    assert theirs.calls == [("ack", 1), ("nack", 0.0, True, 3)]
