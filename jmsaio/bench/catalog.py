"""The rows that need only an installed jmsaio, and the goals of all rows."""

from __future__ import annotations

from jmsaio.bench.scenario import Block, Goal, Scenario, with_query

#: URL of the embedded broker.
EMBEDDED = "memory:"

_HERE = "jmsaio.bench.scenarios"

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
    Goal("spark.archive", 0.7, "spark.read-two"),
)


def embedded_scenarios() -> list[Scenario]:
    """Return the rows that need no broker: embedded broker, selector and idle consumers."""
    return [
        Scenario("embedded.bare", "bare loop: build, encode, decode, read", Block.EMBEDDED,
                 f"{_HERE}:bare_loop", EMBEDDED),
        Scenario("embedded.through", "send to acknowledge", Block.EMBEDDED, f"{_HERE}:through", EMBEDDED),
        Scenario("embedded.send", "send_async only", Block.EMBEDDED, f"{_HERE}:futures", EMBEDDED),
        Scenario("embedded.receive", "receive and acknowledge only", Block.EMBEDDED,
                 f"{_HERE}:fill_and_receive", EMBEDDED),
        Scenario("latency.embedded", "jmsaio, embedded broker", Block.LATENCY, f"{_HERE}:latency", EMBEDDED),
        Scenario("selector.three-terms", "three terms, properties not decoded", Block.SELECTOR,
                 f"{_HERE}:three_terms", EMBEDDED),
        Scenario("idle.consumers", "idle consumers, each on its own queue", Block.IDLE,
                 f"{_HERE}:idle_consumers", EMBEDDED),
    ]  # fmt: skip


def broker_scenarios(url: str) -> list[Scenario]:
    """Return the rows of jmsaio on the broker at ``url``, on each transport."""
    wire = with_query(url, "transport=wire")
    return [*_transport_scenarios("jmsaio", "jmsaio", url), *_transport_scenarios("wire", "wire", wire)]


def _transport_scenarios(name: str, title: str, url: str) -> list[Scenario]:
    return [
        Scenario(f"send.{name}", f"{title} send_async", Block.SEND, f"{_HERE}:futures", url),
        Scenario(f"send.{name}-workers", f"{title} workers await send", Block.SEND, f"{_HERE}:workers", url),
        Scenario(f"receive.{name}", f"{title} receive, AUTO", Block.RECEIVE, f"{_HERE}:receive", url,
                 prepare=f"{_HERE}:fill"),
        Scenario(f"receive.{name}-listener", f"{title} listener, AUTO", Block.RECEIVE, f"{_HERE}:listen", url,
                 prepare=f"{_HERE}:fill"),
        Scenario(f"latency.{name}", title, Block.LATENCY, f"{_HERE}:latency", url),
    ]  # fmt: skip


def own_scenarios(url: str | None) -> list[Scenario]:
    """Return all rows of jmsaio itself; rows on a broker only if ``url`` names one other than the embedded one."""
    if url is None or url.startswith("memory:"):
        return embedded_scenarios()
    return [*broker_scenarios(url), *embedded_scenarios()]
