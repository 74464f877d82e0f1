"""Factories, connect, and what they refuse."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import uuid
from collections.abc import Callable

import anyio
import pytest

import jmsaio
from jmsaio.client import factory as factory_module
from jmsaio.config import Configuration
from jmsaio.transport.base import Transport
from jmsaio.transport.registry import open_transport
from tests.kit.inside import admin_of, runtime_of, transport_of

_BY_CALL = {"jms.useCredentialsFromCreateConnection": "true", "authPlugin": "token"}


def test_trio_and_no_loop_are_refused() -> None:
    import trio

    async def main() -> None:
        for opening in (
            jmsaio.connect(f"memory://{uuid.uuid4()}"),
            jmsaio.ConnectionFactory(f"memory://{uuid.uuid4()}").create_connection(),
        ):
            with pytest.raises(jmsaio.JMSError, match="asyncio"):
                await opening

    trio.run(main)
    with pytest.raises(jmsaio.JMSError, match="nor without a loop"):
        jmsaio.connect(f"memory://{uuid.uuid4()}").send(None)


async def test_one_factory_makes_many_connections(url: str) -> None:
    async with jmsaio.ConnectionFactory(url) as factory:
        first, second = await factory.create_connection(), await factory.create_connection()
        assert transport_of(first) is transport_of(second)
        assert runtime_of(first).uuid != runtime_of(second).uuid
        await first.close()
        await second.start()
    assert second.closed
    with pytest.raises(jmsaio.ObjectClosedError):
        await factory.create_connection()
    await factory.close()


async def test_the_named_broker_outlives_its_connections() -> None:
    url, queue = f"memory://{uuid.uuid4()}", jmsaio.Queue("outlives")
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        await (await session.create_producer(queue)).send("kept")
    async with jmsaio.connect(f"memory://{uuid.uuid4()}") as other, other.create_session() as session:
        async with session.create_consumer(queue) as consumer:
            assert await consumer.receive(timeout=0.1) is None
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        async with session.create_consumer(queue) as consumer:
            assert await consumer.receive_body(str, timeout=20) == "kept"


async def test_falling_back_to_the_embedded_broker_is_said(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JMSAIO_URL", raising=False)
    with caplog.at_level(logging.INFO, "jmsaio"):
        async with jmsaio.connect():
            pass
        async with jmsaio.connect("memory:"):
            pass
    [said] = [record for record in caplog.records if "embedded" in record.message]
    assert said.levelno == logging.WARNING
    assert "'memory:'" in said.message and "$JMSAIO_URL" in said.message


async def test_the_environment_names_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JMSAIO_URL", "memory://from-the-environment")
    async with jmsaio.connect() as connection:
        assert runtime_of(connection).broker == "memory://from-the-environment"


async def test_secrets_are_not_shown() -> None:
    factory = jmsaio.ConnectionFactory("pulsar://h:1", auth_plugin="token", auth_params="token:very-secret")
    assert "very-secret" not in repr(factory) + repr(factory.configuration)


async def test_wrong_credentials_are_refused() -> None:
    config = {"brokerServiceUrl": "memory:", "jms.tckUsername": "u", "jms.tckPassword": "p"}
    async with jmsaio.ConnectionFactory(config) as factory:
        await factory.create_connection()
        await factory.create_connection("u", "p")
        with pytest.raises(jmsaio.JMSSecurityError):
            await factory.create_connection("u", "wrong")


async def test_connections_and_contexts_close_with_their_block() -> None:
    async with jmsaio.ConnectionFactory(f"memory://{uuid.uuid4()}") as factory:
        async with factory.create_connection() as connection, factory.create_context() as context:
            assert not connection.closed and not context.closed
        assert connection.closed and context.closed
        connection, context = await factory.create_connection(), await factory.create_context()
        assert not connection.closed and not context.closed


async def test_a_number_of_a_mode_works_and_says_what_to_write() -> None:
    """At the line that gives the number."""
    transacted, client = jmsaio.AcknowledgeMode.TRANSACTED, jmsaio.AcknowledgeMode.CLIENT
    async with jmsaio.ConnectionFactory(f"memory://{uuid.uuid4()}", enable_transaction=True) as factory:
        with pytest.warns(DeprecationWarning, match=r"write AcknowledgeMode\.\w+ instead of \d") as warned:
            context = await factory.create_context(2)  # type: ignore[arg-type]  # what a caller may do
            other = await context.create_context(0)  # type: ignore[arg-type]  # what a caller may do
            connection = await factory.create_connection()
            session = await connection.create_session(2)  # type: ignore[arg-type]  # what a caller may do
            by_kind = await connection.create_queue_session(False, 2)  # type: ignore[arg-type]  # what a caller may do
        assert [warning.filename for warning in warned] == [__file__] * 4
        assert (context.session_mode, other.session_mode) == (client, transacted)
        assert (session.acknowledge_mode, by_kind.acknowledge_mode) == (client, client)


async def test_a_context_with_a_wrong_mode_connects_to_nothing() -> None:
    async with jmsaio.ConnectionFactory(f"memory://{uuid.uuid4()}") as factory:
        with pytest.raises(jmsaio.IllegalArgumentError, match=r"use one of AcknowledgeMode\.TRANSACTED, "):
            factory.create_context(jmsaio.DeliveryMode.PERSISTENT)  # type: ignore[arg-type]  # what a caller may do
        assert repr(factory).endswith("0 connections>")


@pytest.mark.parametrize("first", [("u", "token:a"), (None, None)])
async def test_all_connections_of_a_factory_use_the_same_credentials(first: tuple[str | None, str | None]) -> None:
    """The first pair, or its absence, holds for all later calls: there is one broker client."""
    config = {"brokerServiceUrl": f"memory://{uuid.uuid4()}", **_BY_CALL}
    async with jmsaio.ConnectionFactory(config) as factory:
        await factory.create_connection(*first)
        await factory.create_connection(*first)
        await (await factory.create_context(jmsaio.AcknowledgeMode.AUTO, *first)).close()
        for user, password in {("u", "token:a"), (None, None), ("u", "token:b"), ("v", "token:a")} - {first}:
            with pytest.raises(jmsaio.IllegalStateError, match="create a factory for each pair") as caught:
                await factory.create_connection(user, password)
            assert "token:" not in str(caught.value)
            assert ("without credentials" if first == (None, None) else "with other") in str(caught.value)


@pytest.mark.parametrize(
    ("user", "password", "used"),
    [("u", "token:given", "token:given"), ("u", None, None), (None, None, "token:configured")],
)
async def test_the_credentials_of_the_call_replace_the_configured_ones(
    user: str | None, password: str | None, used: str | None
) -> None:
    config = {"brokerServiceUrl": f"memory://{uuid.uuid4()}", **_BY_CALL, "authParams": "token:configured"}
    async with jmsaio.ConnectionFactory(config) as factory:
        assert (await factory.create_connection(user, password)).configuration.auth_params == used


async def test_the_client_id_of_the_call_replaces_the_configured_one() -> None:
    async with jmsaio.ConnectionFactory(f"memory://{uuid.uuid4()}", client_id="configured") as factory:
        assert (await factory.create_connection()).client_id == "configured"
        assert (await factory.create_connection(client_id="given")).client_id == "given"
        with pytest.raises(jmsaio.InvalidClientIDError):
            await factory.create_connection(client_id="given")
        assert len(factory._connections) == 2


@pytest.mark.parametrize("call", ["create_connection", "create_context"])
async def test_a_call_in_a_cancelled_scope_leaves_nothing(call: str) -> None:
    """A scope of anyio cancels each await in it, also those that clean up."""
    async with jmsaio.ConnectionFactory(f"memory://{uuid.uuid4()}") as factory:
        await (await getattr(factory, call)()).close()  # afterwards the broker client is there
        for turns in range(8):
            with anyio.CancelScope() as scope:
                asyncio.get_running_loop().call_soon(cancel_after, turns, scope)
                await getattr(factory, call)(client_id="cancelled")
            if not scope.cancelled_caught:
                break
            assert not factory._connections
            assert not [task for task in asyncio.all_tasks() if "jmsaio connection" in task.get_name()]


def cancel_after(turns: int, scope: anyio.CancelScope) -> None:
    """Cancel a scope that many turns of the event loop from now."""
    if turns:
        asyncio.get_running_loop().call_soon(cancel_after, turns - 1, scope)
    else:
        scope.cancel()


async def test_two_first_connections_with_different_credentials() -> None:
    """Of two calls at once one is the first, and the other is refused."""
    config = {"brokerServiceUrl": f"memory://{uuid.uuid4()}", **_BY_CALL}
    async with jmsaio.ConnectionFactory(config) as factory:
        made = await asyncio.gather(
            factory.create_connection("u", "a"), factory.create_connection("u", "b"), return_exceptions=True
        )
        assert [type(one) for one in made] == [jmsaio.Connection, jmsaio.IllegalStateError]


@pytest.mark.real_time  # waits for a process
def test_import_brings_in_nothing_heavy() -> None:
    code = "import sys, jmsaio; print([m for m in ('pyspark', 'click', 'rich', 'httpx') if m in sys.modules])"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
    assert output.strip() == "[]"


def test_messages_are_sent_and_received_on_uvloop() -> None:
    import uvloop

    async def main() -> None:
        async with jmsaio.connect(f"memory://{uuid.uuid4()}") as connection, connection.create_session() as session:
            queue = session.create_queue("uvloop")
            async with session.create_consumer(queue) as consumer, session.create_producer(queue) as producer:
                await producer.send("x")
                assert await consumer.receive_body(str, timeout=20) == "x"

    uvloop.run(main())


async def test_a_cancelled_connection_frees_its_client_id() -> None:
    async with jmsaio.ConnectionFactory(f"memory://{uuid.uuid4()}") as factory:
        for turns in range(6):
            opening = asyncio.ensure_future(factory.create_connection(client_id="cancelled"))
            for _ in range(turns):
                await asyncio.sleep(0)
            opening.cancel()
            await asyncio.wait([opening])
            if not opening.cancelled():
                await opening.result().close()
            await (await factory.create_connection(client_id="cancelled")).close()
    assert not [task for task in asyncio.all_tasks() if "jmsaio connection" in task.get_name()]


async def test_a_factory_closed_while_it_connects_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    factory = jmsaio.ConnectionFactory(f"memory://{uuid.uuid4()}")
    made = []

    async def slowly(config: Configuration) -> object:
        transport = await open_transport(config)
        made.append(transport)
        await factory.close()
        return transport

    monkeypatch.setattr(factory_module, "open_transport", slowly)
    with pytest.raises(jmsaio.ObjectClosedError):
        await factory.create_connection()
    with pytest.raises(jmsaio.ObjectClosedError):
        await made[0].begin(1.0)
    with pytest.raises(jmsaio.ObjectClosedError):
        await factory.create_connection()
    assert len(made) == 1


async def test_the_close_of_a_factory_waits_for_a_connection_that_opens() -> None:
    for turns in range(4):
        factory = jmsaio.ConnectionFactory(f"memory://{uuid.uuid4()}")
        await (await factory.create_connection()).close()  # the next one has a broker client, and opens at once
        opening = asyncio.ensure_future(factory.create_connection())
        for _ in range(turns):
            await asyncio.sleep(0)
        await factory.close()
        assert not [task for task in asyncio.all_tasks() if "jmsaio connection" in task.get_name()]
        await asyncio.wait([opening])
        assert turns == 3 or isinstance(opening.exception(), jmsaio.ObjectClosedError)


async def test_the_configuration_has_a_name() -> None:
    url = f"memory://{uuid.uuid4()}"
    async with jmsaio.ConnectionFactory(config=url) as factory, jmsaio.connect(config=url) as connection:
        assert factory.configuration.broker_name == connection.configuration.broker_name == url.rpartition("/")[2]


async def test_the_limit_of_browsers(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("JMSAIO_QUEUE_BROWSER_READ_MAX", "5")
    async with jmsaio.ConnectionFactory(f"memory://{uuid.uuid4()}") as factory:
        assert factory.queue_browser_read_max == 5
        for wrong in ("many", None, 1.5, True):
            with pytest.raises(jmsaio.ConfigurationError, match="queue_browser_read_max"):
                factory.queue_browser_read_max = wrong  # type: ignore[assignment]  # what a caller may do
    assert not caplog.records
    monkeypatch.setenv("JMSAIO_QUEUE_BROWSER_READ_MAX", "many")
    async with jmsaio.connect(f"memory://{uuid.uuid4()}") as connection:
        assert connection.configuration.queue_browser_read_max == 0
    assert ["counts as 0" in record.message for record in caplog.records] == [True]


async def test_a_factory_is_not_closed_by_a_listener_of_its_connection(url: str, name: Callable[[str], str]) -> None:
    queue = jmsaio.Queue(name("inside"))
    found: list[object] = []
    done = asyncio.Event()
    async with jmsaio.ConnectionFactory(url) as factory, await factory.create_connection() as connection:
        await connection.start()
        session = await connection.create_session()
        producer, consumer = await session.create_producer(queue), await session.create_consumer(queue)

        async def listener(message: jmsaio.Message) -> None:
            try:
                await factory.close()
            except jmsaio.IllegalStateError as error:
                found.append(type(error))
            found.append(await producer.send("all is as it was"))
            consumer.set_message_listener(None)
            done.set()

        consumer.set_message_listener(listener)
        await producer.send("x")
        await asyncio.wait_for(done.wait(), 30)
    assert found[0] is jmsaio.IllegalStateError and len(found) == 2


@pytest.mark.parametrize("turns", range(5))
async def test_a_connection_that_a_closing_factory_did_not_know(turns: int) -> None:
    factory = jmsaio.ConnectionFactory(f"memory://{uuid.uuid4()}")
    await factory.create_connection()
    making = asyncio.ensure_future(factory.create_connection(client_id="free again"))
    for _ in range(turns):
        await asyncio.sleep(0)
    ready = making.done()
    await factory.close()
    if ready:
        assert (await making).closed
    else:
        with pytest.raises(jmsaio.ObjectClosedError):
            await making
    assert not factory._connections


async def test_connections_close_at_once(url: str, name: Callable[[str], str]) -> None:
    """A listener may wait for what another connection's receive ends with."""
    queue = jmsaio.Queue(name("busy"))
    entered, ended = asyncio.Event(), asyncio.Event()

    async def listener(message: jmsaio.Message) -> None:
        entered.set()
        await ended.wait()

    factory = jmsaio.ConnectionFactory(url)
    busy, other = await factory.create_context(), await factory.create_context()
    (await busy.create_consumer(queue)).set_message_listener(listener)
    await busy.create_producer().send(queue, "x")
    consumer = await other.create_consumer(jmsaio.Queue(name("idle")))

    async def receive() -> None:
        assert await consumer.receive() is None
        ended.set()

    receiving = asyncio.ensure_future(receive())
    await asyncio.wait_for(entered.wait(), 20)
    await asyncio.wait_for(factory.close(), 20)
    await receiving


