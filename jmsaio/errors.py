"""Every error that jmsaio raises on purpose, in one tree.

    JMSError                            JMSException and JMSRuntimeException at once
    ├── IllegalStateError               wrong time or state: closed object, commit without a transaction, ...
    │   └── ObjectClosedError           the object was closed before the call
    ├── JMSSecurityError                credentials or rights refused
    ├── InvalidClientIDError            client identifier refused or in use
    ├── InvalidDestinationError         destination unknown, deleted, or of the wrong kind
    ├── InvalidSelectorError            selector text; carries the column
    ├── SelectorRuntimeError            a selector of the Starlight dialect failed on one message
    ├── MessageEOFError                 read past the end of a stream or bytes message
    ├── MessageFormatError              a value of the wrong type, an unacceptable message
    │   ├── NoTextError                 the text of a message that holds none; also an AttributeError
    │   └── MalformedMessageError       received bytes that are not what the message claims to be
    ├── MessageNotReadableError         body is write-only
    ├── MessageNotWriteableError        body or properties are read-only
    ├── ResourceAllocationError         the provider can't allocate what the call needs
    │   └── MessageTooLargeError        a message above the broker's size limit
    ├── TransactionInProgressError      not allowed inside a transaction
    ├── TransactionRolledBackError      commit ended in a rollback
    ├── IllegalArgumentError            an argument that is never acceptable; also a ValueError
    │   └── IllegalArgumentTypeError    an argument of a wrong type; also a TypeError
    ├── ConfigurationError              an option that is unknown, not supported, or has a wrong value
    ├── DataLossError                   stored messages that were to be read are gone
    └── TransportError                  the broker or the way to it
        ├── BrokerUnavailableError      can't be reached; carries host and port
        ├── OperationTimeoutError       no answer in time
        ├── ConsumerBusyError           the subscription is taken by another consumer
        ├── NotFoundError               topic, subscription or namespace does not exist
        ├── AdminError                  a REST call failed; carries the status
        ├── SendError                   a message was not stored
        │   └── SendInDoubtError        a message may or may not have been stored
        │       └── RefusedInDoubtError     as the broker refuses the credentials; also a JMSSecurityError
        ├── TransactionInDoubtError     a transaction may or may not have been committed
        └── ForkError                   used in a child process of the one that made it

Outside the tree, as in Java: NumberFormatError, NullValueError, UnsupportedOperationError. Python's own are
the TimeoutError of ``request`` and ``process``, the IndexError of a place outside of a buffer, a mapping's KeyError.

Jakarta Messaging has two families, checked and unchecked. Python has one kind of exception, so one tree serves both
the classic and the simplified API.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType


class JMSError(Exception):
    """Root of all errors of the Jakarta Messaging API (JMSException and JMSRuntimeException).

    Args:
        reason: what happened and what to do about it.
        error_code: the provider's code, if there is one (``getErrorCode``).
    """

    def __init__(self, reason: str = "", error_code: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.error_code = error_code

    @property
    def linked_exception(self) -> BaseException | None:
        """The error this one was translated from (``getLinkedException``); the same as ``__cause__``."""
        return self.__cause__


class IllegalStateError(JMSError):
    """The call comes at the wrong time or in the wrong state."""


class ObjectClosedError(IllegalStateError):
    """The connection, session, producer, consumer, browser or context was closed before the call."""


class JMSSecurityError(JMSError):
    """Credentials or rights were refused."""


class InvalidClientIDError(JMSError):
    """The client identifier is refused, or another open connection uses it."""


class InvalidDestinationError(JMSError):
    """The destination is missing, unknown, deleted, or of a kind that the call does not accept."""


class InvalidSelectorError(JMSError):
    """The selector's text is refused when it is given.

    Attributes:
        text: the selector.
        column: 1-based column of the first character that does not fit, or None.
    """

    def __init__(
        self, reason: str = "", error_code: str | None = None, *, text: str = "", column: int | None = None
    ) -> None:
        super().__init__(reason, error_code)
        self.text = text
        self.column = column


class SelectorRuntimeError(JMSError):
    """A selector of the Starlight dialect failed on one message, as the Java plugin does."""


class MessageEOFError(JMSError):
    """Read past the end of a StreamMessage or BytesMessage."""


class MessageFormatError(JMSError):
    """A value has a type that the message or the reader does not accept."""


class NoTextError(MessageFormatError, AttributeError):
    """``text`` of a message that is not a TextMessage. Also an AttributeError: ``hasattr`` answers False."""


class MalformedMessageError(MessageFormatError):
    """Received bytes are not what the message claims to be; the message was not acknowledged.

    A consumer that raises it, or reports it to the ExceptionListener, keeps the message for a while and then gives it
    back: it is redelivered, unless ``acknowledge`` was called.

    Attributes:
        record: the received record as it came, or None.
    """

    def __init__(self, reason: str = "", record: object = None, *, error_code: str | None = None) -> None:
        super().__init__(reason, error_code)
        self.record = record
        self._settle: Callable[[], Awaitable[None]] | None = None  # set by the consumer that raises it

    @property
    def payload(self) -> bytes | None:
        """The body's bytes as they were received; None where there are none, or no record."""
        payload: bytes | None = getattr(self.record, "payload", None)
        return payload

    @property
    def properties(self) -> Mapping[str, str]:
        """The record's properties as they were received, read-only; empty where they can't be read, or no record."""
        try:
            found: Mapping[str, str] = getattr(self.record, "properties", {})
        except MalformedMessageError:
            found = {}
        return MappingProxyType(dict(found))

    def acknowledge(self) -> Awaitable[None]:
        """Acknowledge this message and no other, so that it is not redelivered; await it.

        In a transacted session the commit makes it final. A second call has no effect.

        Raises:
            IllegalStateError: the message was already given back, or no consumer raised this error.
            ObjectClosedError: the session is closed.

        Cancelling: the acknowledgement may or may not have been taken; repeat it.
        """
        if self._settle is None:
            raise IllegalStateError("only an error that a consumer raised can acknowledge its message")
        return self._settle()


