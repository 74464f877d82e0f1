"""Every error that jmsaio raises on purpose, in one tree.

    JMSError                            both JMSException and JMSRuntimeException
    ├── IllegalStateError               wrong time or state: closed object, commit without a transaction, ...
    │   └── ObjectClosedError           the object was closed before the call
    ├── JMSSecurityError                credentials or permissions refused
    ├── InvalidClientIDError            client identifier refused or in use
    ├── InvalidDestinationError         destination unknown, deleted, or of the wrong kind
    ├── InvalidSelectorError            invalid selector; carries the column
    ├── MessageEOFError                 read past the end of a stream or bytes message
    ├── MessageFormatError              a value of the wrong type, an unacceptable message
    │   ├── NoTextError                 ``text`` of a message without text; also an AttributeError
    │   └── MalformedMessageError       received bytes do not match the type that the message declares
    ├── MessageNotReadableError         body is write-only
    ├── MessageNotWriteableError        body or properties are read-only
    ├── ResourceAllocationError         the provider can't allocate the resources for the call
    │   └── MessageTooLargeError        a message above the broker's size limit
    ├── TransactionInProgressError      not allowed inside a transaction
    ├── TransactionRolledBackError      commit ended in a rollback
    ├── IllegalArgumentError            an argument that is never acceptable; also a ValueError
    │   └── IllegalArgumentTypeError    an argument of a wrong type; also a TypeError
    ├── ConfigurationError              an option that is unknown, not supported, or has a wrong value
    ├── DataLossError                   stored messages were deleted before they were read
    └── TransportError                  the broker or the connection to it failed
        ├── BrokerUnavailableError      can't be reached; carries host and port
        ├── OperationTimeoutError       no answer in time
        ├── ConsumerBusyError           another consumer uses the subscription
        ├── NotFoundError               topic, subscription or namespace does not exist
        ├── AdminError                  a REST call failed; carries the status
        ├── ProtocolError               received bytes that are not Pulsar's protocol
        ├── SendError                   a message was not stored
        │   └── SendInDoubtError        unknown whether a message was stored
        │       └── RefusedInDoubtError     because the broker refused the credentials; also a JMSSecurityError
        ├── TransactionInDoubtError     unknown whether a transaction was committed
        └── ForkError                   used in a child process of the process that created the object

Outside of the tree, as in Java: NumberFormatError, NullValueError, UnsupportedOperationError. Built-in errors are
raised, too: TimeoutError by ``request`` and ``process``, IndexError for a position outside of a buffer, KeyError by a
mapping.

Jakarta Messaging has two families, checked and unchecked. Python has one kind of exception, so one tree serves both the
classic and the simplified API.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType


class JMSError(Exception):
    """Root of all errors of the Jakarta Messaging API (JMSException and JMSRuntimeException).

    Args:
        reason: the problem and its remedy.
        error_code: the provider's code, if there is one (``getErrorCode``).
    """

    def __init__(self, reason: str = "", error_code: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.error_code = error_code

    @property
    def linked_exception(self) -> BaseException | None:
        """The original error that this one translates (``getLinkedException``); equals ``__cause__``."""
        return self.__cause__


class IllegalStateError(JMSError):
    """The call is not allowed at this time or in this state."""


class ObjectClosedError(IllegalStateError):
    """The connection, session, producer, consumer, browser or context was closed before the call."""


class JMSSecurityError(JMSError):
    """The broker refused the credentials, or they lack a permission."""


class InvalidClientIDError(JMSError):
    """The client identifier is refused, or another open connection uses it."""


class InvalidDestinationError(JMSError):
    """The destination is missing, unknown, deleted, or of a kind that the call does not accept."""


class InvalidSelectorError(JMSError):
    """The selector is invalid.

    Attributes:
        text: the selector.
        column: 1-based column of the first invalid character, or None.
    """

    def __init__(
        self, reason: str = "", error_code: str | None = None, *, text: str = "", column: int | None = None
    ) -> None:
        super().__init__(reason, error_code)
        self.text = text
        self.column = column


class MessageEOFError(JMSError):
    """A read past the end of a StreamMessage or BytesMessage."""


class MessageFormatError(JMSError):
    """A value has a type that the message or the reader does not accept."""


class NoTextError(MessageFormatError, AttributeError):
    """``text`` was read of a message other than a TextMessage. Also an AttributeError: ``hasattr`` returns False."""


class MalformedMessageError(MessageFormatError):
    """Received bytes do not match the type that the message declares; the message was not acknowledged.

    A consumer that raises this error, or reports it to the ExceptionListener, holds the message for a while and then
    returns it to the broker, which redelivers it unless ``acknowledge`` was called.

    Attributes:
        record: the received record, unchanged, or None.
    """

    def __init__(self, reason: str = "", record: object = None, *, error_code: str | None = None) -> None:
        super().__init__(reason, error_code)
        self.record = record
        self._settle: Callable[[], Awaitable[None]] | None = None  # set by the consumer that raises it

    @property
    def payload(self) -> bytes | None:
        """The body's bytes as received; None without a body or a record."""
        payload: bytes | None = getattr(self.record, "payload", None)
        return payload

    @property
    def properties(self) -> Mapping[str, str]:
        """The record's properties as received, read-only; empty if they can't be read, or without a record."""
        try:
            found: Mapping[str, str] = getattr(self.record, "properties", {})
        except MalformedMessageError:
            found = {}
        return MappingProxyType(dict(found))

    def acknowledge(self) -> Awaitable[None]:
        """Acknowledge this message only, so that it is not redelivered; await the result.

        In a transacted session the acknowledgement takes effect at commit. A second call has no effect.

        Raises:
            IllegalStateError: the message was already returned to the broker, or no consumer raised this error.
            ObjectClosedError: the session is closed.

        Cancelling: it is unknown whether the acknowledgement was sent; repeat the call.
        """
        if self._settle is None:
            raise IllegalStateError("only an error that a consumer raised can acknowledge its message")
        return self._settle()


