"""The operating system's words behind an error of a network library."""

from __future__ import annotations

import errno
import itertools
import socket

import pytest

from jmsaio.transport.causes import cause_of


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
