"""A record has one state; nothing is lost, settled unseen, handed out twice at once, or redelivered unmarked."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import assume, given, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from jmsaio.rules import record_life
from jmsaio.rules.record_life import (
    ACKED,
    ASIDE,
    BACK,
    EARLY,
    HELD,
    IN_TRANSACTION,
    LETTER,
    MEMORY,
    QUEUED,
    RETURNED,
    SETTLED,
    TABLE,
    UNKNOWN,
    WIRE,
    Action,
    RecordEvent,
    RecordState,
    ack_set,
    ack_set_of,
    advance,
    arrived,
    arrived_again,
    confirm,
    forgettable,
    redelivery_count,
    step,
    step_all,
    unacknowledged,
)  # fmt: skip
from tests.support.scripts import load

drawing = load(".mkdocs/record_life.py")
E, S = RecordEvent, RecordState
ENTRIES = st.lists(st.sampled_from(list(S)), min_size=1, max_size=70).map(bytearray)


def test_the_guide_has_the_table_and_its_drawing() -> None:
    guide = drawing.GUIDE.read_text(encoding="utf-8")
    written = guide.partition(drawing.BEGIN)[2].partition(drawing.END)[0].strip()
    assert written == drawing.life(), "run python .mkdocs/record_life.py"


def test_every_pair_has_a_step_and_every_state_a_meaning() -> None:
    assert len(TABLE) == len(S) * len(E)
    assert set(record_life.MEANINGS) == set(S) == WIRE
    assert bytes(S) == bytes(range(len(S)))


def test_only_what_was_handed_out_is_counted_or_acknowledged() -> None:
    counted = {state for (state, _), step in TABLE.items() if step.counted}
    assert counted == {S.HELD, S.IN_TRANSACTION}
    acknowledged = {state for (state, event), step in TABLE.items() if step.action is Action.ACKNOWLEDGE}
    assert acknowledged == {S.HELD, S.LETTER, S.QUEUED, S.RETURNED, S.BACK}  # the last three by an earlier delivery
    assert {event for (_, event), step in TABLE.items() if step.action is Action.HAND_OUT} == {E.HANDED_OUT}


def test_a_record_in_a_transaction_leaves_it_by_its_end_or_is_forgotten() -> None:
    left = {event for event in E if TABLE[S.IN_TRANSACTION, event].state is not S.IN_TRANSACTION}
    assert left == {E.COMMITTED, E.ABORTED, E.MOVED, E.REPLACED}


def test_a_record_set_aside_has_no_timeout_and_is_not_counted() -> None:
    assert TABLE[S.ASIDE, E.TIME_OVER] == record_life.Step(S.ASIDE, Action.NOTHING)
    assert not any(TABLE[S.ASIDE, event].counted for event in E)


def test_a_record_of_the_embedded_broker_rests_in_its_states() -> None:
    seen = {S.UNKNOWN}
    at_once = {S.ACKED: E.CONFIRMED, S.SETTLED: E.FORGOTTEN, S.LETTER: E.LETTER_STORED}
    events = set(E) - {E.EARLY, E.DUE_HERE, E.ARRIVED_SETTLED}
    while True:
        steps = [TABLE[state, event] for state in seen for event in events]
        found = seen | {step.state for step in steps if step.action is not Action.IMPOSSIBLE}
        while passing := found & at_once.keys():
            found = found - passing | {TABLE[state, at_once[state]].state for state in passing}
        if found == seen:
            break
        seen = found
    assert seen == MEMORY


def test_what_cannot_happen_is_an_internal_error() -> None:
    with pytest.raises(AssertionError, match="held, and handed out"):
        advance(S.HELD, E.HANDED_OUT)
    states = bytearray([BACK, LETTER])
    with pytest.raises(AssertionError, match="letter, and forgotten"):
        step_all(states, E.FORGOTTEN)
    assert states == bytes([BACK, LETTER])


@given(ENTRIES, st.sampled_from(list(E)))
def test_an_event_of_an_entry_is_that_of_each_record(states: bytearray, event: RecordEvent) -> None:
    assume(all(TABLE[S(state), event].action is not Action.IMPOSSIBLE for state in states))
    single, before = bytearray(states), bytes(states)
    for index in range(len(states)):
        step(single, index, event)
    changed = step_all(states, event)
    assert states == single
    assert changed == [index for index, state in enumerate(states) if state != before[index]]


@given(ENTRIES, st.none() | st.integers(min_value=0))
def test_an_arrival_is_that_of_each_record(states: bytearray, left: int | None) -> None:
    single, actions = bytearray(states), []
    for index in range(len(states)):
        settled = left is not None and not left >> index & 1
        actions.append(step(single, index, E.ARRIVED_SETTLED if settled else E.ARRIVED).action)
    queued, repeated = arrived_again(states, left)
    assert states == single
    assert queued == [index for index, action in enumerate(actions) if action is Action.QUEUE]
    assert repeated == [index for index, action in enumerate(actions) if action is Action.REPEAT]
    unknown = bytearray(len(states))
    arrived_again(unknown, left)
    assert arrived(len(states), left) == unknown


@given(ENTRIES, st.data())
def test_an_ack_set_has_what_is_not_acknowledged_and_its_receipt_settles_the_rest(
    states: bytearray, data: st.DataObject
) -> None:
    open_ = [index for index, state in enumerate(states) if state not in (ACKED, SETTLED)]
    sent = ack_set(states)
    assert sent == (sum(1 << index for index in open_) or None)
    assert unacknowledged(states) == len(open_) - states.count(UNKNOWN)
    acked = [index for index in range(len(states)) if index not in open_]
    assert ack_set_of(len(states), acked) == sent
    later = [index for index in open_ if states[index] in (HELD, QUEUED) and data.draw(st.booleans())]
    for index in later:  # acknowledged after the ack set was sent
        step(states, index, E.ACKNOWLEDGED)
    assert confirm(states, sent) is (open_ == [index for index, state in enumerate(states) if state == UNKNOWN])
    assert [index for index, state in enumerate(states) if state == SETTLED] == acked
    assert confirm(states) is (set(states) <= {SETTLED, UNKNOWN})


def test_an_entry_is_forgettable_when_nothing_of_it_is_held_or_waits() -> None:
    for state in S:
        possible = TABLE[state, E.FORGOTTEN].action is not Action.IMPOSSIBLE
        assert forgettable(bytearray([BACK, state, UNKNOWN])) is possible


def test_returns_by_this_client_are_no_failures() -> None:
    assert redelivery_count(1, 3, 2) == 2  # one failure here, one elsewhere
    assert redelivery_count(0, 1, 1) == 0  # a neighbour was returned
    assert redelivery_count(1, 0, 1) == 1  # a broker that does not count


SIZE = 3
INDEXES = st.integers(0, SIZE - 1)


class OneEntry(RuleBasedStateMachine):
    """A receiver with an entry of three records, beside a broker and an application that know only their own side."""

    @initialize(ordered=st.booleans())
    def start(self, ordered: bool) -> None:
        # The receiver.
        self.states = bytearray(SIZE)
        self.counts = [0] * SIZE
        self.queue: deque[int] = deque()
        self.linked = False
        self.due = E.DUE_HERE if ordered else E.DUE
        # The broker: what is acknowledged, and whether the receiver has the entry; commands that it has not processed.
        self.acknowledged: set[int] = set()
        self.acknowledged_in: set[int] = set()
        self.elsewhere: set[int] = set()  # acknowledged in the open transaction of another client
        self.out = False
        self.commands: deque[tuple[str, int | None]] = deque()
        # The application.
        self.held: set[int] = set()
        self.aside: set[int] = set()
        self.seen: set[int] = set()
        self.done: set[int] = set()
        self.transaction: set[int] = set()
        self.letters: set[int] = set()

    def pass_event(self, index: int, event: RecordEvent) -> Action:
        before = self.states[index]
        done = step(self.states, index, event)
        self.counts[index] += done.counted
        if before == QUEUED and done.state is not S.QUEUED and done.action is not Action.HAND_OUT:
            self.queue.remove(index)
        if done.action is Action.ACKNOWLEDGE and self.linked:
            self.commands.append(("ack", ack_set(self.states)))
        elif done.action is Action.RETURN:
            self.commands.append(("redeliver", None))
        elif done.action is Action.QUEUE:
            self.queue.append(index)
        return done.action

    # The broker.

    @precondition(lambda self: not self.out)
    @rule()
    def deliver(self) -> None:
        if len(self.acknowledged) == SIZE:
            return
        self.out = self.linked = True
        left = ack_set_of(SIZE, self.acknowledged | self.elsewhere) or 0
        queued, repeated = arrived_again(self.states, left)
        self.queue.extend(queued)
        if repeated:
            self.commands.append(("ack", ack_set(self.states)))

    @precondition(lambda self: self.commands)
    @rule()
    def process(self) -> None:
        command, sent = self.commands.popleft()
        if command == "redeliver":
            self.out = False
        elif command == "ack in":
            assert sent is not None
            self.acknowledged_in.add(sent)
        else:
            self.acknowledged |= {index for index in range(SIZE) if sent is None or not sent >> index & 1}
            confirm(self.states, sent)

    @rule(processed=st.integers(0, 3))
    def lose_link(self, processed: int) -> None:
        for _ in range(min(processed, len(self.commands))):
            command, sent = self.commands.popleft()
            if command == "ack":  # and its receipt is lost
                self.acknowledged |= {index for index in range(SIZE) if sent is None or not sent >> index & 1}
            elif command == "ack in" and sent is not None:
                self.acknowledged_in.add(sent)
        self.commands.clear()
        self.out = self.linked = False
        self.queue.clear()
        step_all(self.states, E.LINK_LOST)

    @rule(index=INDEXES)
    def acknowledge_elsewhere(self, index: int) -> None:
        if self.states[index] in (UNKNOWN, BACK) and index not in self.done:
            self.elsewhere.add(index)

    @precondition(lambda self: self.elsewhere)
    @rule()
    def roll_back_elsewhere(self) -> None:
        self.elsewhere.clear()
        self.out = False

    # The application, and the client.

    @precondition(lambda self: self.queue)
    @rule(limit=st.integers(1, SIZE))
    def receive(self, limit: int) -> None:
        for _ in range(min(limit, len(self.queue))):
            self.hand_out()

    def hand_out(self) -> None:
        index = self.queue.popleft()
        assert self.pass_event(index, E.HANDED_OUT) is Action.HAND_OUT
        assert index not in self.held | self.aside | self.transaction | self.letters | self.done
        assert (self.counts[index] > 0) is (index in self.seen)
        self.held.add(index)

    @rule(index=INDEXES)
    def acknowledge(self, index: int) -> None:
        if (
            index in self.seen | self.held | self.aside | self.transaction
        ):  # also late, by a delivery that was returned or timed out
            assert self.pass_event(index, E.ACKNOWLEDGED) is not Action.ACKNOWLEDGE or index not in self.aside
        if index not in self.transaction | self.aside | self.letters and self.states[index] in (ACKED, SETTLED):
            self.held.discard(index)
            self.done.add(index)

    @rule(index=INDEXES, counted=st.booleans())
    def give_back(self, index: int, counted: bool) -> None:
        self.pass_event(index, E.RETURNED if counted else E.RETURNED_UNSEEN)
        if index in self.held and counted:
            self.seen.add(index)
        self.held.discard(index)
        self.aside.discard(index)

    @rule(index=INDEXES)
    def time_out(self, index: int) -> None:
        self.pass_event(index, E.TIME_OVER)
        if index in self.held:
            self.held.discard(index)
            self.seen.add(index)

    @rule(index=INDEXES)
    def set_aside(self, index: int) -> None:
        self.pass_event(index, E.SET_ASIDE)
        if index in self.held:
            self.held.discard(index)
            self.aside.add(index)

    @rule(index=INDEXES)
    def delay_ends(self, index: int) -> None:
        self.pass_event(index, self.due)

    @rule()
    def stop(self) -> None:
        for index in range(SIZE):
            self.pass_event(index, E.STOPPED)

    @rule()
    def seek(self) -> None:
        self.commands.clear()
        self.out = self.linked = False
        self.queue.clear()
        step_all(self.states, E.MOVED)
        self.acknowledged.clear()
        self.acknowledged_in.clear()
        self.transaction.clear()
        for one in (self.held, self.aside, self.seen, self.done):
            one &= self.letters
        self.counts = [count * (index in self.letters) for index, count in enumerate(self.counts)]

    # Dead letters.

    @rule(index=INDEXES)
    def dead_letter(self, index: int) -> None:
        if self.pass_event(index, E.DEAD_LETTERED) is Action.STORE:
            if index in self.held:
                self.seen.add(index)
            self.held.discard(index)
            self.letters.add(index)

    @precondition(lambda self: self.letters)
    @rule(stored=st.booleans())
    def letter_ends(self, stored: bool) -> None:
        index = self.letters.pop()
        self.pass_event(index, E.LETTER_STORED if stored else E.LETTER_FAILED)
        if stored:
            self.done.add(index)

    # Transactions.

    @precondition(lambda self: self.linked)
    @rule(index=INDEXES)
    def acknowledge_in(self, index: int) -> None:
        index = min(self.held, default=index)
        action = self.pass_event(index, E.ACKNOWLEDGED_IN)
        assert action is (Action.ACKNOWLEDGE_IN if index in self.held else Action.REFUSE)
        if index in self.held:
            self.held.discard(index)
            self.transaction.add(index)
            self.commands.append(("ack in", index))

    @precondition(lambda self: self.transaction)
    @rule(commit=st.booleans())
    def end_transaction(self, commit: bool) -> None:
        while any(command == "ack in" for command, _ in self.commands):  # the receipts are waited for
            self.process()
        if commit and self.transaction <= self.acknowledged_in:
            self.acknowledged |= self.transaction
            self.done |= self.transaction
            for index in self.transaction:
                self.pass_event(index, E.COMMITTED)
        else:
            self.seen |= self.transaction
            for index in self.transaction:
                self.pass_event(index, E.ABORTED)
        self.transaction.clear()
        self.acknowledged_in.clear()

    @invariant()
    def each_side_agrees(self) -> None:
        if not hasattr(self, "states"):
            return
        sides = {HELD: self.held, ASIDE: self.aside, IN_TRANSACTION: self.transaction, LETTER: self.letters}
        for state, indexes in [*sides.items(), (QUEUED, set(self.queue))]:
            assert {index for index in range(SIZE) if self.states[index] == state} == indexes
        assert self.acknowledged <= self.done  # nothing is settled that was not done

    def teardown(self) -> None:
        """Whatever happened: every record is done in the end, and the broker has it as acknowledged."""
        if not hasattr(self, "states"):
            return
        if self.transaction:
            self.end_transaction(False)
        if self.elsewhere:
            self.roll_back_elsewhere()
        while self.letters:
            self.letter_ends(False)
        for index in list(self.aside):
            self.give_back(index, False)
        for _ in range(4):
            while self.queue:
                self.hand_out()
            for index in list(self.held):
                self.acknowledge(index)
            for index in range(SIZE):
                self.delay_ends(index)
            while self.commands:
                self.process()
            if not self.out:
                self.deliver()
        assert self.acknowledged == self.done == set(range(SIZE))
        assert not {state for state in self.states if state in (HELD, RETURNED, EARLY, QUEUED)}


TestOneEntry = OneEntry.TestCase


@pytest.mark.timeout(30)
def test_an_ack_set_of_a_million_records_is_read_at_once() -> None:
    """A broker chooses its size."""
    size = 1_000_000
    left = (1 << size) - 2
    states = arrived(size, left)
    assert states.count(RecordState.UNKNOWN) == 1
    assert arrived_again(states, left) == ([], [])
    assert not confirm(states, left)
