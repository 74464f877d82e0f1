"""Convert jmsaio's configuration to pulsar-client's configuration objects."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from functools import partial

import _pulsar

from jmsaio.config import Configuration, ProducerConfig
from jmsaio.errors import ConfigurationError, JMSError, TransportError
from jmsaio.model.schema import Schema
from jmsaio.model.wire import WireId
from jmsaio.transport.base import ReaderOptions, StartPosition, Subscription
from jmsaio.transport.pulsar.admin.credentials import AuthKind, Credentials, authorities, read_credentials
from jmsaio.transport.pulsar.native.binding.handles import MessageIdHandle
from jmsaio.transport.pulsar.native.binding.native_log import NATIVE_LOG

_log = logging.getLogger(__name__)

#: Default ``maxMessageSize`` of a broker, in bytes.
MAX_MESSAGE_SIZE = 5 * 1024 * 1024
#: pulsar-client's minimum delay of a negative acknowledgement, in seconds; jmsaio adds the rest.
NATIVE_NACK_DELAY = 0.1

#: Types of schemas whose messages pulsar-client marks with their version.
_SCHEMAS = ("STRING", "JSON", "AVRO")
_COMPRESSION = {name.upper(): kind for name, kind in _pulsar.CompressionType.__members__.items()}


def client_configuration(config: Configuration) -> _pulsar.ClientConfiguration:
    native = _pulsar.ClientConfiguration()
    NATIVE_LOG.direct(native)
    credentials = read_credentials(config.auth_plugin, config.auth_params)
    if credentials is not None:
        native.authentication(authentication(credentials))
    native.operation_timeout_seconds(max(1, round(config.operation_timeout)))
    native.stats_interval_in_seconds(config.stats_interval_in_seconds)
    native.connection_timeout(config.connection_timeout_ms)
    native.io_threads(config.io_threads)
    native.message_listener_threads(config.message_listener_threads)
    native.concurrent_lookup_requests(config.concurrent_lookup_requests)
    if config.listener_name:
        native.listener_name(config.listener_name)
    _tls(native, config)
    return native


def _tls(native: _pulsar.ClientConfiguration, config: Configuration) -> None:
    native.tls_trust_certs_file_path(authorities(config))  # an OAuth 2.0 server uses TLS even if the broker does not
    if config.scheme != "pulsar+ssl":
        return
    native.tls_allow_insecure_connection(config.tls_allow_insecure_connection)
    native.tls_validate_hostname(config.tls_enable_hostname_verification)
    if config.tls_key_file_path is not None:
        native.tls_private_key_file_path(config.tls_key_file_path)
    if config.tls_certificate_file_path is not None:
        native.tls_certificate_file_path(config.tls_certificate_file_path)


def authentication(credentials: Credentials) -> _pulsar.Authentication:
    values = credentials.values
    if credentials.function is not None:
        return _pulsar.AuthenticationToken.create(partial(_token_or_none, credentials))
    if credentials.kind is AuthKind.TOKEN:
        file = values.get("file")
        text = f"file://{os.path.abspath(file)}" if file is not None else f"token:{values['token']}"
        return _pulsar.Authentication.create("token", text)
    if credentials.kind is AuthKind.TLS:
        return _pulsar.AuthenticationTLS.create(values["tlsCertFile"], values["tlsKeyFile"])
    if credentials.kind is AuthKind.BASIC:
        return _pulsar.AuthenticationBasic.create(values["username"], values["password"], values.get("method", "basic"))
    if "private_key" in values:  # a colon in a path would end a URL's scheme
        values = {**values, "private_key": f"file:{values['private_key']}"}
    return _pulsar.AuthenticationOauth2.create(json.dumps(dict(values)))


def _token_or_none(credentials: Credentials) -> str:
    """Return the function's token, or "", which the broker refuses: an error in its thread could end the process."""
    try:
        return credentials.read_token()
    except BaseException as error:
        _log.warning("no token to connect with: %s", error if isinstance(error, JMSError) else type(error).__name__)
        return ""


