"""Every option of ``producerConfig`` and ``consumerConfig``, one row each, with Starlight's names and units."""

from __future__ import annotations

from functools import partial
from typing import Any

from jmsaio.config.options import Kind, Option, Section, Status

COMPRESSION = ("NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY")
ACCESS_MODES = ("Shared", "Exclusive", "WaitForExclusive", "ExclusiveWithFencing")


def _row(section: Section, key: str, kind: Kind, default: object, field: str = "", **more: Any) -> Option:
    return Option(key=key, section=section, kind=kind, default=default, field=field, **more)


_producer = partial(_row, Section.PRODUCER)
_consumer = partial(_row, Section.CONSUMER)
_dead = partial(_row, Section.DEAD_LETTER)
_F, _T, _I, _D, _C, _N, _M = Kind.FLAG, Kind.TEXT, Kind.INTEGER, Kind.DURATION, Kind.CHOICE, Kind.NUMBER, Kind.MAP
_LATER: dict[str, Any] = {"status": Status.NOT_BUILT}
_NEVER: dict[str, Any] = {"status": Status.NO_MEANING}
_ENGINE = "pulsar-client has no such setting"
_JAVA = "takes a Java object"
_CALL = "the call that makes the consumer and its destination decide this"

PRODUCER = (
    _producer("batchingEnabled", _F, True, "batching_enabled", note="send messages in batches"),
    _producer("batchingMaxPublishDelayMicros", _D, 1000, "batching_max_publish_delay", unit="us",
              note="longest wait for a batch to fill"),
    _producer("batchingMaxMessages", _I, 1000, "batching_max_messages", low=1, note="messages in a batch at most"),
    _producer("batchingMaxBytes", _I, 131072, "batching_max_bytes", unit="bytes", low=1,
              note="bytes in a batch at most"),
    _producer("sendTimeoutMs", _D, 30000, "send_timeout", unit="ms",
              note="no answer in this time: the send is in doubt; 0: never"),
    _producer("blockIfQueueFull", _F, None, note="accepted: send always waits for room, the event loop goes on"),
    _producer("maxPendingMessages", _I, 0, "max_pending_messages", low=0, **_LATER,
              note="use send_window_messages"),
    _producer("compressionType", _C, "NONE", "compression_type", choices=COMPRESSION, note="compression of batches"),
    _producer("chunkingEnabled", _F, False, "chunking_enabled",
              note="split large messages; needs batchingEnabled=false"),
    _producer("hashingScheme", _C, "JavaStringHash", choices=("JavaStringHash",), note="hash of the group id"),
    _producer("producerName", _T, None, "producer_name", note="name shown by the broker"),
    _producer("accessMode", _C, "Shared", "access_mode", choices=ACCESS_MODES, note="who else may send to the topic"),
    _producer("initialSequenceId", _I, None, "initial_sequence_id", low=0, high=2**63 - 1,
              note="number of the first message"),
    _producer("batcherBuilder", _C, "DEFAULT", "batcher_builder", choices=("DEFAULT", "KEY_BASED"), exact=True,
              note="KEY_BASED: one batch a group id, for Key_Shared"),
    _producer("lazyStartPartitionedProducers", _F, False, "lazy_start_partitioned_producers", **_LATER,
              note="one producer a partition, made when it is needed"),
    _producer("properties", _M, {}, "properties", note="metadata of the producer"),
    _producer("autoUpdatePartitions", _F, True, **_LATER, note=_ENGINE),
    _producer("autoUpdatePartitionsIntervalSeconds", _I, 60, unit="s", **_LATER, note=_ENGINE),
    _producer("initialSubscriptionName", _T, None, **_LATER, note=_ENGINE),
    _producer("encryptionKeys", _T, None, **_LATER, note="messages are not encrypted"),
    _producer("cryptoFailureAction", _C, "FAIL", choices=("FAIL", "SEND"), **_LATER, note="messages are not encrypted"),
    _producer("cryptoKeyReader", _T, None, **_NEVER, note=_JAVA),
    _producer("maxPendingMessagesAcrossPartitions", _I, 0, **_LATER, note="use maxPendingMessages"),
    _producer("messageRoutingMode", _C, "RoundRobinPartition", choices=("RoundRobinPartition",), **_LATER,
              note="by group id, else in turn"),
    _producer("chunkMaxMessageSize", _I, -1, unit="bytes", **_LATER, note=_ENGINE),
    _producer("multiSchema", _F, True, **_NEVER, note="messages are bytes"),
)  # fmt: skip

