"""A separate handshake with a broker: pulsar-client does not report why a broker, or TLS, refuses it.

A CONNECT frame with the credentials is sent over a separate connection; the broker answers CONNECTED or an error.
"""

from __future__ import annotations

import ssl
from contextlib import suppress

import anyio
from anyio.abc import ByteStream
from anyio.streams.tls import TLSStream

from jmsaio.config import Configuration
from jmsaio.errors import JMSSecurityError
from jmsaio.model.varint import read_varint, varint
from jmsaio.transport.pulsar.admin.causes import distrust, speaks_tls, with_tls, without_tls
from jmsaio.transport.pulsar.admin.credentials import AuthKind, Credentials, flaw, tls_context

#: Description of an address that accepts this client.
ACCEPTED = "the broker accepts the connection, but does not answer"
#: Description of an address that accepts a TCP connection.
MUTE = "a TCP connection works, but no one speaks Pulsar's protocol there"
_PLAIN = "it speaks Pulsar's protocol without TLS, or not at all: is it pulsar:// instead of pulsar+ssl://?"
_PROTOCOL_VERSION = 19
_LONGEST_ANSWER = 64 * 1024
# Numbers of commands, and of the field of CommandError that contains the kind of error.
_CONNECT, _CONNECTED, _ERROR, _PING, _PONG, _AUTH_CHALLENGE = 2, 3, 14, 18, 19, 36
_KIND, _AUTHENTICATION_ERROR = 2, 3
_METHODS = {AuthKind.TOKEN: "token", AuthKind.TLS: "tls", AuthKind.OAUTH2: "token"}


async def introduce(
    connection: ByteStream, address: str, config: Configuration, credentials: Credentials | None
) -> str:
    """Describe an address: `ACCEPTED`, or a problem. The caller limits the time, and closes the connection.

    Args:
        connection: TCP connection to the address.
        address: ``host:port``, as in the service URL.
        config: configuration of TLS.
        credentials: credentials of this client, or None.

    Raises:
        JMSSecurityError: the broker refuses the credentials, or does not use TLS; one side does not trust the other's
            certificate; a file of certificates or credentials can't be read; an OAuth 2.0 server returns no token.
        BrokerUnavailableError: the OAuth 2.0 server does not answer.
    """
    stream, context = connection, tls_context(config, credentials) if config.scheme == "pulsar+ssl" else None
    try:
        if context is not None:
            stream = await TLSStream.wrap(
                connection, hostname=_host(address), ssl_context=context, standard_compatible=False
            )
        elif credentials is not None and not await answers_ping(stream):
            return MUTE
        token = "" if credentials is None else await credentials.token()
        await stream.send(connect_frame(credentials, token))
        return await _answer(stream, address, credentials, token)
    except (ssl.SSLError, anyio.BrokenResourceError, anyio.EndOfStream) as error:
        reason = distrust(error, address)
        if reason is not None:
            raise JMSSecurityError(reason, "AuthenticationError") from error
        return _PLAIN if context is not None else MUTE


async def answers_ping(stream: ByteStream) -> bool:
    """Return whether a broker answers a PING, which needs no CONNECT before. The caller limits the time.

    This shows whether credentials can be sent without TLS: sending them to a port with TLS would only expose them.
    """
    try:
        await stream.send(_frame(_PING, b""))
        command = await _receive(stream)
    except (anyio.BrokenResourceError, anyio.EndOfStream):
        return False
    return command.get(1) == _PONG


async def check_scheme(connection: ByteStream, address: str, config: Configuration) -> None:
    """Check whether an address without a clear answer uses the other scheme.

    No credentials are sent: without TLS anyone could read them. The caller limits the time, and closes the connection.

    Raises:
        JMSSecurityError: it uses the other scheme.
    """
    if config.scheme != "pulsar+ssl":
        if await speaks_tls(connection, _host(address)):
            raise JMSSecurityError(with_tls(address), "AuthenticationError")
    elif await answers_ping(connection):
        raise JMSSecurityError(without_tls(address), "AuthenticationError")


def _host(address: str) -> str:
    return address.rpartition(":")[0].strip("[]")


async def _receive(stream: ByteStream) -> dict[int, int | bytes]:
    """Receive the fields of the next command; empty if the data is not a command."""
    data = b""
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4]):
        data += await stream.receive()
        if len(data) >= 4 and int.from_bytes(data[:4]) > _LONGEST_ANSWER:
            return {}
    return read_fields(data[8 : 8 + int.from_bytes(data[4:8])])


async def _answer(stream: ByteStream, address: str, credentials: Credentials | None, token: str) -> str:
    """Read the broker's answer to a CONNECT."""
    fields = await _receive(stream)
    command, error = fields.get(1), fields.get(_ERROR)
    if command in (_CONNECTED, _AUTH_CHALLENGE):
        return ACCEPTED
    kind = read_fields(error).get(_KIND) if command == _ERROR and isinstance(error, bytes) else None
    if kind is None:
        return MUTE
    if kind != _AUTHENTICATION_ERROR:
        return ACCEPTED  # whatever prevents it from serving now, it does not refuse the credentials
    raise JMSSecurityError(
        f"the broker at {address} refuses the credentials: {flaw(credentials, token)}", "AuthenticationError"
    )


def connect_frame(credentials: Credentials | None, token: str) -> bytes:
    """Create the CONNECT frame of a client with this token, if its credentials use one."""
    method, data = "none", token
    if credentials is not None:
        method = _METHODS.get(credentials.kind) or credentials.values.get("method", "basic")
        if credentials.kind is AuthKind.BASIC:
            data = f"{credentials.values['username']}:{credentials.values['password']}"
    return _frame(_CONNECT, _text(1, "jmsaio") + _text(3, data) + bytes([4 << 3, _PROTOCOL_VERSION]) + _text(5, method))


def _frame(command: int, fields: bytes) -> bytes:
    """Create the frame of a command; as in all of them, the field of its own message has the command's number."""
    data = bytes([1 << 3, command]) + varint(command << 3 | 2) + varint(len(fields)) + fields
    return (len(data) + 4).to_bytes(4) + len(data).to_bytes(4) + data


def _text(number: int, value: str) -> bytes:
    """Encode a text field for protobuf."""
    data = value.encode()
    return bytes([number << 3 | 2]) + varint(len(data)) + data


def read_fields(data: bytes) -> dict[int, int | bytes]:
    """Parse the numbers and byte strings of a protobuf message by field number, up to the first error."""
    fields: dict[int, int | bytes] = {}
    at, end = 0, len(data)
    with suppress(ValueError):
        while at < end:
            tag, at = read_varint(data, at, end)
            value, at = read_varint(data, at, end)
            if tag & 7 == 2:
                fields[tag >> 3] = data[at : at + value]
                at += value
            elif tag & 7 == 0:
                fields[tag >> 3] = value
            else:  # no command that answers a CONNECT contains other types
                break
    return fields
