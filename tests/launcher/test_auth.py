"""Tokens of a local broker: who reads them, and what they are good for."""

from __future__ import annotations

import base64
import hmac
import json
from pathlib import Path

import httpx
import pytest

import jmsaio
from jmsaio.errors import JMSSecurityError
from jmsaio.launcher import auth
from jmsaio.launcher.broker import free_ports
from jmsaio.launcher.errors import StartError
from tests.support.secure import SecureBroker


def test_secrets_are_in_files_that_only_the_user_reads(tmp_path: Path) -> None:
    """The settings have their paths, and a second start keeps the key."""
    settings = auth.prepare(tmp_path)
    files = sorted((tmp_path / "auth").iterdir())
    assert [path.name for path in files] == ["admin.token", "app.token", "guest.token", "secret.key"]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert (tmp_path / "auth").stat().st_mode & 0o777 == 0o700
    secrets = [path.read_bytes() for path in files]
    assert not any(secret in str(settings).encode() for secret in secrets)
    assert auth.prepare(tmp_path) == settings
    assert [path.read_bytes() for path in files] == secrets


def test_a_token_names_its_role_and_its_end_and_is_signed() -> None:
    def decode(text: str) -> bytes:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))

    head, claims, signature = auth.sign("billing", b"k" * 32, expires=1234.9).split(".")
    assert json.loads(decode(head)) == {"alg": "HS256"}
    assert json.loads(decode(claims)) == {"sub": "billing", "exp": 1234}
    assert decode(signature) == hmac.digest(b"k" * 32, f"{head}.{claims}".encode(), "sha256")


def test_rights_that_nobody_grants_are_an_error() -> None:
    with pytest.raises(StartError, match="role app got no rights"):
        auth.grant(free_ports(1)[0], {})


def test_the_roles_of_a_local_broker(secure_broker: SecureBroker) -> None:
    """The REST interface knows the administrator, and refuses who shows nothing or a forged token."""
    namespaces = f"{secure_broker.web_service_url}/admin/v2/namespaces/public"

    def status(token: str | None) -> int:
        return httpx.get(namespaces, headers={"Authorization": f"Bearer {token}"} if token else {}).status_code

    assert status(secure_broker.token(auth.ADMIN)) == 200
    assert status(None) == 401
    assert status(secure_broker.token(auth.ADMIN, key=b"x" * 32)) == 401
    with pytest.raises(StartError, match="status 401"):
        auth.grant(int(secure_broker.web_service_url.rpartition(":")[2]), {})


@pytest.mark.parametrize("how", ["token", "tls"])
async def test_a_client_sends_and_receives(secure_broker: SecureBroker, how: str) -> None:
    """A role with rights does, by the file of a token and by certificate."""
    token = secure_broker.options(params=f"file://{secure_broker.token_file()}")
    certificate = secure_broker.options(tls=True, plugin="tls", params=secure_broker.certificate())
    async with jmsaio.connect({"token": token, "tls": certificate}[how]) as connection:
        async with connection.create_session() as session:
            queue = session.create_queue(f"auth-{how}")
            async with session.create_consumer(queue) as consumer:
                await (await session.create_producer(queue)).send("hello")
                message = await consumer.receive(timeout=30)
                assert message is not None
                assert message.text == "hello"


async def test_a_guest_is_allowed_nothing(secure_broker: SecureBroker) -> None:
    guest = secure_broker.options(params=secure_broker.token(auth.GUEST))
    async with jmsaio.connect(guest) as connection, connection.create_session() as session:
        with pytest.raises(JMSSecurityError, match="no right"):
            await session.create_producer(session.create_queue("auth-guest"))
