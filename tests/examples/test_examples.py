"""Each example runs on the embedded broker, is short, and is found."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import jmsaio
from jmsaio.testing import embedded_broker
from tests.examples import browser, durable_subscriber, request_reply, service, worker_pool

FOLDER = Path(__file__).parent
EXAMPLES = sorted(path for path in FOLDER.glob("*.py") if not path.name.startswith(("test_", "__")))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_shorter_than_40_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) < 40


def test_the_readme_names_the_folder() -> None:
    assert "`tests/examples/`" in (FOLDER.parents[1] / "README.md").read_text(encoding="utf-8")


async def test_the_service_answers_until_it_is_stopped() -> None:
    with embedded_broker() as broker:
        stop = asyncio.Event()
        serving = asyncio.create_task(service.serve(broker.url, stop))
        assert await request_reply.greet(broker.url, "world") == "hello world"
        stop.set()
        assert await serving == 1


async def test_the_workers_do_the_jobs_and_leave_the_broken_one_to_the_dead_letters() -> None:
    with embedded_broker() as broker:
        done: list[int] = []
        pool = asyncio.create_task(worker_pool.run(broker.url, done))
        async with jmsaio.connect(broker.url) as connection, connection.create_session() as session:
            async with session.create_consumer(session.create_queue("failed-jobs")) as failed:
                producer = await session.create_producer(session.create_queue("jobs"))
                for job in ("1", "two", "3"):
                    await producer.send(job)
                letter = await failed.receive(timeout=10)
                assert letter is not None and letter.text == "two"
        pool.cancel()
        await asyncio.wait([pool])
        assert sorted(done) == [1, 3]


async def test_the_subscriber_gets_what_was_published_while_it_was_away() -> None:
    with embedded_broker() as broker:
        assert await durable_subscriber.collect(broker.url) == []
        await durable_subscriber.publish(broker.url, ["one", "two"])
        assert await durable_subscriber.collect(broker.url) == ["one", "two"]
        assert await durable_subscriber.collect(broker.url) == []


async def test_the_browser_shows_what_matches_and_removes_nothing() -> None:
    with embedded_broker() as broker:
        async with jmsaio.connect(broker.url) as connection, connection.create_session() as session:
            producer = await session.create_producer(session.create_queue("orders"))
            for text in ("tea", "coffee"):
                message = jmsaio.TextMessage(text)
                message.jms_type = text
                await producer.send(message)
        assert await browser.browse(broker.url, "orders") == ["tea", "coffee"]
        assert await browser.browse(broker.url, "orders", "JMSType = 'tea'") == ["tea"]