class MessageNotReadableError(JMSError):
    """The body is write-only; call ``reset`` first."""


class MessageNotWriteableError(JMSError):
    """The body or the properties are read-only; call ``clear_body`` or ``clear_properties`` first."""


class ResourceAllocationError(JMSError):
    """The provider can't allocate the resources for the call."""


class MessageTooLargeError(ResourceAllocationError):
    """The message is larger than the broker accepts."""


class TransactionInProgressError(JMSError):
    """The operation is not allowed while a transaction is in progress."""


class TransactionRolledBackError(JMSError):
    """Commit ended in a rollback. The whole transaction was undone, except the sends of an emulated transaction."""


class IllegalArgumentError(JMSError, ValueError):
    """An argument that is never acceptable (IllegalArgumentException): a number out of bounds, an illegal name."""


class IllegalArgumentTypeError(IllegalArgumentError, TypeError):
    """An argument of the wrong type."""


class ConfigurationError(JMSError):
    """An option is unknown, not implemented, or has an invalid value.

    Attributes:
        key: the option's name.
    """

    def __init__(self, reason: str = "", key: str | None = None, *, error_code: str | None = None) -> None:
        super().__init__(reason, error_code)
        self.key = key


class DataLossError(JMSError):
    """Messages were deleted before they could be read.

    Attributes:
        topic: full name of the topic or partition that held them.
        wanted: position of the first deleted message, ``ledger:entry``.
        found: position of the message found instead, or None.
    """

    def __init__(
        self,
        reason: str = "",
        topic: str | None = None,
        wanted: str | None = None,
        found: str | None = None,
        *,
        error_code: str | None = None,
    ) -> None:
        super().__init__(reason, error_code)
        self.topic = topic
        self.wanted = wanted
        self.found = found


class TransportError(JMSError):
    """The broker, or the connection to it, failed."""


class BrokerUnavailableError(TransportError):
    """The broker can't be reached.

    Attributes:
        host: host name that was tried.
        port: port that was tried.
    """

    def __init__(
        self, reason: str = "", host: str | None = None, port: int | None = None, *, error_code: str | None = None
    ) -> None:
        super().__init__(reason, error_code)
        self.host = host
        self.port = port


class OperationTimeoutError(TransportError):
    """No answer arrived in time."""


class ConsumerBusyError(TransportError):
    """The subscription is exclusive and already has a consumer."""


class NotFoundError(TransportError):
    """The topic, subscription or namespace does not exist."""


class AdminError(TransportError):
    """A call to the broker's REST interface failed.

    Attributes:
        status: HTTP status, or None if no answer arrived.
    """

    def __init__(self, reason: str = "", status: int | None = None, *, error_code: str | None = None) -> None:
        super().__init__(reason, error_code)
        self.status = status

    @property
    def in_use(self) -> bool:
        """Whether a deletion without force failed because clients are connected (status 412)."""
        return self.status == 412


class ProtocolError(TransportError):
    """The broker sent bytes that are not Pulsar's protocol: a wrong size, a wrong checksum, a field out of place."""


class SendError(TransportError):
    """The message was not stored."""


class SendInDoubtError(SendError):
    """It is unknown whether the message was stored: no answer arrived."""


class RefusedInDoubtError(SendInDoubtError, JMSSecurityError):
    """It is unknown whether the message was stored: the broker refused the credentials before the answer arrived."""


class TransactionInDoubtError(TransportError):
    """It is unknown whether the transaction was committed: no answer arrived.

    The next transaction has begun. If this one was not committed, the messages that it received are redelivered.
    """


class ForkError(TransportError):
    """The object was created in a parent process; create a new connection after the fork."""


class NumberFormatError(ValueError):
    """The text is not a number of the requested type (NumberFormatException). Not a JMSError, as in Java."""


class NullValueError(TypeError):
    """None was passed instead of a value (NullPointerException). Not a JMSError, as in Java."""


class UnsupportedOperationError(RuntimeError):
    """The object does not support this call (UnsupportedOperationException). Not a JMSError, as in Java."""
