"""The table from pulsar-client's result codes to jmsaio's errors."""

from __future__ import annotations

from collections.abc import Callable

import _pulsar
import attrs

from jmsaio.errors import (
    BrokerUnavailableError,
    ConfigurationError,
    ConsumerBusyError,
    InvalidDestinationError,
    JMSError,
    JMSSecurityError,
    MessageFormatError,
    MessageTooLargeError,
    NotFoundError,
    ObjectClosedError,
    OperationTimeoutError,
    ResourceAllocationError,
    SendError,
    SendInDoubtError,
    TransportError,
)
from jmsaio.transport.causes import PASSING
from jmsaio.transport.pulsar.native.binding.handles import Result

#: Code of success.
OK = 0
#: Code of a request whose connection broke before its answer; pulsar-client's Python part has no name for it.
DISCONNECTED = 46
#: Names of the results of a request whose connection broke, or that had none.
_UNCONNECTED = ("Disconnected", "NotConnected")
_Result = _pulsar.Result
#: Codes of requests that ended without an answer of the broker.
NO_ANSWER = {int(_Result.Timeout), int(_Result.ConnectError), int(_Result.ReadError), int(_Result.NotConnected)} | {
    int(_Result.AuthenticationError), int(_Result.AlreadyClosed), int(_Result.Interrupted), DISCONNECTED, -1
}  # fmt: skip


@attrs.frozen
class Meaning:
    """The meaning of one result code."""

    error: Callable[[str], JMSError]
    text: str  # what happened, and what to do about it
    not_stored: bool = False  # whether a sent message with this result is certainly not stored


_QUOTA = Meaning(ResourceAllocationError, "the topic's backlog quota is used up; consume, or raise the quota", True)
_MEANINGS: dict[str, Meaning] = {
    "UnknownError": Meaning(TransportError, "the broker reported an error it does not name; its log has the cause"),
    "InvalidConfiguration": Meaning(ConfigurationError, "pulsar-client refused the configuration", True),
    "Timeout": Meaning(OperationTimeoutError, "no answer in time; the broker might be unreachable or overloaded"),
    "LookupError": Meaning(TransportError, "the broker could not find out which broker serves the topic; try again"),
    "ConnectError": Meaning(BrokerUnavailableError, "no connection to the broker"),
    "ReadError": Meaning(BrokerUnavailableError, "the connection to the broker broke"),
    "AuthenticationError": Meaning(JMSSecurityError, "the credentials were refused; check authPlugin and authParams"),
    "AuthorizationError": Meaning(JMSSecurityError, "the credentials have no right to do this", True),
    "ErrorGettingAuthenticationData": Meaning(JMSSecurityError, "no credentials; check authPlugin and authParams"),
    "BrokerMetadataError": Meaning(TransportError, "the broker can't reach its metadata store"),
    "BrokerPersistenceError": Meaning(TransportError, "the broker could not store it; check the bookies"),
    "ChecksumError": Meaning(TransportError, "the message was damaged in transit", True),
    "ConsumerBusy": Meaning(ConsumerBusyError, "the subscription already has its consumer; close that one first"),
    "NotConnected": Meaning(BrokerUnavailableError, "not connected to the broker"),
    "Disconnected": Meaning(BrokerUnavailableError, "the connection to the broker broke before the answer"),
    "AlreadyClosed": Meaning(ObjectClosedError, "closed"),
    "InvalidMessage": Meaning(MessageFormatError, "pulsar-client refused the message", True),
    "ConsumerNotInitialized": Meaning(TransportError, "the consumer is not connected"),
    "ProducerNotInitialized": Meaning(TransportError, "the producer is not connected", True),
    "ProducerBusy": Meaning(
        ResourceAllocationError,
        "a producer with this name is already connected (producerConfig.producerName); close it, or use another name",
        True,
    ),
    "TooManyLookupRequestException": Meaning(ResourceAllocationError, "too many look-ups at once; try again"),
    "InvalidTopicName": Meaning(InvalidDestinationError, "not a topic name that Pulsar accepts", True),
    "InvalidUrl": Meaning(ConfigurationError, "not a service URL: pulsar://host:port or pulsar+ssl://host:port"),
    "ServiceUnitNotReady": Meaning(TransportError, "the topic is moving between brokers; try again"),
    "OperationNotSupported": Meaning(TransportError, "the broker or pulsar-client does not offer this"),
    "ProducerBlockedQuotaExceededError": _QUOTA,
    "ProducerBlockedQuotaExceededException": _QUOTA,
    "ProducerQueueIsFull": Meaning(ResourceAllocationError, "pulsar-client's queue is full", True),
    "MessageTooBig": Meaning(MessageTooLargeError, "larger than the broker's maxMessageSize", True),
    "TopicNotFound": Meaning(
        NotFoundError, "the topic does not exist and the broker does not create topics; create it first"
    ),
    "SubscriptionNotFound": Meaning(NotFoundError, "the subscription does not exist; create it first"),
    "ConsumerNotFound": Meaning(TransportError, "the consumer is no longer registered at the broker"),
    "UnsupportedVersionError": Meaning(TransportError, "the broker is too old for this"),
    "TopicTerminated": Meaning(TransportError, "the topic was terminated: it accepts no more messages", True),
    "CryptoError": Meaning(TransportError, "encryption failed", True),
    "IncompatibleSchema": Meaning(
        TransportError, "the producer's schema does not fit that of the topic (no schema: untyped bytes)", True
    ),
    "ConsumerAssignError": Meaning(TransportError, "the broker could not add the consumer to the subscription"),
    "CumulativeAcknowledgementNotAllowedError": Meaning(TransportError, "not allowed on a shared subscription"),
    "TransactionCoordinatorNotFoundError": Meaning(TransportError, "the broker has no transaction coordinator"),
    "InvalidTxnStatusError": Meaning(TransportError, "the transaction has ended"),
    "NotAllowedError": Meaning(TransportError, "the broker does not allow it in the present state", True),
    "TransactionConflict": Meaning(TransportError, "another transaction has it"),
    "TransactionNotFound": Meaning(TransportError, "the transaction does not exist"),
    "ProducerFenced": Meaning(TransportError, "another producer has exclusive access to the topic", True),
    "MemoryBufferIsFull": Meaning(ResourceAllocationError, "pulsar-client's memory limit is reached", True),
    "Interrupted": Meaning(TransportError, "interrupted by a signal"),
}

