"""Tokens of an OAuth 2.0 server: each is fetched once, kept until it expires, and never shown."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import certifi
import pytest

import jmsaio
from jmsaio.config import load
from jmsaio.errors import BrokerUnavailableError, ConfigurationError, JMSSecurityError
from jmsaio.transport.pulsar.admin import RestAdmin
from jmsaio.transport.pulsar.admin.credentials import OAuthTokens, is_token, read_credentials, with_key
from tests.support.certificates import make_authority, make_certificate
from tests.support.issuer import CLIENT, SECRET, Issuer, make_keys
from tests.support.secure import OAuthBroker

KEY = json.dumps({"client_id": CLIENT, "client_secret": SECRET, "issuer_url": "https://unused"})


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("issuer")
    make_keys(folder)
    return folder / "issuer.key"


@pytest.fixture
def server(key: Path) -> Iterator[Issuer]:
    with Issuer(key) as server:
        yield server


def tokens_of(parameters: str) -> OAuthTokens:
    credentials = read_credentials("oauth2", parameters)
    assert credentials is not None
    assert credentials.issued is not None
    return credentials.issued


async def test_a_token_is_fetched_once_until_it_expires_or_is_refused(server: Issuer) -> None:
    tokens = tokens_of(server.parameters())
    first = await asyncio.gather(*(tokens.token() for _ in range(5)))
    assert first == server.issued * 5
    tokens.forget()
    assert await tokens.token() == server.issued[1]
    server.lifetime = 0
    tokens.forget()
    assert [await tokens.token(), await tokens.token()] == server.issued[2:]
    assert not any(token in repr(tokens) for token in server.issued)


async def test_audience_and_scope_are_sent(server: Issuer) -> None:
    await tokens_of(server.parameters(scope="queues")).token()
    claims = json.loads(base64.urlsafe_b64decode(server.issued[0].split(".")[1] + "=="))
    assert (claims["sub"], claims["aud"], server.asked["scope"]) == (CLIENT, "jmsaio-tests", "queues")


@pytest.mark.parametrize("form", ["{path}", "file:{path}", "file://{path}", "data:application/json;base64,{data}"])
async def test_the_private_key_is_a_file_or_the_url_itself(server: Issuer, tmp_path: Path, form: str) -> None:
    path = tmp_path / "key: 1.json"
    path.write_text(KEY)
    place = form.format(path=path, data=base64.b64encode(KEY.encode()).decode())
    assert is_token(await tokens_of(server.parameters(clientId=None, clientSecret=None, privateKey=place)).token())


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"client_id": "s3cr3t"}', "s3cr3t"])
async def test_a_key_without_a_client_is_refused_and_not_shown(server: Issuer, tmp_path: Path, content: str) -> None:
    path = tmp_path / "key.json"
    path.write_text(content)
    with pytest.raises(
        JMSSecurityError, match=r"key\.json of privateKey in authParams: no JSON with client_id"
    ) as told:
        await tokens_of(server.parameters(privateKey=str(path))).token()
    assert "s3cr3t" not in str(told.value)
    assert told.value.__cause__ is None
    with pytest.raises(ConfigurationError, match="privateKey: not data:application/json;base64,") as refused:
        with_key({"private_key": f"data:application/json;base64,{base64.b64encode(content.encode()).decode()}"})
    assert "s3cr3t" not in str(refused.value)


@pytest.mark.parametrize(
    ("status", "body", "error", "words"),
    [
        (503, b"", BrokerUnavailableError, "answers with status 503"),
        (429, b"", BrokerUnavailableError, "answers with status 429"),
        (400, b"no JSON", JMSSecurityError, r"refuses the client \[400\]; check"),
        (401, b'{"error": "bad %s"}' % SECRET.encode(), JMSSecurityError, r"\[401\] \(bad \*\*\*:\)"),
        (302, b"", JMSSecurityError, r"refuses the client \[302\]"),
        (200, b"<html>", JMSSecurityError, "does not answer with a token"),
        (200, b"[]", JMSSecurityError, "does not answer with a token"),
        (200, b'{"access_token": "t"}', JMSSecurityError, "does not answer with a token and its expires_in"),
        (200, b'{"access_token": "two words", "expires_in": 9}', JMSSecurityError, "does not answer with a token"),
        (200, b'{"access_token": null, "expires_in": 9}', JMSSecurityError, "does not answer with a token"),
        (200, b'{"access_token": "t", "expires_in": NaN}', JMSSecurityError, "does not answer with a token"),
    ],
)
async def test_what_is_no_token_is_told(
    server: Issuer, status: int, body: bytes, error: type[Exception], words: str
) -> None:
    server.answer = status, body
    with pytest.raises(error, match=words) as told:
        await tokens_of(server.parameters()).token()
    assert SECRET not in str(told.value)


@pytest.mark.parametrize("url", ["ftp://h", "nonsense", "http://h:port"])
async def test_an_issuer_that_is_no_url_is_told(url: str) -> None:
    with pytest.raises(JMSSecurityError, match="check issuerUrl"):
        await OAuthTokens({"issuer_url": url, "client_id": "c", "client_secret": "s"}).token()


async def test_a_missing_file_of_authorities_is_told(server: Issuer) -> None:
    values = json.loads(server.parameters())
    tokens = OAuthTokens({"issuer_url": values["issuerUrl"], "client_id": "c", "client_secret": "s"}, "/no/such.pem")
    with pytest.raises(JMSSecurityError, match=r"tlsTrustCertsFilePath = '/no/such\.pem': No such file"):
        await tokens.token()


async def test_both_protocols_work_and_renew_their_tokens(
    oauth_broker: OAuthBroker, issuer: Issuer, name: Callable[[str], str]
) -> None:
    """While tokens expire after a second, messages and REST calls go on."""
    issuer.lifetime = 1
    options = oauth_broker.options("oauth2", issuer.parameters())
    async with jmsaio.connect(options) as connection, connection.create_session() as session:
        queue = session.create_queue(name("oauth"))
        producer, consumer = await session.create_producer(queue), await session.create_consumer(queue)
        for number in count():
            await producer.send(str(number))
            message = await consumer.receive(timeout=30)
            assert message is not None
            assert message.text == str(number)
            other = session.create_queue(name(f"oauth-{number}"))
            await session.create_producer(other)  # REST creates the queue's subscription
            by_us = sum(agent.startswith("python-httpx") for agent in issuer.agents)
            if by_us >= 2 and len(issuer.agents) - by_us >= 2:
                break
            await asyncio.sleep(0.5)


async def test_the_issuers_certificate_is_checked(oauth_broker: OAuthBroker, tmp_path: Path) -> None:
    """By both protocols, with the authorities that the option names."""
    authority = make_authority(tmp_path, "authority")
    with Issuer(oauth_broker.key, make_certificate(tmp_path, "authority", "issuer", "DNS:localhost")) as issuer:
        options = oauth_broker.options("oauth2", issuer.parameters())
        with pytest.raises(
            JMSSecurityError, match=r"https://localhost.* is not trusted: .* with tlsTrustCertsFilePath"
        ):
            await jmsaio.connect(options)
        assert issuer.issued == []
        async with (
            jmsaio.connect(options, tls_trust_certs_file_path=str(authority)) as connection,
            connection.create_session() as session,
        ):
            await session.create_producer(session.create_queue("oauth-tls"))
        assert len(issuer.issued) >= 2  # a slow connect looks for a refusal, with a token of its own


async def test_without_a_file_both_protocols_trust_what_certifi_has(
    oauth_broker: OAuthBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where only the issuer has TLS."""
    authority = make_authority(tmp_path, "authority")
    monkeypatch.setattr(certifi, "where", lambda: str(authority))
    with Issuer(oauth_broker.key, make_certificate(tmp_path, "authority", "issuer", "DNS:localhost")) as issuer:
        options = oauth_broker.options("oauth2", issuer.parameters())
        async with jmsaio.connect(options) as connection, connection.create_session() as session:
            await session.create_producer(session.create_queue("oauth-certifi"))
        assert len(issuer.issued) >= 2  # as above


async def test_rest_forgets_a_token_that_the_broker_refuses(oauth_broker: OAuthBroker, issuer: Issuer) -> None:
    """The next call has a new one, though the first has not expired."""
    values = json.loads(issuer.parameters(audience="somebody"))
    admin = RestAdmin(load(oauth_broker.options("oauth2", json.dumps(values))))
    try:
        for number in (1, 2):
            with pytest.raises(JMSSecurityError, match="another audience"):
                await admin.topics("public/default")
            assert len(issuer.issued) == number
    finally:
        await admin.aclose()