async def test_closing_a_factory_closes_all_it_made(url: str) -> None:
    factory = jmsaio.ConnectionFactory(url)
    connection, context = await factory.create_connection(), await factory.create_context()
    session = await connection.create_session()
    temporaries = [await session.create_temporary_queue(), await context.create_temporary_topic()]
    async with jmsaio.ConnectionFactory(url) as another:
        admin = admin_of(await another.create_connection())
        await factory.close()
        await factory.close()
        assert connection.closed and context.closed and session.closed
        for gone in temporaries:
            with pytest.raises(jmsaio.NotFoundError):
                await admin.delete_topic(gone.name)
    for make in (factory.create_connection, factory.create_context):
        with pytest.raises(jmsaio.ObjectClosedError):
            await make()
    assert not factory._connections and factory._transport is None


def opened_transports(monkeypatch: pytest.MonkeyPatch) -> list[Transport]:
    """The broker clients that factories open from now on."""
    opened: list[Transport] = []

    async def watched(config: Configuration) -> Transport:
        opened.append(await open_transport(config))
        return opened[-1]

    monkeypatch.setattr(factory_module, "open_transport", watched)
    return opened


async def test_a_connect_that_fails_closes_its_broker_client(monkeypatch: pytest.MonkeyPatch) -> None:
    opened, url = opened_transports(monkeypatch), f"memory://{uuid.uuid4()}"
    async with jmsaio.connect(url, client_id="taken"):
        with pytest.raises(jmsaio.InvalidClientIDError):
            await jmsaio.connect(url, client_id="taken")
        await opened[0].begin(1.0)
        with pytest.raises(jmsaio.ObjectClosedError):
            await opened[1].begin(1.0)
    with pytest.raises(jmsaio.ObjectClosedError):
        await opened[0].begin(1.0)


