"""Why a connection failed, in the operating system's words."""

from __future__ import annotations

import os
import socket


def cause_of(error: BaseException) -> str:
    """What the operating system said behind an error of a network library, or else the error's own words."""
    return _words(error) or str(error) or type(error).__name__


def _words(error: BaseException | None) -> str:
    """Those of the first operating system's error in the chain, "" if there is none."""
    if isinstance(error, socket.gaierror):
        return str(error.strerror)
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno)
    if isinstance(error, BaseExceptionGroup):
        return _words(error.exceptions[0])
    return "" if error is None else _words(error.__cause__ or error.__context__)
