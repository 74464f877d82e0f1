"""Every error of the broker has an error of jmsaio with its code and words, and says whether it passes."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from jmsaio.errors import (
    BrokerUnavailableError,
    JMSError,
    JMSSecurityError,
    OperationTimeoutError,
    ProtocolError,
    TransportError,
)
from jmsaio.transport.base import METADATA_TOO_LARGE
from jmsaio.transport.causes import PASSING
from jmsaio.transport.pulsar.broker_errors import BROKER_ERRORS
from jmsaio.transport.pulsar.wire.connections.answers import Backoff, error_of, passes
from tests.protocol.server_errors import ServerError

pytestmark = pytest.mark.fast
#: What a moving or starting broker reports: it passes, also for what was never registered.
PASSES = {"MetadataError", "PersistenceError", "ServiceNotReady", "TooManyRequests"}
#: What can be left over of a connection that broke, or holds until an operator acts.
PASSES_AGAIN = PASSES | {
    "UnknownError", "ConsumerBusy", "ConsumerNotFound", "ProducerBusy", "ProducerBlockedQuotaExceededError",
    "ProducerBlockedQuotaExceededException",
}  # fmt: skip


def test_what_passes_is_what_passes_everywhere() -> None:
    found = [error_of("open orders", number, "") for number in ServerError]
    assert {error.error_code for error in found if passes(error, again=False)} == PASSING - {"LookupError"}


@pytest.mark.parametrize("number", ServerError)
def test_an_error_has_the_code_and_the_brokers_words(number: ServerError) -> None:
    error = error_of("open orders", number, "the cause")
    code, (kind, text) = list(BROKER_ERRORS.items())[number]
    assert isinstance(error, kind)  # type: ignore[arg-type]  # each is a class
    assert (error.error_code, str(error)) == (code, f"open orders: {text} [{code}] (the cause)")
    assert passes(error, again=False) is (number.name in PASSES)
    assert passes(error, again=True) is (number.name in PASSES_AGAIN)


@pytest.mark.parametrize("number", [-1, 26, 2**31 - 1])
def test_a_number_of_no_error_is_an_unknown_error(number: int) -> None:
    error = error_of("open orders", number, "")
    assert type(error) is TransportError
    assert error.error_code == "UnknownError"
    assert not str(error).endswith("()")


def test_metadata_that_is_too_long_does_not_pass() -> None:
    """The caller leaves it out then; the broker's number is that of errors of its metadata store, which pass."""
    error = error_of("subscribe orders", ServerError.MetadataError, "metadata has a max size of 1024 bytes")
    assert error.error_code == METADATA_TOO_LARGE
    assert not passes(error, again=False) and not passes(error, again=True)


def test_long_and_unprintable_words_are_short_and_printable() -> None:
    text = str(error_of("open orders", 0, "\x1b[31m\n" * 100_000))
    assert len(text) < 1000
    assert text.isprintable()


@pytest.mark.parametrize(
    ("error", "first", "again"),
    [
        (BrokerUnavailableError("connect"), True, True),
        (OperationTimeoutError("look up"), True, True),
        (ProtocolError("an answer of another kind"), True, True),
        (TransportError("passed on 20 times", "LookupError"), False, True),
        (JMSSecurityError("no token"), False, False),
    ],
)
def test_what_the_broker_did_not_answer(error: JMSError, first: bool, again: bool) -> None:
    assert passes(error, again=False) is first
    assert passes(error, again=True) is again


SECONDS = st.floats(0.001, 1000)


@given(SECONDS, SECONDS, st.integers(1, 10**6), st.floats(0, 1, exclude_max=True))
def test_a_wait_is_within_its_bounds_and_grows(first: float, most: float, failures: int, uniform: float) -> None:
    delay = Backoff(first, most).delay
    longest = delay(failures, 0.0)
    assert min(first, most) <= longest <= delay(failures + 1, 0.0) <= most
    assert 0.8 * longest <= delay(failures, uniform) <= longest


def test_a_wait_doubles_until_it_is_the_longest() -> None:
    delay = Backoff().delay
    assert [delay(failures, 0.0) for failures in range(1, 10)] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]
    assert delay(10, 0.5) == 9.0