class MessageNotReadableError(JMSError):
    """The body is write-only; call ``reset`` first."""


class MessageNotWriteableError(JMSError):
    """The body or the properties are read-only; call ``clear_body`` or ``clear_properties`` first."""


class ResourceAllocationError(JMSError):
    """The provider can't allocate what the call needs."""


class MessageTooLargeError(ResourceAllocationError):
    """The message is larger than the broker accepts."""


class TransactionInProgressError(JMSError):
    """The operation is not allowed while a transaction is in progress."""


class TransactionRolledBackError(JMSError):
    """Commit ended in a rollback; all of the transaction was undone, but for sends of emulated transactions."""


class IllegalArgumentError(JMSError, ValueError):
    """An argument that is never acceptable (IllegalArgumentException): a number out of bounds, an illegal name."""


class IllegalArgumentTypeError(IllegalArgumentError, TypeError):
    """An argument of the wrong type."""


class ConfigurationError(JMSError):
    """An option is unknown, not implemented, or has a value that can't be used.

    Attributes:
        key: the option's name.
    """

    def __init__(self, reason: str = "", key: str | None = None, *, error_code: str | None = None) -> None:
        super().__init__(reason, error_code)
        self.key = key


class DataLossError(JMSError):
    """Messages that were to be read are stored no more.

    Attributes:
        topic: full name of the topic, or of the partition, that held them.
        wanted: place of the first of them, ``ledger:entry``.
        found: place of what is there instead, or None.
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
    """The broker, or the way to it, failed."""


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
    """The subscription already has its one consumer."""


class NotFoundError(TransportError):
    """The topic, subscription or namespace does not exist."""


class AdminError(TransportError):
    """A call to the broker's REST interface failed.

    Attributes:
        status: HTTP status, or None when no answer came.
    """

    def __init__(self, reason: str = "", status: int | None = None, *, error_code: str | None = None) -> None:
        super().__init__(reason, error_code)
        self.status = status

    @property
    def in_use(self) -> bool:
        """True where clients are connected to what was to be deleted without force (status 412)."""
        return self.status == 412


class SendError(TransportError):
    """The message was not stored."""


class SendInDoubtError(SendError):
    """The message may or may not have been stored: no answer arrived."""


class RefusedInDoubtError(SendInDoubtError, JMSSecurityError):
    """The message may or may not have been stored: the broker refused the credentials before the answer arrived."""


class TransactionInDoubtError(TransportError):
    """The transaction may or may not have been committed: no answer arrived.

    The next transaction has begun. Messages that this one received are redelivered if it was not committed.
    """


class ForkError(TransportError):
    """The object was made in a parent process; create a new connection after the fork."""


class NumberFormatError(ValueError):
    """Text is not a number of the wanted type (NumberFormatException). Not a JMSError, as in Java."""


class NullValueError(TypeError):
    """None where a value is needed (NullPointerException). Not a JMSError, as in Java."""


class UnsupportedOperationError(RuntimeError):
    """The object does not offer this call (UnsupportedOperationException). Not a JMSError, as in Java."""
