"""``Health``: an ASGI application with the health of connections, for load balancers and Kubernetes.

.. code-block:: python

    health = jmsaio.health.Health(connection)
    app.mount("/health", health)               # Starlette or FastAPI: /health/live and /health/ready

It needs no library, and any ASGI server can also serve it alone.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from jmsaio.client.callbacks.reports import ConnectionState
from jmsaio.client.connection import Connection
from jmsaio.errors import IllegalArgumentError
from jmsaio.model.arguments import with_article

#: The values of ASGI's interface.
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_PLAIN, _JSON = b"text/plain; charset=utf-8", b"application/json"


class Health:
    """Answers ``/live`` and ``/ready``; the body is JSON.

    ``/live`` is always 200: the event loop runs. A lost broker is no reason to restart a service that reconnects by
    itself. ``/ready`` is 200 while all connections are CONNECTED, otherwise 503.

    The body has ``ready`` and, for each connection, ``state`` and ``error`` (a text or null). The text has the broker's
    address, and no credentials.

    Args:
        connections: the connections that the service needs. More can be added with ``add`` while it starts.

    Raises:
        IllegalArgumentError: one is not a connection.
    """

    def __init__(self, *connections: Connection) -> None:
        self._connections: list[Connection] = []
        for connection in connections:
            self.add(connection)

    def add(self, connection: Connection) -> None:
        """Add a connection. Raises IllegalArgumentError if it is none."""
        if not isinstance(connection, Connection):
            raise IllegalArgumentError(f"Health needs open connections, not {with_article(type(connection).__name__)}")
        self._connections.append(connection)

    @property
    def ready(self) -> bool:
        """Whether there are connections, and all of them are CONNECTED."""
        states = [connection.state for connection in self._connections]
        return bool(states) and all(state is ConnectionState.CONNECTED for state in states)

    def report(self) -> dict[str, Any]:
        """Return the body of an answer."""
        changes = [connection.last_change for connection in self._connections]
        described = [
            {"state": change.state.value, "error": None if change.error is None else str(change.error)}
            for change in changes
        ]
        return {"ready": self.ready, "connections": described}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer an HTTP request, or follow the server's start and end (ASGI 3.0)."""
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        if scope["type"] != "http":
            raise ValueError(f"Health answers HTTP requests, not {scope['type']}")
        path = scope["path"].removeprefix(scope.get("root_path", "")).rstrip("/")
        if scope["method"] not in ("GET", "HEAD"):
            await _answer(send, 405, _PLAIN, b"use GET\n", [(b"allow", b"GET, HEAD")])
        elif path not in ("/live", "/ready"):
            await _answer(send, 404, _PLAIN, b"use /live or /ready\n")
        else:
            status = 200 if path == "/live" or self.ready else 503
            body = json.dumps(self.report()).encode()
            await _answer(send, status, _JSON, b"" if scope["method"] == "HEAD" else body)


async def _live(receive: Receive, send: Send) -> None:
    while True:
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})
        if kind == "lifespan.shutdown":
            return


async def _answer(
    send: Send, status: int, content_type: bytes, body: bytes, headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    all_headers = [(b"content-type", content_type), (b"cache-control", b"no-store"), *(headers or [])]
    await send({"type": "http.response.start", "status": status, "headers": all_headers})
    await send({"type": "http.response.body", "body": body})
