"""The screens of ``jmsaio top``: what they show of a broker, which keys do what, and that an outage ends by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio.to_thread
import attrs
import pytest
from textual.pilot import Pilot
from textual.widgets import Input

import jmsaio
from jmsaio.cli.common.output import INTERRUPTED, OK
from jmsaio.cli.states import open_admin
from jmsaio.cli.top_screens import Top, WatchedBroker
from jmsaio.config import load
from jmsaio.maintenance.overview import list_states
from jmsaio.testing import embedded_broker
from tests.support.broker import TestBroker


@attrs.frozen
class Watched:
    """The command's application on a screen of 200 columns."""

    pilot: Pilot[int]

    @property
    def text(self) -> str:
        """Everything that the terminal shows."""
        return "\n".join(strip.text for strip in self.pilot.app.screen._compositor.render_strips())

    @property
    def screen(self) -> str:
        return type(self.pilot.app.screen).__name__

    def line(self, words: str) -> str:
        """The first line with these words; "" if there is none."""
        return next((line for line in self.text.splitlines() if words in line), "")

    async def until(self, holds: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(30):
                while not holds():
                    await self.pilot.pause(0.05)
        except TimeoutError:
            raise AssertionError(self.text) from None

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()


@asynccontextmanager
async def watching(url: str) -> AsyncIterator[Watched]:
    config = load(url)
    async with open_admin(config) as admin:
        app = Top(WatchedBroker(admin, {"brokerServiceUrl": url}, config, 0.1), await list_states(admin, config))
        async with app.run_test(size=(200, 30), notifications=True) as pilot:
            await pilot.pause()
            yield Watched(pilot)


async def fill(connection: jmsaio.Connection, queue: str, *texts: str) -> None:
    async with connection.create_session() as session:
        producer = await session.create_producer(session.create_queue(queue))
        for text in texts:
            await producer.send(text, properties={"region": "EU"})


@pytest.mark.small_namespace
async def test_a_queue_is_seen_from_its_backlog_down_to_one_message(
    url: str, connection: jmsaio.Connection, name: Callable[[str], str]
) -> None:
    queue = name("orders")
    await fill(connection, queue, "first", "second")
    async with watching(url) as top:
        await top.until(lambda: queue in top.text)
        assert top.line(queue).split()[1:5] == ["jms-queue", "2", "0", "0"]
        await fill(connection, queue, "third")
        await top.until(lambda: top.line(queue).split()[2] == "3")
        await top.press("slash", *queue, "enter", "enter")
        assert top.screen == "Detail"
        await top.until(lambda: "no consumer is connected; 3 messages wait" in top.text)
        await top.press("enter")
        assert top.screen == "Messages"
        await top.until(lambda: "the first 3 messages, all still there" in top.text)
        assert "second" in top.text
        await top.press("j", "enter")
        assert top.screen == "Whole"
        await top.until(lambda: "region = 'EU'" in top.text)
        assert "second" in top.text
        assert "first" not in top.text
        assert "destination: queue:" in top.text
        for below in ("Messages", "Detail", "Destinations"):
            await top.press("escape")
            assert top.screen == below
        await top.press("b")
        assert top.screen == "Messages"
        await top.press("backspace", "q")
    assert top.pilot.app.return_value == OK


async def test_of_many_queues_the_first_are_shown_and_the_filter_finds_the_others() -> None:
    with embedded_broker() as broker:
        url = broker.url
        async with jmsaio.connect(url) as connection, connection.create_session() as session:
            for number in range(600):
                await (await session.create_consumer(session.create_queue(f"queue-{number:04}"))).close()
        async with watching(url) as top:
            await top.until(lambda: "the first 200 of 600 of 600, by batches" in top.text)
            await top.press("slash", *"0599")
            await top.until(lambda: "1 of 600 with '0599'" in top.text and bool(top.line("jms-queue")))
            assert top.line("jms-queue").split()[0] == "queue-0599"


@pytest.mark.small_namespace
async def test_the_consumer_that_holds_messages_is_named(
    url: str, connection: jmsaio.Connection, name: Callable[[str], str]
) -> None:
    queue = name("held")
    await fill(connection, queue, *map(str, range(4)))
    async with connection.create_session(jmsaio.AcknowledgeMode.CLIENT) as session:
        consumer = await session.create_consumer(session.create_queue(f"{queue}?consumerConfig.consumerName=idler"))
        assert await consumer.receive(10) is not None
        async with watching(url) as top:
            await top.press("slash", *queue, "enter", "enter")
            await top.until(lambda: "4 unacknowledged" in top.text)
            assert "consumer idler" in top.text


@pytest.mark.small_namespace
async def test_a_topic_is_shown_with_its_subscriptions_and_is_not_browsed(
    url: str, connection: jmsaio.Connection, name: Callable[[str], str]
) -> None:
    topic = name("news")
    async with connection.create_session() as session:
        await session.create_shared_durable_consumer(session.create_topic(topic), "readers")
        await session.create_shared_durable_consumer(session.create_topic(topic), "writers")
        async with watching(url) as top:
            await top.press("slash", *topic, "enter", "b")
            assert top.screen == "Destinations"
            await top.until(lambda: "Only a queue can be browsed" in top.text)
            await top.press("enter")
            await top.until(lambda: "writers" in top.text and "readers" in top.text)
            assert top.screen == "Detail"


async def test_rows_are_sorted_and_filtered_by_keys(config: dict[str, str]) -> None:
    url = config["brokerServiceUrl"]
    async with jmsaio.connect(url) as connection:
        await fill(connection, "beta", "1")
        await fill(connection, "alpha", "1", "2")
        await fill(connection, "gamma", "1", "2", "3")

        def names(top: Watched) -> list[str]:
            return [line.split()[0] for line in top.text.splitlines() if "jms-queue" in line]

        async with watching(url) as top:
            await top.until(lambda: names(top) == ["gamma", "alpha", "beta"])
            assert "batches *" in top.text
            await top.press(*"sssssss")
            await top.until(lambda: names(top) == ["alpha", "beta", "gamma"])
            assert "name *" in top.text
            await top.pilot.resize_terminal(60, 30)
            await top.until(lambda: "no room for: rate out, producers" in top.text)
            await top.pilot.resize_terminal(200, 30)
            await top.until(lambda: "no room for" not in top.text and "rate redelivered" in top.text)
            await top.press("s", "s")
            await top.until(lambda: names(top) == ["gamma", "alpha", "beta"])
            await top.press("j")
            await asyncio.sleep(0.3)  # the cursor stays with its row when others overtake it
            await fill(connection, "beta", *map(str, range(9)))
            await top.until(lambda: names(top) == ["beta", "gamma", "alpha"])
            await top.press("enter")
            await top.until(lambda: "alpha" in top.text and "beta" not in top.text)
            await top.press("escape", "slash", *"AMM")
            await top.until(lambda: names(top) == ["gamma"])
            await top.press("q")  # a letter of the filter
            await top.until(lambda: names(top) == [])
            await top.press("enter", "enter", "b")
            assert top.screen == "Destinations"
            await top.press("escape")
            assert top.pilot.app.screen.query_one(Input).value == ""
            await top.until(lambda: len(names(top)) == 3)


async def test_what_a_broker_holds_is_text_and_long_bodies_are_cut(config: dict[str, str]) -> None:
    url = config["brokerServiceUrl"]
    async with jmsaio.connect(url) as connection:
        await fill(connection, "odd[red]", "[bold]\x1b[31m body", "x" * 150_000)
        async with watching(url) as top:
            await top.until(lambda: "odd[red]" in top.text)
            await top.press("b")
            await top.until(lambda: "the first 2 messages" in top.text)
            assert r"[bold]\x1b[31m body" in top.text
            await top.press("j", "enter")
            await top.until(lambda: "xxx" in top.text)
            await top.press("end")
            await top.until(lambda: "more characters" in top.text)


async def test_a_queue_that_is_gone_is_reported_where_it_is_shown(config: dict[str, str]) -> None:
    url = config["brokerServiceUrl"]
    async with jmsaio.connect(url) as connection, open_admin(load(url)) as admin:
        await fill(connection, "orders", "1")
        async with watching(url) as top:
            await top.press("enter")
            await top.until(lambda: "no consumer" in top.text)
            await admin.delete_topic("persistent://public/default/orders", force=True)
            await top.until(lambda: "trying again" in top.text)
            await top.press("b")
            await top.until(lambda: "the first 0 messages" in top.text or "not exist" in top.text)
            await top.press("escape", "escape")
            await top.until(lambda: "0 of 0" in top.text)


async def test_an_outage_is_shown_and_ends_by_itself() -> None:
    with embedded_broker() as broker:
        async with jmsaio.connect(broker.url) as connection:
            await fill(connection, "orders", "1")
        async with watching(broker.url) as top:
            await top.until(lambda: "1 of 1" in top.text)
            with broker.faults.outage():
                await top.until(lambda: "trying again" in top.text)
                assert "orders" in top.text
                await top.press("b")
                await top.until(lambda: "orders: " in top.text and "reading" not in top.text)
                await top.press("escape")
            await top.until(lambda: "1 of 1" in top.text)


async def test_a_killed_and_a_frozen_broker_are_shown_until_they_are_back(own_broker: TestBroker) -> None:
    async with jmsaio.connect(own_broker.url) as connection:
        await fill(connection, "watched", "1")
    async with watching(own_broker.url) as top:
        await top.until(lambda: "watched" in top.text)
        own_broker.kill()
        await top.until(lambda: "can't be reached" in top.text)
        await anyio.to_thread.run_sync(own_broker.start)
        await top.until(lambda: " by batches" in top.text)
        own_broker.pause()
        await top.until(lambda: "no answer for" in top.text)
        own_broker.resume()
        await top.until(lambda: " by batches" in top.text)


async def test_an_interrupt_has_its_own_exit_code(config: dict[str, str]) -> None:
    url = config["brokerServiceUrl"]
    async with jmsaio.connect(url), watching(url) as top:
        await top.press("ctrl+c")
    assert top.pilot.app.return_value == INTERRUPTED