#: Result codes and their names, as numbered by pulsar-client.
_NAMES: dict[int, str] = {int(code): name for name, code in _pulsar.Result.__members__.items()} | {
    DISCONNECTED: "Disconnected"
}


def translate(result: Result, what: str, detail: str = "") -> JMSError:
    """Create jmsaio's error for a result that is not Ok.

    ``what``, the operation with its topic and subscription, starts its text; ``detail`` is the broker's own message.
    """
    name, meaning = _meaning(result)
    return _error(meaning.error, what, name, meaning.text, detail)


def passes(error: JMSError) -> bool:
    """Return whether an error from ``translate`` is transient, so that a retry makes sense."""
    return error.error_code in PASSING or error.error_code in _UNCONNECTED


def translate_send(result: Result, what: str, alone: bool) -> JMSError:
    """Create jmsaio's error for a record whose send had a result that is not Ok.

    ``alone``: whether the answer is for this record only. The answer for a group says nothing certain about all but one
    of its records, so they are in doubt whatever it is.
    """
    name, meaning = _meaning(result)
    if not (meaning.not_stored and alone):
        doubt = "the message might be stored; send it again only if a duplicate does no harm"
        return _error(SendInDoubtError, what, name, meaning.text, doubt)
    certain = meaning.error in (MessageTooLargeError, MessageFormatError, JMSSecurityError, ResourceAllocationError)
    return _error(meaning.error if certain else SendError, what, name, meaning.text)


def _meaning(result: Result) -> tuple[str, Meaning]:
    name = _NAMES.get(int(result), "UnknownError")
    return name, _MEANINGS[name]


def _error(kind: Callable[[str], JMSError], what: str, name: str, text: str, detail: str = "") -> JMSError:
    error = kind(f"{what}: {text} [{name}]{f' ({detail})' if detail else ''}")
    error.error_code = name
    return error
