"""Our configuration to pulsar-client's objects, read back from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import _pulsar
import attrs
import certifi
import pytest

from jmsaio.config import ConsumerConfig, ProducerConfig, load
from jmsaio.config.sections import AccessMode, Compression, RegexSubscriptionMode
from jmsaio.errors import ConfigurationError, TransportError
from jmsaio.model.schema import Schema
from jmsaio.model.wire import WireId
from jmsaio.transport.base import ReaderOptions, StartPosition, Subscription, SubscriptionType
from jmsaio.transport.pulsar.admin.credentials import read_credentials
from jmsaio.transport.pulsar.native.binding import options
from jmsaio.transport.pulsar.native.binding.native_log import NativeLog
from jmsaio.transport.pulsar.native.binding.options import (
    authentication,
    client_configuration,
    consumer_configuration,
    native_position,
    producer_configuration,
    reader_configuration,
)

#: Client options of the configuration, and what pulsar-client calls them.
OPTIONS = {
    "stats_interval_in_seconds": "stats_interval_in_seconds",
    "connection_timeout_ms": "connection_timeout",
    "io_threads": "io_threads",
    "message_listener_threads": "message_listener_threads",
    "concurrent_lookup_requests": "concurrent_lookup_requests",
}
USUAL = {
    "stats_interval_in_seconds": 0,
    "connection_timeout": 10000,
    "io_threads": 1,
    "message_listener_threads": 1,
    "concurrent_lookup_requests": 5000,
    "listener_name": None,
}


def test_producer_options_reach_pulsar_client() -> None:
    config = ProducerConfig(
        batching_max_messages=7,
        batching_max_bytes=64 * 1024 * 1024,
        batching_max_publish_delay=0.005,
        compression_type="ZSTD",
        producer_name="p",
        initial_sequence_id=5,
        access_mode="WaitForExclusive",
        send_timeout=1.5,
    )
    native = producer_configuration(config, {"a": "b"})
    assert not native.block_if_queue_full()
    assert native.max_pending_messages() == 0
    assert native.batching_max_messages() == 7
    assert native.batching_max_publish_delay_ms() == 5
    assert native.batching_max_allowed_size_in_bytes() < 5 * 1024 * 1024
    assert native.compression_type() == _pulsar.CompressionType.ZSTD
    assert (native.producer_name(), native.initial_sequence_id()) == ("p", 5)
    assert native.access_mode() == _pulsar.ProducerAccessMode.WaitForExclusive
    assert native.send_timeout_millis() == 0  # ours fails what is in doubt, record by record


@pytest.mark.parametrize(("given", "native"), [(5, 5), (2, 2), (0, 2**31 - 1), (-1, 2**31 - 1)])
def test_every_limit_of_a_batch_that_java_takes_reaches_pulsar_client(given: int, native: int) -> None:
    found = producer_configuration(ProducerConfig(batching_max_messages=given, batching_max_bytes=given), {})
    assert found.batching_enabled() and found.batching_max_messages() == native
    assert found.batching_max_allowed_size_in_bytes() == (given if given > 0 else options.MAX_MESSAGE_SIZE // 2)


def test_a_batch_of_one_message_is_none() -> None:
    """pulsar-client takes two at least."""
    config = ProducerConfig(batching_max_messages=1)
    assert not producer_configuration(config, {}).batching_enabled()
    assert producer_configuration(attrs.evolve(config, chunking_enabled=True), {}).chunking_enabled()


@pytest.mark.parametrize("compression", get_args(Compression))
@pytest.mark.parametrize("access", get_args(AccessMode))
def test_every_compression_and_access_mode_is_known_to_pulsar_client(
    compression: Compression, access: AccessMode
) -> None:
    producer_configuration(ProducerConfig(compression_type=compression, access_mode=access), {})


def test_a_schema_that_pulsar_client_would_not_send_is_refused_as_by_the_broker() -> None:
    with pytest.raises(TransportError, match="a schema of type INT64, only STRING, JSON, AVRO") as raised:
        producer_configuration(ProducerConfig(), {}, Schema("INT64"))
    assert raised.value.error_code == "IncompatibleSchema"


def test_chunking_needs_unbatched_sends() -> None:
    with pytest.raises(ConfigurationError, match="chunkingEnabled"):
        producer_configuration(ProducerConfig(chunking_enabled=True), {})
    assert producer_configuration(ProducerConfig(chunking_enabled=True, batching_enabled=False), {}).chunking_enabled()


@pytest.mark.parametrize("kind", SubscriptionType)
@pytest.mark.parametrize("position", StartPosition)
def test_consumer_options_reach_pulsar_client(kind: SubscriptionType, position: StartPosition) -> None:
    config = ConsumerConfig(consumer_name="c", read_compacted=True, replicate_subscription_state=True)
    native = consumer_configuration(Subscription(("t",), "s", kind, config, position), 17)
    assert native.consumer_type().name.lower() == kind.value.replace("_", "").lower()
    assert native.subscription_initial_position().name.lower() == position.value
    assert (native.receiver_queue_size(), native.consumer_name()) == (17, "c")
    assert native.batch_index_ack_enabled()
    assert native.negative_ack_redelivery_delay_ms() == 100
    assert native.read_compacted()
    assert native.replicate_subscription_state_enabled()


@pytest.mark.parametrize("mode", get_args(RegexSubscriptionMode))
def test_pattern_options_reach_pulsar_client(mode: RegexSubscriptionMode) -> None:
    config = ConsumerConfig(
        regex_subscription_mode=mode, pattern_auto_discovery_period=7, batch_index_ack_enabled=False
    )
    subscription = Subscription((), "s", SubscriptionType.SHARED, config, pattern="persistent://a/b/.*")
    native = consumer_configuration(subscription, 1)
    assert native.regex_subscription_mode().name == mode
    assert native.pattern_auto_discovery_period() == 7
    assert not native.batch_index_ack_enabled()


def test_reader_options_reach_pulsar_client() -> None:
    options = ReaderOptions("t", ConsumerConfig(receiver_queue_size=9), name="r", start=WireId(1, 2), inclusive=True)
    native = reader_configuration(options)
    assert (native.receiver_queue_size(), native.reader_name(), native.start_message_id_inclusive()) == (9, "r", True)
    latest = ReaderOptions("t", ConsumerConfig(), start=StartPosition.LATEST)
    assert not reader_configuration(latest).start_message_id_inclusive()
    timed = ReaderOptions("t", ConsumerConfig(), start=5)
    assert not reader_configuration(timed).start_message_id_inclusive()


def test_positions_become_pulsar_clients_ids() -> None:
    assert native_position(StartPosition.EARLIEST) == _pulsar.MessageId.earliest
    assert native_position(StartPosition.LATEST) == _pulsar.MessageId.latest
    assert native_position(WireId(1, 2, 3, 4)) == _pulsar.MessageId(3, 1, 2, 4)


def test_client_options_reach_pulsar_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "NATIVE_LOG", NativeLog())  # not the one of all tests
    config = load(
        "pulsar+ssl://h:1",
        operation_timeout=7,
        tls_trust_certs_file_path="/x",
        tls_key_file_path="/k",
        tls_certificate_file_path="/c",
        tls_enable_hostname_verification=False,
        tls_allow_insecure_connection=True,
    )
    native = client_configuration(config)
    assert native.operation_timeout_seconds() == 7
    assert native.tls_allow_insecure_connection()
    assert native.stats_interval_in_seconds() == 0
    plain = load({"brokerServiceUrl": "pulsar://h:1", "numIoThreads": 2, "numListenerThreads": 3, "listenerName": "l"})
    native = client_configuration(plain)
    assert (native.io_threads(), native.message_listener_threads()) == (2, 3)


class Noting:
    """A ``ClientConfiguration`` that notes what is set, for there is no way to ask the real one."""

    def __init__(self) -> None:
        self.set: dict[str, object] = {}

    def __getattr__(self, name: str) -> Callable[[object], None]:
        return lambda value: self.set.update({name: value})


@pytest.fixture
def noting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "NATIVE_LOG", Noting())
    monkeypatch.setattr(_pulsar, "ClientConfiguration", Noting)


def settings_of(url: str, **options: Any) -> dict[str, object]:
    native: Any = client_configuration(load(url, **options))
    found: dict[str, object] = native.set
    return found


@pytest.mark.parametrize("checked", [True, False])
def test_every_tls_option_reaches_pulsar_client(noting: None, checked: bool) -> None:
    found = settings_of(
        "pulsar+ssl://h:1",
        tls_trust_certs_file_path="/x",
        tls_key_file_path="/k",
        tls_certificate_file_path="/c",
        tls_enable_hostname_verification=checked,
        tls_allow_insecure_connection=not checked,
    )
    assert {name: value for name, value in found.items() if name.startswith("tls_")} == {
        "tls_trust_certs_file_path": "/x",
        "tls_private_key_file_path": "/k",
        "tls_certificate_file_path": "/c",
        "tls_validate_hostname": checked,
        "tls_allow_insecure_connection": not checked,
    }


def test_without_tls_options_the_authorities_of_certifi_are_trusted_and_no_client_is_named(noting: None) -> None:
    found = settings_of("pulsar+ssl://h:1")
    assert found["tls_trust_certs_file_path"] == certifi.where()
    assert not {"tls_private_key_file_path", "tls_certificate_file_path"} & found.keys()


def test_a_plain_connection_has_no_tls(noting: None) -> None:
    """What it trusts is for an OAuth 2.0 server."""
    assert [name for name in settings_of("pulsar://h:1") if name.startswith("tls_")] == ["tls_trust_certs_file_path"]


def test_client_options_that_are_not_set_have_pulsar_clients_usual_values(noting: None) -> None:
    found = settings_of("pulsar://h:1")
    assert {name: found.get(name) for name in USUAL} == USUAL


def test_each_client_option_has_its_own_place(noting: None) -> None:
    found = settings_of("pulsar://h:1", **{name: number for number, name in enumerate(OPTIONS, start=7)})
    assert {name: found[place] for name, place in OPTIONS.items()} == {
        name: number for number, name in enumerate(OPTIONS, start=7)
    }


@pytest.mark.parametrize(("seconds", "told"), [(0.2, 1), (1.6, 2), (30, 30)])
def test_the_operation_timeout_is_told_in_whole_seconds_and_never_none(noting: None, seconds: float, told: int) -> None:
    assert settings_of("pulsar://h:1", operation_timeout=seconds)["operation_timeout_seconds"] == told


@pytest.mark.parametrize(
    ("plugin", "parameters", "method"),
    [
        ("token", "abc", "token"),
        ("token", "file:///somewhere", "token"),
        ("tls", "tlsCertFile:/c,tlsKeyFile:/k", "tls"),
        ("basic", '{"userId":"u","password":"p"}', "basic"),
        ("oauth2", '{"issuerUrl":"https://i","privateKey":"/k"}', "token"),
    ],
)
def test_credentials_choose_the_authentication_method(plugin: str, parameters: str, method: str) -> None:
    credentials = read_credentials(plugin, parameters)
    assert credentials is not None
    assert authentication(credentials).getAuthMethodName() == method
