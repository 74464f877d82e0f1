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


async def test_an_id_is_free_after_close_and_looking_is_no_use(url: str, name: Name) -> None:
    client = name("id")
    async with jmsaio.ConnectionFactory(url) as factory:
        first, second = await factory.create_connection(), await factory.create_connection()
        first.set_exception_listener(print)
        assert first.metadata.jms_major_version == 3 and first.client_id is None
        first.set_client_id(client)
        with pytest.raises(jmsaio.InvalidClientIDError, match="used by another"):
            second.set_client_id(client)
        await first.close()
        second.set_client_id(client)
        for use in ("start", "stop", "create_session"):
            used = await factory.create_connection()
            await getattr(used, use)()
            with pytest.raises(jmsaio.IllegalStateError, match="before anything else"):
                used.set_client_id(name(use))


async def test_an_id_by_configuration(url: str, name: Name) -> None:
    client = name("configured")
    async with jmsaio.ConnectionFactory(f"{url}{'&' if '?' in url else '?'}jms.clientId={client}") as factory:
        connection = await factory.create_connection()
        assert connection.get_client_id() == client
        with pytest.raises(jmsaio.IllegalStateError, match="by configuration"):
            connection.set_client_id(name("other"))
        with pytest.raises(jmsaio.InvalidClientIDError):
            await factory.create_connection()
        await connection.close()
        assert (await factory.create_connection()).client_id == client
