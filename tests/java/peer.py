"""``JavaPeer``: drives ``Peer.java``, the real Java client in a process of its own.

::

    with JavaPeer(class_path(java_classpath, java_peer_dir), service_url, web_url) as peer:
        await peer.send(queue("orders"), {"kind": "text", "body": value("string", "hello")}, priority=7)
        [message] = await peer.receive(queue("answers"), 1)

Messages, values and destinations are descriptions as ``Messages.java`` tells; ``tests.codec.described`` makes them of
messages and messages of them.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import anyio.to_thread

from jmsaio.launcher import tools

Described = dict[str, Any]
#: Seconds for the start of the program and for one answer; a program that hangs is killed.
_START, _ANSWER = 90.0, 120.0


class JavaPeerError(Exception):
    """The Java client refused; the text is its exception."""


def queue(name: str) -> Described:
    """The description of a queue."""
    return {"kind": "queue", "name": name}


def topic(name: str) -> Described:
    """The description of a topic."""
    return {"kind": "topic", "name": name}


class JavaPeer:
    """One connection and one AUTO session of the real Java client. Requests are served one at a time.

    It belongs to no event loop: the tests of a module share one, each with destinations of its own.

    Args:
        classpath: the Java client and the compiled programs of this folder.
        service_url: ``pulsar://host:port``.
        web_url: ``http://host:port``.
        client_id: JMS client id of the connection.
        configuration: more keys of Starlight's configuration, and ``sessionMode``, the number of an acknowledge mode.
    """

    def __init__(
        self, classpath: str, service_url: str, web_url: str, client_id: str | None = None, **configuration: Any
    ) -> None:
        self._classpath = classpath
        self._configuration = {"brokerServiceUrl": service_url, "webServiceUrl": web_url, **configuration}
        if client_id is not None:
            self._configuration["clientId"] = client_id
        self._process: subprocess.Popen[bytes] | None = None
        self._turn = threading.Lock()

    def start(self) -> None:
        """Start the program; returns when it is connected.

        Raises:
            RuntimeError: it ended instead.
        """
        self._process = subprocess.Popen(
            [str(tools.find("java")), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", self._classpath, "Peer",
             json.dumps(self._configuration)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self._answer(self._process, _START)

    async def subscribe(
        self,
        destination: Described,
        selector: str | None = None,
        mode: str = "plain",
        subscription: str | None = None,
        no_local: bool = False,
    ) -> None:
        """Make the consumer from which ``receive`` takes; for a topic this goes before the send.

        Args:
            destination: queue or topic.
            selector: message selector.
            mode: ``plain``, ``durable``, ``shared`` or ``shared_durable``.
            subscription: its name, for all modes but ``plain``.
            no_local: noLocal, of the modes ``plain`` and ``durable``.
        """
        await self._request(
            "subscribe",
            destination=destination,
            selector=selector,
            mode=mode,
            subscription=subscription,
            no_local=no_local,
        )

    async def selector(self, destination: Described) -> str | None:
        """What the consumer of a destination tells as its selector."""
        found: str | None = await self._request("selector", destination=destination)
        return found

    async def unsubscribe(self, destination: Described) -> None:
        """Close the consumer of a destination."""
        await self._request("unsubscribe", destination=destination)

    async def send(self, destination: Described, message: Described, **options: Any) -> Described:
        """Send a described message.

        Args:
            destination: queue or topic.
            message: its description.
            options: ``delivery_mode``, ``priority``, ``disable_timestamp``; ``time_to_live``, ``delivery_delay`` in ms.

        Returns:
            The headers of the sender's object after the send.
        """
        headers: Described = await self._request("send", destination=destination, message=message, options=options)
        return headers

    async def send_all(self, destination: Described, items: Sequence[Described]) -> list[Described]:
        """Send messages without waiting for each, so that the producer can batch them.

        Args:
            destination: queue or topic.
            items: messages as ``send`` takes them, each with its options under ``options``.

        Returns:
            The headers of the sender's objects after the sends.
        """
        given = [{"message": item, "options": item.get("options", {})} for item in items]
        headers: list[Described] = await self._request("send_all", destination=destination, items=given)
        return headers

    async def receive(self, destination: Described, count: int = 1, timeout: float = 20.0) -> list[Described]:
        """The descriptions of up to ``count`` messages; ends early when one takes longer than ``timeout`` seconds."""
        found: list[Described] = await self._request(
            "receive", destination=destination, count=count, timeout=int(timeout * 1000)
        )
        return found

    async def produce(
        self, topic: str, schema: Described, values: Sequence[Any], properties: dict[str, str] | None = None
    ) -> None:
        """Send values with Pulsar's own client; ``Schemas.java`` tells how schema and values are described."""
        await self._request("produce", topic=topic, schema=schema, values=list(values), properties=properties or {})

    async def subscribe_values(self, topic: str, schema: Described | None = None) -> None:
        """Subscribe with Pulsar's own client from the topic's beginning, with ``schema`` or that of each message."""
        await self._request("subscribe_values", topic=topic, schema=schema)

    async def consume(self, topic: str, count: int = 1, timeout: float = 20.0) -> list[Described]:
        """Values that Pulsar's own client receives, with their properties."""
        found: list[Described] = await self._request("consume", topic=topic, count=count, timeout=int(timeout * 1000))
        return found

    def close(self) -> None:
        """End the program, by force if it does not end by itself. Idempotent."""
        process, self._process = self._process, None
        if process is None:
            return
        with process:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()

    async def _request(self, op: str, **fields: Any) -> Any:
        request = {"op": op} | {name: content for name, content in fields.items() if content is not None}
        return await anyio.to_thread.run_sync(self._ask, json.dumps(request).encode() + b"\n")

    def _ask(self, line: bytes) -> Any:
        process = self._process
        assert process is not None and process.stdin is not None, "the peer is not running"
        with self._turn:
            process.stdin.write(line)
            process.stdin.flush()
            return self._answer(process, _ANSWER)

    def _answer(self, process: subprocess.Popen[bytes], limit: float) -> Any:
        assert process.stdout is not None
        guard = threading.Timer(limit, process.kill)
        guard.start()
        try:
            line = process.stdout.readline()
        finally:
            guard.cancel()
        if not line:
            raise RuntimeError(f"the Java peer ended with code {process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise JavaPeerError(answer["error"])
        return answer["ok"]

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
