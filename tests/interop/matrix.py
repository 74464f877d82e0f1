"""Runs rows of the matrix: each in four cells, for who sends and who receives, the Java client or jmsaio."""

from __future__ import annotations

import asyncio
import json
import uuid
import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

import attrs
import httpx

from tests.interop.sides import Client, Described, Side, java_client, python_client
from tests.support.broker import TestBroker

#: Sender and receiver of each column.
COLUMNS = (("java", "java"), ("java", "python"), ("python", "java"), ("python", "python"))
Column = tuple[str, str]
#: Columns by one of their sides, and those of both clients.
FROM_JAVA, FROM_PYTHON = COLUMNS[:2], COLUMNS[2:]
TO_JAVA = COLUMNS[::2]
MIXED = COLUMNS[1:3]
#: Seconds for one cell, and cells at the same time.
_LIMIT, _AT_ONCE = 90.0, 10


@attrs.frozen
class Cell:
    """Where one row is run for one column: a session of each side, and names that no other cell has."""

    sender: Side
    receiver: Side
    prefix: str
    _web_url: str

    def queue(self, stem: str = "q") -> Described:
        """A queue."""
        return {"kind": "queue", "name": f"{self.prefix}-{stem}"}

    def topic(self, stem: str = "t") -> Described:
        """A topic."""
        return {"kind": "topic", "name": f"{self.prefix}-{stem}"}

    def subscription(self) -> str:
        """The name of a subscription."""
        return f"{self.prefix}-s"

    async def create_topic(self, target: Described, partitions: int = 0) -> None:
        """Create the topic of a destination."""
        path = f"/admin/v2/persistent/public/default/{target['name']}{'/partitions' if partitions else ''}"
        async with httpx.AsyncClient(base_url=self._web_url, timeout=30) as client:
            (await client.put(path, json=partitions or {})).raise_for_status()

    async def wait_for_backlog(self, target: Described, count: int) -> None:
        """Wait until so many messages of a queue are left at the broker.

        Java acknowledges behind its receive, and a message whose consumer closes before that arrives comes again.
        """
        path = f"/admin/v2/persistent/public/default/{target['name']}/stats"
        async with httpx.AsyncClient(base_url=self._web_url, timeout=30) as client:
            while True:
                subscriptions = (await client.get(path)).raise_for_status().json()["subscriptions"]
                if sum(one["msgBacklog"] for one in subscriptions.values()) == count:
                    return
                await asyncio.sleep(0.1)

    async def create_namespace(self, name: str) -> None:
        """Create a namespace of the tenant ``public``, unless it exists."""
        async with httpx.AsyncClient(base_url=self._web_url, timeout=30) as client:
            answer = await client.put(f"/admin/v2/namespaces/public/{name}", json={})
            if answer.status_code != httpx.codes.CONFLICT:
                answer.raise_for_status()


@attrs.frozen(kw_only=True)
class Row:
    """A row.

    Attributes:
        group: heading that it stands under.
        name: what is shown.
        run: sends and receives, and raises AssertionError if what arrived is not what was sent.
        sender: acknowledge mode of the sender's session: auto, client, transacted.
        receiver: likewise, of the receiver's.
        configuration: of both connections, by Starlight's keys.
        java: of the Java connections, besides.
        python: of the Python connections, besides.
        credentials: user and password of all connections.
        apart: whether sender and receiver have client ids of their own, so that no cell has one connection for both.
        differs: the columns whose cells fail, with part of what each comes to; one that fails otherwise is a fault.
        line: the point of the compatibility guide that says why.
    """

    group: str
    name: str
    run: Callable[[Cell], Awaitable[None]]
    sender: str = "auto"
    receiver: str = "auto"
    configuration: Mapping[str, Any] = attrs.field(factory=dict)
    java: Mapping[str, Any] = attrs.field(factory=dict)
    python: Mapping[str, Any] = attrs.field(factory=dict)
    credentials: tuple[str, str] | None = None
    apart: bool = False
    differs: Mapping[Column, str] = attrs.field(factory=dict)
    line: str = ""


#: What each cell came to, by group and name of its row and by column: None, or why what arrived is not what was sent.
Results = dict[tuple[str, str, Column], str | None]


async def run(broker: TestBroker, classpath: str, rows: Iterable[Row], columns: Sequence[Column] = COLUMNS) -> Results:
    """Run the rows on a broker, with one Java process.

    Args:
        broker: a running broker.
        classpath: of the Java client and the programs of ``tests/java``.
        rows: the rows.
        columns: those that are filled.
    """
    client_id = f"matrix-{uuid.uuid4().hex[:12]}"
    base = {
        "brokerServiceUrl": broker.service_url,
        "webServiceUrl": broker.web_service_url,
        "jms.clientId": client_id,
    }
    results: Results = {}
    limit = asyncio.Semaphore(_AT_ONCE)
    async with java_client(classpath) as java, python_client() as python:
        clients: dict[str, Client] = {"java": java, "python": python}

        async def fill(number: int, row: Row, column: Column) -> None:
            prefix = f"{client_id}-{number}-{column[0][0]}{column[1][0]}"
            async with limit:
                results[row.group, row.name, column] = await _outcome(clients, base, row, column, prefix, broker)

        async with asyncio.TaskGroup() as group:
            for number, row in enumerate(rows):
                for column in columns:
                    group.create_task(fill(number, row, column))
    return results


async def _outcome(
    clients: Mapping[str, Client], base: Mapping[str, Any], row: Row, column: Column, prefix: str, broker: TestBroker
) -> str | None:
    sides: list[Side] = []
    settings = json.dumps([row.configuration, row.java, row.python], sort_keys=True)
    client_id = f"{base['jms.clientId']}-{zlib.crc32(settings.encode()):x}"  # one for the connections of both clients
    try:
        async with asyncio.timeout(_LIMIT), AsyncExitStack() as opened:
            for number, (role, mode) in enumerate(zip(column, (row.sender, row.receiver), strict=True)):
                own = row.java if role == "java" else row.python
                client = f"{client_id}-{number}" if row.apart else client_id
                configuration = {**base, **row.configuration, **own, "jms.clientId": client}
                sides.append(side := await clients[role].open(configuration, mode, row.credentials))
                opened.push_async_callback(side.end, "close")
            sender, receiver = sides
            await row.run(Cell(sender, receiver, prefix, broker.web_service_url))
    except TimeoutError:
        return f"not done within {_LIMIT:g} s"
    except (
        Exception
    ) as error:  # whatever a cell raises, such as a ValueError for too few messages, ends that cell alone
        return f"{type(error).__name__}: {error}"
    return None
