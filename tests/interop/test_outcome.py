"""What a cell comes to, whatever it raises."""

from __future__ import annotations

from unittest.mock import AsyncMock

import pytest

from tests.interop.matrix import COLUMNS, Cell, Row, _outcome
from tests.interop.sides import SideError
from tests.support.broker import TestBroker

BASE = {"jms.clientId": "c"}


async def outcome(error: Exception | None, closing: Exception | None = None) -> tuple[str | None, AsyncMock]:
    """The outcome of a cell that raises ``error``, with sessions whose close raises ``closing``; and the client."""

    async def run(cell: Cell) -> None:
        if error is not None:
            raise error

    client = AsyncMock()
    client.open.return_value.end.side_effect = closing
    row = Row(group="Messages", name="TextMessage", run=run)
    clients = {"java": client, "python": client}
    return await _outcome(clients, BASE, row, COLUMNS[1], "p", TestBroker("pulsar://x", "http://x")), client


async def test_a_cell_that_works_closes_both_sessions() -> None:
    found, client = await outcome(None)
    assert found is None and client.open.return_value.end.await_args_list == [(("close",),)] * 2


@pytest.mark.parametrize("error", [AssertionError("body"), SideError("refused"), ValueError("not enough values")])
async def test_an_error_ends_its_cell_alone(error: Exception) -> None:
    found, client = await outcome(error)
    assert found == f"{type(error).__name__}: {error}" and client.open.return_value.end.await_count == 2


async def test_a_session_that_does_not_close_ends_its_cell_alone() -> None:
    found, client = await outcome(None, SideError("closing"))
    assert found == "SideError: closing" and client.open.return_value.end.await_count == 2


async def test_a_cell_that_takes_too_long() -> None:
    found, _ = await outcome(TimeoutError())
    assert found == "not done within 90 s"
