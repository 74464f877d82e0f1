"""What is measured: the amounts of one run, the same for every row of the table."""

from __future__ import annotations

from typing import Any

import attrs

#: Names of the three typed properties that every message carries; ``AMOUNT`` is the int, the others are text.
REGION, AMOUNT, KIND = "region", "amount", "kind"
#: Values of the two text properties.
REGION_VALUE, KIND_VALUE = "EU", "order"


@attrs.frozen
class Workload:
    """Amounts of one run.

    Attributes:
        messages: messages of one throughput measurement.
        characters: length of the text that each message carries.
        window: unconfirmed messages at most, and the prefetch of a consumer.
        batch_messages: messages in one batch entry at most.
        batch_delay: seconds that a batch waits for more.
        workers: tasks that each await one send at a time.
        rate: messages a second of the latency rows.
        seconds: length of a latency row.
        warm_messages: messages of a latency row that are sent first and not counted.
        evaluations: selector evaluations of one measurement.
        filtered_messages: messages of a backlog of which one in a thousand matches a selector.
        consumers: idle consumers whose memory is measured.
        sessions: sessions that share these consumers.
        jvm_rounds: rounds of the Java peer in one JVM, of which only the last, warm one counts.
        spark_messages: messages of one measurement in Spark.
        spark_characters: length of the text that each of them carries.
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
        """Amounts that only show that every row runs; its figures mean nothing."""
        return cls(
            messages=2_000,
            workers=100,
            seconds=1.0,
            warm_messages=100,
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
        """The body of every message."""
        return "x" * self.characters

    def check_sum(self) -> int:
        """Sum of the int property over all messages; a receiver that lost or doubled one gets another sum."""
        return self.messages * (self.messages - 1) // 2


@attrs.frozen
class Task:
    """One measurement for one child process.

    Attributes:
        target: ``module:function`` that measures.
        url: broker URL as ``jmsaio.connect`` takes it.
        topic: name of a queue (or Pulsar topic) that no one else uses.
        loop: ``asyncio`` or ``uvloop``.
        workload: amounts.
        extra: what only some targets need, for example the Java class path.
    """

    target: str
    url: str
    topic: str
    loop: str = "asyncio"
    workload: Workload = attrs.field(factory=Workload)
    extra: dict[str, str] = attrs.field(factory=dict)

    def to_json(self) -> dict[str, object]:
        """A JSON object from which ``from_json`` makes an equal task."""
        return attrs.asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Task:
        """The inverse of ``to_json``. Raises TypeError for an object that is not a task."""
        return cls(**{**data, "workload": Workload(**data["workload"])})
