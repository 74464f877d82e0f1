"""The keyword options of ``connect`` and ``ConnectionFactory``, for type checkers.

Written by ``python .mkdocs/option_tables.py`` from the declared options; don't edit it by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypedDict

from jmsaio.config.sections import Backoff, ConsumerConfig, DeadLetterPolicy, ProducerConfig
from jmsaio.model.durations import Duration


class ConnectOptions(TypedDict, total=False):
    """Keyword options of ``connect``, except ``client_id``; ``jmsaio guide configuration`` describes them.

    Durations are seconds or a timedelta.
    """

    service_url: str
    web_service_url: str
    transport: Literal["auto", "pulsar-client", "wire"]
    system_namespace: str
    queue_subscription_name: str
    queue_subscription_type: Literal["Shared", "Key_Shared"]
    topic_shared_subscription_type: Literal["Shared", "Key_Shared", "Failover"]
    use_exclusive_subscriptions_for_simple_consumers: bool
    use_pulsar_admin: bool
    allow_temporary_topic_without_admin: bool
    precreate_queue_subscription: bool
    wait_for_server_startup_timeout: Duration
    enable_client_side_emulation: bool | None
    use_server_side_filtering: bool
    refresh_server_side_filters_period: Duration
    acknowledge_rejected_messages: bool
    enable_jms_priority: bool
    priority_mapping: Literal["linear", "non-linear"]
    enable_transaction: bool
    transaction_timeout: Duration
    emulate_transactions: bool
    transactions_sticky_partitions: bool
    force_delete_temporary_destinations: bool
    max_num_of_producers: int
    producer_auto_close: Duration | None
    use_credentials_from_create_connection: bool
    tck_username: str | None
    tck_password: str | None
    auth_plugin: str | None
    auth_params: str | Callable[[], str] | None
    tls_allow_insecure_connection: bool
    tls_enable_hostname_verification: bool
    tls_trust_certs_file_path: str | None
    tls_key_file_path: str | None
    tls_certificate_file_path: str | None
    operation_timeout: Duration
    keep_alive_interval: Duration
    connections_per_broker: int
    initial_backoff: Duration
    max_backoff: Duration
    lookup_properties: Mapping[str, str]
    max_lookup_redirects: int
    stats_interval_in_seconds: int
    io_threads: int
    message_listener_threads: int
    concurrent_lookup_requests: int
    connection_timeout_ms: int
    listener_name: str | None
    send_window_bytes: int
    strict_client_id: bool
    acknowledge_scope: Literal["session", "group"]
    queue_browser_read_max: int
    expired_messages: Literal["remove", "dead-letter"]
    malformed: Literal["raise", "dead-letter", "deliver"]
    auto_start: bool
    connect_timeout: Duration
    close_timeout: Duration
    send_window_messages: int
    receive_buffer: int
    receive_buffer_bytes: int
    max_unacknowledged_rejected: int
    memory_limit: int
    filters: bool
    listener_concurrency: int
    max_local_redeliveries: int
    producer: ProducerConfig | Mapping[str, object]
    consumer: ConsumerConfig | Mapping[str, object]
    batching_enabled: bool
    batching_max_publish_delay: Duration
    batching_max_messages: int
    batching_max_bytes: int
    send_timeout: Duration
    compression_type: Literal["NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY"]
    chunking_enabled: bool
    chunk_max_message_size: int
    producer_name: str | None
    access_mode: Literal["Shared", "Exclusive", "WaitForExclusive", "ExclusiveWithFencing"]
    message_routing_mode: Literal["RoundRobinPartition", "SinglePartition"]
    initial_sequence_id: int | None
    initial_subscription_name: str | None
    batcher_builder: Literal["DEFAULT", "KEY_BASED"]
    receiver_queue_size: int
    max_total_receiver_queue_size_across_partitions: int
    ack_timeout: Duration | None
    negative_ack_redelivery_delay: Duration | None
    ack_receipt_enabled: bool
    acknowledgements_group_time: Duration
    batch_index_ack_enabled: bool
    consumer_name: str | None
    priority_level: int
    read_compacted: bool
    pattern_auto_discovery_period: Duration
    regex_subscription_mode: Literal["PersistentOnly", "NonPersistentOnly", "AllTopics"]
    replicate_subscription_state: bool
    max_pending_chunked_message: int
    auto_ack_oldest_chunked_message_on_queue_full: bool
    expire_time_of_incomplete_chunked_message: Duration
    crypto_failure_action: Literal["FAIL", "DISCARD", "CONSUME"]
    use_schema: bool
    negative_ack_backoff: Backoff | Mapping[str, object] | None
    ack_timeout_backoff: Backoff | Mapping[str, object] | None
    dead_letter: DeadLetterPolicy | Mapping[str, object] | None


class FactoryOptions(ConnectOptions, total=False):
    """Keyword options of ``ConnectionFactory`` and ``load``."""

    client_id: str | None
