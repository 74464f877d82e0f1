"""What a run of an archive reads."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import attrs
import httpx
import pyarrow  # noqa: F401 - the module under test needs it
import pytest

from jmsaio.errors import ConfigurationError, DataLossError, NotFoundError
from jmsaio.model.temporary_names import JOB_PREFIX
from jmsaio.model.wire import WireId
from jmsaio.spark.jobs.extent import (
    ArchiveOrder,
    ArchivePlan,
    extents_of,
    is_ahead,
    locate_all,
    places_json,
    plan_archive,
    subscription_of,
)
from jmsaio.spark.jobs.manifest import ArchivedPart
from jmsaio.spark.model.places import Place
from jmsaio.spark.options.parse import SourceOptions, Use, parse_options
from jmsaio.spark.planning.batch_planning import plan_batch, source_of
from jmsaio.spark.planning.plan import Stored
from jmsaio.spark.planning.ranges import Range
from jmsaio.transport.administration import Ledger
from jmsaio.transport.registry import connected
from tests.spark.use import send
from tests.support.broker import TestBroker

Name = Callable[[str], str]
TOPIC = "persistent://public/default/orders"
ORDER = ArchiveOrder(
    connection={"url": "pulsar://h"}, destination="queue://orders", folder=Path("x"), selector="a = 1",
    since="2026-01-01", until="2026-02-01",
)  # fmt: skip
PLAN = ArchivePlan("queue://orders", {TOPIC: Place(3, 4)})


def test_the_first_run_starts_by_time() -> None:
    assert ArchivePlan("queue://orders").options(ORDER) == {
        "url": "pulsar://h", "destination": "queue://orders", "body": "raw", "failOnDataLoss": "true",
        "selector": "a = 1", "startingTime": "2026-01-01", "endingTime": "2026-02-01",
    }  # fmt: skip


def test_a_later_run_starts_where_the_last_one_ended() -> None:
    options = PLAN.options(ORDER)
    assert json.loads(options["startingOffsets"]) == {TOPIC: "3:4"}
    assert "startingTime" not in options


def test_tasks_note_accepted_losses_in_the_folder_of_the_archive_wherever_they_work() -> None:
    options = PLAN.options(attrs.evolve(ORDER, fail_on_data_loss=False))
    assert (options["failOnDataLoss"], options["dataLossFolder"]) == ("false", f"{Path.cwd()}/x/_losses")
    parse_options(options, Use.READ)


@pytest.mark.parametrize("name", ["selector", "since", "until"])
def test_what_the_archive_leaves_out_is_not_consumed(name: str) -> None:
    bare = attrs.evolve(ORDER, selector=None, since=None, until=None, consume="follower")
    with pytest.raises(ConfigurationError, match=f"messages that {name} leaves out"):
        attrs.evolve(bare, **{name: "2026-01-01"})  # type: ignore[arg-type] # each of these is a text


def test_a_ledger_that_was_consumed_is_no_loss_where_the_subscription_keeps_the_rest() -> None:
    ends = {"a": Place(1, 5), "b": Place(1, 5), "c": Place(9, 0), "gone": Place(1, 0)}
    ledgers = (Ledger(4, 7, 70),)
    stores = dict.fromkeys("abc", Stored(ledgers, Place(4, 7)))
    starts, losses = locate_all(ends, stores, kept={"a", "c", "gone"})
    assert starts == {"a": Place(4, 0), "b": Place(4, 0), "c": Place(4, 0)}
    assert [(loss.topic, loss.wanted, loss.found) for loss in losses] == [
        ("b", Place(1, 5), Place(4, 0)), ("c", Place(9, 0), Place(4, 0)), ("gone", Place(1, 0), None),
    ]  # fmt: skip


def test_a_topic_made_anew_with_lower_ledgers_is_archived_from_its_oldest_message_on() -> None:
    stores = {"a": Stored((Ledger(12, 40, 400),), Place(12, 40))}
    starts, (loss,) = locate_all({"a": Place(5000, 3)}, stores, kept={"a"})
    assert starts == {"a": Place(12, 0)}
    assert (loss.wanted, loss.found) == (Place(5000, 3), Place(12, 0))


@pytest.mark.parametrize(
    ("mark", "ahead"),
    [
        (None, False),
        (WireId(5, 9), False),
        (WireId(5, 10), True),
        (WireId(6, 3), True),
        (WireId(7, 0), True),
    ],
)
def test_a_subscription_is_ahead_once_it_has_acknowledged_what_is_not_archived(
    mark: WireId | None, ahead: bool
) -> None:
    assert is_ahead(mark, Place(5, 10)) == ahead


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


def delete(broker: TestBroker, queue: str) -> None:
    url = f"{broker.web_service_url}/admin/v2/persistent/public/default/{queue}?force=true"
    httpx.delete(url, timeout=30).raise_for_status()


def test_a_topic_that_was_deleted_is_a_loss_that_is_accepted_once(pulsar_broker: TestBroker, name: Name) -> None:
    queue = name("gone")
    topic = f"persistent://public/default/{queue}"
    send(pulsar_broker.url, queue, ["a", "b"])
    order = ArchiveOrder(connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=Path("x"))
    (extent,) = plan_archive(order, order.manifest()).extents
    assert (extent.entries, extent.topic) == (2, topic)
    archived = order.manifest().after_run([ArchivedPart(topic=topic, start=extent.start, end=extent.end)])
    assert plan_archive(order, archived).extents == ()

    delete(pulsar_broker, queue)
    send(pulsar_broker.url, queue, ["c"])
    with pytest.raises(DataLossError, match=queue):
        plan_archive(order, archived)
    accepting = attrs.evolve(order, fail_on_data_loss=False)
    plan = plan_archive(accepting, archived)
    assert len(plan.lost) == 1 and queue in plan.lost[0]
    assert [each.entries for each in plan.extents] == [1]
    again = plan_archive(order, archived.after_losses(plan.losses))
    assert (again.lost, again.extents) == ((), plan.extents)


def test_an_archive_goes_on_where_the_newest_ledger_is_empty(pulsar_broker: TestBroker, name: Name) -> None:
    queue = name("unloaded")
    send(pulsar_broker.url, queue, ["a", "b"])
    order = ArchiveOrder(connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=Path("x"))
    before = plan_archive(order, order.manifest())
    url = f"{pulsar_broker.web_service_url}/admin/v2/persistent/public/default/{queue}/unload"
    for _ in range(2):
        httpx.put(url, timeout=30).raise_for_status()
        first = plan_archive(order, order.manifest())
        assert [(each.entries, each.start) for each in first.extents] == [(2, before.extents[0].start)]
        for end in (before.ends(), first.ends()):
            (extent,) = before.extents
            part = ArchivedPart(topic=extent.topic, start=extent.start, end=end[extent.topic])
            again = plan_archive(order, order.manifest().after_run([part]))
            assert (again.lost, again.extents) == ((), ())
        options = {**order.reader_options(), "endingOffsets": places_json(first.ends())}
        assert sum(one.entries() for one in planned(parse_options(options, Use.READ))) == 2


def planned(options: SourceOptions) -> list[Range]:
    """The ranges of a batch with these options."""

    async def plan() -> list[Range]:
        configuration = options.configuration()
        async with connected(configuration) as transport:
            return await plan_batch(transport, source_of(options, configuration), options)

    return asyncio.run(plan())


def test_a_deleted_topic_does_not_block_the_others(pulsar_broker: TestBroker, name: Name) -> None:
    queues = [name("stays"), name("goes")]
    for queue in queues:
        send(pulsar_broker.url, queue, ["a"])
    several = f"queue://multi:{','.join(queues)}"
    order = ArchiveOrder(connection={"url": pulsar_broker.url}, destination=several, folder=Path("x"))
    first = plan_archive(order, order.manifest())
    assert first.destination == several
    archived = order.manifest().after_run(
        ArchivedPart(topic=each.topic, start=each.start, end=each.end) for each in first.extents
    )
    delete(pulsar_broker, queues[1])
    send(pulsar_broker.url, queues[0], ["b"])
    with pytest.raises(DataLossError, match=queues[1]):
        plan_archive(order, archived)
    plan = plan_archive(attrs.evolve(order, fail_on_data_loss=False), archived)
    assert [each.entries for each in plan.extents] == [1]
    assert plan.destination == f"queue://multi:persistent://public/default/{queues[0]}"
    parse_options(plan.options(order), Use.READ)
    accepted = archived.after_losses(plan.losses)
    assert plan_archive(order, accepted).lost == ()

    send(pulsar_broker.url, queues[1], ["new"])
    assert [each.entries for each in plan_archive(order, accepted).extents] == [1, 1]
    with pytest.raises(NotFoundError, match="never"):
        plan_archive(attrs.evolve(order, destination=f"{several},never"), accepted)


def test_of_a_destination_that_is_gone_nothing_is_left(pulsar_broker: TestBroker, name: Name) -> None:
    queue = name("all-gone")
    order = ArchiveOrder(
        connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=Path("x"), fail_on_data_loss=False
    )
    part = ArchivedPart(topic=f"persistent://public/default/{queue}", start=Place(1, 0), end=Place(1, 1))
    plan = plan_archive(order, order.manifest().after_run([part]))
    assert (plan.destination, plan.extents, len(plan.lost)) == ("", (), 1)


def test_each_folder_has_a_subscription_of_its_own(tmp_path: Path) -> None:
    one = subscription_of(tmp_path / "orders of 2026")
    assert one.startswith(f"{JOB_PREFIX}orders-of-2026-")
    assert one == subscription_of(tmp_path / "x" / ".." / "orders of 2026")
    assert one != subscription_of(tmp_path / "other" / "orders of 2026")
