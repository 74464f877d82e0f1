"""Whoever is refused is told the cause and what to do, by whatever he calls, and no secret."""

from __future__ import annotations

import logging
import re
import traceback
import uuid
from collections.abc import Awaitable, Callable

import anyio
import anyio.to_thread
import pytest

import jmsaio
from jmsaio.cli import main
from jmsaio.config import load
from jmsaio.errors import JMSSecurityError
from jmsaio.transport.pulsar.admin import RestAdmin
from tests.support.issuer import Issuer
from tests.support.refusals import REFUSALS, Brokers, Options, secrets_of
from tests.support.secure import OAuthBroker, SecureBroker

#: Seconds that a refusal may take on a crowded machine; pulsar-client itself would try again for 30.
SOON = 28.0


async def connect(options: Options) -> None:
    async with jmsaio.connect(options):
        pass


async def send(options: Options) -> None:
    async with jmsaio.connect(options) as connection, connection.create_session() as session:
        await (await session.create_producer(session.create_queue("refused"))).send("body")


async def receive(options: Options) -> None:
    async with jmsaio.connect(options) as connection, connection.create_session() as session:
        await (await session.create_consumer(session.create_queue("refused"))).receive(timeout=1)


async def ask_rest(options: Options) -> None:
    admin = RestAdmin(load(options))
    try:
        await admin.stats(f"persistent://public/default/{uuid.uuid4()}")
    finally:
        await admin.aclose()


async def connect_by_wire(options: Options) -> None:
    await connect(options | {"transport": "wire"})


CALLS = (connect, send, receive, ask_rest, pytest.param(connect_by_wire, marks=pytest.mark.slow))


@pytest.fixture
def brokers(secure_broker: SecureBroker, oauth_broker: OAuthBroker, issuer: Issuer) -> Brokers:
    return Brokers(secure_broker, oauth_broker, issuer)


@pytest.mark.real_time  # the broker answers within seconds
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
@pytest.mark.parametrize("case", REFUSALS)
async def test_a_refusal_names_cause_and_remedy(
    brokers: Brokers, case: str, call: Callable[[Options], Awaitable[None]], caplog: pytest.LogCaptureFixture
) -> None:
    refusal = REFUSALS[case]
    options = refusal.options(brokers)
    caplog.set_level(logging.DEBUG)
    if refusal.reached and call in (connect, connect_by_wire):
        await call(options)
        return
    with anyio.fail_after(SOON), pytest.raises(refusal.error, match=refusal.words) as told:
        await call(options)
    shown = "".join(traceback.format_exception(told.value)) + repr(told.value) + caplog.text
    for secret in secrets_of(options):
        assert secret not in shown


@pytest.mark.real_time  # the broker answers within seconds
@pytest.mark.parametrize("case", REFUSALS)
async def test_connect_says_it_where_only_the_rest_interface_is_named(brokers: Brokers, case: str) -> None:
    """As Starlight's own default configuration does: brokers are looked up there."""
    refusal = REFUSALS[case]
    options = refusal.options(brokers)
    del options["brokerServiceUrl"]
    with anyio.fail_after(SOON):
        if refusal.reached:
            await connect(options)
            return
        with pytest.raises(refusal.error, match=refusal.words) as told:
            await connect(options)
    for secret in secrets_of(options):
        assert secret not in str(told.value)


@pytest.mark.parametrize("way", ["token", "TLS", "certificate", "OAuth 2.0"])
async def test_each_way_works_where_only_the_rest_interface_is_named(brokers: Brokers, way: str) -> None:
    secure = brokers.secure
    options = {
        "token": lambda: secure.options(),
        "TLS": lambda: secure.options(tls=True),
        "certificate": lambda: secure.options(tls=True, plugin="tls", params=secure.certificate()),
        "OAuth 2.0": lambda: brokers.oauth.options("oauth2", brokers.issuer.parameters()),
    }[way]()
    del options["brokerServiceUrl"]
    options["tlsEnableHostnameVerification"] = "false"  # the broker's own address is not in its certificate
    async with jmsaio.connect(options) as connection, connection.create_session() as session:
        queue = session.create_queue(f"looked-up-{uuid.uuid4()}")
        await (await session.create_producer(queue)).send("hello")
        message = await (await session.create_consumer(queue)).receive(timeout=30)
        assert message is not None and message.text == "hello"


@pytest.mark.real_time  # the broker answers within seconds
@pytest.mark.parametrize("call", [send, receive], ids=lambda call: call.__name__)
async def test_the_certificate_of_a_broker_that_was_looked_up_has_another_host(
    secure_broker: SecureBroker, call: Callable[[Options], Awaitable[None]]
) -> None:
    """The URL's host is in the certificate; the address that the broker advertises is not."""
    options = secure_broker.options(tls=True)
    del options["brokerServiceUrl"]
    words = r"certificate of 127\.0\.0\.1:\d+ is for another host: .*; connect by a name that it has"
    with anyio.fail_after(SOON), pytest.raises(JMSSecurityError, match=words):
        await call(options)


@pytest.mark.parametrize("case", REFUSALS)
def test_a_command_says_it_and_fails(brokers: Brokers, case: str, capsys: pytest.CaptureFixture[str]) -> None:
    refusal = REFUSALS[case]
    options = refusal.options(brokers)
    settings = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
    assert main(["send", "refused", "body", *settings]) == 1
    said = capsys.readouterr().err
    assert re.search(refusal.words, said), said
    for secret in secrets_of(options):
        assert secret not in said
