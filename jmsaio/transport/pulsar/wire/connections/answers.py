"""The table from the broker's error codes to jmsaio's errors; whether and when another attempt makes sense."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from jmsaio.errors import (
    BrokerUnavailableError,
    ConsumerBusyError,
    InvalidDestinationError,
    JMSError,
    JMSSecurityError,
    NotFoundError,
    OperationTimeoutError,
    ProtocolError,
    ResourceAllocationError,
    SendError,
    TransportError,
)
from jmsaio.model.arguments import brief
from jmsaio.transport.base import METADATA_TOO_LARGE


@attrs.frozen
class Answer:
    """What an error code of the broker means: whether the same request can succeed within seconds (``passes``).

    ``passes_again`` is for one that was registered before: its own connection that broke can still count at the broker.
    """

    code: str
    error: Callable[[str, str], JMSError]
    text: str
    passes: bool = False
    passes_again: bool = False


_QUOTA: Final = "the topic's backlog quota is used up; consume, or raise the quota"
_UNKNOWN: Final = Answer(
    "UnknownError", TransportError, "the broker reported an error it does not name; its log has the cause", False, True
)
#: By the number in the protocol (ServerError).
ANSWERS: Final[dict[int, Answer]] = {
    0: _UNKNOWN,
    1: Answer("BrokerMetadataError", TransportError, "the broker can't reach its metadata store", True, True),
    2: Answer("BrokerPersistenceError", TransportError, "the broker could not store it; check the bookies", True, True),
    3: Answer("AuthenticationError", JMSSecurityError, "the credentials were refused; check authPlugin and authParams"),
    4: Answer("AuthorizationError", JMSSecurityError, "the credentials have no right to do this"),
    5: Answer("ConsumerBusy", ConsumerBusyError, "the subscription already has its consumer; close that one first",
              False, True),
    6: Answer("ServiceUnitNotReady", TransportError, "the topic is moving between brokers; try again", True, True),
    7: Answer("ProducerBlockedQuotaExceededError", ResourceAllocationError, _QUOTA, False, True),
    8: Answer("ProducerBlockedQuotaExceededException", ResourceAllocationError, _QUOTA, False, True),
    9: Answer("ChecksumError", TransportError, "the message was damaged in transit"),
    10: Answer("UnsupportedVersionError", TransportError, "the broker is too old for this"),
    11: Answer("TopicNotFound", NotFoundError,
               "the topic does not exist and the broker does not create topics; create it first"),
    12: Answer("SubscriptionNotFound", NotFoundError, "the subscription does not exist; create it first"),
    13: Answer("ConsumerNotFound", TransportError, "the consumer is no longer registered at the broker", False, True),
    14: Answer("TooManyLookupRequestException", ResourceAllocationError, "too many requests at once; try again",
               True, True),
    15: Answer("TopicTerminated", TransportError, "the topic was terminated: it accepts no more messages"),
    16: Answer("ProducerBusy", ResourceAllocationError,
         "a producer with this name is already connected (producerConfig.producerName); close it, or use another name",
         False, True),
    17: Answer("InvalidTopicName", InvalidDestinationError, "not a topic name that Pulsar accepts"),
    18: Answer("IncompatibleSchema", TransportError,
               "the producer's schema does not fit that of the topic (no schema: untyped bytes)"),
    19: Answer("ConsumerAssignError", TransportError, "the broker could not add the consumer to the subscription"),
    20: Answer("TransactionCoordinatorNotFoundError", TransportError, "the broker has no transaction coordinator"),
    21: Answer("InvalidTxnStatusError", TransportError, "the transaction has ended"),
    22: Answer("NotAllowedError", TransportError, "the broker does not allow it in the present state"),
    23: Answer("TransactionConflict", TransportError, "another transaction has it"),
    24: Answer("TransactionNotFound", TransportError, "the transaction does not exist"),
    25: Answer("ProducerFenced", SendError, "another producer has exclusive access to the topic"),
}  # fmt: skip
#: Words of the broker in a "BrokerMetadataError" that does not pass.
_TOO_LARGE_WORDS: Final = "metadata has a max size"
_TOO_LARGE: Final = Answer(
    METADATA_TOO_LARGE, TransportError, "its metadata is too long for the broker (maxConsumerMetadataSize)"
)
_BY_CODE: Final = {answer.code: answer for answer in ANSWERS.values()}


def error_of(what: str, number: int, message: str) -> JMSError:
    answer = _TOO_LARGE if _TOO_LARGE_WORDS in message else ANSWERS.get(number, _UNKNOWN)
    words = f" ({brief(message)})" if message else ""
    return answer.error(f"{what}: {answer.text} [{answer.code}]{words}", answer.code)


def passes(error: JMSError, again: bool) -> bool:
    """Return whether another attempt makes sense; ``again``: of a producer or consumer that was registered before."""
    answer = _BY_CODE.get(error.error_code or "")
    if answer is not None:
        return answer.passes_again if again else answer.passes
    if error.error_code == "LookupError":
        return again  # brokers that pass a moving topic on to each other come to agree
    return isinstance(error, BrokerUnavailableError | OperationTimeoutError | ProtocolError)


#: Seconds of success after which the next attempt follows at once, and failures are counted from 0 again.
STABLE: Final = 1.0


@attrs.frozen
class Backoff:
    """The waits between attempts."""

    first: float = 0.1
    longest: float = 10.0

    def delay(self, failures: int, uniform: float) -> float:
        """Return the seconds to wait after ``failures`` failed attempts in a row, at least one.

        Up to a fifth is left out by ``uniform``, a random number in [0, 1), so that clients that lost the same broker
        do not all return in the same moment.
        """
        longest = min(self.first * 2.0 ** min(failures - 1, 60), self.longest)
        return longest * (1.0 - 0.2 * uniform)
