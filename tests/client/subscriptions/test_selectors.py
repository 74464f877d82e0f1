"""Selectors that operators set on subscriptions: how they are read, and what they exclude."""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import attrs
import pytest

from jmsaio.client.subscriptions.selectors import SelectorReader
from jmsaio.config import ConsumerConfig
from jmsaio.errors import AdminError, InvalidSelectorError, JMSSecurityError, NotFoundError
from jmsaio.rules.fate import Rejection
from jmsaio.transport.base import Admin, Subscription, SubscriptionType
from jmsaio.transport.clock import LoopTimers
from tests.kit.records import Record

TOPIC, OTHER = "persistent://public/default/t", "persistent://public/default/o"

#: Seconds after which a selector has to be read again.
LONG = 11


@attrs.define
class FakeAdmin:
    """Has properties by topic, or fails."""

    properties: dict[str, Mapping[str, str]] = attrs.field(factory=dict)
    error: Exception | None = None
    filters: Any = frozenset({"jms"})
    asked: int = 0
    asked_for_filters: int = 0
    answering: asyncio.Event | None = None

    async def subscription_properties(self, topic: str, name: str) -> dict[str, str]:
        self.asked += 1
        if self.answering is not None:
            await self.answering.wait()
        if self.error is not None:
            raise self.error
        if topic not in self.properties:
            raise NotFoundError(topic)
        return dict(self.properties[topic])

    async def entry_filters(self, topic: str) -> frozenset[str]:
        self.asked_for_filters += 1
        if isinstance(self.filters, Exception):
            raise self.filters
        return cast("frozenset[str]", self.filters)

    async def topics(self, namespace: str) -> list[str]:
        return [TOPIC, f"{OTHER}-partition-0"]


def on(selector: str) -> dict[str, str]:
    return {"jms.filtering": "true", "jms.selector": selector}


def subscription(*topics: str, pattern: str | None = None, durable: bool = True, **metadata: str) -> Subscription:
    return Subscription(
        topics, "sub", SubscriptionType.SHARED, ConsumerConfig(), pattern=pattern, durable=durable,
        metadata={"jms.destination.type": "queue", **metadata},
    )  # fmt: skip


@attrs.define
class Kit:
    """A reader on a fake admin, with what it says."""

    admin: FakeAdmin = attrs.field(factory=FakeAdmin)
    warnings: list[str] = attrs.field(factory=list)
    errors: list[Exception] = attrs.field(factory=list)
    reader: SelectorReader = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        admin = cast("Admin", self.admin)
        reports: Any = SimpleNamespace(
            warn_once=self.warnings.append, add=lambda error, about: self.errors.append(error), where=dict
        )
        self.reader = SelectorReader(admin, LoopTimers(), 0, reports)


def record(number: int, topic: str = TOPIC) -> Record:
    return Record(properties={"n": str(number), "n_jsmtype": "int"}, topic=topic)


async def test_only_a_selector_in_force_counts_each_for_its_topic() -> None:
    kit = Kit(FakeAdmin({TOPIC: on("n = 1"), OTHER: {"jms.filtering": "false", "jms.selector": "n = 2"}}))
    selectors = await kit.reader.open(subscription(OTHER, TOPIC, "persistent://public/default/missing"))
    assert selectors.text == "n = 1"
    assert [selectors.rejects(record(number)) for number in (1, 2)] == [None, Rejection.SUBSCRIPTION]
    assert selectors.rejects(record(2, f"{TOPIC}-partition-3")) is Rejection.SUBSCRIPTION
    assert selectors.rejects(record(2, OTHER)) is None


async def test_the_broker_is_not_asked_for_selectors_of_temporary_destinations() -> None:
    """A consumer of replies would wait for an answer that no operator has changed."""
    kit, temporary = Kit(FakeAdmin({TOPIC: on("n = 1")})), "persistent://public/default/jms-temp-queue-1"
    assert (await kit.reader.open(subscription(temporary))).text is None
    assert kit.admin.asked == 0
    assert (await kit.reader.open(subscription(temporary, TOPIC))).text == "n = 1"


