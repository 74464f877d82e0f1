"""A transaction's states, and what waits in it. ``test_transaction`` of wire and the contract suite drive it whole."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from jmsaio.errors import TransportError
from jmsaio.protocol.commands import TxnAction
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
    assert one.step(Event.COMMIT) is State.ABORTING


@attrs.define(eq=False)
class Piece:
    """A send or an acknowledgement, as the model knows it."""

    part: str
    written: bool = False
    done: bool = False  # by the broker, whether or not the client knows
    over: bool = False  # it has an answer, or none that will come


class TransactingMachine(RuleBasedStateMachine):
    """``Transacting`` beside what the broker and the connections do. A transaction is committed whole, or not."""

    def __init__(self) -> None:
        super().__init__()
        self.one: Transacting[Piece] = Transacting()
        self.pieces: list[Piece] = []
        self.asked: list[str] = []  # parts whose registration has no answer
        self.registered: set[str] = set()
        self.ended: TxnAction | None = None  # the END that was sent
        self.effect: TxnAction | None = None  # what the coordinator did

    def write(self, piece: Piece) -> None:
        assert piece.part in self.registered, "sent before its registration was answered"
        assert self.ended is None, "sent after END"
        assert not piece.written, "sent twice"
        piece.written = True

    @rule(part=st.sampled_from(["topic", "subscription", "other"]))
    def add(self, part: str) -> None:
        piece = Piece(part)
        move = self.one.add(part, piece)
        assert (move is Move.REFUSE) == (self.one.state is not State.OPEN)
        if move is Move.REFUSE:
            return
        self.pieces.append(piece)
        if move is Move.REGISTER:
            self.asked.append(part)
        elif move is Move.WRITE:
            self.write(piece)

    @rule(part=st.sampled_from(["topic", "other"]))
    def join(self, part: str) -> None:
        if self.one.join(part):
            self.asked.append(part)

    @precondition(lambda self: self.asked)
    @rule(data=st.data(), fails=st.booleans())
    def answer_registration(self, data: st.DataObject, fails: bool) -> None:
        part = data.draw(st.sampled_from(self.asked))
        self.asked.remove(part)
        if not fails:
            self.registered.add(part)
        waiting = self.one.registered(part, LOST if fails else None)
        assert waiting == [
            piece for piece in self.pieces if piece.part == part and not piece.written and not piece.over
        ]
        for piece in waiting:
            if self.one.state is State.OPEN:
                self.write(piece)
            else:
                piece.over = True
                self.one.answered()

    @precondition(lambda self: any(piece.written and not piece.over for piece in self.pieces))
    @rule(data=st.data(), done=st.booleans(), told=st.booleans())
    def answer(self, data: st.DataObject, done: bool, told: bool) -> None:
        """The broker does it or not, and its answer arrives or is lost."""
        piece = data.draw(st.sampled_from([piece for piece in self.pieces if piece.written and not piece.over]))
        piece.over, piece.done = True, done
        self.one.answered(None if done and told else LOST)

    @rule()
    def fail(self) -> None:
        self.one.fail(LOST)

    @precondition(lambda self: self.ended is None)
    @rule(commits=st.booleans())
    def end(self, commits: bool) -> None:
        """What has no answer in time makes it fail."""
        if self.one.unanswered:
            self.one.fail(LOST)
        state = self.one.step(Event.COMMIT if commits else Event.ABORT)
        self.ended = TxnAction.COMMIT if state is State.COMMITTING else TxnAction.ABORT
        assert commits or self.ended is TxnAction.ABORT
        if self.ended is TxnAction.COMMIT:
            assert not self.asked, "END before all answers"
            assert all(piece.over and piece.done for piece in self.pieces), "a commit without all of it"

    @precondition(lambda self: self.one.state in (State.COMMITTING, State.ABORTING))
    @rule(arrives=st.booleans(), told=st.booleans(), late=st.booleans())
    def answer_end(self, arrives: bool, told: bool, late: bool) -> None:
        """END arrives or is lost, perhaps after the transaction's time, and its answer arrives or is lost."""
        self.effect = self.ended if arrives and not late else TxnAction.ABORT
        event = Event.UNKNOWN if not (arrives and told) else Event.GONE if late else Event.DONE
        self.one.step(event)

    @precondition(lambda self: self.one.state is State.IN_DOUBT)
    @rule()
    def find_out(self) -> None:
        committed = self.effect is TxnAction.COMMIT
        self.one.step(Event.FOUND_COMMITTED if committed else Event.FOUND_ABORTED)

    @invariant()
    def what_it_says_is_true(self) -> None:
        assert self.one.state is not State.COMMITTED or self.effect is TxnAction.COMMIT
        assert self.one.state is not State.ABORTED or self.effect is TxnAction.ABORT
        assert self.one.unanswered == len(self.asked) + sum(not piece.over for piece in self.pieces)


TestTransacting = TransactingMachine.TestCase
