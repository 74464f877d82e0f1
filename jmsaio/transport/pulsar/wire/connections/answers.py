"""The broker's errors by their numbers in the protocol; whether and when another attempt makes sense."""

from __future__ import annotations

from typing import Final

import attrs

from jmsaio.errors import BrokerUnavailableError, JMSError, OperationTimeoutError, ProtocolError, TransportError
from jmsaio.model.arguments import brief
from jmsaio.transport.base import METADATA_TOO_LARGE
from jmsaio.transport.causes import PASSING
from jmsaio.transport.pulsar.broker_errors import BROKER_ERRORS, error_with

_CODES: Final = tuple(BROKER_ERRORS)
#: Codes that pass for a producer or consumer that was registered before: its own connection that broke can still count
#: at the broker, and brokers that pass a moving topic on to each other come to agree.
_PASSING_AGAIN: Final = PASSING | {
    "UnknownError", "ConsumerBusy", "ProducerBlockedQuotaExceededError", "ProducerBlockedQuotaExceededException",
    "ConsumerNotFound", "ProducerBusy",
}  # fmt: skip
#: Words of the broker in a "BrokerMetadataError" that does not pass.
_TOO_LARGE_WORDS: Final = "metadata has a max size"
_TOO_LARGE: Final = TransportError, "its metadata is too long for the broker (maxConsumerMetadataSize)"


def error_of(what: str, number: int, message: str) -> JMSError:
    words = brief(message) if message else ""
    if _TOO_LARGE_WORDS in message:
        return error_with(_TOO_LARGE, what, METADATA_TOO_LARGE, words)
    code = _CODES[number] if 0 <= number < len(_CODES) else "UnknownError"
    return error_with(BROKER_ERRORS[code], what, code, words)


def passes(error: JMSError, again: bool) -> bool:
    """Return whether another attempt makes sense; ``again``: of a producer or consumer that was registered before."""
    code = error.error_code
    if code in BROKER_ERRORS or code == "LookupError":
        return code in _PASSING_AGAIN if again else code in PASSING and code != "LookupError"
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
