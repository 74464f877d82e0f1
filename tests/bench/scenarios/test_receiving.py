import attrs
import pytest

import jmsaio
from jmsaio.bench.scenarios.receiving import fill, fill_and_receive, receive, receive_all
from jmsaio.bench.workload import Task


async def test_what_was_filled_is_received(task: Task) -> None:
    await fill(task)
    assert (await receive(task))["per_second"] > 0


async def test_both_in_one_process(task: Task) -> None:
    assert (await fill_and_receive(task))["cpu_us"] > 0


async def test_a_wrong_message_is_told(task: Task) -> None:
    async with jmsaio.connect(task.url) as connection, connection.create_session() as session:
        queue = session.create_queue("wrong")
        async with session.create_consumer(queue) as consumer, session.create_producer(queue) as producer:
            await producer.send("x" * task.workload.characters, properties={"amount": 7})
            with pytest.raises(RuntimeError, match="sum 7 instead of 0"):
                await receive_all(consumer, attrs.evolve(task.workload, messages=1))
