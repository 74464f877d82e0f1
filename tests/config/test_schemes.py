"""Every row of the registry of transports can be used."""

from __future__ import annotations

from importlib import import_module
from inspect import iscoroutinefunction
from typing import Any

import pytest

from jmsaio.config import load
from jmsaio.config.options import EVERYWHERE
from jmsaio.config.schemes import SCHEMES, Scheme, default_broker
from jmsaio.config.sources import is_url, parse_broker
from jmsaio.errors import ConfigurationError


@pytest.mark.parametrize("scheme", SCHEMES.values(), ids=lambda scheme: scheme.name)
def test_each_row_names_a_module_that_opens_a_transport(scheme: Scheme) -> None:
    for transport in scheme.transports:
        assert iscoroutinefunction(import_module(transport.module).open_transport)


@pytest.mark.parametrize("scheme", [each for each in SCHEMES.values() if each.example], ids=lambda scheme: scheme.name)
def test_each_example_is_a_url_of_its_scheme(scheme: Scheme) -> None:
    assert is_url(scheme.example)
    assert parse_broker(scheme.example).scheme == scheme.name


def test_the_broker_where_none_is_configured_is_the_unnamed_one_in_this_process() -> None:
    broker = default_broker()
    assert SCHEMES[broker.scheme].in_process
    assert broker.broker_name == ""


def test_every_option_is_declared_for_transports_that_exist() -> None:
    names = {transport.name for scheme in SCHEMES.values() for transport in scheme.transports}
    assert set(EVERYWHERE) == names


@pytest.mark.parametrize(
    ("url", "keyword", "name"),
    [
        ("pulsar://h", None, None),
        ("pulsar://h?transport=wire", None, "wire"),
        ("pulsar://h?transport=wire", "pulsar-client", "pulsar-client"),
        ("pulsar+ssl://h", "wire", "wire"),
        ("pulsar://h?transport=wire&useTls=true", None, "wire"),
        ("http://h", None, None),
    ],
)
def test_a_transport_is_chosen_by_name(url: str, keyword: str | None, name: str | None) -> None:
    options: dict[str, Any] = {} if keyword is None else {"transport": keyword}
    config = load(url, **options)
    assert config.transport == name
    assert load(None, {"JMSAIO_URL": url}, **options).transport == name
    assert SCHEMES[config.scheme].transport(config.transport).name == (name or "pulsar-client")


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ("pulsar://h?transport=wires", "'wires': pulsar:// URLs take pulsar-client or wire"),
        ({"brokerServiceUrl": "pulsar://h", "transport": 3}, "3: pulsar:// URLs take pulsar-client or wire"),
        ("pulsar+ssl://h?transport=memory", "'memory': pulsar+ssl:// URLs take pulsar-client or wire"),
        ("http://h?transport=wire", "'wire': http:// URLs take pulsar-client; for the others name the broker "
         "itself with brokerServiceUrl, such as pulsar://host:6650"),
        ({"webServiceUrl": "https://h", "transport": "wire"}, "'wire': https:// URLs take pulsar-client; for the "
         "others name the broker itself with brokerServiceUrl, such as pulsar://host:6650"),
        ("memory:?transport=wire", "'wire': memory: is a broker in this process, without a choice of transports; "
         "leave the option out"),
    ],
)  # fmt: skip
def test_a_transport_that_the_url_can_not_have_is_refused(config: Any, reason: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(config)
    assert str(caught.value) == f"option transport = {reason}"
    assert caught.value.key == "transport"


def test_only_a_transport_with_transactions_accepts_them_as_given() -> None:
    assert load("memory:?enableTransaction=true").transport is None
    for name in ("pulsar-client", "wire"):
        with pytest.raises(ConfigurationError, match="enableTransaction"):
            load(f"pulsar://h?transport={name}&enableTransaction=true")


@pytest.mark.parametrize("hosts", ["localhost:6650", "10.0.0.1:6650,broker-2.example:6650"])
def test_hosts_without_a_scheme_are_refused_with_the_url_to_write(hosts: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_broker(hosts)
    assert str(caught.value) == f"{hosts!r} is not a URL: write pulsar://{hosts}, or pulsar+ssl:// for TLS"


def test_an_unknown_scheme_is_refused_with_the_nearest_and_the_examples() -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_broker("pulser://host")
    assert str(caught.value) == (
        "pulser://... is not a broker URL that jmsaio supports; did you mean 'pulsar'?; write memory:, "
        "pulsar://host:6650 or pulsar+ssl://host:6651"
    )
