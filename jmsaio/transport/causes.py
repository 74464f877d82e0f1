"""The causes of failures: which of them soon pass, and why a connection failed."""

from __future__ import annotations

import os
import socket

#: Codes of a broker's answers to a request that can succeed within seconds (``JMSError.error_code``).
PASSING = frozenset(
    {
        "BrokerMetadataError", "BrokerPersistenceError", "LookupError", "ServiceUnitNotReady",
        "TooManyLookupRequestException",
    }
)  # fmt: skip


def cause_of(error: BaseException) -> str:
    """Return the operating system's message behind a network library's error, or else the error's own text."""
    return _words(error) or str(error) or type(error).__name__


def _words(error: BaseException | None) -> str:
    """Return the message of the first operating system error in the chain; "" if there is none."""
    if isinstance(error, socket.gaierror):
        return str(error.strerror)
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno)
    if isinstance(error, BaseExceptionGroup):
        return _words(error.exceptions[0])
    return "" if error is None else _words(error.__cause__ or error.__context__)
