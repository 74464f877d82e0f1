"""Why a connection failed: the operating system's words, and what TLS found."""

from __future__ import annotations

import os
import socket
import ssl

#: OpenSSL's codes for a certificate without the name, or the address, that was connected to.
_WRONG_HOST = (62, 64)


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


def distrust(error: BaseException | None, address: str) -> str | None:
    """What to do about a TLS connection that failed because one side does not trust the other; None for other errors.

    Args:
        error: of a network library; the errors behind it count, too.
        address: of the other side.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = error.verify_message.rstrip(".")
        if error.verify_code in _WRONG_HOST:
            return f"the certificate of {address} is for another host: {reason}; connect by a name that it has"
        remedy = "name the file of the authority that signed it with tlsTrustCertsFilePath"
        return f"the certificate of {address} is not trusted: {reason}; {remedy}"
    if isinstance(error, ssl.SSLError) and "ALERT" in (error.reason or ""):
        words = (error.reason or "").lower().replace("_", " ")
        remedy = "check the client's certificate, in authParams with authPlugin=tls or in tlsCertificateFilePath"
        return f"{address} refuses the TLS connection ({words}); {remedy}"
    if isinstance(error, BaseExceptionGroup):
        return distrust(error.exceptions[0], address)
    return None if error is None else distrust(error.__cause__ or error.__context__, address)
