"""``ProducerConfig``: how senders are created."""

from collections.abc import Mapping
from typing import Any, Literal, Self

import attrs

from jmsaio.config import fieldless
from jmsaio.config.declaring import check_fields, declares, directory, option
from jmsaio.config.mapping import read_section
from jmsaio.config.options import ON_PULSAR, Section
from jmsaio.config.values import names_only
from jmsaio.errors import ConfigurationError

Compression = Literal["NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY"]
AccessMode = Literal["Shared", "Exclusive", "WaitForExclusive", "ExclusiveWithFencing"]


@declares(Section.PRODUCER, also=fieldless.PRODUCER)
@attrs.frozen(kw_only=True)
class ProducerConfig:
    """``producerConfig``: how a sender is created; ``jmsaio guide configuration`` lists the options.

    Durations are seconds.

    Raises:
        ConfigurationError: a value that can't be used.
    """

    batching_enabled: bool = option(True, "batchingEnabled", "send messages in batches", transports=ON_PULSAR)
    batching_max_publish_delay: float = option(
        0.001, "batchingMaxPublishDelayMicros", "longest wait for a batch to fill", unit="us", transports=ON_PULSAR
    )
    batching_max_messages: int = option(
        1000, "batchingMaxMessages", "most messages in a batch; 0 and below: no limit", transports=ON_PULSAR
    )
    batching_max_bytes: int = option(
        131072, "batchingMaxBytes", "most bytes in a batch; 0 and below: half the largest message", unit="bytes",
        transports=ON_PULSAR,
    )  # fmt: skip
    send_timeout: float = option(
        30.0, "sendTimeoutMs", "without an answer in this time the send is in doubt; 0: wait forever", unit="ms"
    )
    compression_type: Compression = option("NONE", "compressionType", "compression of batches", transports=ON_PULSAR)
    chunking_enabled: bool = option(
        False, "chunkingEnabled", "split large messages; needs batchingEnabled=false", transports=ON_PULSAR
    )
    producer_name: str | None = option(None, "producerName", "name that the broker shows")
    access_mode: AccessMode = option("Shared", "accessMode", "who else may send to the topic", transports=ON_PULSAR)
    message_routing_mode: Literal["RoundRobinPartition", "SinglePartition"] = option(
        "RoundRobinPartition", "messageRoutingMode",
        "partitions of messages without a group id: all in turn, or one that each sender chooses at random",
    )  # fmt: skip
    auto_update_partitions: bool = option(
        True, "autoUpdatePartitions", "send to partitions that the topic gets later", transports=ON_PULSAR
    )
    auto_update_partitions_interval: float = option(
        60.0, "autoUpdatePartitionsIntervalSeconds", "how often to look for them", unit="s", low=1, transports=ON_PULSAR
    )
    initial_sequence_id: int | None = option(
        None, "initialSequenceId", "sequence id before the first message's", low=0, high=2**63 - 1
    )
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
        """True when messages are sent in batches, of more than one message."""
        return self.batching_enabled and self.batching_max_messages != 1

    def changes(self, overrides: Mapping[str, object]) -> dict[str, Any]:
        """The fields that ``overrides`` would set, with their values. Arguments and errors as for ``merge``."""
        return read_section(directory(Section.PRODUCER), overrides, Section.PRODUCER.value, self.properties)

    def merge(self, overrides: Mapping[str, object]) -> Self:
        """A copy with ``overrides``: a map with Starlight's names (nested or dotted) or the fields' own.

        Raises:
            ConfigurationError: an unknown name or a value that can't be used.
        """
        return attrs.evolve(self, **self.changes(overrides))
