"""A model of queues as JMS describes them, small enough to be seen to be right. The real thing is held against it."""

from __future__ import annotations

from collections import Counter

import attrs


@attrs.define(eq=False)
class ModelConsumer:
    """A consumer, and what order it may rely on.

    Attributes:
        queue: number of its queue.
        parity: what its selector wants: numbers that are even (0) or odd (1), or all of them (None).
        alone: no other consumer of the queue was open in its life, so the order of each session's sends is promised.
        last: the latest first delivery of each session's messages.
        again: what it must get next, in this order, because it was given back in its own session.
    """

    queue: int
    alone: bool
    parity: int | None = None
    last: dict[ModelSession, int] = attrs.field(factory=dict)
    again: list[int] = attrs.field(factory=list)

    def wants(self, number: int) -> bool:
        """Whether the selector picks a message."""
        return self.parity is None or number % 2 == self.parity


@attrs.define(eq=False)
class ModelSession:
    """A session: what it received and did not settle, and what it sent and did not commit."""

    acknowledges_itself: bool
    atomic: bool = False
    out: dict[int, ModelConsumer] = attrs.field(factory=dict)
    uncommitted: list[int] = attrs.field(factory=list)
    in_doubt: list[int] = attrs.field(factory=list)


@attrs.define(eq=False)
class Model:
    """Messages are numbers, in the order of sending.

    Attributes:
        pending: per queue, messages that somebody has to get.
        in_doubt: messages whose send was cancelled: they may be there.
        given_back: how often each was delivered without being settled.
    """

    queues: int
    pending: list[set[int]] = attrs.field(init=False)
    in_doubt: list[set[int]] = attrs.field(init=False)
    given_back: Counter[int] = attrs.field(factory=Counter)
    home: dict[int, int] = attrs.field(factory=dict)
    sender: list[ModelSession] = attrs.field(factory=list)
    consumers: list[ModelConsumer] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.pending = [set() for _ in range(self.queues)]
        self.in_doubt = [set() for _ in range(self.queues)]

    def new(self, session: ModelSession, queue: int) -> int:
        """The next message's number."""
        number = len(self.home)
        self.home[number] = queue
        self.sender.append(session)
        return number

    def sent(self, session: ModelSession, number: int) -> None:
        """A send was confirmed."""
        if session.atomic:
            session.uncommitted.append(number)
        else:
            self.pending[self.home[number]].add(number)

    def send_cancelled(self, session: ModelSession, number: int) -> None:
        """A send was cancelled: its outcome is unknown."""
        if session.atomic:
            session.in_doubt.append(number)
        else:
            self.in_doubt[self.home[number]].add(number)

    def opened(self, queue: int, parity: int | None = None) -> ModelConsumer:
        """A consumer opens on a queue; ``parity`` is what its selector wants."""
        others = [one for one in self.consumers if one.queue == queue]
        for other in others:
            other.alone = False
        consumer = ModelConsumer(queue, not others, parity)
        self.consumers.append(consumer)
        return consumer

    def closed(self, consumer: ModelConsumer) -> None:
        """A consumer closes; what it delivered stays with its session."""
        self.consumers.remove(consumer)

    def must_get(self, consumer: ModelConsumer) -> bool:
        """A receive of the only consumer of a queue with pending messages gets one."""
        return consumer.alone and any(consumer.wants(number) for number in self.pending[consumer.queue])

    def received(self, session: ModelSession, consumer: ModelConsumer, number: int) -> int:
        """A message was delivered. Returns its JMSXDeliveryCount; AssertionError when it may not come here and now."""
        queue = consumer.queue
        assert consumer.wants(number), "the selector leaves it out"
        if number in self.in_doubt[queue]:
            self.in_doubt[queue].remove(number)
        else:
            assert number in self.pending[queue], f"{number} was not pending: lost order, settled, or delivered twice"
            self.pending[queue].remove(number)
        if consumer.alone:
            if consumer.again and (number in consumer.again or not self.given_back[number]):
                # what closed consumers of its session gave back may come between
                assert number == consumer.again.pop(0), "what was given back comes first, in its order"
            elif not self.given_back[number]:
                sender = self.sender[number]
                assert number > consumer.last.get(sender, -1), "one session's messages come in the order of sending"
                consumer.last[sender] = number
        if not session.acknowledges_itself:
            session.out[number] = consumer
        return self.given_back[number] + 1

    def settled(self, session: ModelSession, numbers: list[int]) -> None:
        """Acknowledged: they are never redelivered."""
        for number in numbers:
            del session.out[number]

    def returned(self, session: ModelSession) -> None:
        """recover, rollback, close: everything that is out is redelivered; uncommitted sends never happened."""
        again: dict[ModelConsumer, list[int]] = {}
        for number, consumer in session.out.items():
            self.given_back[number] += 1
            self.pending[self.home[number]].add(number)
            again.setdefault(consumer, []).append(number)
        for consumer, numbers in again.items():
            consumer.again[:0] = numbers
        session.out.clear()
        session.uncommitted.clear()
        session.in_doubt.clear()

    def refused(self, session: ModelSession) -> None:
        """The broker gives back what is out, in no promised order; uncommitted sends never happened."""
        self.returned(session)
        for consumer in self.consumers:
            consumer.again.clear()

    def committed(self, session: ModelSession) -> None:
        """Received messages are settled, sends happen."""
        session.out.clear()
        for number in session.uncommitted:
            self.pending[self.home[number]].add(number)
        for number in session.in_doubt:
            self.in_doubt[self.home[number]].add(number)
        session.uncommitted.clear()
        session.in_doubt.clear()
