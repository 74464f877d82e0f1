"""What a transacted session holds until commit or rollback: the only thing that its parts hand to each other."""

from __future__ import annotations

from typing import Generic, TypeVar

import attrs

from jmsaio.errors import JMSError

Handle = TypeVar("Handle")


@attrs.define
class UnitOfWork(Generic[Handle]):
    """One local transaction.

    Attributes:
        handle: the engine's transaction, None until the first send or commit needs one, and always when emulated.
        sticky_key: JMSTX of this transaction, or None.
        sent: messages handed to the transport in it, without those that it surely did not store.
        failures: errors of sends in it.
    """

    handle: Handle | None = None
    sticky_key: int | None = None
    sent: int = 0
    failures: list[JMSError] = attrs.field(factory=list)

    def failed(self) -> JMSError | None:
        """Why the work can't be committed, or None."""
        return self.failures[0] if self.failures else None