CONSUMER = (
    _consumer("receiverQueueSize", _I, 1000, "receiver_queue_size", low=0, high=1_000_000,
              note="messages prefetched; with 0 on Pulsar one message or batch"),
    _consumer("maxTotalReceiverQueueSizeAcrossPartitions", _I, 50000, "max_total_receiver_queue_size_across_partitions",
              low=0, note="the same, for all partitions together"),
    _consumer("ackTimeoutMillis", _D, 0, "ack_timeout", unit="ms", off=0,
              note="not acknowledged in this time: comes again; 0: off"),
    _consumer("negativeAckRedeliveryDelayMicros", _D, None, "negative_ack_redelivery_delay", unit="us",
              note="what the application gives back comes again after it; not given: at once "
              "`max_local_redeliveries` times, then after 1 s, doubling to 60 s"),
    _consumer("acknowledgementsGroupTimeMicros", _D, 100_000, "acknowledgements_group_time", unit="us", **_LATER,
              note="acknowledgements are grouped for 130 ms at most"),
    _consumer("ackReceiptEnabled", _F, False, "ack_receipt_enabled", note="acknowledge returns when the broker has it"),
    _consumer("batchIndexAckEnabled", _F, True, "batch_index_ack_enabled",
              note="acknowledge single messages of a batch (Starlight: false)"),
    _consumer("consumerName", _T, None, "consumer_name", note="name shown by the broker"),
    _consumer("priorityLevel", _I, 0, "priority_level", low=0, **_LATER, note=_ENGINE),
    _consumer("readCompacted", _F, False, "read_compacted", note="read the compacted topic"),
    _consumer("patternAutoDiscoveryPeriod", _D, 60, "pattern_auto_discovery_period", unit="s", low=1,
              note="how often a pattern looks for new topics"),
    _consumer("regexSubscriptionMode", _C, "PersistentOnly", "regex_subscription_mode",
              choices=("PersistentOnly", "NonPersistentOnly", "AllTopics"), note="topics that a pattern takes"),
    _consumer("replicateSubscriptionState", _F, False, "replicate_subscription_state",
              note="geo-replicate the position"),
    _consumer("maxPendingChunkedMessage", _I, 10, "max_pending_chunked_message", low=0,
              note="split messages put together at the same time"),
    _consumer("autoAckOldestChunkedMessageOnQueueFull", _F, False, "auto_ack_oldest_chunked_message_on_queue_full",
              note="drop the oldest half message when there are more"),
    _consumer("cryptoFailureAction", _C, "FAIL", "crypto_failure_action", choices=("FAIL", "DISCARD", "CONSUME"),
              note="what happens to a message that can't be decrypted"),
    _consumer("properties", _M, {}, "properties", note="metadata of the consumer"),
    _consumer("useSchema", _F, False, "use_schema", **_LATER, note="messages with a schema arrive as BytesMessage"),
    _consumer("retryEnable", _F, False, **_LATER, note=_ENGINE),
    _consumer("autoUpdatePartitions", _F, True, **_LATER, note=_ENGINE),
    _consumer("autoUpdatePartitionsIntervalSeconds", _I, 60, unit="s", **_LATER, note=_ENGINE),
    _consumer("maxAcknowledgmentGroupSize", _I, 1000, **_LATER, note=_ENGINE),
    _consumer("negativeAckPrecisionBitCnt", _I, 8, **_LATER, note=_ENGINE),
    _consumer("tickDurationMillis", _I, 1000, unit="ms", **_LATER, note=_ENGINE),
    _consumer("expireTimeOfIncompleteChunkedMessageMillis", _I, 60000, unit="ms", **_LATER, note=_ENGINE),
    _consumer("resetIncludeHead", _F, False, **_LATER, note=_ENGINE),
    _consumer("autoScaledReceiverQueueSizeEnabled", _F, False, **_LATER, note=_ENGINE),
    _consumer("poolMessages", _F, False, **_NEVER, note="a matter of Java's memory"),
    _consumer("startPaused", _F, False, **_NEVER, note="use auto_start=False or connection.stop()"),
    _consumer("cryptoKeyReader", _T, None, **_NEVER, note=_JAVA),
    _consumer("topicNames", _T, None, **_NEVER, note=_CALL),
    _consumer("topicsPattern", _T, None, **_NEVER, note=_CALL),
    _consumer("subscriptionName", _T, None, **_NEVER, note=_CALL),
    _consumer("subscriptionType", _T, None, **_NEVER, note=_CALL),
    _consumer("subscriptionMode", _T, None, **_NEVER, note=_CALL),
    _consumer("subscriptionProperties", _M, {}, **_NEVER, note=_CALL),
    _consumer("subscriptionInitialPosition", _T, None, **_NEVER, note=_CALL),
)  # fmt: skip

DEAD_LETTER = (
    _dead("maxRedeliverCount", _I, None, "max_redeliver_count", low=1, note="redeliveries before a message is moved"),
    _dead("deadLetterTopic", _T, None, "dead_letter_topic", note="where to; not given: <topic>-<subscription>-DLQ"),
    _dead("initialSubscriptionName", _T, None, "initial_subscription_name", note="subscription made with that topic"),
    _dead("retryLetterTopic", _T, None, "retry_letter_topic", **_LATER, note=_ENGINE),
)  # fmt: skip


def _backoff(section: Section) -> tuple[Option, ...]:
    """The rows of one backoff."""
    return (
        _row(section, "minDelayMs", _D, 10000, "min_delay", unit="ms", note="first delay"),
        _row(section, "maxDelayMs", _D, 600000, "max_delay", unit="ms", note="longest delay"),
        _row(section, "multiplier", _N, 2.0, "multiplier", low=1, note="growth of the delay with each redelivery"),
    )


NACK_BACKOFF = _backoff(Section.NACK_BACKOFF)
ACK_TIMEOUT_BACKOFF = _backoff(Section.ACK_TIMEOUT_BACKOFF)
