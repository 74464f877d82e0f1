"""What a run of an archive reads."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import httpx
import pyarrow  # noqa: F401 - the module under test needs it
import pytest

from jmsaio.errors import DataLossError
from jmsaio.spark.jobs.extent import ArchiveOrder, extents_of, plan_archive
from jmsaio.spark.jobs.manifest import Part
from jmsaio.spark.model.places import Place
from jmsaio.spark.planning.plan import Stored
from jmsaio.spark.planning.ranges import Range
from jmsaio.transport.administration import Ledger
from tests.spark.use import send
from tests.support.broker import TestBroker

TOPIC = "persistent://public/default/orders"
ORDER = ArchiveOrder(
    connection={"url": "pulsar://h"}, destination="queue://orders", folder=Path("x"), selector="a = 1",
    since="2026-01-01", until="2026-02-01",
)  # fmt: skip
ARCHIVED = ORDER.manifest().after_run([Part(topic=TOPIC, start=Place(1, 0), end=Place(3, 4))])


def test_the_first_run_starts_by_time() -> None:
    assert ORDER.options(ORDER.manifest()) == {
        "url": "pulsar://h", "destination": "queue://orders", "body": "raw", "failOnDataLoss": "true",
        "selector": "a = 1", "startingTime": "2026-01-01", "endingTime": "2026-02-01",
    }  # fmt: skip


def test_a_later_run_starts_where_the_last_one_ended() -> None:
    options = ORDER.options(ARCHIVED, {TOPIC: Place(3, 9)})
    assert json.loads(options["startingOffsets"]) == {TOPIC: "3:4"}
    assert json.loads(options["endingOffsets"]) == {TOPIC: "3:9"}
    assert "startingTime" not in options


def test_ranges_of_tasks_are_put_together_by_partition() -> None:
    ledgers = ((1, 10), (2, 4))
    ranges = [
        Range(TOPIC, Place(1, 5), Place(2, 2), ledgers),
        Range(TOPIC, Place(2, 2), Place(2, 4), ledgers),
        Range("other", Place(7, 0), Place(7, 3)),
    ]
    store = Stored((Ledger(1, 10, 1000), Ledger(2, 4, 40)), Place(2, 4))
    first, second = extents_of(ranges, {TOPIC: store})[::-1]
    assert (second.topic, second.start, second.end, second.entries, second.bytes) == (
        "other", Place(7, 0), Place(7, 3), 3, 0,
    )  # fmt: skip
    assert (first.start, first.end, first.entries, first.bytes) == (Place(1, 5), Place(2, 4), 9, 540)


def test_a_topic_that_was_deleted_is_a_loss_unless_that_is_accepted(pulsar_broker: TestBroker, name: object) -> None:
    queue = name("gone")  # type: ignore[operator] # the fixture is a function
    topic = f"persistent://public/default/{queue}"
    send(pulsar_broker.url, queue, ["a", "b"])
    order = ArchiveOrder(connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=Path("x"))
    (extent,) = plan_archive(order, order.manifest()).extents
    assert (extent.entries, extent.topic) == (2, topic)
    archived = order.manifest().after_run([Part(topic=topic, start=extent.start, end=extent.end)])
    assert plan_archive(order, archived).extents == ()

    delete = f"{pulsar_broker.web_service_url}/admin/v2/persistent/public/default/{queue}?force=true"
    httpx.delete(delete, timeout=30).raise_for_status()
    send(pulsar_broker.url, queue, ["c"])
    with pytest.raises(DataLossError, match=queue):
        plan_archive(order, archived)
    plan = plan_archive(attrs.evolve(order, fail_on_data_loss=False), archived)
    assert len(plan.lost) == 1 and queue in plan.lost[0]
