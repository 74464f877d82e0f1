"""The table from pulsar-client's result codes to jmsaio's errors."""

from __future__ import annotations

import _pulsar

from jmsaio.errors import (
    BrokerUnavailableError,
    ConfigurationError,
    JMSError,
    JMSSecurityError,
    MessageFormatError,
    MessageTooLargeError,
    ObjectClosedError,
    OperationTimeoutError,
    ResourceAllocationError,
    SendError,
    SendInDoubtError,
    TransportError,
)
from jmsaio.transport.causes import PASSING
from jmsaio.transport.pulsar.broker_errors import BROKER_ERRORS, Meaning, error_with
from jmsaio.transport.pulsar.native.binding.handles import Result

#: Code of success.
OK = 0
#: Code of a request whose connection broke before its answer; pulsar-client's Python part has no name for it.
DISCONNECTED = 46
_Result = _pulsar.Result
#: Codes of requests that ended without an answer of the broker.
NO_ANSWER = {int(_Result.Timeout), int(_Result.ConnectError), int(_Result.ReadError), int(_Result.NotConnected)} | {
    int(_Result.AuthenticationError), int(_Result.AlreadyClosed), int(_Result.Interrupted), DISCONNECTED, -1
}  # fmt: skip


_MEANINGS: dict[str, Meaning] = BROKER_ERRORS | {
    "InvalidConfiguration": (ConfigurationError, "pulsar-client refused the configuration"),
    "Timeout": (OperationTimeoutError, "no answer in time; the broker might be unreachable or overloaded"),
    "LookupError": (TransportError, "the broker could not find out which broker serves the topic; try again"),
    "ConnectError": (BrokerUnavailableError, "no connection to the broker"),
    "ReadError": (BrokerUnavailableError, "the connection to the broker broke"),
    "ErrorGettingAuthenticationData": (JMSSecurityError, "no credentials; check authPlugin and authParams"),
    "NotConnected": (BrokerUnavailableError, "not connected to the broker"),
    "Disconnected": (BrokerUnavailableError, "the connection to the broker broke before the answer"),
    "AlreadyClosed": (ObjectClosedError, "closed"),
    "InvalidMessage": (MessageFormatError, "pulsar-client refused the message"),
    "ConsumerNotInitialized": (TransportError, "the consumer is not connected"),
    "ProducerNotInitialized": (TransportError, "the producer is not connected"),
    "InvalidUrl": (ConfigurationError, "not a service URL: pulsar://host:port or pulsar+ssl://host:port"),
    "OperationNotSupported": (TransportError, "the broker or pulsar-client does not offer this"),
    "ProducerQueueIsFull": (ResourceAllocationError, "pulsar-client's queue is full"),
    "MessageTooBig": (MessageTooLargeError, "larger than the broker's maxMessageSize"),
    "CryptoError": (TransportError, "encryption failed"),
    "CumulativeAcknowledgementNotAllowedError": (TransportError, "not allowed on a shared subscription"),
    "MemoryBufferIsFull": (ResourceAllocationError, "pulsar-client's memory limit is reached"),
    "Interrupted": (TransportError, "interrupted by a signal"),
}
#: Codes with which a message that was sent is certainly not stored.
_NOT_STORED = frozenset(
    {
        "InvalidConfiguration", "AuthorizationError", "ChecksumError", "InvalidMessage", "ProducerNotInitialized",
        "ProducerBusy", "InvalidTopicName", "ProducerBlockedQuotaExceededError",
        "ProducerBlockedQuotaExceededException", "ProducerQueueIsFull", "MessageTooBig", "TopicTerminated",
        "CryptoError", "IncompatibleSchema", "NotAllowedError", "ProducerFenced", "MemoryBufferIsFull",
    }
)  # fmt: skip

#: Result codes and their names, as numbered by pulsar-client.
_NAMES: dict[int, str] = {int(code): name for name, code in _pulsar.Result.__members__.items()} | {
    DISCONNECTED: "Disconnected"
}


def translate(result: Result, what: str, detail: str = "") -> JMSError:
    """Create the error of a failed operation: ``what`` starts its text, ``detail`` is the broker's own message."""
    name = _NAMES.get(int(result), "UnknownError")
    return error_with(_MEANINGS[name], what, name, detail)


def passes(error: JMSError) -> bool:
    return error.error_code in (*PASSING, "Disconnected", "NotConnected")


def translate_send(result: Result, what: str, alone: bool) -> JMSError:
    """Create the error of a failed send. Unless ``alone``, the answer for a group leaves this record in doubt."""
    name = _NAMES.get(int(result), "UnknownError")
    kind, text = _MEANINGS[name]
    if not (name in _NOT_STORED and alone):
        doubt = "the message might be stored; send it again only if a duplicate does no harm"
        return error_with((SendInDoubtError, text), what, name, doubt)
    certain = kind in (MessageTooLargeError, MessageFormatError, JMSSecurityError, ResourceAllocationError)
    return error_with((kind if certain else SendError, text), what, name)
