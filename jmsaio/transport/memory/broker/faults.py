"""What goes wrong on purpose, in tests of services: the script that senders and receivers look up."""

from __future__ import annotations

from collections import deque

import attrs

from jmsaio.errors import JMSError


@attrs.frozen
class SendFault:
    """What happens to one record that is sent.

    Attributes:
        topic: full name of the topic that it is sent to; None: any.
        error: what the sender hears, or None for success, which only a stored record has.
        stored: the broker stores the record all the same.
        delay: seconds before the sender hears anything.
    """

    topic: str | None = None
    error: JMSError | None = None
    stored: bool = False
    delay: float = 0.0


@attrs.define
class Faults:
    """The faults to come, each used once, in the order of adding.

    Attributes:
        sends: faults of sends.
        lost_acknowledgements: how many of the next acknowledged records the broker does not hear of.
        lost_commits: of how many of the next commits the client does not hear.
    """

    sends: deque[SendFault] = attrs.field(factory=deque)
    lost_acknowledgements: int = 0
    lost_commits: int = 0

    def next_send(self, topic: str) -> SendFault | None:
        """The fault of the next send to ``topic``, used up by this call; None if there is none."""
        for fault in self.sends:
            if fault.topic is None or fault.topic == topic:
                self.sends.remove(fault)
                return fault
        return None

    def loses_acknowledgement(self) -> bool:
        """Whether the next acknowledgement is lost; used up by this call."""
        if not self.lost_acknowledgements:
            return False
        self.lost_acknowledgements -= 1
        return True

    def loses_commit(self) -> bool:
        """Whether the answer to the next commit is lost; used up by this call."""
        if not self.lost_commits:
            return False
        self.lost_commits -= 1
        return True
