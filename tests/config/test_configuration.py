"""``Configuration`` itself: rules between options, and what it shows."""

import attrs
import pytest

from jmsaio.config import Configuration, ConsumerConfig, load
from jmsaio.errors import ConfigurationError


def test_repr_shows_what_was_set_and_no_secret() -> None:
    assert repr(load()) == "Configuration(service_url='memory:', fallback=True)"
    shown = repr(load("pulsar://h", client_id="x", auth_plugin="token", auth_params="s3cret"))
    assert shown == (
        "Configuration(service_url='pulsar://h:6650', scheme='pulsar', web_service_url='http://h:8080', client_id='x', "
        "auth_plugin='token', auth_params='***')"
    )


def test_it_is_frozen_and_checked_when_made_directly() -> None:
    config = Configuration(consumer={"receiverQueueSize": 2})  # type: ignore[arg-type]  # a map is taken
    assert config.consumer == ConsumerConfig(receiver_queue_size=2)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        config.client_id = "x"  # type: ignore[misc]  # wrong on purpose
    with pytest.raises(ConfigurationError, match="acknowledge_scope"):
        Configuration(acknowledge_scope="all")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(ConfigurationError, match="needs a ProducerConfig"):
        Configuration(producer=5)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize("plugin", ["token", "org.apache.pulsar.client.impl.auth.AuthenticationToken"])
def test_credentials_from_create_connection_need_the_token_plugin(plugin: str) -> None:
    assert Configuration(use_credentials_from_create_connection=True, auth_plugin=plugin)
    with pytest.raises(ConfigurationError, match="authPlugin"):
        Configuration(use_credentials_from_create_connection=True, auth_plugin="tls")
    with pytest.raises(ConfigurationError, match="authPlugin"):
        Configuration(auth_params="x")


@pytest.mark.parametrize("namespace", ["public", "/default", "public/", "a/b/c", "persistent://a/b"])
def test_system_namespace_is_tenant_and_namespace(namespace: str) -> None:
    with pytest.raises(ConfigurationError, match="tenant/namespace"):
        Configuration(system_namespace=namespace)
