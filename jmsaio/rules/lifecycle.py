"""Life cycles as tables: the calls that are legal in each state, and the states to which they lead.

Jakarta Messaging 3.1, 6.1.3 Connection setup to 6.1.8 Closing a connection.
"""

from __future__ import annotations

import enum

from jmsaio.errors import ObjectClosedError


class State(enum.Enum):
    """States of a connection; a session, producer, consumer or browser is STARTED until it closes."""

    STOPPED = "stopped"
    STARTED = "started"
    CLOSING = "closing"
    CLOSED = "closed"


class Event(enum.Enum):
    """Events of a connection."""

    START = "start"
    STOP = "stop"
    CLOSE = "close"
    CLOSE_DONE = "close done"


_NEXT: dict[tuple[State, Event], State] = {
    (State.STOPPED, Event.START): State.STARTED,
    (State.STARTED, Event.START): State.STARTED,
    (State.STOPPED, Event.STOP): State.STOPPED,
    (State.STARTED, Event.STOP): State.STOPPED,
    (State.STOPPED, Event.CLOSE): State.CLOSING,
    (State.STARTED, Event.CLOSE): State.CLOSING,
    (State.CLOSING, Event.CLOSE): State.CLOSING,
    (State.CLOSED, Event.CLOSE): State.CLOSED,
    (State.CLOSING, Event.CLOSE_DONE): State.CLOSED,
    (State.CLOSED, Event.CLOSE_DONE): State.CLOSED,
}


def advance(state: State, event: Event, what: str) -> State:
    """Return the state after ``event``; raise ObjectClosedError if ``what`` is closed or closing."""
    after = _NEXT.get((state, event))
    if after is None:
        raise ObjectClosedError(f"{event.value} on a {what} that is {state.value}; create a new one")
    return after
