"""Enumerations of Pulsar's protocol: numbers with the protocol's names."""

from __future__ import annotations

import enum


class ServerError(enum.IntEnum):
    """Errors that the broker reports."""

    UnknownError = 0
    MetadataError = 1
    PersistenceError = 2
    AuthenticationError = 3
    AuthorizationError = 4
    ConsumerBusy = 5
    ServiceNotReady = 6
    ProducerBlockedQuotaExceededError = 7
    ProducerBlockedQuotaExceededException = 8
    ChecksumError = 9
    UnsupportedVersionError = 10
    TopicNotFound = 11
    SubscriptionNotFound = 12
    ConsumerNotFound = 13
    TooManyRequests = 14
    TopicTerminatedError = 15
    ProducerBusy = 16
    InvalidTopicName = 17
    IncompatibleSchema = 18
    ConsumerAssignError = 19
    TransactionCoordinatorNotFound = 20
    InvalidTxnStatus = 21
    NotAllowedError = 22
    TransactionConflict = 23
    TransactionNotFound = 24
    ProducerFenced = 25


class SubType(enum.IntEnum):
    """Types of subscriptions."""

    Exclusive = 0
    Shared = 1
    Failover = 2
    Key_Shared = 3


class InitialPosition(enum.IntEnum):
    """Where a new subscription starts."""

    Latest = 0
    Earliest = 1


class ProducerAccessMode(enum.IntEnum):
    """Whether other producers of the topic are allowed."""

    Shared = 0
    Exclusive = 1
    WaitForExclusive = 2
    ExclusiveWithFencing = 3


class CompressionType(enum.IntEnum):
    """Compression of payloads."""

    NONE = 0
    LZ4 = 1
    ZLIB = 2
    ZSTD = 3
    SNAPPY = 4


class AckType(enum.IntEnum):
    """What an ACK covers: the ids in it, or every message up to its id."""

    Individual = 0
    Cumulative = 1


class ValidationError(enum.IntEnum):
    """Why a message was acknowledged although it could not be read."""

    UncompressedSizeCorruption = 0
    DecompressionError = 1
    ChecksumMismatch = 2
    BatchDeSerializeError = 3
    DecryptionError = 4


class LookupType(enum.IntEnum):
    """Results of a LOOKUP."""

    Redirect = 0
    Connect = 1
    Failed = 2


class TopicsMode(enum.IntEnum):
    """Topics that GET_TOPICS_OF_NAMESPACE lists."""

    PERSISTENT = 0
    NON_PERSISTENT = 1
    ALL = 2


class SchemaType(enum.IntEnum):
    """Types of schemas."""

    NONE = 0
    String = 1
    Json = 2
    Protobuf = 3
    Avro = 4
    Bool = 5
    Int8 = 6
    Int16 = 7
    Int32 = 8
    Int64 = 9
    Float = 10
    Double = 11
    Date = 12
    Time = 13
    Timestamp = 14
    KeyValue = 15
    Instant = 16
    LocalDate = 17
    LocalTime = 18
    LocalDateTime = 19
    ProtobufNative = 20
    AutoConsume = 21


class TxnAction(enum.IntEnum):
    """How a transaction ends."""

    COMMIT = 0
    ABORT = 1
