"""The life cycle table of a connection."""

from __future__ import annotations

import pytest

from jmsaio.errors import ObjectClosedError
from jmsaio.rules.lifecycle import Event, State, advance


def test_start_stop_close() -> None:
    state = State.STOPPED
    for event, after in [
        (Event.STOP, State.STOPPED),
        (Event.START, State.STARTED),
        (Event.START, State.STARTED),
        (Event.STOP, State.STOPPED),
        (Event.CLOSE, State.CLOSING),
        (Event.CLOSE, State.CLOSING),
        (Event.CLOSE_DONE, State.CLOSED),
        (Event.CLOSE, State.CLOSED),
    ]:
        state = advance(state, event, "connection")
        assert state is after


@pytest.mark.parametrize("state", [State.CLOSING, State.CLOSED])
@pytest.mark.parametrize("event", [Event.START, Event.STOP])
def test_closed_is_closed(state: State, event: Event) -> None:
    with pytest.raises(ObjectClosedError, match="connection"):
        advance(state, event, "connection")
