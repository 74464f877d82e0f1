"""Workers share a queue; jobs that fail three times become dead letters: ``python worker_pool.py URL``."""

import asyncio
import sys

import jmsaio

OPTIONS = {"max_redeliver_count": 2, "dead_letter_topic": "failed-jobs"}


async def work(connection: jmsaio.Connection, done: list[int]) -> None:
    """Process jobs until cancelled."""
    async with (
        connection.create_session() as session,
        session.create_consumer(session.create_queue("jobs")) as consumer,
    ):
        while True:
            try:
                async with consumer.process() as job:
                    done.append(int(job.text or ""))
            except ValueError as error:
                print("returned for redelivery:", error)


async def run(url: str, done: list[int], workers: int = 3) -> None:
    """Run workers until cancelled or until one fails."""
    async with jmsaio.connect(url, dead_letter=OPTIONS, negative_ack_redelivery_delay=0.1) as connection:
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(work(connection, done))


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], []))
