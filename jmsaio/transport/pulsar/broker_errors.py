"""What a broker's errors mean, for both clients: the error of jmsaio, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from jmsaio.errors import (
    ConsumerBusyError,
    InvalidDestinationError,
    JMSError,
    JMSSecurityError,
    NotFoundError,
    ResourceAllocationError,
    SendError,
    TransportError,
)

Meaning = tuple[Callable[[str], JMSError], str]
_QUOTA: Final = ResourceAllocationError, "the topic's backlog quota is used up; consume, or raise the quota"
#: By the code (``JMSError.error_code``), in the order of the protocol's numbers (ServerError).
BROKER_ERRORS: Final[dict[str, Meaning]] = {
    "UnknownError": (TransportError, "the broker reported an error it does not name; its log has the cause"),
    "BrokerMetadataError": (TransportError, "the broker can't reach its metadata store"),
    "BrokerPersistenceError": (TransportError, "the broker could not store it; check the bookies"),
    "AuthenticationError": (JMSSecurityError, "the credentials were refused; check authPlugin and authParams"),
    "AuthorizationError": (JMSSecurityError, "the credentials have no right to do this"),
    "ConsumerBusy": (ConsumerBusyError, "the subscription already has its consumer; close that one first"),
    "ServiceUnitNotReady": (TransportError, "the topic is moving between brokers; try again"),
    "ProducerBlockedQuotaExceededError": _QUOTA,
    "ProducerBlockedQuotaExceededException": _QUOTA,
    "ChecksumError": (TransportError, "the message was damaged in transit"),
    "UnsupportedVersionError": (TransportError, "the broker is too old for this"),
    "TopicNotFound": (
        NotFoundError, "the topic does not exist and the broker does not create topics; create it first"
    ),
    "SubscriptionNotFound": (NotFoundError, "the subscription does not exist; create it first"),
    "ConsumerNotFound": (TransportError, "the consumer is no longer registered at the broker"),
    "TooManyLookupRequestException": (ResourceAllocationError, "too many requests at once; try again"),
    "TopicTerminated": (TransportError, "the topic was terminated: it accepts no more messages"),
    "ProducerBusy": (
        ResourceAllocationError,
        "a producer with this name is already connected (producerConfig.producerName); close it, or use another name",
    ),
    "InvalidTopicName": (InvalidDestinationError, "not a topic name that Pulsar accepts"),
    "IncompatibleSchema": (
        TransportError, "the producer's schema does not fit that of the topic (no schema: untyped bytes)"
    ),
    "ConsumerAssignError": (TransportError, "the broker could not add the consumer to the subscription"),
    "TransactionCoordinatorNotFoundError": (TransportError, "the broker has no transaction coordinator"),
    "InvalidTxnStatusError": (TransportError, "the transaction has ended"),
    "NotAllowedError": (TransportError, "the broker does not allow it in the present state"),
    "TransactionConflict": (TransportError, "another transaction has it"),
    "TransactionNotFound": (TransportError, "the transaction does not exist"),
    "ProducerFenced": (SendError, "another producer has exclusive access to the topic"),
}  # fmt: skip


def error_with(meaning: Meaning, what: str, code: str, detail: str = "") -> JMSError:
    """Create an error; ``what`` is the operation, the start of its text, ``detail`` the broker's own message."""
    kind, text = meaning
    error = kind(f"{what}: {text} [{code}]{f' ({detail})' if detail else ''}")
    error.error_code = code
    return error
