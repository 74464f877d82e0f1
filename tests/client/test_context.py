"""The simplified API (Jakarta Messaging 3.1, 2.8 Simplified API interfaces)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

import pytest

import jmsaio
from tests.client.helpers import Listener
from tests.kit.inside import runtime_of

Name = Callable[[str], str]


async def test_a_context_sends_receives_and_creates_others(url: str, name: Name) -> None:
    queue = jmsaio.Queue(name("context"))
    async with jmsaio.ConnectionFactory(url) as factory, await factory.create_context() as context:
        listener = Listener()
        producer = context.create_producer().set_property("n", 1).set_jms_type("t").set_priority(8)
        await producer.send(queue, "hello")
        await producer.set_async(listener).send(queue, {"k": 2})
        async with context.create_consumer(queue) as consumer:
            message = await consumer.receive(timeout=20)
            assert message is not None and message.get_body(str) == "hello"
            assert (message.properties["n"], message.jms_type, message.jms_priority) == (1, "t", 8)
            assert await consumer.receive_body(dict, timeout=20) == {"k": 2}
        async with context.create_context(jmsaio.AcknowledgeMode.CLIENT) as second:
            assert second.client_id is None
        with pytest.raises(jmsaio.IllegalStateError):
            await context.commit()
    with pytest.raises(jmsaio.ObjectClosedError):
        context.create_producer()
    assert len(listener.told) == 1


async def test_the_connection_of_contexts_has_their_state_and_drains_them(url: str, name: Name) -> None:
    queue = jmsaio.Queue(name("drained"))
    async with jmsaio.ConnectionFactory(url) as factory, factory.create_context() as context:
        async with context.create_context(jmsaio.AcknowledgeMode.CLIENT) as second:
            assert second.connection is context.connection
            assert context.connection.state is jmsaio.ConnectionState.CONNECTED
            await context.create_producer().send(queue, "work")
            consumer = await second.create_consumer(queue)
            message = await consumer.receive(20)
            assert message is not None
            stats = context.connection.stats()
            assert [each.sent for each in stats.producers] == [1]
            assert [(each.received, each.in_flight) for each in stats.consumers] == [(1, 1)]
            draining = asyncio.create_task(context.connection.drain(20))
            await asyncio.sleep(0)
            await message.acknowledge()
            await draining
            assert context.closed and second.closed


async def test_credentials_of_a_context_follow_its_mode(url: str) -> None:
    client = jmsaio.AcknowledgeMode.CLIENT
    async with jmsaio.ConnectionFactory(url, tck_username="u", tck_password="p") as factory:
        create = factory.create_context
        for opening in (
            create(client, "u", "p", "id"),
            create(mode=client, password="p", user="u", client_id="id"),
            create(client, None, None, "id"),
        ):
            async with opening as context:
                assert (context.session_mode, context.client_id) == (client, "id")
        async with factory.create_context(user="u", password="p") as context:
            assert context.session_mode is jmsaio.AcknowledgeMode.AUTO
        for wrong in (("u", "secret"), ("x", "p")):
            with pytest.raises(jmsaio.JMSSecurityError):
                await factory.create_context(client, *wrong)


async def test_a_listener_may_create_a_consumer(url: str, name: Name) -> None:
    async with jmsaio.ConnectionFactory(url) as factory, await factory.create_context() as context:
        queue = context.create_queue(name("inside"))
        made: asyncio.Future[jmsaio.MessageConsumer] = asyncio.get_running_loop().create_future()

        async def listener(message: jmsaio.Message) -> None:
            made.set_result(await context.create_consumer(context.create_queue(name("second"))))

        (await context.create_consumer(queue)).set_message_listener(listener)
        await context.create_producer().send(queue, "x")
        assert not (await asyncio.wait_for(made, 20)).closed


async def test_a_closed_context_does_nothing_although_its_connection_is_open(url: str, name: Name) -> None:
    queue = jmsaio.Queue(name("closed"))
    async with jmsaio.ConnectionFactory(url) as factory, await factory.create_context() as context:
        second = await context.create_context()
        producer, browser = second.create_producer(), await second.create_browser(queue)
        context.set_exception_listener(print)
        await second.close()
        await second.close()
        for call in (
            second.get_client_id, second.get_meta_data, second.get_exception_listener, second.get_session_mode,
            second.get_transacted, second.create_producer, second.create_text_message, browser.get_queue,
            lambda: second.set_exception_listener(None), lambda: second.set_client_id("late"),
            lambda: second.set_auto_start(False), lambda: second.create_queue("late"), second.create_context,
        ):  # fmt: skip
            with pytest.raises(jmsaio.ObjectClosedError):
                call()
        for coroutine in (
            lambda: second.start(), lambda: second.stop(), lambda: second.create_consumer(queue),
            lambda: second.create_browser(queue), lambda: second.create_temporary_queue(), lambda: second.commit(),
            lambda: second.acknowledge(), lambda: second.unsubscribe("late"), lambda: producer.send(queue, "late"),
            lambda: second.request(queue, "late", timeout=1), lambda: browser.get_enumeration(),
        ):  # fmt: skip
            with pytest.raises(jmsaio.ObjectClosedError):
                await coroutine()
        with pytest.raises(jmsaio.ObjectClosedError, match="the context is closed"):
            await producer.send(queue, "late")
        assert context.client_id is None and context.exception_listener is print
        assert not runtime_of(context.connection).started
        await context.start()
        with pytest.raises(jmsaio.ObjectClosedError):
            await second.stop()
        assert runtime_of(context.connection).started


async def test_a_client_id_comes_before_consumers_of_any_context(url: str, name: Name) -> None:
    async with jmsaio.ConnectionFactory(url, auto_start=False) as factory, await factory.create_context() as context:
        second = await context.create_context()
        context.create_producer()
        await second.create_consumer(jmsaio.Queue(name("used")))
        with pytest.raises(jmsaio.IllegalStateError):
            context.set_client_id(name("late"))


@pytest.mark.parametrize("first", ["start", "send", "another context"])
async def test_a_client_id_comes_before_the_start_and_the_first_send(name: Name, first: str) -> None:
    async with jmsaio.ConnectionFactory(f"memory://{name('broker')}") as factory:
        async with await factory.create_context() as context, context.create_context() as second:
            if first == "start":
                await context.start()
            elif first == "send":
                await second.create_producer().send(context.create_queue("q"), "x")
            else:  # counts as nothing
                context.client_id = name("set")
                assert second.client_id == name("set")
                return
            with pytest.raises(jmsaio.IllegalStateError):
                context.client_id = name("late")


async def test_the_connection_closes_with_the_last_of_its_contexts(name: Name) -> None:
    async with jmsaio.ConnectionFactory(f"memory://{name('broker')}") as factory:
        contexts = [await factory.create_context()]
        contexts += [await contexts[0].create_context() for _ in range(2)]
        connection = contexts[0].connection
        for context in contexts:
            assert not connection.closed
            await context.close()
        assert connection.closed


async def test_the_connection_closes_although_a_session_does_not_end_in_time(name: Name) -> None:
    entered = asyncio.Event()

    async def listener(message: jmsaio.Message) -> None:
        entered.set()
        await asyncio.sleep(3600)

    async with jmsaio.ConnectionFactory(f"memory://{name('broker')}", close_timeout=0.2) as factory:
        context = await factory.create_context()
        queue = context.create_queue("stuck")
        (await context.create_consumer(queue)).set_message_listener(listener)
        await context.create_producer().send(queue, "x")
        await asyncio.wait_for(entered.wait(), 20)
        with pytest.raises(jmsaio.OperationTimeoutError):
            await context.close()
        assert context.connection.closed


async def test_a_listener_can_not_close_its_context_which_goes_on(name: Name) -> None:
    refused: asyncio.Future[jmsaio.JMSError] = asyncio.get_running_loop().create_future()
    async with jmsaio.ConnectionFactory(f"memory://{name('broker')}") as factory:
        context = await factory.create_context()

        async def listener(message: jmsaio.Message) -> None:
            try:
                await context.close()
            except jmsaio.IllegalStateError as error:
                refused.set_result(error)

        queue = context.create_queue("inside")
        (await context.create_consumer(queue)).set_message_listener(listener)
        await context.create_producer().send(queue, "x")
        assert "close of a context" in str(await asyncio.wait_for(refused, 20))
        assert not context.closed
        await context.close()
        assert context.connection.closed


async def test_the_producers_of_a_context_number_their_messages_together(name: Name) -> None:
    async with jmsaio.ConnectionFactory(f"memory://{name('broker')}") as factory:
        async with await factory.create_context() as context:
            messages = [jmsaio.TextMessage("x") for _ in range(2)]
            for message in messages:
                await context.create_producer().send(context.create_queue("q"), message)
            ids = [(message.jms_message_id or "").rpartition(":") for message in messages]
            assert ids[0][0] == ids[1][0] and [int(number) for *_, number in ids] == [1, 2]


async def test_a_running_listener_may_use_the_context_that_is_closed(url: str, name: Name) -> None:
    queue, out = jmsaio.Queue(name("busy")), jmsaio.Queue(name("out"))
    entered, go_on = asyncio.Event(), asyncio.Event()
    async with jmsaio.ConnectionFactory(url) as factory:
        context, other = await factory.create_context(), await factory.create_context()

        async def listener(message: jmsaio.Message) -> None:
            entered.set()
            await go_on.wait()
            await context.create_producer().send(out, context.create_text_message("sent"))

        (await context.create_consumer(queue)).set_message_listener(listener)
        await other.create_producer().send(queue, "x")
        await asyncio.wait_for(entered.wait(), 20)
        closing = asyncio.ensure_future(context.close())
        await asyncio.sleep(0.01)
        with pytest.raises(jmsaio.ObjectClosedError):
            context.create_producer()
        go_on.set()
        await asyncio.wait_for(closing, 20)
        assert await (await other.create_consumer(out)).receive_body(str, timeout=20) == "sent"


async def test_a_context_that_does_not_start_by_itself_delivers_after_start(name: Name) -> None:
    async with jmsaio.ConnectionFactory(f"memory://{name('broker')}") as factory:
        async with await factory.create_context() as context:
            context.set_auto_start(False)
            queue = context.create_queue(name("stopped"))
            consumer = await context.create_consumer(queue)
            await context.create_producer().send(queue, "x")
            with pytest.raises(TimeoutError):
                await context.request(context.create_queue(name("no-one")), "x", timeout=0.05)
            assert await consumer.receive(timeout=0.05) is None
            await context.start()
            assert await consumer.receive_body(str, timeout=20) == "x"
            await context.stop()
            await context.create_producer().send(queue, "y")
            assert await consumer.receive(timeout=0.05) is None


async def test_reprs_show_what_the_objects_are_for() -> None:
    async with jmsaio.ConnectionFactory("memory://reprs") as factory, await factory.create_context() as context:
        queue = context.create_queue("q")
        assert re.fullmatch(
            r"<Context AUTO open on <Connection [\w-]+ to memory://reprs \w+, 1 sessions>>", repr(context)
        )
        producer = context.create_producer()
        assert repr(producer) == "<JMSProducer unset>"
        assert repr(producer.set_priority(7).set_time_to_live(5)) == "<JMSProducer priority=7, time_to_live=5.0>"
        await producer.send(queue, "canary")
        async with context.create_browser(queue) as browser:
            assert repr(await browser.get_enumeration()) == "<Enumeration, 1 messages left>"
        requestor = await jmsaio.QueueRequestor.open(context._session, queue)
        assert repr(requestor) == f"<QueueRequestor over {requestor._producer!r}>"
    assert repr(context).startswith("<Context AUTO closed on ")
