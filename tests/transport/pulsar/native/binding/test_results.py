"""The table of result codes."""

from __future__ import annotations

import _pulsar
import pytest

from jmsaio.errors import (
    BrokerUnavailableError,
    ConsumerBusyError,
    JMSError,
    JMSSecurityError,
    MessageTooLargeError,
    NotFoundError,
    OperationTimeoutError,
    SendError,
    SendInDoubtError,
    TransportError,
)
from jmsaio.transport.pulsar.native.binding.results import DISCONNECTED, OK, passes, translate, translate_send

RESULTS = {name: code for name, code in _pulsar.Result.__members__.items() if name != "Ok"} | {
    "Disconnected": _pulsar.Result(DISCONNECTED)
}


@pytest.mark.parametrize("name", RESULTS)
def test_every_code_has_an_error_with_text(name: str) -> None:
    error = translate(RESULTS[name], "subscribe s to t", "the broker's words")
    assert isinstance(error, JMSError)
    assert error.error_code == name
    assert str(error).startswith("subscribe s to t: ")
    assert str(error).endswith(f"[{name}] (the broker's words)")
    assert type(error) is not JMSError


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ConsumerBusy", ConsumerBusyError),
        ("TopicNotFound", NotFoundError),
        ("AuthenticationError", JMSSecurityError),
        ("AuthorizationError", JMSSecurityError),
        ("Timeout", OperationTimeoutError),
        ("ConnectError", BrokerUnavailableError),
        ("Disconnected", BrokerUnavailableError),
        ("UnknownError", TransportError),
    ],
)
def test_each_result_becomes_its_error(name: str, kind: type[JMSError]) -> None:
    assert type(translate(RESULTS[name], "x")) is kind


def test_only_answers_of_the_moment_pass() -> None:
    passing = {name for name, code in RESULTS.items() if passes(translate(code, "x"))}
    assert passing == {
        "BrokerMetadataError", "BrokerPersistenceError", "Disconnected", "LookupError", "NotConnected",
        "ServiceUnitNotReady", "TooManyLookupRequestException",
    }  # fmt: skip
    assert not passes(JMSError("of our own"))


def test_ok_is_pulsar_clients_ok() -> None:
    assert int(_pulsar.Result.Ok) == OK


@pytest.mark.parametrize("name", RESULTS)
def test_a_group_that_failed_is_in_doubt(name: str) -> None:
    """The answer of the last says nothing sure about the others, whatever it is."""
    assert type(translate_send(RESULTS[name], "send", alone=False)) is SendInDoubtError


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Timeout", SendInDoubtError),
        ("AlreadyClosed", SendInDoubtError),
        ("ConnectError", SendInDoubtError),
        ("UnknownError", SendInDoubtError),
        ("MessageTooBig", MessageTooLargeError),
        ("TopicTerminated", SendError),
        ("AuthorizationError", JMSSecurityError),
    ],
)
def test_a_lone_record_is_in_doubt_only_if_it_may_be_stored(name: str, kind: type[JMSError]) -> None:
    error = translate_send(RESULTS[name], "send to t", alone=True)
    assert (type(error), error.error_code) == (kind, name)
