"""Rows of the table: what is measured where, and what is expected of it."""

from __future__ import annotations

import enum

import attrs


class Group(enum.Enum):
    """A block of comparable rows; the value is its title."""

    SEND = "Send"
    RECEIVE = "Receive and acknowledge"
    LATENCY = "End-to-end latency at a fixed rate"
    LAYER = "The JMS layer alone: CPU of a message"
    EMBEDDED = "Embedded broker"
    SELECTOR = "Selector"
    FILTER = "One message in 1,000 of a backlog matches: messages of the backlog a second"
    IDLE = "Idle consumers"
    SPARK_READ = "Spark: read"
    SPARK_PARTS = "Spark: CPU of the parts of a read"
    SPARK_STREAM = "Spark: one micro-batch"
    SPARK_WRITE = "Spark: write"


#: The blocks of Spark.
SPARK_GROUPS = frozenset({Group.SPARK_READ, Group.SPARK_PARTS, Group.SPARK_STREAM, Group.SPARK_WRITE})


@attrs.frozen
class Metric:
    """The figure by which the rows of one group are compared.

    Attributes:
        key: its name in the metrics of a measurement.
        unit: as shown.
        digits: digits shown behind the point.
    """

    key: str
    unit: str
    digits: int = 0


RATE = Metric("per_second", "/s")
#: The main figure of each group.
METRICS = {
    Group.SEND: RATE,
    Group.RECEIVE: RATE,
    Group.LATENCY: Metric("p50_ms", "ms p50", 2),
    Group.LAYER: Metric("cpu_us", "us CPU", 1),
    Group.EMBEDDED: RATE,
    Group.SELECTOR: RATE,
    Group.FILTER: RATE,
    Group.IDLE: Metric("kb_each", "kB each", 1),
    Group.SPARK_READ: RATE,
    Group.SPARK_PARTS: Metric("cpu_us", "us CPU", 1),
    Group.SPARK_STREAM: Metric("batch_ms", "ms"),
    Group.SPARK_WRITE: RATE,
}


@attrs.frozen
class Scenario:
    """One row.

    Attributes:
        name: short and unique, ``group.peer``; what ``--only`` looks at.
        title: what the row shows, for the table.
        group: the block it belongs to.
        target: ``module:function`` that measures it in a child process.
        url: the broker it measures.
        prepare: ``module:function`` that runs first in a separate child process, for example to fill the topic.
        timeout: seconds after which the child process is ended.
        extra: passed on to the task.
        references: rows that it is compared with, besides those of its group.
        loop: its event loop, ``asyncio`` or ``uvloop``; None: that of the run.
    """

    name: str
    title: str
    group: Group
    target: str
    url: str
    prepare: str | None = None
    timeout: float = 120.0
    extra: dict[str, str] = attrs.field(factory=dict)
    references: tuple[str, ...] = ()
    loop: str | None = None


@attrs.frozen
class Goal:
    """What a row is expected to reach.

    Attributes:
        scenario: name of the row.
        bound: the value to reach.
        reference: name of the row it is compared with by paired ratios; None compares the figure itself.
        at_most: the bound is an upper one.
        metric: the metric by which it is compared with ``reference``; None: the main one of its group.
    """

    scenario: str
    bound: float
    reference: str | None = None
    at_most: bool = False
    metric: str | None = None

    def is_met(self, value: float) -> bool:
        """Whether ``value`` (the median) reaches the bound."""
        return value <= self.bound if self.at_most else value >= self.bound
