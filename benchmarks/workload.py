"""The workload: the amounts of one run, the same for every row of the table."""

from __future__ import annotations

from typing import Any

import attrs

#: Names of the three typed properties of every message; ``AMOUNT`` is the int, the others are strings.
REGION, AMOUNT, KIND = "region", "amount", "kind"
#: Values of the two string properties.
REGION_VALUE, KIND_VALUE = "EU", "order"


@attrs.frozen
class Workload:
    """Amounts of one run.

    Attributes:
        messages: messages of one throughput measurement.
        characters: length of each message's text.
        window: maximum number of unconfirmed messages, and the prefetch of a consumer.
        batch_messages: maximum messages in one batch entry.
        batch_delay: maximum seconds that a batch waits for more messages.
        workers: tasks that each await one send at a time.
        rate: messages a second of the latency rows.
        seconds: length of a latency row.
        warm_messages: messages that a latency row sends first without counting them.
        transactions: transactions that a session commits one after another; a tenth of them if it is one of 50, or if
            each has 100 messages.
        evaluations: selector evaluations of one measurement.
        filtered_messages: messages of a backlog; one in a thousand matches a selector.
        consumers: idle consumers whose memory is measured.
        sessions: sessions that share these consumers.
        jvm_rounds: rounds of the Java peer in one JVM; only the last, warm one counts.
        spark_messages: messages of one measurement in Spark.
        spark_characters: length of the text of each of them.
        spark_batch: rows of a micro-batch.
    """

    messages: int = 40_000
    characters: int = 100
    window: int = 5_000
    batch_messages: int = 1_000
    batch_delay: float = 0.001
    workers: int = 1_000
    rate: int = 1_000
    seconds: float = 8.0
    warm_messages: int = 1_000
    transactions: int = 200
    evaluations: int = 1_000_000
    filtered_messages: int = 100_000
    consumers: int = 1_000
    sessions: int = 10
    jvm_rounds: int = 3
    spark_messages: int = 200_000
    spark_characters: int = 256
    spark_batch: int = 10_000

    @classmethod
    def smoke(cls) -> Workload:
        """Return amounts that only show that every row runs; its figures mean nothing."""
        return cls(
            messages=2_000,
            workers=100,
            seconds=1.0,
            warm_messages=100,
            transactions=10,
            evaluations=20_000,
            filtered_messages=2_000,
            consumers=50,
            sessions=5,
            jvm_rounds=1,
            spark_messages=2_000,
            spark_batch=500,
        )

    @property
    def text(self) -> str:
        """Body of every message."""
        return "x" * self.characters

    def check_sum(self) -> int:
        """Return the sum of the int property over all messages; it differs if one was lost or duplicated."""
        return self.messages * (self.messages - 1) // 2


@attrs.frozen
class Task:
    """One measurement for one child process.

    Attributes:
        target: ``module:function`` that measures.
        url: broker URL for ``jmsaio.connect``.
        topic: name of a queue (or Pulsar topic) used only by this task.
        loop: ``asyncio`` or ``uvloop``.
        extra: needed by some targets only, for example the Java class path.
    """

    target: str
    url: str
    topic: str
    loop: str = "asyncio"
    workload: Workload = attrs.field(factory=Workload)
    extra: dict[str, str] = attrs.field(factory=dict)

    def to_json(self) -> dict[str, object]:
        """Return a JSON object for ``from_json``."""
        return attrs.asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Task:
        """Restore a task from the result of ``to_json``. Raises TypeError for another object."""
        return cls(**{**data, "workload": Workload(**data["workload"])})
