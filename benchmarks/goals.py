"""The reference rows of each group, and the goals of all rows."""

from __future__ import annotations

from benchmarks.scenario import Block, Goal

#: Reference rows by group: the group's rows are shown as ratios to them if they were measured in the same run.
REFERENCES = {
    Block.SEND: ("send.raw", "send.pulsar-asyncio", "send.java", "send.floor"),
    Block.RECEIVE: ("receive.raw", "receive.pulsar-asyncio", "receive.java", "receive.floor"),
    Block.LATENCY: ("latency.raw", "latency.pulsar-asyncio", "latency.java"),
    Block.EMBEDDED: ("embedded.bare",),
    Block.SELECTOR: (),
    Block.FILTER: ("filter.client",),
    Block.IDLE: (),
    # The rows of transactions, of the layer and of Spark name their own references.
    Block.TRANSACTION: (),
    Block.LAYER: (),
    Block.SPARK_READ: (),
    Block.SPARK_PARTS: (),
    Block.SPARK_TOPICS: (),
    Block.SPARK_STREAM: (),
    Block.SPARK_WRITE: (),
}

GOALS = (
    Goal("send.jmsaio", 2.0, "send.raw"),
    Goal("send.jmsaio", 4.0, "send.pulsar-asyncio"),
    Goal("send.jmsaio-workers", 2.0, "send.raw"),
    Goal("send.jmsaio-workers", 4.0, "send.pulsar-asyncio"),
    Goal("send.jmsaio", 0.8, "send.floor"),
    Goal("send.jmsaio-workers", 0.65, "send.floor"),
    Goal("receive.jmsaio", 0.8, "receive.floor"),
    Goal("receive.jmsaio", 1.0, "receive.raw"),
    Goal("receive.jmsaio", 2.0, "receive.pulsar-asyncio"),
    Goal("latency.jmsaio", 1.05, "latency.raw", at_most=True),
    Goal("latency.jmsaio", 1.3, "latency.raw", at_most=True, metric="cpu_us"),
    Goal("send.wire", 4.4, "send.raw"),
    Goal("send.wire", 1.2, "send.java"),
    Goal("send.wire-workers", 2.4, "send.raw"),
    Goal("receive.wire", 2.4, "receive.raw"),
    Goal("receive.wire", 1.0, "receive.java"),
    Goal("receive.wire-listener", 1.6, "receive.raw"),
    Goal("latency.wire", 1.05, "latency.raw", at_most=True),
    Goal("latency.wire", 1.3, "latency.raw", at_most=True, metric="cpu_us"),
    Goal("transaction.wire", 1.2, "transaction.java"),
    Goal("transaction.wire-50", 1.0, "transaction.java-50"),
    Goal("transaction.wire-messages", 1.2, "transaction.java-messages"),
    Goal("layer.send", 2.5, "layer.bare-send", at_most=True),
    Goal("layer.workers", 3.5, "layer.bare-send", at_most=True),
    Goal("layer.receive", 2.7, "layer.bare-receive", at_most=True),
    Goal("layer.listener", 4.5, "layer.bare-receive", at_most=True),
    Goal("embedded.through", 0.55, "embedded.bare"),
    Goal("selector.three-terms", 1_000_000),
    Goal("idle.consumers", 20.0, at_most=True),
    Goal("spark.read-one", 0.65, "spark.loop-columns"),
    Goal("spark.read-one", 1.4, "spark.loop-columns", at_most=True, metric="cpu_us"),
    Goal("spark.read-one", 1.8, "spark.tuples"),
    Goal("spark.read-wire", 0.8, "spark.read-one", at_most=True, metric="cpu_us"),
    Goal("spark.read-two", 0.8, "spark.loop-columns"),
    Goal("spark.read-two", 0.33, "spark.loop-bare"),
    Goal("spark.build", 0.7, "spark.loop-touch", at_most=True),
    Goal("spark.ready-two", 1.3, "spark.ready-one"),
    Goal("spark.selector", 1.2, "spark.read-one"),
    Goal("spark.topics-100", 10.0, "spark.topics-1", at_most=True),
    Goal("spark.topics-since", 1.5, "spark.topics-100", at_most=True),
    Goal("spark.batch", 2.5, "spark.batch-ready", at_most=True),
    Goal("spark.batch-topics", 5.0, "spark.batch", at_most=True),
    Goal("spark.write", 1.2, "spark.send-jmsaio"),
    Goal("spark.write", 1.5, "spark.send-raw"),
    Goal("spark.write-dedup", 0.5, "spark.write"),
    # Parquet takes the JVM 20 us of CPU a row, 6 of them for the two maps of properties; reading takes 33 in all.
    Goal("spark.archive", 0.6, "spark.read-two"),
)