async def test_the_first_problem_of_closing_is_raised_and_all_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    opened, entered = opened_transports(monkeypatch), asyncio.Event()

    async def listener(message: jmsaio.Message) -> None:
        entered.set()
        await asyncio.sleep(3600)

    factory = jmsaio.ConnectionFactory(f"memory://{uuid.uuid4()}", close_timeout=0.2)
    context = await factory.create_context()
    queue = context.create_queue("stuck")
    (await context.create_consumer(queue)).set_message_listener(listener)
    await context.create_producer().send(queue, "x")
    await asyncio.wait_for(entered.wait(), 20)
    senders = factory._senders
    assert senders is not None
    with pytest.raises(jmsaio.OperationTimeoutError, match="did not return"):
        await factory.close()
    assert context.closed and senders._closed
    with pytest.raises(jmsaio.ObjectClosedError):
        await opened[0].begin(1.0)


async def test_options_without_an_effect_are_named_in_one_line_at_connect(caplog: pytest.LogCaptureFixture) -> None:
    """With their names only: a value may be a secret."""
    url = "memory:?jms.sessionListenersThreads=8&producerConfig.maxPendingMessages=5&description=canary"
    with caplog.at_level(logging.INFO, "jmsaio"):
        async with jmsaio.ConnectionFactory(url) as factory:
            assert caplog.records == []
            await factory.create_connection()
            await factory.create_connection()
        async with jmsaio.ConnectionFactory("memory:?jms.clientId=a") as factory:
            await factory.create_connection()
    [said] = [record for record in caplog.records if "without an effect" in record.message]
    assert said.levelno == logging.INFO
    assert all(name in said.message for name in ("sessionListenersThreads", "producerConfig.maxPending", "description"))
    assert "canary" not in caplog.text
