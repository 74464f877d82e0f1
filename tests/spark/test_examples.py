"""The example with Spark runs on the real broker: the embedded one lives in one process."""

from __future__ import annotations

import uuid

from pyspark.sql import SparkSession

import jmsaio
from tests.examples.spark_batch import count
from tests.support.broker import TestBroker


async def test_the_batch_counts_stored_messages_by_type(spark: SparkSession, pulsar_broker: TestBroker) -> None:
    queue = f"queue-{uuid.uuid4().hex}"
    async with jmsaio.connect(pulsar_broker.url) as connection, connection.create_session() as session:
        producer = await session.create_producer(session.create_queue(queue))
        for kind in ("tea", "coffee", "tea"):
            message = jmsaio.TextMessage("a pound")
            message.jms_type = kind
            await producer.send(message)
    assert count(spark, pulsar_broker.url, queue) == {"tea": 2, "coffee": 1}
