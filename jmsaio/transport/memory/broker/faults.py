"""Scripted faults for tests of services, read by senders and receivers."""

from __future__ import annotations

from collections import deque

import attrs

from jmsaio.errors import JMSError


@attrs.frozen
class SendFault:
    """A fault of one sent record.

    Attributes:
        topic: full name of the topic; None: any.
        error: error that the sender receives; None for success, which requires a stored record.
        stored: whether the broker stores the record all the same.
        delay: seconds before the sender receives the outcome.
    """

    topic: str | None = None
    error: JMSError | None = None
    stored: bool = False
    delay: float = 0.0


@attrs.define
class Faults:
    """Pending faults, each used once, in the order of adding.

    Attributes:
        sends: faults of sends.
        lost_acknowledgements: number of the next acknowledged records to ignore.
        lost_commits: number of the next commits to leave unanswered.
    """

    sends: deque[SendFault] = attrs.field(factory=deque)
    lost_acknowledgements: int = 0
    lost_commits: int = 0

    def next_send(self, topic: str) -> SendFault | None:
        """Remove and return the next fault of a send to ``topic``; None if there is none."""
        for fault in self.sends:
            if fault.topic is None or fault.topic == topic:
                self.sends.remove(fault)
                return fault
        return None

    def loses_acknowledgement(self) -> bool:
        """Return whether the next acknowledgement is lost, and count it."""
        if not self.lost_acknowledgements:
            return False
        self.lost_acknowledgements -= 1
        return True

    def loses_commit(self) -> bool:
        """Return whether the answer to the next commit is lost, and count it."""
        if not self.lost_commits:
            return False
        self.lost_commits -= 1
        return True
