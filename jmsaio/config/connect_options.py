"""The keyword options of ``connect`` and ``ConnectionFactory``, for type checkers.

Written by ``python -m jmsaio.config.document`` from the declared options; don't edit it by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypedDict

from jmsaio.config.consumer import Backoff, ConsumerConfig, DeadLetterPolicy
from jmsaio.config.producer import ProducerConfig
from jmsaio.model.durations import Duration


class ConnectOptions(TypedDict, total=False):
    """Keyword options of ``connect``, which takes ``client_id`` by itself. Durations are seconds or a timedelta."""

    service_url: str
    """The broker's URL."""
    web_service_url: str
    """The broker's REST interface; not given: port 8080 (with TLS 8443) of the broker's first host; Pulsar only."""
    system_namespace: str
    """Tenant/namespace of short names."""
    queue_subscription_name: str
    """Subscription of a queue."""
    topic_shared_subscription_type: Literal["Shared", "Key_Shared", "Failover"]
    """Type of shared topic consumers."""
    use_exclusive_subscriptions_for_simple_consumers: bool
    """False: plain topic consumers use the shared type."""
    use_pulsar_admin: bool
    """False: never use the broker's REST interface."""
    allow_temporary_topic_without_admin: bool
    """Temporary destinations without the REST interface."""
    precreate_queue_subscription: bool
    """Create a queue's subscription before the first send, and for a consumer where the broker creates none."""
    wait_for_server_startup_timeout: Duration
    """Longest wait for a queue's subscription, whose creation is retried every second; 0: one attempt."""
    enable_client_side_emulation: bool | None
    """Set to false: selectors and noLocal are refused where the Java client refuses them."""
    use_server_side_filtering: bool
    """The broker runs the selectors of consumers, with Starlight's filter plugin; see 'jmsaio guide selectors'."""
    refresh_server_side_filters_period: Duration
    """How often the selectors that operators set on subscriptions are read again; 0: never."""
    acknowledge_rejected_messages: bool
    """Acknowledge what a selector rejects on a shared subscription."""
    enable_jms_priority: bool
    """Choose the partition by priority; a consumer takes the highest priority it has first."""
    priority_mapping: Literal["linear", "non-linear"]
    """How priorities are spread over partitions."""
    emulate_transactions: bool
    """Transacted sessions where the transport has no transactions: messages are sent at once."""
    transactions_sticky_partitions: bool
    """All messages of a transaction go to one partition."""
    force_delete_temporary_destinations: bool
    """Delete a temporary destination even while clients use it."""
    max_num_of_producers: int
    """Senders kept open for reuse; a topic has one for transactions and one without."""
    producer_auto_close: Duration | None
    """Idle time after which a kept sender is closed; below 0: never."""
    use_credentials_from_create_connection: bool
    """The password given to create_connection is the token."""
    tck_username: str | None
    """User name that create_connection checks."""
    tck_password: str | None
    """Password that create_connection checks."""
    auth_plugin: str | None
    """Pulsar's authentication class or its short name; Pulsar only."""
    auth_params: str | Callable[[], str] | None
    """Parameters of the authentication; for tokens also a function that returns one, called again for each connection;
    Pulsar only."""
    tls_allow_insecure_connection: bool
    """Accept any certificate; Pulsar only."""
    tls_enable_hostname_verification: bool
    """The certificate must name the host; Pulsar only."""
    tls_trust_certs_file_path: str | None
    """PEM file of trusted certificates; Pulsar only."""
    tls_key_file_path: str | None
    """PEM file of the client's key; Pulsar only."""
    tls_certificate_file_path: str | None
    """PEM file of the client's certificate; Pulsar only."""
    operation_timeout: Duration
    """Longest time for one request to the broker."""
    send_window_bytes: int
    """Most bytes sent and not yet confirmed, per sender; 0: no limit."""
    strict_client_id: bool
    """Refuse an unshared durable subscription of a connection without client id."""
    acknowledge_scope: Literal["session", "group"]
    """What acknowledge in CLIENT mode covers: the whole session, or messages up to this one."""
    queue_browser_read_max: int
    """Most messages that a browser looks at; 0 and below: all."""
    expired_messages: Literal["remove", "dead-letter"]
    """Expired messages of queues whose consumer has a deadLetterPolicy: remove them, or make them dead letters."""
    malformed: Literal["raise", "dead-letter", "deliver"]
    """A message that can't be read: raise an error; make it a dead letter, where its consumer can; or deliver it as a
    BytesMessage with the properties as received."""
    auto_start: bool
    """connect() starts the connection."""
    connect_timeout: Duration
    """Longest time to connect; Pulsar only."""
    close_timeout: Duration
    """Longest time for a close as a whole."""
    send_window_messages: int
    """Most messages sent and not yet confirmed, per sender."""
    receive_buffer: int
    """Most received messages held in Python, per session."""
    receive_buffer_bytes: int
    """Most bytes of messages received in advance, per connection; each consumer may exceed it by one message."""
    max_unacknowledged_rejected: int
    """Most messages that a selector rejects and that stay unacknowledged, per consumer of a queue or shared
    subscription; at most 1000000. Keep it below the broker's maxUnackedMessagesPerConsumer (50000) and, for all
    consumers of a subscription together, maxUnackedMessagesPerSubscription (200000); Pulsar only."""
    memory_limit: int
    """Most bytes that an embedded broker stores; embedded broker only."""
    filters: bool
    """The embedded broker runs selectors as Starlight's filter plugin does, from now on for every client; embedded
    broker only."""
    listener_concurrency: int
    """Listener calls at the same time, per session; at most 1000."""
    max_local_redeliveries: int
    """How often a message whose listener failed is redelivered without delay."""
    producer: ProducerConfig | Mapping[str, object]
    """How senders are created."""
    consumer: ConsumerConfig | Mapping[str, object]
    """How receivers are created."""
    stats_interval_in_seconds: int
    """How often pulsar-client logs statistics; 0: never (Starlight: 60); Pulsar only."""
    io_threads: int
    """Network threads of pulsar-client; Pulsar only."""
    message_listener_threads: int
    """Callback threads of pulsar-client; Pulsar only."""
    concurrent_lookup_requests: int
    """Lookups at the same time; Pulsar only."""
    connection_timeout_ms: int
    """Longest time to open one network connection, in ms; Pulsar only."""
    listener_name: str | None
    """Advertised listener of the broker to connect to; Pulsar only."""
    batching_enabled: bool
    """Send messages in batches; Pulsar only."""
    batching_max_publish_delay: Duration
    """Longest wait for a batch to fill; Pulsar only."""
    batching_max_messages: int
    """Most messages in a batch; 0 and below: no limit; Pulsar only."""
    batching_max_bytes: int
    """Most bytes in a batch; 0 and below: half the largest message; Pulsar only."""
    send_timeout: Duration
    """Without an answer in this time the send is in doubt; 0: wait forever."""
    compression_type: Literal["NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY"]
    """Compression of batches; Pulsar only."""
    chunking_enabled: bool
    """Split large messages; needs batchingEnabled=false; Pulsar only."""
    producer_name: str | None
    """Name that the broker shows."""
    access_mode: Literal["Shared", "Exclusive", "WaitForExclusive", "ExclusiveWithFencing"]
    """Who else may send to the topic; Pulsar only."""
    message_routing_mode: Literal["RoundRobinPartition", "SinglePartition"]
    """Partitions of messages without a group id: all in turn, or one that each sender chooses at random."""
    initial_sequence_id: int | None
    """Sequence id before the first message's."""
    batcher_builder: Literal["DEFAULT", "KEY_BASED"]
    """KEY_BASED: one batch per group id, for Key_Shared; Pulsar only."""
    receiver_queue_size: int
    """Messages prefetched; with 0 on Pulsar one message or batch."""
    max_total_receiver_queue_size_across_partitions: int
    """Messages prefetched for all partitions together."""
    ack_timeout: Duration | None
    """A message not acknowledged in this time is redelivered; 0: off."""
    negative_ack_redelivery_delay: Duration | None
    """Delay before a message that the application did not accept is redelivered; not given: none for the first
    `max_local_redeliveries` redeliveries, then 1 s, doubling to 60 s."""
    ack_receipt_enabled: bool
    """Acknowledge, commit and process wait until the broker has confirmed it; receives and listeners in AUTO and
    DUPS_OK mode don't."""
    batch_index_ack_enabled: bool
    """Acknowledge single messages of a batch (Starlight: false); Pulsar only."""
    consumer_name: str | None
    """Name that the broker shows."""
    read_compacted: bool
    """Read the compacted topic; Pulsar only."""
    pattern_auto_discovery_period: Duration
    """How often a pattern looks for new topics; Pulsar only."""
    regex_subscription_mode: Literal["PersistentOnly", "NonPersistentOnly", "AllTopics"]
    """Topics that a pattern matches; Pulsar only."""
    replicate_subscription_state: bool
    """Geo-replicate the subscription's position; Pulsar only."""
    max_pending_chunked_message: int
    """Split messages assembled at the same time; Pulsar only."""
    auto_ack_oldest_chunked_message_on_queue_full: bool
    """Drop the oldest incomplete message when there are more; Pulsar only."""
    crypto_failure_action: Literal["FAIL", "DISCARD", "CONSUME"]
    """What happens to a message that can't be decrypted; Pulsar only."""
    use_schema: bool
    """Read messages with a schema by it; without it, only texts of a STRING schema."""
    negative_ack_backoff: Backoff | Mapping[str, object] | None
    """The same delay, growing; it replaces the fixed one."""
    ack_timeout_backoff: Backoff | Mapping[str, object] | None
    """Growing delay of messages not acknowledged in time; not given: none."""
    dead_letter: DeadLetterPolicy | Mapping[str, object] | None
    """When and where to a message that fails repeatedly is moved; not given: it is redelivered without end."""
    client: Mapping[str, object]
    """Further settings by their ``pulsar.Client`` keyword."""


class FactoryOptions(ConnectOptions, total=False):
    """Keyword options of ``ConnectionFactory`` and ``load``."""

    client_id: str | None
    """Client identifier of every connection."""
