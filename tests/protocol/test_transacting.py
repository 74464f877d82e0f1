"""A transaction's states, and what waits in it. ``test_transaction`` of wire and the contract suite drive it whole."""

from __future__ import annotations

import pytest

from jmsaio.errors import TransportError
from jmsaio.protocol.transacting import TRANSITIONS, Event, Move, State, Transacting

LOST = TransportError("lost")


def test_only_a_whole_transaction_is_committed() -> None:
    """Wherever it fails before the broker is asked to commit, no way leads to a commit."""
    reached = {State.FAILED}
    for _ in State:
        reached |= {to for (state, _), to in TRANSITIONS.items() if state in reached}
    assert reached == {State.FAILED, State.ABORTING, State.ABORTED}


def test_work_waits_for_the_registration_of_its_part() -> None:
    one: Transacting[str] = Transacting()
    assert [one.add("topic", work) for work in "ab"] == [Move.REGISTER, Move.WAIT]
    assert one.add("other", "c") is Move.REGISTER
    assert not one.join("topic")
    assert one.registered("topic") == ["a", "b"]
    assert one.add("topic", "d") is Move.WRITE
    assert one.unanswered == 5  # four pieces of work, and the registration of the other
    assert one.parts == ["topic", "other"]


@pytest.mark.parametrize("registered", [True, False])
def test_a_failure_ends_it(registered: bool) -> None:
    one: Transacting[str] = Transacting()
    one.add("topic", "a")
    if registered:
        one.registered("topic")
        one.answered(LOST)
    else:
        assert one.registered("topic", LOST) == ["a"]
        one.answered()
    assert one.unanswered == 0
    assert (one.state, one.failure) == (State.FAILED, LOST)
    one.fail(TransportError("a later one"))
    assert one.failure is LOST
    assert one.add("topic", "b") is Move.REFUSE
    assert not one.join("other")
    assert one.take(Event.COMMIT) is State.ABORTING
