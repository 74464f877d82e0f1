"""``Unsettled``: records are with the application, given back or set aside, and leave when they are settled."""

from __future__ import annotations

import gc

from jmsaio.transport.pulsar.native.records.unsettled import HELD
from tests.kit.unacked import Desk, batch


async def test_only_the_place_is_kept_of_what_was_set_aside() -> None:
    """It is known when it comes again, and is given back once."""
    desk = Desk(True)
    records = desk.admit(*batch(), *batch(entry=1))
    aside = desk.unsettled.set_aside(records[:4])
    assert aside == [(1, 0, -1, index) for index in range(4)]
    gc.collect()
    assert not any(gc.is_tracked(place) for place in aside), "the garbage collector would look at each of very many"
    assert desk.unsettled.out == dict.fromkeys(records[4:], HELD)
    desk.acks.acknowledge(records[:1])
    assert desk.consumer.acknowledged == []
    assert desk.admit(*batch(count=1)) == []
    turned = desk.unsettled.give_back([*aside[:2], *aside[:2], records[2], (9, 9, 9, 9)])
    assert [(one.message_id, one.publish_time, one.native is None) for one in turned] == [
        (record.message_id, record.publish_time, True) for record in records[:2]
    ]
    assert desk.unsettled.remove(turned) == turned
    assert [one.record_key for one in desk.admit(*batch(count=2))] == [record.record_key for record in records[:2]]
    desk.tracker.clear(bool)
    assert desk.unsettled.give_back(aside) == []


async def test_records_that_a_place_does_not_tell_are_kept_themselves() -> None:
    """Those of topics that are not persistent, and those of a pattern."""
    desk = Desk(True)
    desk.native_consumer.persistent = False
    records = desk.admit(*batch())
    assert desk.unsettled.set_aside(records) == records
    assert desk.unsettled.give_back(records) == records