async def test_the_topics_of_a_pattern_are_found() -> None:
    kit = Kit(FakeAdmin({TOPIC: on("n = 1"), OTHER: on("n = 2")}))
    selectors = await kit.reader.open(subscription(pattern="persistent://public/default/[ot]"))
    found = [selectors.rejects(record(2, topic)) for topic in (TOPIC, f"{OTHER}-partition-0")]
    assert found == [Rejection.SUBSCRIPTION, None]


@pytest.mark.parametrize(("text", "reason"), [
    ("NOT n = 1", "reads NOT"), ("JMSMessageID = 'x'", "JMSMessageID"), ("REGEX('a', n)", "column 6"),
])  # fmt: skip
async def test_what_the_plugin_may_decide_otherwise_excludes_nothing_and_is_a_warning(text: str, reason: str) -> None:
    kit = Kit(FakeAdmin({TOPIC: on(text)}))
    selectors = await kit.reader.open(subscription(TOPIC))
    assert selectors.text == text and selectors.rejects(record(1)) is None
    [warning] = kit.warnings
    assert reason in warning and "is not applied to received messages" in warning


async def test_a_value_of_another_type_is_unequal_as_it_is_to_the_plugin() -> None:
    kit = Kit(FakeAdmin({TOPIC: on("n <> 'a' AND n <> 2")}))
    selectors = await kit.reader.open(subscription(TOPIC))
    assert [selectors.rejects(record(number)) for number in (1, 2)] == [None, Rejection.SUBSCRIPTION]
    assert kit.warnings == []


@pytest.mark.parametrize("error", [AdminError("away"), TimeoutError()])
async def test_without_an_answer_there_is_one_warning_and_no_consumer_waits_for_a_minute(error: Exception) -> None:
    kit = Kit(FakeAdmin(error=error))
    for topic in (TOPIC, OTHER):
        assert (await kit.reader.open(subscription(topic, durable=True, **{"jms.selector": "n = 1"}))).text is None
    assert len(kit.warnings) == 1 and kit.admin.asked == 1 and kit.admin.asked_for_filters == 0
    assert (str(error) or "no answer") in kit.warnings[0]


async def test_one_subscription_that_can_not_be_read_keeps_no_other_from_being_read() -> None:
    kit = Kit(FakeAdmin(error=JMSSecurityError("no right")))
    refused = [await kit.reader.open(subscription(topic)) for topic in (TOPIC, OTHER)]
    assert len(kit.warnings) == 1 and "no right" in kit.warnings[0]
    kit.admin.error, kit.admin.properties[TOPIC] = None, on("n = 1")
    selectors = await kit.reader.open(subscription(TOPIC, "persistent://public/default/another"))
    assert selectors.text == "n = 1"
    assert [one.text for one in refused] == [None, None]


async def test_only_the_selector_that_is_in_doubt_is_read_again() -> None:
    kit = Kit(FakeAdmin({TOPIC: on("n = 1"), OTHER: on("n = 1")}))
    doubtful, _ = [await kit.reader.open(subscription(topic)) for topic in (TOPIC, OTHER)]
    running = asyncio.create_task(kit.reader.run())
    doubtful.read -= LONG
    assert doubtful.rejects(record(2)) is Rejection.UNSURE
    await asyncio.sleep(0.1)
    assert kit.admin.asked == 3 and doubtful.fresh
    kit.reader.hurry()
    await asyncio.sleep(0.1)
    assert kit.admin.asked == 5
    running.cancel()
    await asyncio.wait([running])


async def test_without_the_admin_interface_closed_consumers_are_forgotten() -> None:
    """Their subscriptions often have names of their own, so that there would be more and more."""
    reader = SelectorReader(None, LoopTimers(), 0.001, cast("Any", SimpleNamespace()))
    running = asyncio.create_task(reader.run())
    selectors = await reader.open(subscription(TOPIC))
    await asyncio.sleep(0.1)
    known = weakref.ref(selectors)
    del selectors
    assert known() is None
    running.cancel()
    await asyncio.wait([running])


