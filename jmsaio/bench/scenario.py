"""Rows of the table: what is measured where, and what is expected of it."""

from __future__ import annotations

import enum

import attrs


class Group(enum.Enum):
    """A block of comparable rows; the value is its title."""

    SEND = "Send"
    RECEIVE = "Receive and acknowledge"
    LATENCY = "End-to-end latency at a fixed rate"
    EMBEDDED = "Embedded broker"
    SELECTOR = "Selector"
    IDLE = "Idle consumers"


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
    Group.EMBEDDED: RATE,
    Group.SELECTOR: RATE,
    Group.IDLE: Metric("kb_each", "kB each", 1),
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
    """

    name: str
    title: str
    group: Group
    target: str
    url: str
    prepare: str | None = None
    timeout: float = 120.0
    extra: dict[str, str] = attrs.field(factory=dict)


@attrs.frozen
class Goal:
    """What a row is expected to reach.

    Attributes:
        scenario: name of the row.
        bound: the value to reach.
        reference: name of the row it is compared with by paired ratios; None compares the figure itself.
        at_most: the bound is an upper one.
    """

    scenario: str
    bound: float
    reference: str | None = None
    at_most: bool = False

    def is_met(self, value: float) -> bool:
        """Whether ``value`` (the median) reaches the bound."""
        return value <= self.bound if self.at_most else value >= self.bound
