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


class LookupType(enum.IntEnum):
    """Results of a LOOKUP."""

    Redirect = 0
    Connect = 1
    Failed = 2


class TxnAction(enum.IntEnum):
    """How a transaction ends."""

    COMMIT = 0
    ABORT = 1
