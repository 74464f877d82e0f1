"""The options of senders and receivers: ``ProducerConfig``, ``ConsumerConfig``, ``DeadLetterPolicy``, ``Backoff``."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import attrs

from jmsaio.config import unsupported_options
from jmsaio.config.declaring import check_fields, declares, described, group, option, read_section
from jmsaio.config.options import ON_MEMORY, ON_PULSAR, ON_PULSAR_CLIENT, ON_WIRE, Section, names_only
from jmsaio.errors import ConfigurationError

CryptoFailureAction = Literal["FAIL", "DISCARD", "CONSUME"]
RegexSubscriptionMode = Literal["PersistentOnly", "NonPersistentOnly", "AllTopics"]
Compression = Literal["NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY"]
AccessMode = Literal["Shared", "Exclusive", "WaitForExclusive", "ExclusiveWithFencing"]


class _Section:
    """Options that maps can override."""

    __slots__ = ()
    _section: ClassVar[Section]

    def changes(self, overrides: Mapping[str, object]) -> dict[str, Any]:
        """Return the fields and values that ``overrides`` sets, as for ``merge``."""
        return read_section(self._section, overrides, self)

    def merge(self, overrides: Mapping[str, object]) -> Self:
        """Return a copy with ``overrides``: a map with Starlight's names (nested or dotted) or field names.

        Options are merged one by one; the dead letter policy and both backoffs are replaced as a whole.

        Raises:
            ConfigurationError: a name is unknown or a value is invalid.
        """
        return attrs.evolve(self, **self.changes(overrides))  # type: ignore[misc]  # its subclasses are attrs classes


@declares(Section.NACK_BACKOFF, Section.ACK_TIMEOUT_BACKOFF)
@attrs.frozen(kw_only=True)
class Backoff:
    """A delay that grows with each redelivery. Durations are seconds.

    Raises:
        ConfigurationError: a value is invalid.
    """

    min_delay: float = option(10.0, "minDelayMs", "first delay", unit="ms")
    max_delay: float = option(600.0, "maxDelayMs", "maximum delay", unit="ms")
    multiplier: float = option(2.0, "multiplier", "growth factor of the delay per redelivery", low=1)

    def __attrs_post_init__(self) -> None:
        check_fields(self)
        if self.max_delay < self.min_delay:
            raise ConfigurationError(f"option maxDelayMs: {self.max_delay:g} s is below minDelayMs", key="maxDelayMs")

    def delay(self, count: int) -> float:
        """Return the seconds before redelivery number ``count`` (0 and below: the first delay)."""
        if count <= 0:
            return self.min_delay
        try:
            return min(self.min_delay * self.multiplier**count, self.max_delay)
        except OverflowError:
            return self.max_delay if self.min_delay > 0 else 0.0


@declares(Section.DEAD_LETTER, also=unsupported_options.DEAD_LETTER)
@attrs.frozen(kw_only=True)
class DeadLetterPolicy:
    """When a repeatedly failing message is moved, and to which topic; only for shared and key-shared subscriptions.

    Raises:
        ConfigurationError: a value is invalid.
    """

    max_redeliver_count: int = attrs.field(
        metadata=described("maxRedeliverCount", "number of redeliveries before a message is moved", low=1)
    )
    dead_letter_topic: str | None = option(
        None, "deadLetterTopic",
        "full topic name, or a short one in jms.systemNamespace; default: <topic>-<subscription>-DLQ",
    )  # fmt: skip
    initial_subscription_name: str | None = option(
        None, "initialSubscriptionName", "subscription to create together with that topic"
    )

    def __attrs_post_init__(self) -> None:
        if self.max_redeliver_count is None:
            key = "consumerConfig.deadLetterPolicy.maxRedeliverCount"
            raise ConfigurationError(f"option {key} must be set, at least 1", key=key)
        check_fields(self)


@declares(Section.CONSUMER, also=unsupported_options.CONSUMER)
@attrs.frozen(kw_only=True)
class ConsumerConfig(_Section):
    """``consumerConfig``: the options of a receiver, which ``jmsaio guide configuration`` lists.

    Durations are seconds.

    Raises:
        ConfigurationError: a value is invalid.
    """

    _section = Section.CONSUMER

    receiver_queue_size: int = option(
        1000, "receiverQueueSize", "maximum number of prefetched messages; 0 on Pulsar: one message or batch", low=0,
        high=1_000_000,
    )  # fmt: skip
    max_total_receiver_queue_size_across_partitions: int = option(
        50000, "maxTotalReceiverQueueSizeAcrossPartitions",
        "maximum number of prefetched messages of all partitions together", low=0,
    )  # fmt: skip
    ack_timeout: float | None = option(
        None, "ackTimeoutMillis", "time after which an unacknowledged message is redelivered; 0: disabled", unit="ms",
        off=0,
    )  # fmt: skip
    negative_ack_redelivery_delay: float | None = option(
        None, "negativeAckRedeliveryDelayMicros",
        "delay before a message that the application did not accept is redelivered; default: none for the first "
        "`max_local_redeliveries` redeliveries, then 1 s, doubling to 60 s", unit="us",
    )  # fmt: skip
    negative_ack_backoff: Backoff | None = group(
        Section.NACK_BACKOFF, Backoff, "growing delay that replaces negativeAckRedeliveryDelayMicros", optional=True
    )
    ack_timeout_backoff: Backoff | None = group(
        Section.ACK_TIMEOUT_BACKOFF, Backoff,
        "growing redelivery delay of messages that exceed ackTimeoutMillis; default: none", optional=True,
    )  # fmt: skip
    ack_receipt_enabled: bool = option(
        False, "ackReceiptEnabled", "acknowledge, commit and process wait for the broker's confirmation; receives "
        "and listeners in AUTO and DUPS_OK mode don't",
    )  # fmt: skip
    acknowledgements_group_time: float = option(
        0.005, "acknowledgementsGroupTimeMicros", "maximum wait of an acknowledgement for others that leave with it; "
        "0: until the end of the event loop's turn (pulsar-client: up to 130 ms; Starlight: 100 ms)", unit="us",
        transports=ON_WIRE,
    )  # fmt: skip
    batch_index_ack_enabled: bool = option(
        True, "batchIndexAckEnabled", "acknowledge messages of a batch individually (Starlight: false)",
        transports=ON_PULSAR,
    )  # fmt: skip
    dead_letter: DeadLetterPolicy | None = group(
        Section.DEAD_LETTER, DeadLetterPolicy,
        "when to move a repeatedly failing message, and to which topic; default: unlimited redeliveries",
        optional=True,
    )  # fmt: skip
    consumer_name: str | None = option(
        None, "consumerName", "name in the broker's statistics; default: `app@host:pid` with a number"
    )
    priority_level: int = option(
        0, "priorityLevel", "shared subscriptions: a consumer of a higher level receives only what those of lower ones "
        "have no room for; failover: the lowest one is active", low=0, transports=ON_WIRE,
        refused_on=ON_MEMORY + ON_PULSAR_CLIENT,
    )  # fmt: skip
    read_compacted: bool = option(False, "readCompacted", "read the compacted topic", transports=ON_PULSAR)
    pattern_auto_discovery_period: float = option(
        60.0, "patternAutoDiscoveryPeriod", "interval of a pattern's search for new topics", unit="s", low=1,
        transports=ON_PULSAR,
    )  # fmt: skip
    regex_subscription_mode: RegexSubscriptionMode = option(
        "PersistentOnly", "regexSubscriptionMode", "topics that a pattern matches", transports=ON_PULSAR
    )
    auto_update_partitions: bool = option(
        True, "autoUpdatePartitions", "receive from partitions added later", transports=ON_PULSAR
    )
    auto_update_partitions_interval: float = option(
        60.0, "autoUpdatePartitionsIntervalSeconds", "interval of the search for new partitions", unit="s", low=1,
        transports=ON_PULSAR,
    )  # fmt: skip
    replicate_subscription_state: bool = option(
        False, "replicateSubscriptionState", "geo-replicate the subscription's position", transports=ON_PULSAR
    )
    max_pending_chunked_message: int = option(
        10, "maxPendingChunkedMessage", "maximum number of chunked messages assembled at the same time", low=0,
        transports=ON_PULSAR,
    )  # fmt: skip
    auto_ack_oldest_chunked_message_on_queue_full: bool = option(
        False, "autoAckOldestChunkedMessageOnQueueFull", "drop the oldest incomplete message at that limit",
        transports=ON_PULSAR,
    )  # fmt: skip
    expire_time_of_incomplete_chunked_message: float = option(
        60.0, "expireTimeOfIncompleteChunkedMessageMillis",
        "time without a new chunk after which an incomplete message is acknowledged: its sender gave up; 0: never "
        "(pulsar-client: always 60 s)", unit="ms", transports=ON_WIRE, refused_on=ON_PULSAR_CLIENT,
    )  # fmt: skip
    crypto_failure_action: CryptoFailureAction = option(
        "FAIL", "cryptoFailureAction", "handling of a message that can't be decrypted",
        transports=ON_PULSAR_CLIENT, refused_on=ON_WIRE,
    )  # fmt: skip
    use_schema: bool = option(
        False, "useSchema", "decode messages that have a schema; false: only texts of a STRING schema"
    )
    properties: Mapping[str, str] = option(
        attrs.Factory(dict), "properties", "metadata of the consumer", repr=names_only, transports=ON_PULSAR
    )

    def __attrs_post_init__(self) -> None:
        check_fields(self)


@declares(Section.PRODUCER, also=unsupported_options.PRODUCER)
@attrs.frozen(kw_only=True)
class ProducerConfig(_Section):
    """``producerConfig``: the options of a sender, which ``jmsaio guide configuration`` lists.

    Durations are seconds.

    Raises:
        ConfigurationError: a value is invalid.
    """

    _section = Section.PRODUCER

    batching_enabled: bool = option(True, "batchingEnabled", "send messages in batches", transports=ON_PULSAR)
    batching_max_publish_delay: float = option(
        0.001, "batchingMaxPublishDelayMicros", "maximum wait for a batch to fill", unit="us", transports=ON_PULSAR
    )
    batching_max_messages: int = option(
        1000, "batchingMaxMessages", "maximum number of messages in a batch; 0 or negative: no limit",
        transports=ON_PULSAR,
    )  # fmt: skip
    batching_max_bytes: int = option(
        131072, "batchingMaxBytes", "maximum bytes in a batch; 0 or negative: half the maximum message size",
        unit="bytes", transports=ON_PULSAR,
    )  # fmt: skip
    send_timeout: float = option(
        30.0, "sendTimeoutMs", "time without an answer after which a send is in doubt; 0: wait forever", unit="ms"
    )
    compression_type: Compression = option(
        "NONE", "compressionType",
        "compression of batches and single messages; transport=wire needs `jmsaio[compression]` for all but ZLIB",
        transports=ON_PULSAR,
    )  # fmt: skip
    chunking_enabled: bool = option(
        False, "chunkingEnabled", "split large messages; needs batchingEnabled=false", transports=ON_PULSAR
    )
    chunk_max_message_size: int = option(
        -1, "chunkMaxMessageSize", "maximum bytes of a chunk; 0 or negative: as many as the broker allows",
        unit="bytes", transports=ON_WIRE,
    )  # fmt: skip
    producer_name: str | None = option(None, "producerName", "name of the producer in the broker's statistics")
    access_mode: AccessMode = option(
        "Shared", "accessMode", "which other producers are allowed on the topic", transports=ON_PULSAR
    )
    message_routing_mode: Literal["RoundRobinPartition", "SinglePartition"] = option(
        "RoundRobinPartition", "messageRoutingMode",
        "partitions of messages without a group id: all in turn, or one chosen at random by each sender",
    )  # fmt: skip
    auto_update_partitions: bool = option(
        True, "autoUpdatePartitions", "send to partitions added later", transports=ON_PULSAR
    )
    auto_update_partitions_interval: float = option(
        60.0, "autoUpdatePartitionsIntervalSeconds", "interval of the search for new partitions", unit="s", low=1,
        transports=ON_PULSAR,
    )  # fmt: skip
    initial_sequence_id: int | None = option(
        None, "initialSequenceId", "sequence id that precedes that of the first message", low=0, high=2**63 - 1
    )
    initial_subscription_name: str | None = option(
        None, "initialSubscriptionName",
        "subscription to create together with a topic that the producer creates", transports=ON_WIRE,
        refused_on=ON_MEMORY + ON_PULSAR_CLIENT,
    )  # fmt: skip
    batcher_builder: Literal["DEFAULT", "KEY_BASED"] = option(
        "DEFAULT", "batcherBuilder", "KEY_BASED: one batch per group id, for Key_Shared", exact=True,
        transports=ON_PULSAR,
    )  # fmt: skip
    properties: Mapping[str, str] = option(
        attrs.Factory(dict), "properties", "metadata of the producer", repr=names_only, transports=ON_PULSAR
    )

    def __attrs_post_init__(self) -> None:
        check_fields(self)
        if self.chunking_enabled and self.batches:
            reason = "option producerConfig.chunkingEnabled = True needs producerConfig.batchingEnabled = False"
            raise ConfigurationError(reason, key="producerConfig.chunkingEnabled")

    @property
    def batches(self) -> bool:
        return self.batching_enabled and self.batching_max_messages != 1
