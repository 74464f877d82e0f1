"""Introduce this client to a broker by hand: pulsar-client does not say why a broker, or TLS, refuses it.

A CONNECT frame with the credentials goes over a connection of its own, and the broker answers CONNECTED or an error.
"""

from __future__ import annotations

import ssl

import anyio
import attrs
from anyio.abc import ByteStream
from anyio.streams.tls import TLSStream

from jmsaio.config import Configuration
from jmsaio.errors import ConfigurationError, JMSSecurityError
from jmsaio.transport.pulsar.admin.causes import distrust
from jmsaio.transport.pulsar.admin.credentials import AuthKind, Credentials, flaw, tls_context

#: What an address is that accepts this client.
ACCEPTED = "the broker accepts the connection, but does not answer"
#: What an address is that takes a TCP connection.
MUTE = "a TCP connection works, but no one speaks Pulsar's protocol there"
#: What an address is that speaks no TLS where TLS is asked for, and the other way round: trying again changes nothing.
NO_TLS = "it speaks no TLS: is it pulsar:// instead of pulsar+ssl://?"
ENCRYPTED = "it speaks TLS: is it pulsar+ssl:// instead of pulsar://?"
_PLAIN = "it speaks Pulsar's protocol without TLS, or not at all: is it pulsar:// instead of pulsar+ssl://?"
#: OpenSSL's reasons when what answers is no TLS.
_NOT_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")
_PROTOCOL_VERSION = 19
_LONGEST_ANSWER = 64 * 1024
# Numbers of commands and of the field of CommandError with the kind of error.
_CONNECT, _CONNECTED, _ERROR, _AUTH_CHALLENGE = 2, 3, 14, 36
_KIND, _AUTHENTICATION_ERROR = 2, 3
_METHODS = {AuthKind.TOKEN: "token", AuthKind.TLS: "tls"}


async def introduce(
    connection: ByteStream, address: str, config: Configuration, credentials: Credentials | None
) -> str:
    """What an address is: `ACCEPTED`, or what speaks against it. The caller limits the time, and closes the connection.

    Args:
        connection: a TCP connection to it.
        address: ``host:port``, as in the service URL.
        config: says whether and how TLS is used.
        credentials: who this client is, or None.

    Raises:
        JMSSecurityError: the broker refuses the credentials, one side does not trust the other one's certificate, or
            a file of certificates or credentials can't be read.
    """
    stream, context = connection, _trust(config, credentials) if config.scheme == "pulsar+ssl" else None
    try:
        if context is not None:
            host = address.rpartition(":")[0].strip("[]")
            stream = await TLSStream.wrap(connection, hostname=host, ssl_context=context, standard_compatible=False)
        if credentials is not None and credentials.kind is AuthKind.OAUTH2:
            return MUTE  # only pulsar-client fetches such a token
        await stream.send(connect_frame(credentials))
        return await _answer(stream, address, credentials)
    except (ssl.SSLError, anyio.BrokenResourceError, anyio.EndOfStream) as error:
        reason = distrust(error, address)
        if reason is not None:
            raise JMSSecurityError(reason, "AuthenticationError") from error
        if isinstance(error, ssl.SSLError) and error.reason in _NOT_TLS:
            return NO_TLS
        return _PLAIN if context is not None else MUTE


async def other_scheme(connection: ByteStream, address: str, config: Configuration) -> str | None:
    """`NO_TLS` or `ENCRYPTED` if the address speaks as the other scheme does; None if that is not sure.

    It gets no credentials: without TLS anyone could read them. The caller limits the time, and closes the connection.
    """
    try:
        if config.scheme == "pulsar+ssl":
            await connection.send(connect_frame(None))
            return NO_TLS if await _answer(connection, address, None) == ACCEPTED else None
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # only whether it speaks TLS is asked
        host = address.rpartition(":")[0].strip("[]")
        await TLSStream.wrap(connection, hostname=host, ssl_context=context, standard_compatible=False)
    except JMSSecurityError:  # a broker that wants credentials, and says so without TLS
        return NO_TLS
    except ssl.SSLError as error:
        return ENCRYPTED if "ALERT" in (error.reason or "") else None
    except (anyio.BrokenResourceError, anyio.EndOfStream):
        return None
    return ENCRYPTED


def _trust(config: Configuration, credentials: Credentials | None) -> ssl.SSLContext:
    """As pulsar-client: its own certificates where none are named, and no rules that OpenSSL has only for Python."""
    if config.tls_trust_certs_file_path is None:
        import certifi  # a dependency of pulsar-client

        config = attrs.evolve(config, tls_trust_certs_file_path=certifi.where())
    try:
        context = tls_context(config, credentials)
    except ConfigurationError as error:
        raise JMSSecurityError(f"TLS is not possible: {error}", "AuthenticationError") from error
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


async def _answer(stream: ByteStream, address: str, credentials: Credentials | None) -> str:
    """Read the broker's answer to a CONNECT."""
    data = b""
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4]):
        data += await stream.receive()
        if len(data) >= 4 and int.from_bytes(data[:4]) > _LONGEST_ANSWER:
            return MUTE
    try:
        fields = read_fields(data[8 : 8 + int.from_bytes(data[4:8])])
        command = fields[1]
        if command in (_CONNECTED, _AUTH_CHALLENGE):
            return ACCEPTED
        error = fields[_ERROR]
        kind = read_fields(error)[_KIND] if command == _ERROR and isinstance(error, bytes) else None
    except (KeyError, IndexError):
        return MUTE
    if kind != _AUTHENTICATION_ERROR:
        return ACCEPTED  # whatever keeps it from serving now, it does not refuse who this is
    raise JMSSecurityError(
        f"the broker at {address} refuses the credentials: {flaw(credentials)}", "AuthenticationError"
    )


def connect_frame(credentials: Credentials | None) -> bytes:
    """The CONNECT of a client. Raises JMSSecurityError where the token's file can't be read."""
    method, data = "none", ""
    if credentials is not None:
        method = _METHODS.get(credentials.kind) or credentials.values.get("method", "basic")
        if credentials.kind is AuthKind.TOKEN:
            data = credentials.token()
        elif credentials.kind is AuthKind.BASIC:
            data = f"{credentials.values['username']}:{credentials.values['password']}"
    connect = _text(1, "jmsaio") + _text(3, data) + bytes([4 << 3, _PROTOCOL_VERSION]) + _text(5, method)
    command = bytes([1 << 3, _CONNECT, _CONNECT << 3 | 2]) + _varint(len(connect)) + connect
    return (len(command) + 4).to_bytes(4) + len(command).to_bytes(4) + command


def _text(number: int, value: str) -> bytes:
    """A field of text as protobuf has it."""
    data = value.encode()
    return bytes([number << 3 | 2]) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    """A number in protobuf's variable length."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def read_fields(data: bytes) -> dict[int, int | bytes]:
    """The numbers and byte strings of a protobuf message by field number. Raises IndexError where it ends too early."""
    fields: dict[int, int | bytes] = {}
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        value, at = _read_varint(data, at)
        if tag & 7 == 2:
            fields[tag >> 3] = data[at : at + value]
            at += value
        elif tag & 7 == 0:
            fields[tag >> 3] = value
        else:  # no command that answers a CONNECT has another kind
            raise IndexError(tag)
    return fields


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A number in protobuf's variable length, and where it ends."""
    value = shift = 0
    while data[at] & 0x80:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
    return value | data[at] << shift, at + 1
