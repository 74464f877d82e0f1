"""Connection options: the names of ``jmsaio.connect``, and what is shown of their values."""

from __future__ import annotations

import pytest

from jmsaio.config import load
from jmsaio.config.declaring import written_names
from jmsaio.errors import ConfigurationError
from jmsaio.spark.options.connection import check_connection, shown_connection, split_options, written_name


def test_every_written_name_of_connect_is_found_in_any_case() -> None:
    for name in written_names():
        wanted = None if name == "brokerServiceUrl" else name
        assert written_name(name.lower()) == written_name(name.upper()) == wanted
    assert written_name("producerconfig.properties.team") == "producerConfig.properties.team"
    assert written_name("client_id") is None


def test_the_url_is_parted_from_its_options() -> None:
    assert split_options(" pulsar://a,b:6651?jms.clientId=x%20y ") == ("pulsar://a,b:6651", {"jms.clientId": "x y"})


@pytest.mark.parametrize("url", ["memory:", "memory://name", "MEMORY:"])
def test_a_broker_in_a_process_is_refused_with_what_to_start(url: str) -> None:
    with pytest.raises(ConfigurationError, match="start a broker with `jmsaio broker start` and give its URL"):
        split_options(url)


def test_credentials_in_the_url_are_refused_and_not_shown() -> None:
    with pytest.raises(ConfigurationError) as caught:
        split_options("pulsar://user:canary@host")
    assert "canary" not in str(caught.value)


def test_options_are_checked_as_load_checks_them() -> None:
    connection, configuration = check_connection("pulsar://host", {"jms.clientId": "x"}, inline=False)
    assert connection == {"brokerServiceUrl": "pulsar://host", "jms.clientId": "x"}
    assert configuration == load(connection)
    with pytest.raises(ConfigurationError, match="option enableTransaction = 'true': this option is known but not"):
        check_connection("pulsar://host", {"enableTransaction": "true"}, inline=False)


@pytest.mark.parametrize(
    ("name", "text", "hidden"),
    [
        ("authParams", "token:canary", True),
        ("jms.tckPassword", "canary", True),
        ("tlsTrustStorePassword", "canary", True),
        ("consumerConfig.properties.canary", "canary", True),
        ("authParams", "file:canary", False),
        ("jms.clientId", "canary", False),
    ],
)
def test_secrets_are_not_shown_and_references_are(name: str, text: str, hidden: bool) -> None:
    assert shown_connection({name: text}) == repr({name: "***" if hidden else text})