async def test_each_consumer_reads_for_all_of_its_subscription() -> None:
    kit = Kit(FakeAdmin({TOPIC: on("n = 1")}))
    first = await kit.reader.open(subscription(TOPIC))
    kit.admin.properties[TOPIC] = on("n = 2")
    assert await kit.reader.open(subscription(TOPIC)) is first
    assert first.text == "n = 2"


async def test_a_subscription_that_is_not_durable_has_none() -> None:
    kit = Kit(FakeAdmin({TOPIC: on("n = 1")}))
    assert (await kit.reader.open(subscription(TOPIC, durable=False))).text is None
    assert kit.admin.asked == 0


async def test_a_selector_that_can_not_be_read_is_refused_and_later_reported() -> None:
    kit = Kit(FakeAdmin({TOPIC: on("n ==")}))
    with pytest.raises(InvalidSelectorError, match="set on subscription sub"):
        await kit.reader.open(subscription(TOPIC))
    kit.admin.properties[TOPIC] = on("n = 1")
    selectors = await kit.reader.open(subscription(OTHER, TOPIC))
    running = asyncio.create_task(kit.reader.run())
    kit.admin.properties[TOPIC] = on("n ==")
    selectors.read -= LONG
    for _ in range(2):
        kit.reader.hurry()
        await asyncio.sleep(0.1)
    assert len(kit.errors) == 1 and selectors.text == "n = 1"  # the last one that could be read
    assert selectors.rejects(record(2)) is Rejection.UNSURE
    running.cancel()
    await asyncio.wait([running])


@pytest.mark.parametrize("error", [AdminError("away"), None])
async def test_a_selector_removes_nothing_before_it_was_read_again(error: Exception | None) -> None:
    kit = Kit(FakeAdmin({TOPIC: on("n = 1")}))
    selectors = await kit.reader.open(subscription(TOPIC))
    selectors.read -= LONG
    kit.admin.properties[TOPIC], kit.admin.error, kit.admin.answering = on("n = 2"), error, asyncio.Event()
    running = asyncio.create_task(kit.reader.run())
    assert selectors.rejects(record(2)) is Rejection.UNSURE
    await asyncio.sleep(0.1)
    assert kit.admin.asked == 2
    assert selectors.rejects(record(2)) is Rejection.UNSURE  # there is no answer yet
    kit.admin.answering.set()
    await asyncio.sleep(0.1)
    assert selectors.rejects(record(2)) is (None if error is None else Rejection.UNSURE)
    assert selectors.rejects(record(1)) is (None if error is not None else Rejection.SUBSCRIPTION)
    running.cancel()
    await asyncio.wait([running])


async def test_a_broker_without_the_plugin_is_a_warning_if_it_is_to_filter() -> None:
    kit = Kit(FakeAdmin({TOPIC: {}}, filters=frozenset({"another"})))
    await kit.reader.open(subscription(TOPIC))
    assert kit.warnings == []
    await kit.reader.open(subscription(TOPIC, durable=False, **{"jms.selector": "n = 1"}))
    await kit.reader.open(subscription(OTHER, durable=False, **{"jms.selector": "n = 1"}))
    assert len(kit.warnings) == 1 and "no filter plugin" in kit.warnings[0]
    kit = Kit(FakeAdmin({TOPIC: on("n = 1")}, filters=frozenset()))
    await kit.reader.open(subscription(TOPIC))
    assert "no filter plugin" in kit.warnings[0]


async def test_without_the_right_to_see_its_filters_nothing_is_claimed(caplog: pytest.LogCaptureFixture) -> None:
    kit = Kit(FakeAdmin({TOPIC: on("n = 1")}, filters=JMSSecurityError("not an administrator")))
    with caplog.at_level(logging.INFO, "jmsaio"):
        await kit.reader.open(subscription(TOPIC))
    assert kit.warnings == [] and "not an administrator" in caplog.messages[-1]
