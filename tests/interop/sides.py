"""The two sides of the matrix: sessions of the real Java client and of jmsaio, driven by the same calls.

Messages, values and destinations are descriptions as ``tests/java/Messages.java`` tells.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Protocol

import attrs

import jmsaio
from jmsaio.launcher import tools
from tests.codec.described import build, describe, describe_destination, destination

Described = dict[str, Any]
#: Seconds for one answer of the Java client, and for messages that must come.
ANSWER, COMES = 90.0, 30.0
#: Bytes of an answer's line at most.
_LINE = 1 << 26


class SideError(Exception):
    """A client refused; the text is its exception."""


@attrs.frozen(kw_only=True)
class Value:
    """A value of a schema.

    Attributes:
        schema: type and definition, as ``Schemas.java`` describes them.
        kind: of the JMS message that a consumer makes of it.
        python: the value as jmsaio sends and shows it.
        java: the value as ``Schemas.java`` sends it.
        shown: the value as Java shows it.
    """

    schema: Described
    kind: str
    python: Any
    java: Any
    shown: Any


class Side(Protocol):
    """One session of a client, used by one task. What the client refuses is a SideError."""

    async def send(self, target: Described, *items: Described) -> list[Described]:
        """Send messages, each with the options of ``Messages.java``: ``{"message", "options"}``.

        Returns:
            The headers of the sender's objects after the sends.
        """

    async def subscribe(
        self, target: Described, consumer: str = "", *, mode: str = "plain", subscription: str | None = None,
        selector: str | None = None, no_local: bool = False,
    ) -> None:  # fmt: skip
        """Make a consumer, known as ``consumer``; mode is plain, durable, shared or shared_durable.

        Only the first two have ``no_local``.
        """

    async def receive(self, count: int = 1, consumer: str = "", timeout: float = COMES) -> list[Described]:
        """Up to ``count`` messages; ends early when one takes longer than ``timeout`` seconds."""

    async def close_consumer(self, consumer: str = "") -> None:
        """Close a consumer."""

    async def unsubscribe(self, subscription: str) -> None:
        """Delete a durable subscription."""

    async def browse(self, target: Described, selector: str | None = None) -> list[Described]:
        """The messages that a browser shows."""

    async def produce(self, target: Described, sent: Value, properties: Mapping[str, str]) -> None:
        """Send a value with its schema. Starlight has no producers with a schema: Pulsar's own Java client sends."""

    async def subscribe_values(self, target: Described, jms: bool) -> None:
        """Make the consumer of `receive_value`: without ``jms``, that of Pulsar's own client on the Java side."""

    async def receive_value(self, target: Described, jms: bool) -> Described:
        """What arrives: ``{"value", "properties"}``, and ``kind`` of a JMS message."""

    def shown(self, sent: Value) -> Any:
        """The value as the client shows it."""

    async def temporary(self, kind: str) -> Described:
        """A new temporary queue or topic."""

    async def connect(self, *credentials: tuple[str, str]) -> list[str]:
        """Connect with each user and password, to the configuration of this session.

        Returns:
            The error that refused each of them, or "".
        """

    async def end(self, how: str) -> None:
        """``acknowledge`` the last message, ``recover``, ``commit``, ``rollback`` or ``close``."""


class Client(Protocol):
    """A client with many sessions."""

    async def open(self, configuration: Mapping[str, Any], mode: str, credentials: tuple[str, str] | None) -> Side:
        """A session of the connection with this configuration, user and password.

        Args:
            mode: auto, client or transacted.
        """


@attrs.define(eq=False)
class JavaClient:
    """``Sides.java`` in a process of its own."""

    _requests: asyncio.StreamWriter
    _waiting: dict[int, asyncio.Future[Any]] = attrs.field(factory=dict)
    _numbers: itertools.count[int] = attrs.field(factory=itertools.count)

    async def open(self, configuration: Mapping[str, Any], mode: str, credentials: tuple[str, str] | None) -> JavaSide:
        side = JavaSide(self, f"s{next(self._numbers)}")
        await side.ask("open", configuration=dict(configuration), mode=mode, credentials=credentials)
        return side

    async def ask(self, **request: Any) -> Any:
        """The answer to a request. Raises SideError: the client refused it."""
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        given = {name: content for name, content in request.items() if content is not None}
        try:
            self._requests.write(json.dumps({"id": number, **given}).encode() + b"\n")
            await self._requests.drain()
            return await asyncio.wait_for(answer, ANSWER)
        finally:
            del self._waiting[number]

    async def read(self, answers: asyncio.StreamReader) -> None:
        """Give each answer to its request, until the program ends."""
        while line := await answers.readline():
            answer = json.loads(line)
            waiting = self._waiting.get(answer["id"])
            if waiting is None or waiting.done():
                continue
            if "error" in answer:
                waiting.set_exception(SideError(answer["error"]))
            else:
                waiting.set_result(answer.get("ok"))
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(SideError("the Java program ended"))


