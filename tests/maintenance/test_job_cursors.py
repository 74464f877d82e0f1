"""Subscriptions that jobs made are found and deleted, and no others."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from jmsaio.errors import ConfigurationError, NotFoundError
from jmsaio.maintenance.job_cursors import JobCursor, clean_up, delete_job_cursor, find_job_cursors
from jmsaio.model.destinations import Queue
from jmsaio.transport.base import StartPosition
from tests.maintenance.letters import QUEUE, Letters

OWN, REDRIVES = "jmsaio-spark-archive", "jmsaio-spark-redrive"


async def test_only_what_jobs_made_is_found_and_deleted(letters: Letters) -> None:
    admin = letters.harness.admin
    for name in (OWN, "jmsaio-spark-redrive", "keeper", "jmsaio-nd-x"):
        await admin.create_subscription(letters.topic, name, StartPosition.EARLIEST)
    await letters.harness.fill(letters.topic, "x")
    found = await find_job_cursors(admin, [letters.topic])
    assert [(one.subscription, one.backlog, one.consumers) for one in found] == [
        (OWN, 1, 0), ("jmsaio-spark-redrive", 1, 0),
    ]  # fmt: skip
    (one,) = await find_job_cursors(admin, [letters.topic], OWN)
    assert await delete_job_cursor(admin, one) is None
    assert set((await admin.stats(letters.topic)).subscriptions) == {
        QUEUE, "jmsaio-spark-redrive", "keeper", "jmsaio-nd-x",
    }  # fmt: skip


async def test_a_partitioned_topic_is_cleaned_as_a_whole(letters: Letters) -> None:
    topic = letters.harness.topic("parted")
    await letters.harness.admin.create_topic(topic, 2)
    await letters.harness.admin.create_subscription(topic, OWN, StartPosition.EARLIEST)
    (one,) = await find_job_cursors(letters.harness.admin, [topic])
    assert (one.topic, one.subscription) == (topic, OWN)
    assert await delete_job_cursor(letters.harness.admin, one) is None
    for index in range(2):
        assert (await letters.harness.admin.stats(f"{topic}-partition-{index}")).subscriptions == {}


async def test_a_subscription_of_one_partition_alone_is_deleted_too(letters: Letters) -> None:
    topic = letters.harness.topic("parted")
    await letters.harness.admin.create_topic(topic, 2)
    await letters.harness.admin.create_subscription(f"{topic}-partition-1", OWN, StartPosition.EARLIEST)
    (one,) = await find_job_cursors(letters.harness.admin, [topic])
    assert await delete_job_cursor(letters.harness.admin, one) is None
    assert await find_job_cursors(letters.harness.admin, [topic]) == []


async def test_one_with_consumers_is_kept(letters: Letters) -> None:
    inbox = await letters.harness.inbox(letters.topic, name=OWN)
    (one,) = await find_job_cursors(letters.harness.admin, [letters.topic])
    assert await delete_job_cursor(letters.harness.admin, one) == "it has 1 consumers"
    assert await delete_job_cursor(letters.harness.admin, attrs.evolve(one, consumers=0)) is not None
    await inbox.close()
    assert OWN in (await letters.harness.admin.stats(letters.topic)).subscriptions


async def test_partitions_without_it_are_named_where_another_refuses(letters: Letters) -> None:
    topic = letters.harness.topic("parted")
    await letters.harness.admin.create_topic(topic, 2)
    await letters.harness.admin.create_subscription(topic, OWN, StartPosition.EARLIEST)
    (one,) = await find_job_cursors(letters.harness.admin, [topic])
    inbox = await letters.harness.inbox(f"{topic}-partition-1", name=OWN)
    reason = await delete_job_cursor(letters.harness.admin, one)
    assert reason is not None and reason.endswith(f"; it is deleted already on {topic}-partition-0")
    await inbox.close()


async def test_names_of_others_are_refused(letters: Letters) -> None:
    admin = letters.harness.admin
    await admin.create_subscription(letters.topic, OWN, StartPosition.EARLIEST)
    with pytest.raises(ConfigurationError, match=f"{QUEUE} was not made by a job"):
        await find_job_cursors(admin, [letters.topic], QUEUE)
    with pytest.raises(ConfigurationError, match="was not made by a job"):
        await delete_job_cursor(admin, JobCursor(topic=letters.topic, subscription=QUEUE, backlog=0, consumers=0))
    assert set((await admin.stats(letters.topic)).subscriptions) == {QUEUE, OWN}
    with pytest.raises(NotFoundError):
        await find_job_cursors(admin, [letters.harness.topic("missing")])


async def clean(letters: Letters, topic: str, **given: Any) -> dict[str, Any]:
    """Clean up a queue."""
    return await clean_up(letters.harness.transport, letters.harness.configuration, Queue(topic), **given)


async def make(letters: Letters, *names: str) -> None:
    """Cursors on the dead letter topic."""
    for name in names:
        await letters.harness.admin.create_subscription(letters.dead, name, StartPosition.EARLIEST)


async def test_a_cursor_is_found_and_then_deleted(letters: Letters) -> None:
    await make(letters, OWN)
    found = await clean(letters, letters.topic, of=QUEUE, dry_run=True)
    assert found["cursors"] == [
        {"topic": letters.dead, "subscription": OWN, "backlog": 0, "consumers": 0, "state": "found", "reason": None}
    ]
    assert found["deleted"] == 0
    done = await clean(letters, letters.topic, of=QUEUE)
    assert (done["deleted"], done["kept"], done["cursors"][0]["state"]) == (1, 0, "deleted")
    assert (await clean(letters, letters.topic, of=QUEUE))["cursors"] == []


async def test_what_redrives_have_sent_is_forgotten_only_by_name(letters: Letters) -> None:
    await make(letters, OWN, REDRIVES)
    done = await clean(letters, letters.dead)
    assert (done["deleted"], done["kept"]) == (1, 0)
    assert [(each["subscription"], each["state"]) for each in done["cursors"]] == [(OWN, "deleted"), (REDRIVES, "left")]
    assert (await clean(letters, letters.dead, subscription=REDRIVES))["deleted"] == 1


async def test_one_with_consumers_is_described_as_kept(letters: Letters) -> None:
    inbox = await letters.harness.inbox(letters.topic, name=OWN)
    kept = await clean(letters, letters.topic)
    assert (kept["kept"], kept["cursors"][0]["state"]) == (1, "kept")
    assert kept["cursors"][0]["reason"] == "it has 1 consumers"
    await inbox.close()


async def test_the_clean_up_of_another_subscription_is_refused(letters: Letters) -> None:
    with pytest.raises(ConfigurationError, match="was not made by a job"):
        await clean(letters, letters.dead, subscription=QUEUE)
