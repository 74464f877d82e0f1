"""A transaction of the broker, from its beginning to its outcome.

Every transaction goes through these states; ``TRANSITIONS`` is the whole of it. What it depends on:

* A topic (or partition) or subscription is registered with the coordinator, and the answer awaited, before anything is
  sent to it or acknowledged on it in the transaction. Pulsar accepts a message that comes earlier, commits without it,
  and the topic then stalls for all readers.
* END is sent once everything sent or acknowledged in it has an answer.
* If one of these answers is an error, or is lost, the transaction can only be rolled back: nothing is ever repeated in
  it, since the first one might have been carried out.
* Coordinators forget transactions that have ended. "Not found" therefore means that a commit was too late if END was
  sent once; if an earlier END has no answer, it does not tell the outcome.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Mapping
from typing import Final, Generic, TypeVar

import attrs

from jmsaio.errors import JMSError

Work = TypeVar("Work")


class State(enum.Enum):
    """Where a transaction is."""

    OPEN = "open"
    FAILED = "can only be rolled back"
    COMMITTING = "END with commit sent"
    ABORTING = "END with abort sent"
    COMMITTED = "committed"
    ABORTED = "rolled back"
    IN_DOUBT = "in doubt"


class Event(enum.Enum):
    """What happens to a transaction."""

    FAIL = "a part of it failed, or its answer is lost"
    COMMIT = "commit"
    ABORT = "abort"
    DONE = "END answered"
    GONE = "the only END answered: the transaction has ended before"
    UNKNOWN = "no answer to END, or none that tells"
    FOUND_COMMITTED = "the topics have it as committed"
    FOUND_ABORTED = "the topics have it as aborted"


TRANSITIONS: Final[Mapping[tuple[State, Event], State]] = {
    (State.OPEN, Event.FAIL): State.FAILED,
    (State.OPEN, Event.COMMIT): State.COMMITTING,
    (State.OPEN, Event.ABORT): State.ABORTING,
    (State.FAILED, Event.FAIL): State.FAILED,
    (State.FAILED, Event.COMMIT): State.ABORTING,
    (State.FAILED, Event.ABORT): State.ABORTING,
    (State.COMMITTING, Event.DONE): State.COMMITTED,
    (State.COMMITTING, Event.GONE): State.ABORTED,
    (State.COMMITTING, Event.UNKNOWN): State.IN_DOUBT,
    (State.ABORTING, Event.DONE): State.ABORTED,
    (State.ABORTING, Event.GONE): State.ABORTED,
    (State.ABORTING, Event.UNKNOWN): State.ABORTED,  # at the latest when its time is over: COMMIT was never sent
    (State.IN_DOUBT, Event.FOUND_COMMITTED): State.COMMITTED,
    (State.IN_DOUBT, Event.FOUND_ABORTED): State.ABORTED,
}


class Move(enum.Enum):
    """What to do with work that was added."""

    WRITE = "write it now"
    REGISTER = "register its part; `registered` returns the work"
    WAIT = "nothing: its part is being registered, and `registered` returns the work"
    REFUSE = "nothing: the transaction can't be committed any more"


@attrs.define(eq=False)
class Transacting(Generic[Work]):
    """The state of one transaction, and what waits in it. END waits until ``unanswered`` is 0."""

    state: State = attrs.field(default=State.OPEN, init=False)
    failure: JMSError | None = attrs.field(default=None, init=False)
    unanswered: int = attrs.field(default=0, init=False)
    _parts: dict[Hashable, list[Work] | None] = attrs.field(factory=dict, init=False)  # None: registered

    def step(self, event: Event) -> State:
        state = self.state = TRANSITIONS[self.state, event]
        return state

    def join(self, part: Hashable) -> bool:
        """Add a part, a topic or a subscription of one; return whether it is to be registered now."""
        if part in self._parts or self.state is not State.OPEN:
            return False
        self._parts[part] = []
        self.unanswered += 1
        return True

    def add(self, part: Hashable, work: Work) -> Move:
        """Add work on a part. Unless it is refused, it counts until it is ``answered``."""
        if self.state is not State.OPEN:
            return Move.REFUSE
        self.unanswered += 1
        new = self.join(part)
        waiting = self._parts[part]
        if waiting is None:
            return Move.WRITE
        waiting.append(work)
        return Move.REGISTER if new else Move.WAIT

    def registered(self, part: Hashable, error: JMSError | None = None) -> list[Work]:
        """Process the answer to a registration; return the work that waited, to be written if it is still open."""
        waiting, self._parts[part] = self._parts[part], None
        self.answered(error)
        return waiting or []

    def answered(self, error: JMSError | None = None) -> None:
        """Count the answer to a piece of work, or the error with which it failed or lost its answer."""
        self.unanswered -= 1
        if error is not None:
            self.fail(error)

    def fail(self, error: JMSError) -> None:
        """Fail: it can only be rolled back from now on. No effect once it is being ended."""
        if self.state in (State.OPEN, State.FAILED):
            self.step(Event.FAIL)
            self.failure = self.failure or error
