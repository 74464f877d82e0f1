from __future__ import annotations

import errno
import itertools
import socket
import ssl

import pytest

from jmsaio.transport.pulsar.admin.causes import cause_of, distrust


def raised(*errors: BaseException) -> BaseException:
    """The first error, caused by the second, and so on."""
    for error, cause in itertools.pairwise(errors):
        error.__cause__ = cause
    return errors[0]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "x"), "Connection refused"),
        (raised(RuntimeError("outer"), OSError("all failed"), OSError(errno.EHOSTUNREACH, "x")), "No route to host"),
        (socket.gaierror(-2, "Name or service not known"), "Name or service not known"),
        (ExceptionGroup("several", [OSError(errno.ETIMEDOUT, "x")]), "Connection timed out"),
        (RuntimeError("nothing behind it"), "nothing behind it"),
        (raised(RuntimeError("outer"), ValueError("inner")), "outer"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_the_first_real_cause_is_told(error: BaseException, words: str) -> None:
    """However deep it lies, the operating system's sentence is found."""
    assert cause_of(error) == words


def test_an_alert_of_tls_names_the_clients_certificate() -> None:
    """Errors of other kinds are no matter of trust."""
    alert = ssl.SSLError(1, "[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] tlsv13 alert certificate required")
    alert.reason = "TLSV13_ALERT_CERTIFICATE_REQUIRED"
    told = distrust(raised(RuntimeError("outer"), ExceptionGroup("several", [alert])), "there:1")
    assert told is not None
    assert told.startswith("there:1 refuses the TLS connection (tlsv13 alert certificate required); check the client's")
    assert distrust(raised(RuntimeError("outer"), OSError(errno.ECONNREFUSED, "x")), "there:1") is None
