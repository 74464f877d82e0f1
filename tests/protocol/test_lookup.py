"""A look-up follows redirects, through the proxy if told to, and ends."""

from __future__ import annotations

from typing import Any

import pytest

from jmsaio.errors import TransportError
from jmsaio.protocol.codes import LookupType
from jmsaio.protocol.lookup import Address, Lookup

pytestmark = pytest.mark.fast
TOPIC = "persistent://public/default/orders"
SERVICE = "pulsar://first:6650"


def lookup(tls: bool = False, listener: str | None = None) -> Lookup:
    return Lookup(TOPIC, SERVICE, tls, listener)


def answer(kind: object, url: str = "pulsar://next:6650", **fields: Any) -> dict[str, Any]:
    return {"response": kind, "broker_service_url": url, "broker_service_url_tls": "pulsar+ssl://next:6651", **fields}


def test_the_first_broker_asked_is_the_services() -> None:
    asked = lookup()
    assert asked.address == Address(SERVICE)
    assert asked.request() == {"topic": TOPIC, "authoritative": False}
    assert lookup(listener="outside").request()["advertised_listener_name"] == "outside"


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("proxied", [False, True])
def test_the_broker_is_found(tls: bool, proxied: bool) -> None:
    asked = lookup(tls)
    asked.request()
    step = asked.answered(answer(LookupType.Connect, proxy_through_service_url=proxied))
    assert step
    broker = "pulsar+ssl://next:6651" if tls else "pulsar://next:6650"
    assert asked.address == Address(broker, SERVICE if proxied else "")


@pytest.mark.parametrize("authoritative", [True, False])
def test_a_redirect_is_followed(authoritative: bool) -> None:
    asked = lookup()
    asked.request()
    assert not asked.answered(answer(LookupType.Redirect, authoritative=authoritative))
    assert asked.address == Address("pulsar://next:6650")
    assert asked.request()["authoritative"] is authoritative


def test_endless_redirects_end() -> None:
    asked = lookup()
    for _ in range(20):
        asked.request()
        assert not asked.answered(answer(LookupType.Redirect))
    asked.request()
    with pytest.raises(TransportError, match=f"look up {TOPIC}: passed on 21 times") as raised:
        asked.answered(answer(LookupType.Redirect))
    assert raised.value.error_code == "LookupError"


def test_the_last_broker_asked_can_still_answer() -> None:
    asked = lookup()
    for _ in range(20):
        asked.request()
        asked.answered(answer(LookupType.Redirect))
    asked.request()
    assert asked.answered(answer(LookupType.Connect))


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (answer(LookupType.Connect, url=""), "names no address for connections without TLS"),
        ({"response": LookupType.Redirect}, "names no address for connections without TLS"),
        (answer(LookupType.Failed), "an answer of unknown kind 2"),
        (answer(7), "an answer of unknown kind 7"),
        ({}, "an answer of unknown kind None"),
    ],
)
def test_an_answer_without_sense_is_an_error(fields: dict[str, Any], text: str) -> None:
    asked = lookup()
    asked.request()
    with pytest.raises(TransportError, match=text):
        asked.answered(fields)
    assert asked.address == Address(SERVICE)
