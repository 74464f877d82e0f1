"""Asynchronous sends: client id, start and stop, transactions, acknowledgement (checklist.txt, group 11)."""

from __future__ import annotations

import pytest

import jmsaio
from jmsaio import AcknowledgeMode
from tests.conformance.kit import not_emulated, tck
from tests.conformance.recording import Name, Told, destination, twins

CLIENT = "core20/appclient/jmscontext{kind}tests/ClientIT"
BODIES = ["1", "2", "3"]


async def send(context: jmsaio.Context, where: jmsaio.Destination, bodies: list[str]) -> None:
    """Send asynchronously and wait until the listener is told."""
    told = Told()
    producer = context.create_producer().set_async(told)
    for body in bodies:
        await producer.send(where, body)
    assert [message.get_body(str) for message in await told.until(len(bodies))] == bodies


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.setGetClientIDTest"))
async def test_the_client_id(context: jmsaio.Context, name: Name, kind: str) -> None:
    assert context.client_id is None
    context.set_client_id(name(kind))
    assert context.get_client_id() == context.client_id == name(kind)


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.setClientIDLateTest"))
async def test_a_client_id_after_use(
    factory: jmsaio.ConnectionFactory, context: jmsaio.Context, name: Name, kind: str
) -> None:
    where = destination(context, kind, name("late"))
    async with context.create_consumer(where) as consumer:
        await send(context, where, BODIES)
        assert [await consumer.receive_body(str, timeout=20) for _ in BODIES] == BODIES
        with pytest.raises(jmsaio.IllegalStateError):
            context.set_client_id(name("late"))
    async with await factory.create_context() as sender:
        await send(sender, where, BODIES)
        with pytest.raises(jmsaio.IllegalStateError):
            sender.set_client_id(name("late"))
        assert sender.client_id is None


@tck(f"{CLIENT.format(kind='topic')}.setClientIDOnAdminConfiguredIDTest")
async def test_a_client_id_where_the_factory_has_one(url: str, name: Name) -> None:
    async with (
        jmsaio.ConnectionFactory(url, client_id=name("configured")) as factory,
        await factory.create_context() as context,
    ):
        assert context.client_id == name("configured")
        with pytest.raises(jmsaio.IllegalStateError):
            context.set_client_id(name("other"))
        assert context.client_id == name("configured")


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.setGetChangeClientIDTest"))
async def test_a_client_id_is_set_once_and_for_one(
    factory: jmsaio.ConnectionFactory, context: jmsaio.Context, name: Name, kind: str
) -> None:
    context.set_client_id(name(kind))
    with pytest.raises(jmsaio.IllegalStateError):
        context.set_client_id(name("other"))
    assert context.client_id == name(kind)
    async with await factory.create_context() as second:
        with pytest.raises(jmsaio.InvalidClientIDError):
            second.set_client_id(name(kind))


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.setGetExceptionListenerTest"))
async def test_the_exception_listener(context: jmsaio.Context, kind: str) -> None:
    reported: list[jmsaio.JMSError] = []

    def listener(error: jmsaio.JMSError) -> None:
        reported.append(error)

    assert context.get_exception_listener() is None
    context.set_exception_listener(listener)
    assert context.get_exception_listener() is listener is context.exception_listener
    context.set_exception_listener(None)
    assert context.exception_listener is None and reported == []


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.startStopTest"))
async def test_a_stopped_context_receives_nothing(context: jmsaio.Context, name: Name, kind: str) -> None:
    where = destination(context, kind, name("stopped"))
    context.set_auto_start(False)
    async with context.create_consumer(where) as consumer:
        await context.stop()
        await send(context, where, BODIES)
        assert await consumer.receive(timeout=0.4) is None
        await context.start()
        assert [await consumer.receive_body(str, timeout=20) for _ in BODIES] == BODIES


@pytest.mark.parametrize("kind", twins(f"{CLIENT}.createContextTest"))
async def test_a_context_from_a_context(context: jmsaio.Context, name: Name, kind: str) -> None:
    where = destination(context, kind, name("modes"))
    modes = (AcknowledgeMode.AUTO, AcknowledgeMode.CLIENT, AcknowledgeMode.DUPS_OK, AcknowledgeMode.TRANSACTED)
    for mode in modes:
        async with context.create_context(mode) as other:
            assert other.get_session_mode() == other.session_mode == mode
            assert other.get_transacted() is (mode is AcknowledgeMode.TRANSACTED)
            async with other.create_consumer(where) as consumer:
                await send(context, where, [mode.name])
                assert await consumer.receive_body(str, timeout=20) == mode.name
                if mode is AcknowledgeMode.CLIENT:
                    await other.acknowledge()
                elif other.transacted:
                    await other.commit()
    assert not context.closed


@not_emulated
@pytest.mark.parametrize("kind", twins(f"{CLIENT}.commitRollbackTest"))
async def test_commit_and_rollback(factory: jmsaio.ConnectionFactory, name: Name, kind: str) -> None:
    async with (
        await factory.create_context(AcknowledgeMode.TRANSACTED) as transacted,
        await factory.create_context() as context,
    ):
        where = destination(context, kind, name("transacted"))
        async with context.create_consumer(where) as consumer:
            await send(transacted, where, ["rolled", "back"])
            await transacted.rollback()
            await send(transacted, where, BODIES)
            assert await consumer.receive(timeout=0.2) is None, "nothing is committed yet"
            await transacted.commit()
            assert [await consumer.receive_body(str, timeout=20) for _ in BODIES] == BODIES


@tck(f"{CLIENT.format(kind='queue')}.recoverAckTest")
async def test_recover_and_acknowledge(factory: jmsaio.ConnectionFactory, name: Name) -> None:
    async with await factory.create_context(AcknowledgeMode.CLIENT) as context:
        queue = context.create_queue(name("recover"))
        async with context.create_consumer(queue) as consumer:
            await send(context, queue, BODIES)
            assert [await consumer.receive_body(str, timeout=20) for _ in BODIES] == BODIES
            await context.recover()
            again = [await consumer.receive(timeout=20) for _ in BODIES]
            assert [message and message.get_body(str) for message in again] == BODIES
            assert all(message is not None and message.jms_redelivered for message in again)
            await context.acknowledge()
            await context.recover()
            await send(context, queue, ["next"])
            assert await consumer.receive_body(str, timeout=20) == "next"
            await context.acknowledge()


@tck(f"{CLIENT.format(kind='topic')}.acknowledgeTest")
async def test_acknowledged_messages_are_not_recovered(factory: jmsaio.ConnectionFactory, name: Name) -> None:
    async with await factory.create_context(AcknowledgeMode.CLIENT) as context:
        topic = context.create_topic(name("acknowledge"))
        async with context.create_consumer(topic) as consumer:
            await send(context, topic, BODIES)
            assert [await consumer.receive_body(str, timeout=20) for _ in BODIES] == BODIES
            await context.acknowledge()
            await context.recover()
            await send(context, topic, ["next"])
            assert await consumer.receive_body(str, timeout=20) == "next"
            await context.recover()
            assert await consumer.receive_body(str, timeout=20) == "next", "it was not acknowledged"
            await context.acknowledge()
