"""Rows of the table: what is measured, where, and the goals."""

from __future__ import annotations

import enum

import attrs


class Block(enum.Enum):
    """A block of comparable rows; the value is its title."""

    SEND = "Send"
    RECEIVE = "Receive and acknowledge"
    LATENCY = "End-to-end latency at a fixed rate"
    TRANSACTION = "Transactions: receive, send, commit"
    LAYER = "The JMS layer alone: CPU of a message"
    EMBEDDED = "Embedded broker"
    SELECTOR = "Selector"
    FILTER = "One message in 1,000 of a backlog matches: messages of the backlog a second"
    IDLE = "Idle consumers"
    SPARK_READ = "Spark: read"
    SPARK_PARTS = "Spark: CPU of the parts of a read"
    SPARK_TOPICS = "Spark: 1,000 messages in topics or partitions"
    SPARK_STREAM = "Spark: one micro-batch"
    SPARK_WRITE = "Spark: write"


#: Groups of Spark rows.
SPARK_GROUPS = frozenset(
    {Block.SPARK_READ, Block.SPARK_PARTS, Block.SPARK_TOPICS, Block.SPARK_STREAM, Block.SPARK_WRITE}
)


@attrs.frozen
class Metric:
    """Figure that compares the rows of one group.

    Attributes:
        unit: unit as shown.
        digits: digits shown after the decimal point.
    """

    key: str
    unit: str
    digits: int = 0


RATE = Metric("per_second", "/s")
#: Main figure of each group.
METRICS = {
    Block.SEND: RATE,
    Block.RECEIVE: RATE,
    Block.LATENCY: Metric("p50_ms", "ms p50", 2),
    Block.TRANSACTION: RATE,
    Block.LAYER: Metric("cpu_us", "us CPU", 1),
    Block.EMBEDDED: RATE,
    Block.SELECTOR: RATE,
    Block.FILTER: RATE,
    Block.IDLE: Metric("kb_each", "kB each", 1),
    Block.SPARK_READ: RATE,
    Block.SPARK_PARTS: Metric("cpu_us", "us CPU", 1),
    Block.SPARK_TOPICS: Metric("query_ms", "ms"),
    Block.SPARK_STREAM: Metric("batch_ms", "ms"),
    Block.SPARK_WRITE: RATE,
}


@attrs.frozen
class Scenario:
    """One row.

    Attributes:
        name: short and unique, ``group.peer``; ``--only`` matches it.
        target: ``module:function`` that measures it in a child process.
        prepare: ``module:function`` that runs first in a separate child process, for example to fill the topic.
        timeout: seconds after which the child process is killed.
        extra: passed on to the task.
        references: rows to compare it with, besides those of its group.
        loop: event loop, ``asyncio`` or ``uvloop``; None: that of the run.
    """

    name: str
    title: str
    group: Block
    target: str
    url: str
    prepare: str | None = None
    timeout: float = 120.0
    extra: dict[str, str] = attrs.field(factory=dict)
    references: tuple[str, ...] = ()
    loop: str | None = None


@attrs.frozen
class Goal:
    """Goal of a row.

    Attributes:
        bound: the value to reach.
        reference: name of the row to compare with by paired ratios; None: the figure itself is compared.
        at_most: the bound is a maximum.
        metric: metric to compare with ``reference``; None: the main one of the group.
    """

    scenario: str
    bound: float
    reference: str | None = None
    at_most: bool = False
    metric: str | None = None

    def is_met(self, value: float) -> bool:
        """Return True if ``value`` (the median) reaches the bound."""
        return value <= self.bound if self.at_most else value >= self.bound


def with_query(url: str, query: str) -> str:
    """Return a URL with more options, joined by ``&``."""
    return f"{url}{'&' if '?' in url else '?'}{query}"
