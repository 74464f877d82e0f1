"""The health endpoint: what a load balancer reads while a broker is up, away, back and closed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import MutableMapping
from typing import Any

import httpx
import pytest

import jmsaio
from jmsaio.health import Health
from jmsaio.testing import embedded_broker


def client(health: Health, root: str = "") -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(health, root_path=root), base_url="http://service")


async def test_ready_follows_the_state_and_live_does_not() -> None:
    with embedded_broker() as broker:
        async with jmsaio.connect(broker.url) as connection, client(Health(connection)) as web:

            async def statuses() -> list[int]:
                await asyncio.sleep(0.1)
                return [(await web.get(path)).status_code for path in ("/live", "/ready")]

            assert await statuses() == [200, 200]
            assert (await web.get("/ready")).json() == {
                "ready": True,
                "connections": [{"state": "connected", "error": None}],
            }
            with broker.faults.outage():
                assert await statuses() == [200, 503]
                [lost] = (await web.get("/ready")).json()["connections"]
                assert lost["state"] == "reconnecting" and "is lost" in lost["error"]
            assert await statuses() == [200, 200]
            await connection.close()
            assert await statuses() == [200, 503]


async def test_all_connections_must_be_connected_and_there_must_be_one() -> None:
    health = Health()
    assert not health.ready
    async with jmsaio.connect("memory://health-a") as one, jmsaio.connect("memory://health-b") as other:
        health.add(one)
        assert health.ready
        health.add(other)
        await other.close()
        assert not health.ready
        assert [each["state"] for each in health.report()["connections"]] == ["connected", "closed"]


async def test_what_is_wrong_is_named() -> None:
    async with client(Health()) as web:
        assert (await web.get("/")).text == "use /live or /ready\n"
        refused = await web.post("/ready")
        assert (refused.status_code, refused.text, refused.headers["allow"]) == (405, "use GET\n", "GET, HEAD")
        asked = await web.head("/ready")
        assert (asked.status_code, asked.content) == (503, b"")
    opening = jmsaio.connect("memory:")
    with pytest.raises(jmsaio.IllegalArgumentError, match=re.escape("open connections, not an Opening")):
        Health(opening)  # type: ignore[arg-type]  # what is refused
    opening.close()
    with pytest.raises(ValueError, match="websocket"):
        await Health()({"type": "websocket"}, _never, _never)


async def _never(*arguments: Any) -> Any:
    raise AssertionError("not called")


@pytest.mark.parametrize("path", ["/health/live", "/health/live/"])
async def test_it_can_be_mounted(path: str) -> None:
    async with client(Health(), root="/health") as web:
        assert (await web.get(path)).status_code == 200


async def test_a_server_can_serve_it_alone() -> None:
    """A server starts and ends each application (ASGI's lifespan)."""
    events = iter(["lifespan.startup", "lifespan.shutdown"])
    sent: list[str] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": next(events)}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message["type"])

    await Health()({"type": "lifespan"}, receive, send)
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
