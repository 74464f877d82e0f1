"""The registry of transports, and broker URLs."""

import json
import pathlib
from importlib import import_module
from inspect import iscoroutinefunction
from typing import Any

import pytest

from jmsaio.config import load
from jmsaio.config.options import EVERYWHERE
from jmsaio.config.schemes import (
    SCHEMES,
    BrokerAddress,
    Scheme,
    check_web_url,
    default_broker,
    is_url,
    parse_broker,
    split_url,
)
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
        ("pulsar://h", None, "pulsar-client"),
        ("pulsar://h?transport=auto", None, "pulsar-client"),
        ("pulsar://h?enableTransaction=true", None, "wire"),
        ("pulsar+ssl://h?enableTransaction=true", "auto", "wire"),
        ("pulsar://h?enableTransaction=true&useTls=true", None, "wire"),
        ("pulsar://h?jms.emulateTransactions=true", None, "pulsar-client"),
        ("pulsar://h?jms.emulateTransactions=true", "wire", "wire"),
        ("pulsar://h?transport=wire", None, "wire"),
        ("pulsar://h?transport=wire", "auto", "pulsar-client"),
        ("pulsar://h?transport=wire", "pulsar-client", "pulsar-client"),
        ("pulsar+ssl://h", "wire", "wire"),
        ("pulsar://h?transport=wire&useTls=true", None, "wire"),
        ("http://h", None, "pulsar-client"),
        ("http://h?enableTransaction=true", None, "wire"),
        ("https://h", "wire", "wire"),
        ("memory:?transport=auto&enableTransaction=true", None, "memory"),
    ],
)
def test_a_transport_is_chosen_by_name_or_for_transactions(
    url: str, keyword: str | None, name: str, tmp_path: pathlib.Path
) -> None:
    """However the options are given."""
    options: dict[str, Any] = {} if keyword is None else {"transport": keyword}
    assert load(url, **options).used_transport == name
    assert load(None, {"JMSAIO_URL": url}, **options).used_transport == name
    broker, _, query = url.partition("?")
    written = {"brokerServiceUrl": broker, **dict(each.split("=") for each in query.split("&") if each)}
    assert load(written, **options).used_transport == name
    (file := tmp_path / "options.json").write_text(json.dumps(written), encoding="utf-8")
    assert load(file, **options).used_transport == name


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"brokerServiceUrl": "pulsar://h", "transport": "pulsar-client"},
         "transport=pulsar-client has no transactions; use transport=wire, or set jms.emulateTransactions=true "
         "instead"),
        ({"webServiceUrl": "https://h", "transport": "pulsar-client"},
         "transport=pulsar-client has no transactions; use transport=wire, or set jms.emulateTransactions=true "
         "instead"),
    ],
)  # fmt: skip
def test_transactions_are_refused_on_a_transport_without_them(config: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load({"enableTransaction": "true", **config})
    assert str(refused.value) == f"option enableTransaction = True: {reason}"


def test_what_only_the_transport_without_transactions_has_is_refused_with_both_options() -> None:
    only = "consumerConfig.cryptoFailureAction"
    with pytest.raises(ConfigurationError) as refused:
        load({"brokerServiceUrl": "pulsar://h", "enableTransaction": True, only: "DISCARD"})
    assert str(refused.value) == (
        f"option {only} = 'DISCARD': transport=wire does not have this option; use transport=pulsar-client with "
        "jms.emulateTransactions=true in place of enableTransaction=true, or leave it out"
    )


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ("pulsar://h?transport=wires", "'wires': must be one of auto, pulsar-client, wire"),
        ({"brokerServiceUrl": "pulsar://h", "transport": 3}, "'3': must be one of auto, pulsar-client, wire"),
        ("pulsar+ssl://h?transport=memory", "'memory': must be one of auto, pulsar-client, wire"),
        ("memory:?transport=wire", "'wire': memory: is a broker in this process, without a choice of transports; "
         "leave the option out"),
    ],
)  # fmt: skip
def test_a_transport_that_the_url_can_not_have_is_refused(config: Any, reason: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(config)
    assert str(caught.value) == f"option transport = {reason}"
    assert caught.value.key == "transport"


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


@pytest.mark.parametrize(
    ("text", "broker"),
    [
        ("memory:", BrokerAddress("memory", "", "memory:", "")),
        ("memory://", BrokerAddress("memory", "", "memory:", "")),
        ("MEMORY://orders", BrokerAddress("memory", "orders", "memory://orders", "")),
        ("pulsar://h", BrokerAddress("pulsar", "", "pulsar://h:6650", "http://h:8080")),
        ("pulsar://h:1,g/", BrokerAddress("pulsar", "", "pulsar://h:1,g:6650", "http://h:8080")),
        ("pulsar+ssl://h", BrokerAddress("pulsar+ssl", "", "pulsar+ssl://h:6651", "https://h:8443")),
        ("pulsar://[::1]:7", BrokerAddress("pulsar", "", "pulsar://[::1]:7", "http://[::1]:8080")),
        ("pulsar://[::1]", BrokerAddress("pulsar", "", "pulsar://[::1]:6650", "http://[::1]:8080")),
        ("http://h", BrokerAddress("pulsar", "", "http://h:8080", "http://h:8080")),
        ("https://h:1", BrokerAddress("pulsar+ssl", "", "https://h:1", "https://h:1")),
    ],
)
def test_a_broker_url_gets_the_ports_it_leaves_out(text: str, broker: BrokerAddress) -> None:
    assert parse_broker(text) == broker


@pytest.mark.parametrize(
    "text",
    ["", "pulsar:", "pulsar:h", "pulsar://", "pulsar://h:0", "pulsar://h:99999", "pulsar://h:x", "pulsar://h,,g",
     "pulsar://h/tenant", "pulsar://u@h", "memory:x", "memory://a/b", "amqp://h", "pulsar://:6650", "pulsar://h:٣"],
)  # fmt: skip
def test_broken_broker_urls_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        parse_broker(text)


def test_a_query_is_decoded_and_the_last_of_a_name_counts() -> None:
    _, options = split_url("memory:?a=1&a=2&b%2Ec=x%3Dy%26&&d=")
    assert options == {"a": "2", "b.c": "x=y&", "d": ""}
    with pytest.raises(ConfigurationError, match="no '='"):
        split_url("memory:?a")
    with pytest.raises(ConfigurationError, match="no '='"):
        split_url("memory:?=a")


def test_what_is_a_url() -> None:
    assert is_url("memory:") and is_url("memory") and is_url("x://y")
    assert not is_url("starlight.json") and not is_url("/etc/x")


def test_a_web_url_needs_a_scheme_and_has_no_password() -> None:
    assert check_web_url("http://h:8080/") == "http://h:8080"
    for wrong in ("h:8080", "http://u:p@h"):
        with pytest.raises(ConfigurationError):
            check_web_url(wrong)
