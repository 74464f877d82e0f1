"""What a run of an archive reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import attrs
import httpx
import pyarrow  # noqa: F401 - the module under test needs it
import pytest

from jmsaio.errors import ConfigurationError, DataLossError, NotFoundError
from jmsaio.model.topic_names import JOB_PREFIX
from jmsaio.model.wire import WireId
from jmsaio.spark.jobs.extent import (
    ArchiveOrder,
    ArchivePlan,
    count_entries,
    is_ahead,
    locate_all,
    plan_archive,
    subscription_of,
)
from jmsaio.spark.jobs.manifest import ArchivedPart
from jmsaio.spark.model.places import Place
from jmsaio.spark.options.parse import Use, parse_options
from jmsaio.spark.planning.offsets import between
from jmsaio.spark.planning.plan import Stored
from jmsaio.transport.administration import Ledger
from tests.spark.use import send
from tests.support.broker import TestBroker

Name = Callable[[str], str]
TOPIC = "persistent://public/default/orders"
ORDER = ArchiveOrder(
    connection={"url": "pulsar://h"}, destination="queue://orders", folder=Path("x"), selector="a = 1",
    since="2026-01-01", until="2026-02-01",
)  # fmt: skip


def test_a_run_reads_all_columns_of_what_is_chosen() -> None:
    options = ORDER.reader_options()
    assert options == {
        "url": "pulsar://h", "destination": "queue://orders", "body": "raw", "failOnDataLoss": "true",
        "selector": "a = 1", "startingTime": "2026-01-01", "endingTime": "2026-02-01",
    }  # fmt: skip
    parsed = parse_options(options, Use.READ)
    assert (parsed.start_of(TOPIC), parsed.end_of(TOPIC)) == (1_767_225_600_000, 1_769_904_000_000)


def test_tasks_note_accepted_losses_in_the_folder_of_the_archive_wherever_they_work() -> None:
    options = attrs.evolve(ORDER, fail_on_data_loss=False).reader_options()
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


def test_a_run_has_a_share_of_each_partition_up_to_the_end_of_the_archive() -> None:
    stores = {
        "a": Stored((Ledger(1, 10, 1000), Ledger(2, 4, 40)), Place(2, 4)),
        "b": Stored((Ledger(7, 6, 60),), Place(7, 6)),
        "empty": Stored((Ledger(9, 0, 0),), Place(9, 0)),
    }  # fmt: skip
    starts = {"a": Place(1, 2), "b": Place(7, 0), "empty": Place(9, 0)}
    ends = {topic: store.end for topic, store in stores.items() if store.end is not None}
    plan = ArchivePlan(stores, tuple(between(starts, ends, stores)[0]))
    assert plan.ends() == {"a": Place(2, 4), "b": Place(7, 6)}
    assert plan.run(None, None, plan.ends()) == list(plan.ranges)
    first, second = plan.run(9, None, plan.ends())
    assert (first.start, first.end, second.start, second.end) == (Place(1, 2), Place(1, 8), Place(7, 0), Place(7, 3))
    assert count_entries((first, second)) == 9
    (only,) = plan.run(None, None, {"b": Place(7, 2)})
    assert (only.topic, only.start, only.end) == ("b", Place(7, 0), Place(7, 2))
    small = plan.run(9, 250, plan.ends())  # an entry of both topics has 49 bytes on average
    assert count_entries(small) == 5


def delete(broker: TestBroker, queue: str) -> None:
    url = f"{broker.web_service_url}/admin/v2/persistent/public/default/{queue}?force=true"
    httpx.delete(url, timeout=30).raise_for_status()


def test_a_topic_that_was_deleted_is_a_loss_that_is_accepted_once(pulsar_broker: TestBroker, name: Name) -> None:
    queue = name("gone")
    topic = f"persistent://public/default/{queue}"
    send(pulsar_broker.url, queue, ["a", "b"])
    order = ArchiveOrder(connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=Path("x"))
    (extent,) = plan_archive(order, order.manifest()).ranges
    assert (extent.entries(), extent.topic) == (2, topic)
    archived = order.manifest().after_run([ArchivedPart(topic=topic, start=extent.start, end=extent.end)])
    assert plan_archive(order, archived).ranges == ()

    delete(pulsar_broker, queue)
    send(pulsar_broker.url, queue, ["c"])
    with pytest.raises(DataLossError, match=queue):
        plan_archive(order, archived)
    accepting = attrs.evolve(order, fail_on_data_loss=False)
    plan = plan_archive(accepting, archived)
    assert len(plan.losses) == 1 and queue in str(plan.losses[0])
    assert [each.entries() for each in plan.ranges] == [1]
    again = plan_archive(order, archived.after_losses(plan.losses))
    assert (again.losses, again.ranges) == ((), plan.ranges)


def test_an_archive_goes_on_where_the_newest_ledger_is_empty(pulsar_broker: TestBroker, name: Name) -> None:
    queue = name("unloaded")
    send(pulsar_broker.url, queue, ["a", "b"])
    order = ArchiveOrder(connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=Path("x"))
    before = plan_archive(order, order.manifest())
    url = f"{pulsar_broker.web_service_url}/admin/v2/persistent/public/default/{queue}/unload"
    for _ in range(2):
        httpx.put(url, timeout=30).raise_for_status()
        first = plan_archive(order, order.manifest())
        assert [(each.entries(), each.start) for each in first.ranges] == [(2, before.ranges[0].start)]
        for end in (before.ends(), first.ends()):
            (extent,) = before.ranges
            part = ArchivedPart(topic=extent.topic, start=extent.start, end=end[extent.topic])
            again = plan_archive(order, order.manifest().after_run([part]))
            assert (again.losses, again.ranges) == ((), ())
        assert count_entries(first.ranges) == 2


def test_a_deleted_topic_does_not_block_the_others(pulsar_broker: TestBroker, name: Name) -> None:
    queues = [name("stays"), name("goes")]
    for queue in queues:
        send(pulsar_broker.url, queue, ["a"])
    several = f"queue://multi:{','.join(queues)}"
    order = ArchiveOrder(connection={"url": pulsar_broker.url}, destination=several, folder=Path("x"))
    first = plan_archive(order, order.manifest())
    archived = order.manifest().after_run(
        ArchivedPart(topic=each.topic, start=each.start, end=each.end) for each in first.ranges
    )
    delete(pulsar_broker, queues[1])
    send(pulsar_broker.url, queues[0], ["b"])
    with pytest.raises(DataLossError, match=queues[1]):
        plan_archive(order, archived)
    plan = plan_archive(attrs.evolve(order, fail_on_data_loss=False), archived)
    assert [(each.topic, each.entries()) for each in plan.ranges] == [(f"persistent://public/default/{queues[0]}", 1)]
    accepted = archived.after_losses(plan.losses)
    assert plan_archive(order, accepted).losses == ()

    send(pulsar_broker.url, queues[1], ["new"])
    assert [each.entries() for each in plan_archive(order, accepted).ranges] == [1, 1]
    with pytest.raises(NotFoundError, match="never"):
        plan_archive(attrs.evolve(order, destination=f"{several},never"), order.manifest())


def test_of_a_destination_that_is_gone_nothing_is_left(pulsar_broker: TestBroker, name: Name) -> None:
    queue = name("all-gone")
    order = ArchiveOrder(
        connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=Path("x"), fail_on_data_loss=False
    )
    part = ArchivedPart(topic=f"persistent://public/default/{queue}", start=Place(1, 0), end=Place(1, 1))
    plan = plan_archive(order, order.manifest().after_run([part]))
    assert (plan.stores, plan.ranges, len(plan.losses)) == ({}, (), 1)


def test_each_folder_has_a_subscription_of_its_own(tmp_path: Path) -> None:
    one = subscription_of(tmp_path / "orders of 2026")
    assert one.startswith(f"{JOB_PREFIX}orders-of-2026-")
    assert one == subscription_of(tmp_path / "x" / ".." / "orders of 2026")
    assert one != subscription_of(tmp_path / "other" / "orders of 2026")
