"""Broker URLs, queries and files."""

import pathlib

import pytest

from jmsaio.config.schemes import BrokerAddress
from jmsaio.config.sources import as_map, check_web_url, is_url, parse_broker, read_file, split_url
from jmsaio.errors import ConfigurationError


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


def test_files_that_hold_no_map_of_options_are_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("[1]")
    with pytest.raises(ConfigurationError, match="map of options, not list"):
        read_file(path)
    path.write_bytes(b"\xff")
    with pytest.raises(ConfigurationError, match="can't read"):
        read_file(path)
    with pytest.raises(ConfigurationError, match="meant as a URL"):
        read_file(pathlib.Path("localhost:6650"))
    with pytest.raises(ConfigurationError, match="not int"):
        as_map(5, "it")
