"""Every record has one outcome, and a true one, whatever happens to connections, answers and time."""

from __future__ import annotations

import math

import attrs
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from jmsaio.errors import ProtocolError
from jmsaio.protocol.producing import Batch, Producing
from tests.support.scripts import load

pytestmark = pytest.mark.fast


@attrs.define(eq=False)
class Sent:
    """What the model remembers of a batch."""

    batch: Batch[int]
    stored: bool = False  # by the broker, whether or not the client knows
    left: int = 0  # entries without a receipt
    writes: int = 0  # connections on which it was written
    ended: bool = False


class ProducingMachine(RuleBasedStateMachine):
    """``Producing`` beside a list of all batches, and a broker that answers in the order of writing."""

    def __init__(self) -> None:
        super().__init__()
        self.producing: Producing[int] = Producing()
        self.sent: list[Sent] = []
        self.on_wire: list[Sent] = []  # each entry written on this connection, and not answered by the broker
        self.answered: list[int] = []  # ids that the broker has answered on this connection
        self.now = 0.0
        self.tokens = 0

    @initialize(timeout=st.sampled_from([5.0, math.inf]))
    def choose_a_timeout(self, timeout: float) -> None:
        self.timeout = timeout

    @property
    def pending(self) -> list[Sent]:
        return [sent for sent in self.sent if not sent.ended]

    def written(self, frames: list[bytes]) -> None:
        """The broker receives frames: in the order of sending, with ids that grow beyond what it has not answered."""
        for frame in frames:
            sent = self.sent[int.from_bytes(frame[4:6])]
            assert not sent.ended
            sent.writes += 1
            assert sent.batch.frame == frame and len(frame) == 6 * sent.left
            if self.on_wire:
                assert self.sent.index(self.on_wire[-1]) < self.sent.index(sent)
                assert self.on_wire[-1].batch.sequence < sent.batch.sequence
            self.on_wire += [sent] * sent.left

    def ended(self, batch: Batch[int], *, answers: int = 0) -> None:
        """A batch has its outcome: the first of all that have none, once, and a true one."""
        sent = self.pending[0]
        assert batch is sent.batch
        sent.ended = True
        assert batch.in_doubt == (sent.writes > answers)
        assert batch.in_doubt or not sent.stored, "certainly not stored"

    def cut(self) -> None:
        self.producing.lose()
        self.on_wire.clear()
        self.answered.clear()

    @rule(sequence=st.none() | st.integers(0, 5), count=st.integers(1, 3), entries=st.sampled_from([1, 1, 3]))
    def add(self, sequence: int | None, count: int, entries: int) -> None:
        """The next ids, or one that user code gives: it need not grow, and can be that of another batch."""
        if sequence is None:
            sequence = max((sent.batch.sequence + len(sent.batch.tokens) for sent in self.sent), default=0)
        tokens = list(range(self.tokens, self.tokens + count))
        self.tokens += count
        frame = ((2).to_bytes(4) + len(self.sent).to_bytes(2)) * entries
        batch = Batch(sequence, tokens, 10, frame, self.now + self.timeout, entries)
        self.sent.append(Sent(batch, left=entries))
        frame = self.producing.add(batch)
        self.written([frame] if frame else [])

    @precondition(lambda self: not self.producing.connected)
    @rule()
    def connect(self) -> None:
        self.written(self.producing.connect())

    @rule(stored=st.integers(0, 3))
    def lose(self, stored: int) -> None:
        """The connection breaks; the broker has stored some of what was written, and no answer arrives."""
        for sent in self.on_wire[:stored]:
            sent.stored = sent not in self.on_wire[stored:]
        self.cut()

    @precondition(lambda self: self.on_wire)
    @rule(refused=st.booleans())
    def answer(self, refused: bool) -> None:
        """The broker answers what was written first, also if its time was over."""
        sent = self.on_wire.pop(0)
        more = sent in self.on_wire
        self.answered.append(sent.batch.sequence)
        if refused:
            batch = self.producing.refuse(sent.batch.sequence)
        else:
            sent.stored = sent.stored or not more
            sent.left -= 1
            batch = self.producing.receipt(sent.batch.sequence)
        if sent.ended or (more and not refused):
            assert batch is None
        elif refused:
            assert batch is not None
            self.ended(batch, answers=1)
        else:
            assert batch is sent.batch and sent.stored
            sent.ended = True
        self.written(self.producing.release())

    @rule(refused=st.booleans())
    def answer_again(self, refused: bool) -> None:
        """A late or doubled answer, below all that is awaited, changes nothing."""
        lowest = min((sent.batch.sequence for sent in [*self.on_wire, *self.pending]), default=math.inf)
        for sequence in [-1, *self.answered]:
            if sequence < lowest:
                answered = self.producing.refuse if refused else self.producing.receipt
                assert answered(sequence) is None

    @precondition(lambda self: len(set(self.on_wire)) > 1 and not self.on_wire[0].ended)
    @rule()
    def answer_out_of_order(self) -> None:
        with pytest.raises(ProtocolError, match="is to be answered first"):
            self.producing.receipt(self.on_wire[-1].batch.sequence)
        self.cut()

    @rule(seconds=st.integers(1, 4))
    def pass_time(self, seconds: int) -> None:
        self.now += seconds
        for batch in self.producing.expire(self.now):
            assert batch.deadline <= self.now
            self.ended(batch)
        assert all(sent.batch.deadline > self.now for sent in self.pending)

    @rule()
    def end(self) -> None:
        for batch in self.producing.end():
            self.ended(batch)
        assert not self.pending

    @invariant()
    def the_batches_without_an_outcome_are_there_in_order(self) -> None:
        pending = self.pending
        assert len(self.producing._batches) == len(pending)
        assert self.producing.deadline == (pending[0].batch.deadline if pending else None)
        waiting = [sent.batch for sent in pending if sent.batch.written]
        assert self.producing.unanswered == len(waiting)
        assert list(dict.fromkeys(sent.batch for sent in self.on_wire if not sent.ended)) == waiting
        if self.producing.connected and not self.on_wire:
            assert not pending, "what was held back is written when nothing is unanswered"


