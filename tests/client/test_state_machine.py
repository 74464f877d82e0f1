"""Random interleavings of sessions' calls, held against a reference model (`tests.client.reference`).

Send, receive, acknowledge, recover, commit, rollback, close and cancellation on several sessions: no message is lost,
none comes that was settled, deliveries are counted, and the order is kept where JMS promises it.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Awaitable
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

import jmsaio
from jmsaio import AcknowledgeMode
from tests.client.helpers import transactions
from tests.client.reference import Model, ModelConsumer, ModelSession
from tests.client.test_cancellation import cancelled_after
from tests.kit.virtual_time import VirtualLoop
from tests.support.broker import TestBroker

#: Runs on the embedded broker; ``JMSAIO_TEST_STATE_EXAMPLES`` sets it for longer hunts. 150 miss mistakes that 500
#: find, such as a session that acknowledges one message where all that it delivered are meant.
EXAMPLES = int(os.environ.get("JMSAIO_TEST_STATE_EXAMPLES", "500"))
#: Runs on Pulsar: each takes two seconds.
EXAMPLES_ON_PULSAR = max(1, EXAMPLES // 30)
QUEUES = 2
SESSIONS = 4
CONSUMERS = 3
MODES = [AcknowledgeMode.CLIENT, AcknowledgeMode.INDIVIDUAL, AcknowledgeMode.TRANSACTED, AcknowledgeMode.AUTO]
#: Hang guard of a receive that must get a message, in seconds.
GUARD = 30
#: Seconds that a broker on a crowded machine may take for an answer: one that came too late is no finding.
PATIENCE = 90


@attrs.define(eq=False)
class OpenSession:
    """A session, its producer and the model's idea of it."""

    real: jmsaio.Session
    producer: jmsaio.MessageProducer
    mode: AcknowledgeMode
    model: ModelSession
    messages: dict[int, jmsaio.Message] = attrs.field(factory=dict)


@attrs.define(eq=False)
class OpenConsumer:
    """A consumer and the model's idea of it."""

    session: OpenSession
    real: jmsaio.MessageConsumer
    model: ModelConsumer


pick = st.integers(0, 11)
steps = st.integers(0, 8)
#: What a consumer's selector wants: even numbers, odd ones, or without a selector all.
WANTS = st.sampled_from([None, None, None, 0, 1])


