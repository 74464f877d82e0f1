"""``UnitOfWork``: the state of a local transaction until commit or rollback, shared by the parts of a session."""

from __future__ import annotations

from typing import Generic, TypeVar

import attrs

from jmsaio.errors import JMSError, SendInDoubtError

Handle = TypeVar("Handle")


@attrs.define
class UnitOfWork(Generic[Handle]):
    """One local transaction.

    Attributes:
        handle: the transport's transaction, None until the first send or commit needs one, and always if emulated.
        sticky_key: JMSTX of this transaction, or None.
        sent: number of messages whose send has ended and which the transport has stored, or might have stored.
        failures: errors of sends in it.
    """

    handle: Handle | None = None
    sticky_key: int | None = None
    sent: int = 0
    failures: list[JMSError] = attrs.field(factory=list)

    def begin(self, handle: Handle) -> None:
        self.handle = handle

    def send_ended(self, error: JMSError | None) -> None:
        """Record the outcome of a send; a message counts as sent unless the error reports that it was not stored."""
        if error is not None:
            self.failures.append(error)
        if error is None or isinstance(error, SendInDoubtError):
            self.sent += 1

    def failed(self) -> JMSError | None:
        return self.failures[0] if self.failures else None