def producer_configuration(
    config: ProducerConfig, metadata: Mapping[str, str], schema: Schema | None = None
) -> _pulsar.ProducerConfiguration:
    """Create it without pulsar-client's own limits, blocking and time-out (see ``partition_producer``)."""
    if schema is not None and schema.type not in _SCHEMAS:
        raise TransportError(
            f"pulsar-client does not send messages with a schema of type {schema.type}, only {', '.join(_SCHEMAS)}",
            "IncompatibleSchema",
        )
    if config.chunking_enabled and config.batches:
        raise ConfigurationError(
            "option producerConfig.chunkingEnabled: pulsar-client chunks only with batchingEnabled=false",
            key="producerConfig.chunkingEnabled",
        )
    native = _pulsar.ProducerConfiguration()
    native.block_if_queue_full(False)
    native.max_pending_messages(0)
    native.max_pending_messages_across_partitions(0)
    native.batching_enabled(config.batches)
    if config.batches:  # pulsar-client refuses 1
        native.batching_max_messages(_limit(config.batching_max_messages, 2**31 - 1))
    # A batch of several records never approaches the broker's limit, so a group never fails because of its size.
    native.batching_max_allowed_size_in_bytes(_limit(config.batching_max_bytes, MAX_MESSAGE_SIZE // 2))
    native.batching_max_publish_delay_ms(max(1, round(config.batching_max_publish_delay * 1000)))
    if config.batcher_builder == "KEY_BASED":
        native.batching_type(_pulsar.BatchingType.KeyBased)
    native.chunking_enabled(config.chunking_enabled)
    native.send_timeout_millis(0)
    native.compression_type(_COMPRESSION[config.compression_type.upper()])
    native.access_mode(getattr(_pulsar.ProducerAccessMode, config.access_mode))
    if config.producer_name is not None:
        native.producer_name(config.producer_name)
    if config.initial_sequence_id is not None:
        native.initial_sequence_id(config.initial_sequence_id)
    if schema is not None:
        kind = _pulsar.SchemaType.__members__[schema.type]
        native.schema(_pulsar.SchemaInfo(kind, schema.type, schema.definition))
    for name, value in {**config.properties, **metadata}.items():
        native.property(name, value)
    return native


def _limit(given: int, most: int) -> int:
    return min(given, most) if given > 0 else most


def consumer_configuration(subscription: Subscription, queue_size: int) -> _pulsar.ConsumerConfiguration:
    config = subscription.config
    native = _pulsar.ConsumerConfiguration()
    native.consumer_type(getattr(_pulsar.ConsumerType, subscription.type.value.replace("_", "")))
    native.subscription_initial_position(getattr(_pulsar.InitialPosition, subscription.position.value.capitalize()))
    native.receiver_queue_size(queue_size)
    native.max_total_receiver_queue_size_across_partitions(config.max_total_receiver_queue_size_across_partitions)
    native.negative_ack_redelivery_delay_ms(round(NATIVE_NACK_DELAY * 1000))
    native.batch_index_ack_enabled(config.batch_index_ack_enabled)
    native.start_message_id_inclusive(True)
    if config.consumer_name is not None:
        native.consumer_name(config.consumer_name)
    native.read_compacted(config.read_compacted)
    native.replicate_subscription_state_enabled(config.replicate_subscription_state)
    native.max_pending_chunked_message(config.max_pending_chunked_message)
    native.auto_ack_oldest_chunked_message_on_queue_full(config.auto_ack_oldest_chunked_message_on_queue_full)
    native.crypto_failure_action(getattr(_pulsar.ConsumerCryptoFailureAction, config.crypto_failure_action.upper()))
    if subscription.pattern is not None:
        native.pattern_auto_discovery_period(max(1, round(config.pattern_auto_discovery_period)))
        native.regex_subscription_mode(getattr(_pulsar.RegexSubscriptionMode, config.regex_subscription_mode))
    for name, value in {**config.properties, **subscription.metadata}.items():
        native.property(name, value)
    return native


def reader_configuration(options: ReaderOptions) -> _pulsar.ReaderConfiguration:
    config = options.config
    native = _pulsar.ReaderConfiguration()
    native.receiver_queue_size(max(1, config.receiver_queue_size))
    # "Latest, inclusive" would be the last record already stored; and an inclusive reader moved to a time never finds
    # the end of its topic.
    native.start_message_id_inclusive(options.inclusive and isinstance(options.start, WireId))
    native.read_compacted(config.read_compacted)
    if options.name is not None:
        native.reader_name(options.name)
    native.subscription_role_prefix(options.prefix)
    return native


def native_position(position: StartPosition | WireId) -> MessageIdHandle:
    native: MessageIdHandle = (
        _pulsar.MessageId(position.partition, position.ledger, position.entry, position.batch_index)
        if isinstance(position, WireId)
        else getattr(_pulsar.MessageId, position.value)
    )
    return native
