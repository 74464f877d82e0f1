"""TLS errors as remedies, and a check whether a port uses TLS."""

from __future__ import annotations

import ssl
from contextlib import suppress
from urllib.parse import urlsplit

import anyio
from anyio.abc import ByteStream
from anyio.streams.tls import TLSStream

#: Maximum seconds to check whether a port uses TLS.
_TLS_TIMEOUT = 2.0
#: OpenSSL's reasons for an answer without TLS.
_NOT_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")
#: OpenSSL's codes for a certificate that lacks the name or address connected to.
_WRONG_HOST = (62, 64)


def trusting(path: str | None) -> ssl.SSLContext:
    """Create a TLS context that trusts a PEM file: like pulsar-client's, without the rules that only Python adds."""
    context = ssl.create_default_context(cafile=path)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def distrust(error: BaseException | None, address: str) -> str | None:
    """Return a remedy if ``error``, or one of its causes, is that a side lacks TLS or trust; None for other errors."""
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
    if isinstance(error, ssl.SSLError) and error.reason in _NOT_TLS:
        return without_tls(address)
    if isinstance(error, BaseExceptionGroup):
        return distrust(error.exceptions[0], address)
    return None if error is None else distrust(error.__cause__ or error.__context__, address)


def without_tls(address: str) -> str:
    return f"{address} speaks no TLS: give its port with TLS, or write pulsar:// (REST: http://)"


def with_tls(address: str) -> str:
    return f"{address} speaks TLS: write pulsar+ssl:// (REST: https://), or give its port without TLS"


async def speaks_tls(connection: ByteStream, host: str) -> bool:
    """Return whether a TCP connection uses TLS, without trusting or revealing anything. The caller limits the time."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        await TLSStream.wrap(connection, hostname=host, ssl_context=context, standard_compatible=False)
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")  # it requires a certificate, or another version
    except (anyio.BrokenResourceError, anyio.EndOfStream):
        return False
    return True


async def missing_tls(url: str) -> str | None:
    """Return the remedy for an ``http://`` URL whose port uses TLS; None for others. Takes up to two seconds."""
    parts = urlsplit(url)
    host, found = parts.hostname or "", False
    if parts.scheme == "http":
        with anyio.move_on_after(_TLS_TIMEOUT), suppress(OSError):
            async with await anyio.connect_tcp(host, parts.port or 80) as connection:
                found = await speaks_tls(connection, host)
    return with_tls(url) if found else None
