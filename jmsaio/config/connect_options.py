"""The keyword options of ``connect`` and ``ConnectionFactory``, for type checkers.

Written by ``python .mkdocs/option_tables.py`` from the declared options; don't edit it by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypedDict

from jmsaio.config.sections import Backoff, ConsumerConfig, DeadLetterPolicy, ProducerConfig
from jmsaio.model.durations import Duration


class ConnectOptions(TypedDict, total=False):
    """Keyword options of ``connect``, except ``client_id``. Durations are seconds or a timedelta."""

    service_url: str
    """URL of the broker."""
    web_service_url: str
    """URL of the broker's REST interface; default: port 8080 (with TLS 8443) of the broker's first host; Pulsar
    only."""
    transport: Literal["auto", "pulsar-client", "wire"]
    """Transport to a Pulsar broker; auto: wire with enableTransaction=true or if pulsar-client is not installed, else
    pulsar-client. What each has: 'jmsaio guide configuration', 'Transports'; Pulsar only."""
    system_namespace: str
    """Tenant/namespace of destinations with short names."""
    queue_subscription_name: str
    """Subscription name of queues."""
    queue_subscription_type: Literal["Shared", "Key_Shared"]
    """Key_Shared: all messages of a group id (JMSXGroupID) go to one consumer of the queue; jmsaio only."""
    topic_shared_subscription_type: Literal["Shared", "Key_Shared", "Failover"]
    """Subscription type of shared topic consumers."""
    use_exclusive_subscriptions_for_simple_consumers: bool
    """False: plain topic consumers use the type of shared ones."""
    use_pulsar_admin: bool
    """False: never use the broker's REST interface."""
    allow_temporary_topic_without_admin: bool
    """Allow temporary destinations without the REST interface."""
    precreate_queue_subscription: bool
    """Create a queue's subscription before the first send, and for a consumer if the broker creates none."""
    wait_for_server_startup_timeout: Duration
    """Maximum wait for a queue's subscription, whose creation is retried every second; 0: one attempt."""
    enable_client_side_emulation: bool | None
    """False: refuse selectors and noLocal where the Java client refuses them."""
    use_server_side_filtering: bool
    """Evaluate selectors in the broker, with Starlight's filter plugin; see 'jmsaio guide selectors'."""
    refresh_server_side_filters_period: Duration
    """Interval of rereading the selectors that operators set on subscriptions; 0: never."""
    acknowledge_rejected_messages: bool
    """Acknowledge messages that a selector rejects on a shared subscription."""
    enable_jms_priority: bool
    """Choose the partition by priority; a consumer delivers its highest prefetched priority first."""
    priority_mapping: Literal["linear", "non-linear"]
    """Mapping of priorities to partitions."""
    enable_transaction: bool
    """Allow transacted sessions, with transactions of the broker; transport=wire and embedded broker only, refused
    elsewhere."""
    transaction_timeout: Duration
    """Time after which the broker rolls back an open transaction; transport=wire and embedded broker only."""
    emulate_transactions: bool
    """Allow transacted sessions without transactions of the broker; messages are sent immediately."""
    transactions_sticky_partitions: bool
    """Send all messages of a transaction to one partition."""
    force_delete_temporary_destinations: bool
    """Delete a temporary destination even while clients use it."""
    max_num_of_producers: int
    """Maximum number of senders kept open for reuse; a topic has one for transactions and one without."""
    producer_auto_close: Duration | None
    """Idle time after which a cached sender is closed; negative: never."""
    use_credentials_from_create_connection: bool
    """Use the password given to create_connection as the token."""
    tck_username: str | None
    """User name that create_connection checks."""
    tck_password: str | None
    """Password that create_connection checks."""
    auth_plugin: str | None
    """Pulsar's authentication class or its short name; Pulsar only."""
    auth_params: str | Callable[[], str] | None
    """Parameters of the authentication; for tokens also a function that returns one, called for each connection; Pulsar
    only."""
    tls_allow_insecure_connection: bool
    """Accept any certificate; Pulsar only."""
    tls_enable_hostname_verification: bool
    """Require the certificate to name the host; Pulsar only."""
    tls_trust_certs_file_path: str | None
    """PEM file of trusted certificates; Pulsar only."""
    tls_key_file_path: str | None
    """PEM file of the client's key; Pulsar only."""
    tls_certificate_file_path: str | None
    """PEM file of the client's certificate; Pulsar only."""
    operation_timeout: Duration
    """Maximum time for a request to the broker."""
    keep_alive_interval: Duration
    """Silence after which the broker is asked whether it is there; a connection that stays silent for as long again is
    given up; transport=wire only."""
    connections_per_broker: int
    """Number of connections to each broker, which its producers and consumers share; 0 counts as 1; transport=wire
    only."""
    initial_backoff: Duration
    """Pause before the second attempt to reach a broker or a topic; each further one is twice as long; transport=wire
    only."""
    max_backoff: Duration
    """Longest of these pauses (Starlight: 60 s); transport=wire only."""
    lookup_properties: Mapping[str, str]
    """Sent with each lookup of a topic, for the broker's load balancer; transport=wire only."""
    max_lookup_redirects: int
    """How often brokers can refer the lookup of a topic to another broker; transport=wire only."""
    send_window_bytes: int
    """Maximum number of sent, unconfirmed bytes per sender; 0: no limit."""
    strict_client_id: bool
    """Refuse unshared durable subscriptions on connections without client id."""
    acknowledge_scope: Literal["session", "group"]
    """Messages that acknowledge in CLIENT mode covers: all of the session, or those up to this one."""
    queue_browser_read_max: int
    """Maximum number of messages that a browser examines; 0 or negative: no limit."""
    expired_messages: Literal["remove", "dead-letter"]
    """Expired messages of queues whose consumer has a deadLetterPolicy: remove them, or make them dead letters."""
    malformed: Literal["raise", "dead-letter", "deliver"]
    """A message that can't be decoded: raise an error; make it a dead letter, if its consumer can; or deliver it as a
    BytesMessage with the properties as received."""
    auto_start: bool
    """Start the connection in connect()."""
    connect_timeout: Duration
    """Maximum time to connect; Pulsar only."""
    close_timeout: Duration
    """Maximum total time of a close."""
    send_window_messages: int
    """Maximum number of sent, unconfirmed messages per sender."""
    receive_buffer: int
    """Maximum number of received messages buffered in Python, per session."""
    receive_buffer_bytes: int
    """Maximum bytes of prefetched messages per connection; each consumer can exceed it by one message."""
    max_unacknowledged_rejected: int
    """Maximum number of unacknowledged messages that a selector rejected, per consumer of a queue or shared
    subscription; up to 1000000. Keep it below the broker's maxUnackedMessagesPerConsumer (50000) and, for all consumers
    of a subscription together, below maxUnackedMessagesPerSubscription (200000); Pulsar only."""
    memory_limit: int
    """Maximum bytes that an embedded broker stores; embedded broker only."""
    filters: bool
    """Evaluate selectors in the embedded broker like Starlight's filter plugin, from now on for every client; embedded
    broker only."""
    listener_concurrency: int
    """Maximum number of concurrent listener calls per session, up to 1000."""
    max_local_redeliveries: int
    """Number of redeliveries without delay after a listener failed."""
    producer: ProducerConfig | Mapping[str, object]
    """Options of senders."""
    consumer: ConsumerConfig | Mapping[str, object]
    """Options of receivers."""
    stats_interval_in_seconds: int
    """Interval of pulsar-client's statistics in the log; 0: none (Starlight: 60); transport=pulsar-client only."""
    io_threads: int
    """Network threads of pulsar-client; transport=pulsar-client only."""
    message_listener_threads: int
    """Callback threads of pulsar-client; transport=pulsar-client only."""
    concurrent_lookup_requests: int
    """Maximum number of concurrent lookups; Pulsar only."""
    connection_timeout_ms: int
    """Maximum time to open a network connection, in ms; Pulsar only."""
    listener_name: str | None
    """Advertised listener of the broker to connect to; Pulsar only."""
    batching_enabled: bool
    """Send messages in batches; Pulsar only."""
    batching_max_publish_delay: Duration
    """Maximum wait for a batch to fill; Pulsar only."""
    batching_max_messages: int
    """Maximum number of messages in a batch; 0 or negative: no limit; Pulsar only."""
    batching_max_bytes: int
    """Maximum bytes in a batch; 0 or negative: half the maximum message size; Pulsar only."""
    send_timeout: Duration
    """Time without an answer after which a send is in doubt; 0: wait forever."""
    compression_type: Literal["NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY"]
    """Compression of batches and single messages; transport=wire needs `jmsaio[compression]` for all but ZLIB; Pulsar
    only."""
    chunking_enabled: bool
    """Split large messages; needs batchingEnabled=false; Pulsar only."""
    chunk_max_message_size: int
    """Maximum bytes of a chunk; 0 or negative: as many as the broker allows; transport=wire only."""
    producer_name: str | None
    """Name of the producer in the broker's statistics."""
    access_mode: Literal["Shared", "Exclusive", "WaitForExclusive", "ExclusiveWithFencing"]
    """Which other producers are allowed on the topic; Pulsar only."""
    message_routing_mode: Literal["RoundRobinPartition", "SinglePartition"]
    """Partitions of messages without a group id: all in turn, or one chosen at random by each sender."""
    initial_sequence_id: int | None
    """Sequence id that precedes that of the first message."""
    initial_subscription_name: str | None
    """Subscription to create together with a topic that the producer creates; transport=wire only, refused
    elsewhere."""
    batcher_builder: Literal["DEFAULT", "KEY_BASED"]
    """KEY_BASED: one batch per group id, for Key_Shared; Pulsar only."""
    receiver_queue_size: int
    """Maximum number of prefetched messages; 0 on Pulsar: one message or batch."""
    max_total_receiver_queue_size_across_partitions: int
    """Maximum number of prefetched messages of all partitions together."""
    ack_timeout: Duration | None
    """Time after which an unacknowledged message is redelivered; 0: disabled."""
    negative_ack_redelivery_delay: Duration | None
    """Delay before a message that the application did not accept is redelivered; default: none for the first
    `max_local_redeliveries` redeliveries, then 1 s, doubling to 60 s."""
    ack_receipt_enabled: bool
    """Acknowledge, commit and process wait for the broker's confirmation; receives and listeners in AUTO and DUPS_OK
    mode don't."""
    acknowledgements_group_time: Duration
    """Maximum wait of an acknowledgement for others that leave with it; 0: until the end of the event loop's turn
    (pulsar-client: up to 130 ms; Starlight: 100 ms); transport=wire only."""
    batch_index_ack_enabled: bool
    """Acknowledge messages of a batch individually (Starlight: false); Pulsar only."""
    consumer_name: str | None
    """Name in the broker's statistics; default: `app@host:pid` with a number."""
    priority_level: int
    """Shared subscriptions: a consumer of a higher level receives only what those of lower ones have no room for;
    failover: the lowest one is active; transport=wire only, refused elsewhere."""
    read_compacted: bool
    """Read the compacted topic; Pulsar only."""
    pattern_auto_discovery_period: Duration
    """Interval of a pattern's search for new topics; Pulsar only."""
    regex_subscription_mode: Literal["PersistentOnly", "NonPersistentOnly", "AllTopics"]
    """Topics that a pattern matches; Pulsar only."""
    replicate_subscription_state: bool
    """Geo-replicate the subscription's position; Pulsar only."""
    max_pending_chunked_message: int
    """Maximum number of chunked messages assembled at the same time; Pulsar only."""
    auto_ack_oldest_chunked_message_on_queue_full: bool
    """Drop the oldest incomplete message at that limit; Pulsar only."""
    expire_time_of_incomplete_chunked_message: Duration
    """Time without a new chunk after which an incomplete message is acknowledged: its sender gave up; 0: never (pulsar-
    client: always 60 s); transport=wire only, refused with transport=pulsar-client."""
    crypto_failure_action: Literal["FAIL", "DISCARD", "CONSUME"]
    """Handling of a message that can't be decrypted; transport=pulsar-client only, refused with transport=wire."""
    use_schema: bool
    """Decode messages that have a schema; false: only texts of a STRING schema."""
    negative_ack_backoff: Backoff | Mapping[str, object] | None
    """Growing delay that replaces negativeAckRedeliveryDelayMicros."""
    ack_timeout_backoff: Backoff | Mapping[str, object] | None
    """Growing redelivery delay of messages that exceed ackTimeoutMillis; default: none."""
    dead_letter: DeadLetterPolicy | Mapping[str, object] | None
    """When to move a repeatedly failing message, and to which topic; default: unlimited redeliveries."""
    client: Mapping[str, object]
    """Other settings of Pulsar's clients, by their ``pulsar.Client`` keyword."""


class FactoryOptions(ConnectOptions, total=False):
    """Keyword options of ``ConnectionFactory`` and ``load``."""

    client_id: str | None
    """Client identifier of every connection."""
