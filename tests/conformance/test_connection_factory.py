"""Connection factory and authentication (checklist.txt, group 15)."""

from __future__ import annotations

import pytest

import jmsaio
from jmsaio import AcknowledgeMode
from tests.conformance.kit import row, tck

FILE = "core20/connectionfactorytests/ClientIT"
USER, PASSWORD = "user", "password of the test"


@pytest.fixture
def guarded(url: str) -> jmsaio.ConnectionFactory:
    """A factory that knows one user."""
    return jmsaio.ConnectionFactory(url, tck_username=USER, tck_password=PASSWORD, emulate_transactions=True)


def each_kind(method: str) -> pytest.MarkDecorator:
    """The list has each line for a factory of queues and one of topics; here there is one kind."""
    return pytest.mark.parametrize("line", [row(word, key=f"{FILE}.{word}{method}") for word in ("qcf", "tcf")])


@each_kind("CreateJMSContextTest1")
async def test_the_default_mode_of_a_context(factory: jmsaio.ConnectionFactory, line: str) -> None:
    async with await factory.create_context() as context:
        assert context.get_session_mode() is AcknowledgeMode.AUTO


@each_kind("CreateJMSContextTest3")
async def test_a_context_of_a_user(guarded: jmsaio.ConnectionFactory, line: str) -> None:
    async with guarded, await guarded.create_context(user=USER, password=PASSWORD) as context:
        assert context.get_session_mode() is AcknowledgeMode.AUTO


@each_kind("CreateConnectionTest")
async def test_the_forms_of_a_connection(guarded: jmsaio.ConnectionFactory, line: str) -> None:
    async with guarded:
        for credentials in ((), (USER, PASSWORD)):
            async with await guarded.create_connection(*credentials) as connection, connection.create_session() as one:
                assert one.get_acknowledge_mode() is AcknowledgeMode.AUTO


@tck(f"{FILE}.createConnectionExceptionTests")
async def test_wrong_credentials_of_a_connection(guarded: jmsaio.ConnectionFactory) -> None:
    async with guarded:
        for user, password in ((USER, "wrong"), ("wrong", PASSWORD)):
            with pytest.raises(jmsaio.JMSSecurityError) as caught:
                await guarded.create_connection(user, password)
            assert PASSWORD not in str(caught.value)


@tck(f"{FILE}.createJMSContextExceptionTests")
async def test_wrong_credentials_and_modes_of_a_context(guarded: jmsaio.ConnectionFactory) -> None:
    async with guarded:
        for user, password in ((USER, "wrong"), ("wrong", PASSWORD)):
            with pytest.raises(jmsaio.JMSSecurityError):
                await guarded.create_context(user=user, password=password)
        with pytest.raises(jmsaio.JMSError):
            await guarded.create_context(-1)  # type: ignore[arg-type]  # what a caller may do
