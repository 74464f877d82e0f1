"""Client identifiers (jms-spec 5.4)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import jmsaio

Name = Callable[[str], str]


async def test_client_ids(url: str, name: Name) -> None:
    client = name("id")
    async with jmsaio.connect(url, client_id=client) as connection:
        assert connection.client_id == client
        with pytest.raises(jmsaio.IllegalStateError):
            connection.set_client_id("other")
        with pytest.raises(jmsaio.InvalidClientIDError):
            await jmsaio.connect(url, client_id=client)
    async with jmsaio.ConnectionFactory(url) as factory:
        connection = await factory.create_connection()
        with pytest.raises(jmsaio.InvalidClientIDError):
            connection.set_client_id("")
        connection.set_client_id(client)
        assert connection.connection_id == f"{client}_{connection.uuid}"
        late = await factory.create_connection()
        await late.start()
        with pytest.raises(jmsaio.IllegalStateError):
            late.set_client_id("late")
