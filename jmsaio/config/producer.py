"""``ProducerConfig``: the options of senders."""

from collections.abc import Mapping
from typing import Any, Literal, Self

import attrs

from jmsaio.config import unsupported_options
from jmsaio.config.declaring import check_fields, declares, directory, option
from jmsaio.config.mapping import read_section
from jmsaio.config.options import ON_MEMORY, ON_PULSAR, ON_PULSAR_CLIENT, ON_WIRE, Section
from jmsaio.config.values import names_only
from jmsaio.errors import ConfigurationError

Compression = Literal["NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY"]
AccessMode = Literal["Shared", "Exclusive", "WaitForExclusive", "ExclusiveWithFencing"]


@declares(Section.PRODUCER, also=unsupported_options.PRODUCER)
@attrs.frozen(kw_only=True)
class ProducerConfig:
    """``producerConfig``: the options of a sender, which ``jmsaio guide configuration`` lists.

    Durations are seconds.

    Raises:
        ConfigurationError: a value is invalid.
    """

    batching_enabled: bool = option(True, "batchingEnabled", "send messages in batches", transports=ON_PULSAR)
    batching_max_publish_delay: float = option(
        0.001, "batchingMaxPublishDelayMicros", "maximum wait for a batch to fill", unit="us", transports=ON_PULSAR
    )
    batching_max_messages: int = option(
        1000,
        "batchingMaxMessages",
        "maximum number of messages in a batch; 0 or negative: no limit",
        transports=ON_PULSAR,
    )
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
        60.0,
        "autoUpdatePartitionsIntervalSeconds",
        "interval of the search for new partitions",
        unit="s",
        low=1,
        transports=ON_PULSAR,
    )
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
        """Whether messages are sent in batches of more than one message."""
        return self.batching_enabled and self.batching_max_messages != 1

    def changes(self, overrides: Mapping[str, object]) -> dict[str, Any]:
        """Return the fields and values that ``overrides`` sets. Arguments and errors are those of ``merge``."""
        return read_section(directory(Section.PRODUCER), overrides, Section.PRODUCER.value, self.properties)

    def merge(self, overrides: Mapping[str, object]) -> Self:
        """Return a copy with ``overrides``: a map with Starlight's names (nested or dotted) or field names.

        Raises:
            ConfigurationError: a name is unknown or a value is invalid.
        """
        return attrs.evolve(self, **self.changes(overrides))