TestProducing = ProducingMachine.TestCase


def batch(sequence: int, deadline: float = math.inf) -> Batch[str]:
    return Batch(sequence, [f"token {sequence}"], 1, b"frame %d" % sequence, deadline)


def test_the_guides_have_the_tables_and_the_drawing() -> None:
    script = load(".mkdocs/protocol.py")
    for guide, part in ((script.GUIDE, script.machines()), (script.TRANSACTIONS, script.transaction())):
        written = guide.read_text(encoding="utf-8").partition(script.BEGIN)[2].partition(script.END)[0].strip()
        assert written == part, "run python .mkdocs/protocol.py"


def test_a_receipt_of_a_batch_whose_time_was_over_is_not_that_of_the_next_with_its_id() -> None:
    producing: Producing[str] = Producing()
    producing.connect()
    first, second = batch(5, deadline=1.0), batch(5, deadline=9.0)
    producing.add(first)
    assert list(producing.expire(2.0)) == [first]
    assert producing.add(second) == b""
    assert producing.receipt(5) is None
    assert producing.release() == [second.frame]
    assert producing.receipt(5) is second


def test_a_batch_held_back_is_unsent_when_its_time_is_over() -> None:
    producing: Producing[str] = Producing()
    producing.connect()
    producing.add(batch(5, deadline=1.0))
    producing.add(batch(3, deadline=1.0))
    assert [ended.in_doubt for ended in producing.expire(1.0)] == [True, False]
    assert producing.unanswered == 0
    assert producing.add(batch(6)) == b"frame 6"


def test_an_early_answer_about_the_last_chunk_still_says_that_it_was_stored_before() -> None:
    """The broker answers a duplicate at once, ahead of the chunks before it."""
    producing: Producing[str] = Producing()
    producing.connect()
    chunked: Batch[str] = Batch(5, ["token"], 1, b"three", math.inf, 3)
    producing.add(chunked)
    assert producing.receipt(5, duplicate=True) is None
    assert producing.receipt(5) is None
    assert producing.receipt(5) is chunked and chunked.duplicate