@asynccontextmanager
async def java_client(classpath: str) -> AsyncIterator[JavaClient]:
    """The Java client; its process ends with the block."""
    process = await asyncio.create_subprocess_exec(
        str(tools.find("java")), "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", classpath, "Sides",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=_LINE,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    client = JavaClient(process.stdin)
    reading = asyncio.ensure_future(client.read(process.stdout))
    try:
        yield client
    finally:
        process.kill()
        await process.wait()
        await reading
        process.stdin.close()


@attrs.frozen(eq=False)
class JavaSide:
    """A session in ``Sides.java``."""

    _client: JavaClient
    _name: str

    async def ask(self, op: str, **fields: Any) -> Any:
        """The answer to a request of this session."""
        return await self._client.ask(op=op, session=self._name, **fields)

    async def send(self, target: Described, *items: Described) -> list[Described]:
        found: list[Described] = await self.ask("send", destination=target, items=items)
        return found

    async def subscribe(
        self, target: Described, consumer: str = "", *, mode: str = "plain", subscription: str | None = None,
        selector: str | None = None, no_local: bool = False,
    ) -> None:  # fmt: skip
        await self.ask(
            "subscribe", destination=target, consumer=consumer, mode=mode, subscription=subscription,
            selector=selector, no_local=no_local,
        )  # fmt: skip

    async def receive(self, count: int = 1, consumer: str = "", timeout: float = COMES) -> list[Described]:
        found: list[Described] = await self.ask("receive", consumer=consumer, count=count, timeout=int(timeout * 1000))
        return found

    async def close_consumer(self, consumer: str = "") -> None:
        await self.ask("close_consumer", consumer=consumer)

    async def unsubscribe(self, subscription: str) -> None:
        await self.ask("unsubscribe", subscription=subscription)

    async def browse(self, target: Described, selector: str | None = None) -> list[Described]:
        found: list[Described] = await self.ask("browse", destination=target, selector=selector)
        return found

    async def produce(self, target: Described, sent: Value, properties: Mapping[str, str]) -> None:
        topic = target["name"]
        await self.ask("produce", topic=topic, schema=sent.schema, values=[sent.java], properties=dict(properties))

    async def subscribe_values(self, target: Described, jms: bool) -> None:
        if jms:
            await self.subscribe(target)
        else:
            await self.ask("subscribe_values", topic=target["name"])

    async def receive_value(self, target: Described, jms: bool) -> Described:
        if not jms:
            [found] = await self.ask("consume", topic=target["name"], count=1, timeout=int(COMES * 1000))
            return dict(found)
        [message] = await self.receive()
        body = message["body"]
        if message["kind"] == "map":
            body = {name["v"]: content for name, content in body}
        return {
            "kind": message["kind"],
            "value": json.loads(body["v"]) if body.get("t") == "java" else body,  # a JsonNode
            "properties": {name: content.get("v") for name, content in message["properties"].items()},
        }

    def shown(self, sent: Value) -> Any:
        return sent.shown

    async def temporary(self, kind: str) -> Described:
        found: Described = await self.ask("temporary", kind=kind)
        return found

    async def connect(self, *credentials: tuple[str, str]) -> list[str]:
        found: list[str] = await self.ask("connect", credentials=credentials)
        return found

    async def end(self, how: str) -> None:
        await self.ask(how)


@attrs.define(eq=False)
class PythonClient:
    """jmsaio in this process."""

    _stack: AsyncExitStack
    _connections: dict[str, asyncio.Future[jmsaio.Connection]] = attrs.field(factory=dict)

    async def open(
        self, configuration: Mapping[str, Any], mode: str, credentials: tuple[str, str] | None
    ) -> PythonSide:
        key = json.dumps(configuration, sort_keys=True)
        if key not in self._connections:
            self._connections[key] = asyncio.ensure_future(self._connect(configuration, *credentials or ()))
        connection = await self._connections[key]
        modes = {"client": jmsaio.AcknowledgeMode.CLIENT, "transacted": jmsaio.AcknowledgeMode.TRANSACTED}
        session = await connection.create_session(modes.get(mode, jmsaio.AcknowledgeMode.AUTO))
        return PythonSide(session, await session.create_producer(), configuration)

    async def _connect(self, configuration: Mapping[str, Any], *credentials: str) -> jmsaio.Connection:
        factory = jmsaio.ConnectionFactory(dict(configuration))
        self._stack.push_async_callback(factory.close)
        connection = await factory.create_connection(*credentials)
        await connection.start()
        return connection


@asynccontextmanager
async def python_client() -> AsyncIterator[PythonClient]:
    """jmsaio; its connections close with the block."""
    async with AsyncExitStack() as stack:
        yield PythonClient(stack)


@attrs.define(eq=False)
class PythonSide:
    """A session of jmsaio."""

    _session: jmsaio.Session
    _producer: jmsaio.MessageProducer
    _configuration: Mapping[str, Any]
    _consumers: dict[str, jmsaio.MessageConsumer] = attrs.field(factory=dict)
    _last: jmsaio.Message | None = None

    async def send(self, target: Described, *items: Described) -> list[Described]:
        headers = []
        for item in items:
            message, options = build(item["message"]), item.get("options", {})
            self._producer.disable_message_timestamp = "disable_timestamp" in options
            await self._producer.send(
                destination(target),
                message,
                delivery_mode=options.get("delivery_mode"),
                priority=options.get("priority"),
                time_to_live=options.get("time_to_live", 0) / 1000,
                delivery_delay=options.get("delivery_delay", 0) / 1000,
            )
            headers.append(describe(message)["headers"])
        return headers

    async def subscribe(
        self, target: Described, consumer: str = "", *, mode: str = "plain", subscription: str | None = None,
        selector: str | None = None, no_local: bool = False,
    ) -> None:  # fmt: skip
        place, session, name = destination(target), self._session, subscription or ""
        if not isinstance(place, jmsaio.Topic) or mode == "plain":
            opened = session.create_consumer(place, selector, no_local)
        elif mode == "durable":
            opened = session.create_durable_consumer(place, name, selector, no_local)
        elif mode == "shared":
            opened = session.create_shared_consumer(place, name, selector)
        else:
            opened = session.create_shared_durable_consumer(place, name, selector)
        self._consumers[consumer] = await opened

    async def receive(self, count: int = 1, consumer: str = "", timeout: float = COMES) -> list[Described]:
        found: list[Described] = []
        while len(found) < count:
            message = await self._consumers[consumer].receive(timeout=timeout)
            if message is None:
                break
            self._last = message
            found.append(describe(message))
        return found

    async def close_consumer(self, consumer: str = "") -> None:
        await self._consumers.pop(consumer).close()

    async def unsubscribe(self, subscription: str) -> None:
        await self._session.unsubscribe(subscription)

    async def browse(self, target: Described, selector: str | None = None) -> list[Described]:
        place = destination(target)
        assert isinstance(place, jmsaio.Queue)
        async with self._session.create_browser(place, selector) as browser:
            return [describe(message) async for message in browser.stream()]

    async def produce(self, target: Described, sent: Value, properties: Mapping[str, str]) -> None:
        schema = jmsaio.Schema(sent.schema["type"], sent.schema.get("definition", ""))
        async with self._session.create_producer(destination(target), schema=schema) as producer:
            await producer.send(sent.python, properties=properties)

    async def subscribe_values(self, target: Described, jms: bool) -> None:
        await self.subscribe(target)

    async def receive_value(self, target: Described, jms: bool) -> Described:
        message = await self._consumers[""].receive(timeout=COMES)
        assert message is not None, "nothing arrived"
        return {"kind": message.KIND, "value": message.get_body(object), "properties": dict(message.properties)}

    def shown(self, sent: Value) -> Any:
        return sent.python

    async def temporary(self, kind: str) -> Described:
        session = self._session
        creating = session.create_temporary_topic() if kind == "topic" else session.create_temporary_queue()
        made = describe_destination(await creating)
        assert made is not None
        return made

    async def connect(self, *credentials: tuple[str, str]) -> list[str]:
        configuration = {**self._configuration, "jms.clientId": None}  # the connection of this session has it
        found = []
        async with jmsaio.ConnectionFactory(configuration) as factory:
            for user, password in credentials:
                try:
                    await (await factory.create_connection(user, password)).close()
                except jmsaio.JMSError as error:
                    found.append(f"{type(error).__name__}: {error}")
                else:
                    found.append("")
        return found

    async def end(self, how: str) -> None:
        if how == "acknowledge":
            assert self._last is not None
            await self._last.acknowledge()
        else:
            await getattr(self._session, how)()