class Machine(RuleBasedStateMachine):
    """The rules. ``url`` is set by the test."""

    url = "memory://state-machine"

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=VirtualLoop if self.embedded else None)
        self.model = Model(QUEUES)
        self.tail = uuid.uuid4().hex
        self.sessions: list[OpenSession] = []
        self.consumers: list[OpenConsumer] = []

    @property
    def embedded(self) -> bool:
        """Transactions are real, and deliveries counted exactly."""
        return self.url.startswith("memory")

    def run(self, call: Awaitable[Any]) -> Any:
        """Run a call of jmsaio; its own tasks go on while one runs."""

        async def bounded() -> Any:
            async with asyncio.timeout(2 * PATIENCE):
                return await call

        return self.runner.run(bounded())

    def queue(self, number: int) -> jmsaio.Queue:
        return jmsaio.Queue(f"state-{self.tail}-{number}")

    @initialize(mode=st.sampled_from(MODES), wants=WANTS, count=st.integers(0, 4))
    def begin(self, mode: AcknowledgeMode, wants: int | None, count: int) -> None:
        """Most of what may go wrong takes a session, a consumer and messages."""
        self.connect()
        self.open_session(mode)
        self.open_consumer(0, 0, wants)
        self.send(0, 0, count)

    def connect(self) -> None:
        self.connection: jmsaio.Connection = self.run(self.opened())

    async def opened(self) -> jmsaio.Connection:
        return await jmsaio.connect(
            self.url,
            **transactions(not self.embedded),
            max_local_redeliveries=1000,
            operation_timeout=PATIENCE,
        )

    @precondition(lambda self: len(self.sessions) < SESSIONS)
    @rule(mode=st.sampled_from(MODES))
    def open_session(self, mode: AcknowledgeMode) -> None:
        real = self.run(self.awaited(self.connection.create_session(mode)))
        producer = self.run(self.awaited(real.create_producer()))
        atomic = self.embedded and mode is AcknowledgeMode.TRANSACTED
        self.sessions.append(OpenSession(real, producer, mode, ModelSession(mode is AcknowledgeMode.AUTO, atomic)))

    async def awaited(self, opening: Any) -> Any:
        return await opening

    @precondition(lambda self: self.sessions)
    @rule(which=pick, queue=st.integers(0, QUEUES - 1), wants=WANTS)
    def open_consumer(self, which: int, queue: int, wants: int | None) -> None:
        if sum(one.model.queue == queue for one in self.consumers) >= CONSUMERS:
            return
        session = self.sessions[which % len(self.sessions)]
        selector = None if wants is None else f"parity = {wants}"
        real = self.run(self.awaited(session.real.create_consumer(self.queue(queue), selector)))
        self.consumers.append(OpenConsumer(session, real, self.model.opened(queue, wants)))

    @precondition(lambda self: self.consumers)
    @rule(which=pick)
    def close_consumer(self, which: int) -> None:
        consumer = self.consumers.pop(which % len(self.consumers))
        self.run(consumer.real.close())
        self.model.closed(consumer.model)

    @precondition(lambda self: self.sessions)
    @rule(which=pick)
    def close_session(self, which: int) -> None:
        session = self.sessions.pop(which % len(self.sessions))
        self.run(session.real.close())
        self.forget(session)

    def forget(self, session: OpenSession) -> None:
        for consumer in [one for one in self.consumers if one.session is session]:
            self.consumers.remove(consumer)
            self.model.closed(consumer.model)
        self.model.returned(session.model)

    @rule()
    def close_connection(self) -> None:
        self.run(self.connection.close())
        for session in self.sessions:
            self.forget(session)
        self.sessions.clear()
        self.connect()

    @precondition(lambda self: self.sessions)
    @rule(which=pick, queue=st.integers(0, QUEUES - 1), count=st.integers(1, 4))
    def send(self, which: int, queue: int, count: int) -> None:
        session = self.sessions[which % len(self.sessions)]
        for _ in range(count):
            number = self.model.new(session.model, queue)
            self.run(session.producer.send(self.queue(queue), str(number), properties={"parity": number % 2}))
            self.model.sent(session.model, number)

    @precondition(lambda self: self.sessions)
    @rule(which=pick, queue=st.integers(0, QUEUES - 1), after=steps)
    def send_cancelled(self, which: int, queue: int, after: int) -> None:
        session = self.sessions[which % len(self.sessions)]
        number = self.model.new(session.model, queue)
        call = session.producer.send(self.queue(queue), str(number), properties={"parity": number % 2})
        if self.run(cancelled_after(after, 0, call)) is None:
            self.model.send_cancelled(session.model, number)
        else:
            self.model.sent(session.model, number)

    @precondition(lambda self: self.consumers)
    @rule(which=pick)
    def receive(self, which: int) -> None:
        consumer = self.consumers[which % len(self.consumers)]
        certain = self.model.must_get(consumer.model)
        message = self.run(consumer.real.receive(timeout=GUARD if certain else 0.01))
        assert message is not None or not certain, "a message was pending, and this is the only consumer"
        self.take(consumer, message)

    @precondition(lambda self: self.consumers)
    @rule(which=pick, count=st.integers(2, 5))
    def receive_several(self, which: int, count: int) -> None:
        consumer = self.consumers[which % len(self.consumers)]
        for _ in range(count):
            if self.model.must_get(consumer.model):
                self.receive(which)

    @precondition(lambda self: self.consumers)
    @rule(which=pick, whole=st.booleans())
    def receive_and_close(self, which: int, whole: bool) -> None:
        """Nothing else has a turn between the two, not even what acknowledges the message."""
        consumer = self.consumers[which % len(self.consumers)]

        async def last() -> jmsaio.Message | None:
            message = await consumer.real.receive_no_wait()
            await (consumer.session.real if whole else consumer.real).close()
            return message

        self.take(consumer, self.run(last()))
        if whole:
            self.sessions.remove(consumer.session)
            self.forget(consumer.session)
        else:
            self.consumers.remove(consumer)
            self.model.closed(consumer.model)

    @precondition(lambda self: self.consumers)
    @rule(which=pick, after=steps)
    def receive_cancelled(self, which: int, after: int) -> None:
        consumer = self.consumers[which % len(self.consumers)]
        self.take(consumer, self.run(cancelled_after(after, 0, consumer.real.receive())))

    def take(self, consumer: OpenConsumer, message: jmsaio.Message | None) -> None:
        if message is None:
            return
        number = int(message.get_body(str) or "")
        count = self.model.received(consumer.session.model, consumer.model, number)
        consumer.session.messages[number] = message
        if self.embedded:
            assert message.get_int_property("JMSXDeliveryCount") == count
            assert message.jms_redelivered is (count > 1)

    def holding(self, *modes: AcknowledgeMode) -> list[OpenSession]:
        """Sessions with messages to settle. No precondition asks for it: what has come may depend on the machine."""
        return [one for one in self.sessions if one.mode in modes and one.model.out]

    @precondition(lambda self: self.sessions)
    @rule(which=pick, message=pick, cancel=st.none() | steps)
    def acknowledge(self, which: int, message: int, cancel: int | None) -> None:
        sessions = self.holding(AcknowledgeMode.CLIENT, AcknowledgeMode.INDIVIDUAL)
        if not sessions:
            return
        session = sessions[which % len(sessions)]
        out = list(session.model.out)
        number = out[message % len(out)]
        if cancel is not None:
            self.run(cancelled_after(cancel, 0, session.messages[number].acknowledge()))
        self.run(session.messages[number].acknowledge())  # a cancelled one is repeated
        self.model.settled(session.model, out if session.mode is AcknowledgeMode.CLIENT else [number])

    @precondition(lambda self: self.sessions)
    @rule(which=pick, cancel=st.none() | steps)
    def recover(self, which: int, cancel: int | None) -> None:
        sessions = self.holding(AcknowledgeMode.CLIENT, AcknowledgeMode.INDIVIDUAL)
        if not sessions:
            return
        session = sessions[which % len(sessions)]
        if cancel is not None:
            self.run(cancelled_after(cancel, 0, session.real.recover()))
        self.run(session.real.recover())  # a cancelled one is repeated
        self.model.returned(session.model)

    def transacted(self) -> list[OpenSession]:
        return [one for one in self.sessions if one.mode is AcknowledgeMode.TRANSACTED]

    @precondition(lambda self: self.transacted())
    @rule(which=pick)
    def commit(self, which: int) -> None:
        session = self.transacted()[which % len(self.transacted())]
        self.run(session.real.commit())
        self.model.committed(session.model)

    @precondition(lambda self: self.embedded and self.transacted())
    @rule(which=pick, received=st.booleans())
    def commit_refused(self, which: int, received: bool) -> None:
        """The broker has ended the transaction: nothing of it happened."""
        alone = [one.session for one in self.consumers if one.model.alone and one.session in self.transacted()]
        sessions = alone if received and alone else self.transacted()
        session = sessions[which % len(sessions)]
        own = [number for number, consumer in enumerate(self.consumers) if consumer.session is session]
        if received:  # what it sends is pending only after a commit, and then it can receive and lose it
            for number in own:
                self.send(self.sessions.index(session), self.consumers[number].model.queue, 2)
            self.commit(self.transacted().index(session))
            for number in own:
                if self.model.must_get(self.consumers[number].model):
                    self.receive(number)
        transaction = session.real._runtime.transaction
        assert transaction is not None
        if transaction.work.handle is None:
            self.run(transaction.begin())
        handle = transaction.work.handle
        assert handle is not None
        self.run(handle.abort())
        with pytest.raises(jmsaio.TransactionRolledBackError):
            self.run(session.real.commit())
        self.model.refused(session.model)
        for number in own:  # one message could be another than those that it has received
            while self.model.must_get(self.consumers[number].model):
                self.receive(number)

    @precondition(lambda self: self.transacted())
    @rule(which=pick)
    def rollback(self, which: int) -> None:
        session = self.transacted()[which % len(self.transacted())]
        self.run(session.real.rollback())
        self.model.returned(session.model)

    def teardown(self) -> None:
        try:
            if hasattr(self, "connection"):
                self.close_connection()
                for number in range(QUEUES):
                    self.run(self.drained(number))
                self.run(self.connection.close())
        finally:
            self.runner.close()

    async def drained(self, queue: int) -> None:
        """Exactly what the model says is left; what is in doubt may be there."""
        pending, in_doubt = self.model.pending[queue], self.model.in_doubt[queue]
        found: list[int] = []
        async with self.connection.create_session() as session, session.create_consumer(self.queue(queue)) as consumer:
            while True:
                missing = pending - set(found)
                message = await consumer.receive(timeout=GUARD if missing else 0.01 if self.embedded else 0.5)
                if message is None:
                    break
                found.append(int(message.get_body(str) or ""))
        assert len(found) == len(set(found)), "twice in one session"
        assert pending <= set(found) <= pending | in_doubt


def check(machine: type[Machine], examples: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples, stateful_step_count=50, deadline=None, derandomize=True, database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )  # fmt: skip


@pytest.mark.parametrize("received", [True, False])
def test_nothing_of_a_refused_commit_happened(received: bool) -> None:
    """A random run seldom has a transacted session with messages when it comes to that rule."""
    machine = Machine()
    machine.begin(AcknowledgeMode.TRANSACTED, None, 2)
    machine.commit_refused(0, received)
    machine.teardown()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_on_the_embedded_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jmsaio.client.delivery.inbox._SLICE", 2)  # a selector looks at few messages at once
    check(Machine, EXAMPLES)


@pytest.mark.timeout(900)
def test_on_pulsar_sessions_do_what_the_model_says(pulsar_broker: TestBroker) -> None:
    class OnPulsar(Machine):
        url = pulsar_broker.url

    check(OnPulsar, EXAMPLES_ON_PULSAR)
