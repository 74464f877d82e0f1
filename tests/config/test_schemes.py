"""Every row of the registry of transports can be used."""

from __future__ import annotations

from importlib import import_module
from inspect import iscoroutinefunction

import pytest

from jmsaio.config.schemes import SCHEMES, Scheme, default_broker
from jmsaio.config.sources import is_url, parse_broker
from jmsaio.errors import ConfigurationError


@pytest.mark.parametrize("scheme", SCHEMES.values(), ids=lambda scheme: scheme.name)
def test_each_row_names_a_module_that_opens_a_transport(scheme: Scheme) -> None:
    assert iscoroutinefunction(import_module(scheme.transport).open_transport)


@pytest.mark.parametrize("scheme", [each for each in SCHEMES.values() if each.example], ids=lambda scheme: scheme.name)
def test_each_example_is_a_url_of_its_scheme(scheme: Scheme) -> None:
    assert is_url(scheme.example)
    assert parse_broker(scheme.example).scheme == scheme.name


def test_the_broker_where_none_is_configured_is_the_unnamed_one_in_this_process() -> None:
    broker = default_broker()
    assert SCHEMES[broker.scheme].in_process
    assert broker.broker_name == ""


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
