"""The report on dead letters, and their redrive with a task for each topic."""

from __future__ import annotations

import asyncio

import pytest
from pyspark.sql import SparkSession

from jmsaio.config import load
from jmsaio.errors import (
    ConfigurationError,
    NotFoundError,
)
from jmsaio.maintenance.dead_letters import REDRIVE_COUNT, REDRIVE_CURSOR, require_admin
from jmsaio.model.wire import REAL_SUBSCRIPTION, REAL_TOPIC, TYPE
from jmsaio.spark.jobs.dead_letters import (
    ReportOrder,
    describe_group,
    find_letters,
    report_dead_letters,
)
from jmsaio.transport.administration import StartPosition
from jmsaio.transport.registry import connected
from tests.maintenance.letters import QUEUE, Letters, message
from tests.spark.use import send
from tests.support.broker import TestBroker


async def fill(broker: TestBroker) -> tuple[str, str]:
    """Dead letters; the names of their origin and of their topic."""
    letters = await Letters.start(load(broker.url))
    part = f"{letters.topic}-partition-3"
    await letters.put(
        message("one", region="EU", **{TYPE: "tea"}),
        message("two", region="EU", **{TYPE: "tea", REDRIVE_COUNT: "2"}),
        message("three" * 100, region="US", **{TYPE: "tea", REDRIVE_COUNT: "many"}),
        message("java", **{REAL_TOPIC: part, REAL_SUBSCRIPTION: "billing"}),
        message("lost", **{REAL_TOPIC: ""}),
    )
    await letters.stop()
    return letters.topic, letters.dead


def test_dead_letters_are_counted_by_origin_subscription_type_and_property(
    spark: SparkSession, pulsar_broker: TestBroker
) -> None:
    origin, dead = asyncio.run(fill(pulsar_broker))
    order = ReportOrder(
        connection={"url": pulsar_broker.url}, destination=f"queue://{origin}", of=QUEUE, properties=["region"],
        bodies=True, groups=3,
    )  # fmt: skip
    summary = report_dead_letters(spark, order)
    assert (summary["topics"], summary["letters"], summary["redriven"]) == ([dead], 5, 1)
    assert (summary["bytes"], summary["letters_of_other_groups"]) == (514, 1)
    tea = summary["groups"][0]
    assert (tea["origin"], tea["subscription"], tea["type"], tea["properties"]) == (
        origin, QUEUE, "tea", {"region": "EU"},
    )  # fmt: skip
    assert (tea["letters"], tea["bytes"], tea["redriven"]) == (2, 6, 1)
    assert tea["first"].endswith("Z")
    assert 0 <= tea["oldest_age"] < 300
    assert [(each["body"], each["topic"]) for each in tea["samples"]] == [("one", dead), ("two", dead)]
    assert all(each["position"].count(":") == 1 and each["id"].startswith("ID:") for each in tea["samples"])
    others = {(each["origin"], each["subscription"], each["properties"]["region"]) for each in summary["groups"][1:]}
    assert others < {(origin, QUEUE, "US"), (origin, "billing", None), ("", None, None)}


async def begin_redrive(broker: TestBroker, topic: str) -> None:
    """Make the subscription of a redrive that has sent all letters of a topic."""
    async with connected(load(broker.url)) as transport:
        await require_admin(transport).create_subscription(topic, REDRIVE_CURSOR, StartPosition.LATEST)


def test_letters_that_a_redrive_with_a_subscription_of_its_own_has_sent_are_not_pending(
    spark: SparkSession, pulsar_broker: TestBroker
) -> None:
    origin, dead = asyncio.run(fill(pulsar_broker))
    asyncio.run(begin_redrive(pulsar_broker, dead))
    send(pulsar_broker.url, dead, ["failed later"])  # gives it the subscription of a queue, too
    for destination, of in ((f"queue://{dead}", None), (f"queue://{origin}", QUEUE)):
        order = ReportOrder(connection={"url": pulsar_broker.url}, destination=destination, of=of, pending=True)
        assert report_dead_letters(spark, order)["letters"] == 1
    both = ReportOrder(
        connection={"url": pulsar_broker.url}, destination=f"queue://multi:{dead},{origin}", pending=True
    )
    with pytest.raises(ConfigurationError, match="report them apart"):
        report_dead_letters(spark, both)


def test_a_subscription_without_dead_letters_is_told_before_a_query(pulsar_broker: TestBroker) -> None:
    order = ReportOrder(connection={"url": pulsar_broker.url}, destination="queue://nothing-failed", of="nobody")
    with pytest.raises(NotFoundError, match="nothing-failed has no topic with dead letters"):
        report_dead_letters(None, order)  # type: ignore[arg-type] # no session is asked


async def test_a_report_goes_by_the_subscription_of_a_redrive_where_there_is_one(url: str) -> None:
    letters = await Letters.start(load(url))
    harness, dead = letters.harness, f"queue://{letters.dead}"

    async def found(destination: str, of: str | None, pending: bool) -> tuple[list[str], str | None]:
        order = ReportOrder(connection={}, destination=destination, of=of, pending=pending)
        return await find_letters(harness.transport, harness.configuration, order=order)

    try:
        assert await found(f"queue://{letters.topic}", QUEUE, False) == ([letters.dead], None)
        assert await found(dead, None, True) == ([], None)
        await harness.admin.create_subscription(letters.dead, REDRIVE_CURSOR, StartPosition.EARLIEST)
        assert await found(dead, None, False) == ([], None)
        assert await found(dead, None, True) == ([letters.dead], REDRIVE_CURSOR)
        assert await found(f"queue://{letters.topic}", QUEUE, True) == ([letters.dead], REDRIVE_CURSOR)
        assert await found(f"{dead}:{QUEUE}", None, True) == ([], None)
        with pytest.raises(ConfigurationError, match="report them apart"):
            await found(f"queue://multi:{letters.dead},{letters.topic}", None, True)
    finally:
        await letters.stop()


def test_a_group_is_told_with_its_age() -> None:
    group = {
        "origin": "o", "subscription": None, "type": None, "p0": "EU", "letters": 2, "bytes": 3, "redriven": 0,
        "first": 1000, "last": 61_000, "samples": [{"id": "ID:1:2:-1"}],
    }  # fmt: skip
    assert describe_group(group, ["region"], 121_000) == {
        "origin": "o", "subscription": None, "type": None, "properties": {"region": "EU"}, "letters": 2, "bytes": 3,
        "redriven": 0, "first": "1970-01-01T00:00:01.000Z", "last": "1970-01-01T00:01:01.000Z", "oldest_age": 120,
        "newest_age": 60, "samples": [{"id": "ID:1:2:-1"}],
    }  # fmt: skip
