"""The subscription that an archive moves."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import attrs
import httpx
import pytest
from pyspark.sql import SparkSession

import jmsaio
from jmsaio.errors import ConfigurationError, DataLossError
from jmsaio.model.temporary_names import JOB_PREFIX
from jmsaio.spark.jobs import archive
from jmsaio.spark.jobs.archive import archive_range
from jmsaio.spark.jobs.consuming import ArchiveCursor, subscription_of
from jmsaio.spark.jobs.extent import ArchiveOrder, plan_archive
from jmsaio.spark.jobs.manifest import ArchivedPart, Manifest
from jmsaio.spark.model.places import Place
from tests.spark.use import backlog, send
from tests.support.broker import TestBroker


def test_each_folder_has_a_subscription_of_its_own(tmp_path: Path) -> None:
    one = subscription_of(tmp_path / "orders of 2026")
    assert one.startswith(f"{JOB_PREFIX}orders-of-2026-")
    assert one == subscription_of(tmp_path / "x" / ".." / "orders of 2026")
    assert one != subscription_of(tmp_path / "other" / "orders of 2026")


def test_messages_are_consumed_behind_the_manifest_that_counts_them(
    spark: SparkSession, pulsar_broker: TestBroker, name: Callable[[str], str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    queue = name("consumed")
    order = ArchiveOrder(
        connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=tmp_path, consume="follower"
    )
    send(pulsar_broker.url, queue, ["a", "b", "c"])

    def fail(folder: Path, manifest: Manifest) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="no space"):
        patch.setattr(archive, "write_manifest", fail)
        archive_range(spark, order)
    assert backlog(pulsar_broker, queue, "follower") == 3
    summary = archive_range(spark, order)
    assert (summary["archived"], summary["subscription"], summary["unmoved"]) == (3, "follower", [])
    assert backlog(pulsar_broker, queue, "follower") == 0
    assert backlog(pulsar_broker, queue, "jms-queue") == 3


def test_a_subscription_with_consumers_is_refused_before_anything_is_archived(
    pulsar_broker: TestBroker, name: Callable[[str], str], tmp_path: Path
) -> None:
    queue = name("busy")
    order = ArchiveOrder(
        connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=tmp_path, consume="jms-queue"
    )
    send(pulsar_broker.url, queue, ["a"])

    async def refuse() -> None:
        async with jmsaio.connect(pulsar_broker.url) as connection, connection.create_session() as session:
            await session.create_consumer(session.create_queue(queue))
            with pytest.raises(ConfigurationError, match=r"^consume: 'jms-queue' of .* has 1 consumers"):
                await anyio.to_thread.run_sync(ArchiveCursor.begin, order, order.manifest())

    anyio.run(refuse)
    ArchiveCursor.begin(order, order.manifest())
    assert backlog(pulsar_broker, queue, "jms-queue") == 1


def test_a_move_that_fails_is_told_and_leaves_what_was_archived(tmp_path: Path) -> None:
    nowhere = {"url": "pulsar://127.0.0.1:1?connect_timeout=0.2"}
    order = ArchiveOrder(connection=nowhere, destination="queue://q", folder=tmp_path, consume="s")
    archived = order.manifest().after_run([ArchivedPart(topic="t", start=Place(1, 0), end=Place(1, 1))])
    cursor = ArchiveCursor(order)
    cursor.follow(archived)
    assert cursor.summary() == {"subscription": "s", "unmoved": ["t"]}
    nothing = ArchiveCursor.begin(attrs.evolve(order, consume=None), order.manifest())
    nothing.follow(order.manifest())
    assert nothing.summary() == {}


def test_what_the_broker_deletes_is_no_loss_unless_the_subscription_was_moved_on_by_others(
    pulsar_broker: TestBroker, name: Callable[[str], str], tmp_path: Path
) -> None:
    queue = name("trimmed")
    topic = f"{pulsar_broker.web_service_url}/admin/v2/persistent/public/default/{queue}"
    order = ArchiveOrder(
        connection={"url": pulsar_broker.url}, destination=f"queue://{queue}", folder=tmp_path, consume="jms-queue"
    )
    send(pulsar_broker.url, queue, ["a", "b"])
    (first,) = plan_archive(order, order.manifest()).extents
    archived = order.manifest().after_run([ArchivedPart(topic=first.topic, start=first.start, end=first.end, rows=2)])
    ArchiveCursor.begin(order, archived)
    httpx.put(f"{topic}/unload", timeout=30).raise_for_status()
    send(pulsar_broker.url, queue, ["c"])

    end = time.monotonic() + 60
    while str(first.start.ledger) in json.dumps(httpx.get(f"{topic}/internalStats", timeout=30).json()["ledgers"]):
        assert time.monotonic() < end, "the broker keeps the ledger that was consumed"
        httpx.post(f"{topic}/trim", timeout=30)
    plan = plan_archive(order, archived)
    assert (plan.lost, [extent.entries for extent in plan.extents]) == ((), [1])
    assert ArchiveCursor.begin(order, archived).summary()["unmoved"] == []
    assert backlog(pulsar_broker, queue, "jms-queue") == 1
    beside = attrs.evolve(order, consume=None)  # the mark of the subscription shows that nothing else was deleted
    assert plan_archive(beside, archived) == plan

    httpx.post(f"{topic}/subscription/jms-queue/skip_all", timeout=30).raise_for_status()
    for each in (order, beside):
        with pytest.raises(DataLossError):
            plan_archive(each, archived)
