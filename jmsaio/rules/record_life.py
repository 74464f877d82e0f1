"""The life of a received record below the seam: what each event does in each state, in one table.

A record of one subscription has exactly one state, and beside it a count of its failed deliveries. A transport holds
both, passes each event to ``advance``, and carries out the step that it returns: store the new state, add 1 to the
count if the step is ``counted``, perform the action. It decides nothing itself. Whatever the events:

* A record that was not handed out is neither counted nor acknowledged, nor is one that was set aside.
* A record that was handed out and is handed out a second time has a count above 0, which marks it as redelivered,
  unless the client returned it as unseen, the subscription was moved, or the record was forgotten.
* A record acknowledged in an open transaction is not acknowledged outside of it, returned or timed out.

These rules belong to every step and are therefore not actions: leaving QUEUED in any other way than HANDED_OUT
removes the record from the receiver's queue; leaving RETURNED or EARLY ends its delay; leaving HELD ends its
acknowledgement timeout. IGNORE means that the event contradicts the state, which can be an error of the application:
the transport logs it at DEBUG, once for each receiver, event and state. NOTHING means that it is expected.

Events can follow each other at once. A transport with a dead-letter policy raises DEAD_LETTERED after a counted step
to RETURNED at the limit of the count, or after ARRIVED above it; a transport whose broker does not delay records raises
EARLY after ARRIVED. A dead letter without a policy is ACKNOWLEDGED. An acknowledgement that is final in its call is
ACKNOWLEDGED and CONFIRMED at once.

Links: a record stays HELD while the link is lost. Its acknowledgement is not sent before its entry has arrived on the
new link, because the id could have a new meaning: the record becomes ACKED, and the arrival repeats the
acknowledgement. A transaction that such a record joins is refused. If another record arrives under a known id (other
publish time), raise REPLACED for all records of the old entry, and ARRIVED for a new one: a dead letter that is still
being stored then settles the old one.

Entries: brokers redeliver whole entries, so returning one record of a batch sends its neighbours again. The states of
an entry are a ``bytearray`` with one byte for each record, and the functions on it below do what ``step`` does for each
record. A receiver creates it by ``arrived``; a record that is delivered once and acknowledged once can pass from
QUEUED to HELD to ACKED by plain assignments to its byte, if they are compared with the byte that the table requires::

    if states[index] == HELD:
        states[index] = ACKED
    else:
        done = step(states, index, RecordEvent.ACKNOWLEDGED)

``arrived_again`` lists the records to queue and those to acknowledge again when the entry is redelivered; ``ack_set``
is what to send; ``confirm`` processes the receipt, and returns whether the entry can be forgotten.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import attrs


class RecordState(enum.IntEnum):
    """Where a record is. The values fit in a byte."""

    UNKNOWN = 0
    QUEUED = 1
    EARLY = 2
    HELD = 3
    ASIDE = 4
    RETURNED = 5
    LETTER = 6
    IN_TRANSACTION = 7
    ACKED = 8
    SETTLED = 9
    BACK = 10


#: What each state means, for the guide.
MEANINGS: Final[Mapping[RecordState, str]] = {
    RecordState.UNKNOWN: "not here: stored in the broker, or settled and forgotten",
    RecordState.QUEUED: "in the receiver's queue, not handed out",
    RecordState.EARLY: "received before its delivery time, where the broker does not delay it",
    RecordState.HELD: "handed out: the application, or an inbox, holds it",
    RecordState.ASIDE: "set aside: rejected by every consumer of the process, it rests without a payload",
    RecordState.RETURNED: "returned by the client, waits here for its delay",
    RecordState.LETTER: "its dead letter is being stored",
    RecordState.IN_TRANSACTION: "acknowledged in an open transaction",
    RecordState.ACKED: "acknowledged, without a receipt",
    RecordState.SETTLED: "acknowledged for certain; known as long as its entry is",
    RecordState.BACK: "with the broker, which redelivers it to any consumer; its count is kept",
}
#: The states as plain integers, for comparisons with a byte.
UNKNOWN, QUEUED, EARLY, HELD, ASIDE, RETURNED, LETTER, IN_TRANSACTION, ACKED, SETTLED, BACK = map(int, RecordState)


class RecordEvent(enum.Enum):
    """What happens to a record."""

    ARRIVED = "arrived"
    ARRIVED_SETTLED = "arrived, but acknowledged before, here or elsewhere"
    REPLACED = "another record arrived under its id"
    EARLY = "delivery time not reached"
    HANDED_OUT = "handed out"
    ACKNOWLEDGED = "acknowledged"
    CONFIRMED = "receipt of the acknowledgement"
    ACKNOWLEDGED_IN = "acknowledged in a transaction"
    COMMITTED = "committed"
    ABORTED = "aborted, or the outcome is unknown"
    RETURNED = "given back, counted"
    RETURNED_UNSEEN = "given back, not counted"
    DELIVERED_AGAIN = "delivered again by the client"
    SET_ASIDE = "set aside"
    DEAD_LETTERED = "dead-lettered"
    LETTER_STORED = "dead letter stored"
    LETTER_FAILED = "dead letter not stored"
    TIME_OVER = "acknowledgement timeout"
    DUE = "delay over, the broker redelivers"
    DUE_HERE = "delay over, the receiver redelivers"
    LINK_LOST = "link lost"
    STOPPED = "stopped, for other consumers"
    CLOSED = "closed"
    MOVED = "seek, or skipped by an operator"
    FORGOTTEN = "forgotten, because too many are kept"


class Action(enum.Enum):
    """What the transport does beside changing the state."""

    NOTHING = "nothing"
    QUEUE = "add it to the receiver's queue"
    HAND_OUT = "hand it out with its count"
    RECOGNISE = "do not hand it out a second time; its permit is free"
    ACKNOWLEDGE = "acknowledge it; if the link was lost since it arrived, when it arrives again"
    REPEAT = "acknowledge it again"
    ACKNOWLEDGE_IN = "acknowledge it in the transaction"
    REFUSE = "the transaction can't be committed, unless it is the one that has the record"
    WAIT = "start its delay"
    RETURN = "the broker redelivers it"
    STORE = "store its dead letter"
    FORGET = "drop all that is kept of it, also an acknowledgement that is not sent"
    IGNORE = "ignored, logged at DEBUG"
    IMPOSSIBLE = "can't happen: an internal error"


@attrs.frozen
class Step:
    """One cell of the table.

    Attributes:
        state: the state after the event.
        counted: whether the count of failed deliveries grows by 1.
    """

    state: RecordState
    action: Action
    counted: bool = False


class _To(NamedTuple):
    """A cell as written below; without a state, the state stays."""

    state: RecordState | None
    action: Action = Action.NOTHING
    counted: bool = False


_Row = tuple[_To, Mapping[RecordState, _To]]


def _row(others: Action, *cells: tuple[tuple[RecordState, ...], _To]) -> _Row:
    """Return the row of an event: its cells, and the action in all other states, which stay."""
    return _To(None, others), {state: to for states, to in cells for state in states}


_S, _E, _A = RecordState, RecordEvent, Action
_QUEUE, _BACK, _WAIT = _To(_S.QUEUED, _A.QUEUE), _To(_S.BACK, _A.RETURN), _To(_S.RETURNED, _A.WAIT)
_ACK, _SETTLE, _FORGET = _To(_S.ACKED, _A.ACKNOWLEDGE), _To(_S.SETTLED), _To(_S.UNKNOWN, _A.FORGET)
_STAYS, _COUNTED_WAIT, _COUNTED_BACK = _To(None), _WAIT._replace(counted=True), _BACK._replace(counted=True)

_ROWS: Final[Mapping[RecordEvent, _Row]] = {
    _E.ARRIVED: _row(
        _A.RECOGNISE, ((_S.UNKNOWN, _S.BACK), _QUEUE), ((_S.ACKED, _S.SETTLED), _To(None, _A.REPEAT))
    ),
    # A record that is held or waits here stays so: another delivery is better than a loss. One that was not
    # acknowledged here can be part of another client's open transaction, and arrives again if that is rolled back.
    _E.ARRIVED_SETTLED: _row(
        _A.RECOGNISE, ((_S.ACKED,), _To(_S.SETTLED, _A.RECOGNISE)), ((_S.BACK,), _To(_S.UNKNOWN, _A.RECOGNISE))
    ),
    _E.REPLACED: _row(_A.NOTHING, (tuple(_S)[1:], _FORGET)),
    _E.EARLY: _row(_A.IMPOSSIBLE, ((_S.QUEUED,), _To(_S.EARLY, _A.WAIT))),
    _E.HANDED_OUT: _row(_A.IMPOSSIBLE, ((_S.QUEUED,), _To(_S.HELD, _A.HAND_OUT))),
    # An acknowledgement of an earlier delivery counts: the message was processed. One of a record set aside does not,
    # because no application had it; the transaction, or the dead letter, decides about a record that it has.
    _E.ACKNOWLEDGED: _row(_A.IGNORE, ((_S.QUEUED, _S.HELD, _S.RETURNED, _S.BACK), _ACK)),
    # Every acknowledgement has a receipt, also a repeated one, and one sent before the subscription was moved.
    _E.CONFIRMED: _row(_A.NOTHING, ((_S.ACKED,), _SETTLE)),
    _E.ACKNOWLEDGED_IN: _row(_A.REFUSE, ((_S.HELD,), _To(_S.IN_TRANSACTION, _A.ACKNOWLEDGE_IN))),
    _E.COMMITTED: _row(_A.IMPOSSIBLE, ((_S.IN_TRANSACTION,), _SETTLE), ((_S.UNKNOWN,), _STAYS)),
    # The broker redelivers what the transaction acknowledged; RETURN concerns a copy that arrived and was recognised.
    _E.ABORTED: _row(_A.IMPOSSIBLE, ((_S.IN_TRANSACTION,), _COUNTED_BACK), ((_S.UNKNOWN,), _STAYS)),
    _E.RETURNED: _row(_A.IGNORE, ((_S.HELD,), _COUNTED_WAIT), ((_S.ASIDE,), _WAIT)),
    _E.RETURNED_UNSEEN: _row(_A.IGNORE, ((_S.HELD, _S.ASIDE), _WAIT)),
    _E.DELIVERED_AGAIN: _row(_A.IGNORE, ((_S.HELD,), _To(None, _A.NOTHING, counted=True))),
    _E.SET_ASIDE: _row(_A.IGNORE, ((_S.HELD,), _To(_S.ASIDE))),
    # Counted if it was handed out: should the dead letter fail, the record is redelivered as such.
    _E.DEAD_LETTERED: _row(
        _A.IGNORE,
        ((_S.HELD,), _To(_S.LETTER, _A.STORE, counted=True)),
        ((_S.QUEUED, _S.RETURNED), _To(_S.LETTER, _A.STORE)),
    ),
    _E.LETTER_STORED: _row(_A.IMPOSSIBLE, ((_S.LETTER,), _ACK), ((_S.UNKNOWN, _S.BACK), _STAYS)),
    _E.LETTER_FAILED: _row(_A.IMPOSSIBLE, ((_S.LETTER,), _WAIT), ((_S.UNKNOWN, _S.BACK), _STAYS)),
    # A record set aside has no timeout: no application holds it, so nothing has failed, and the client returns it
    # within a minute. One in a transaction has the transaction's.
    _E.TIME_OVER: _row(_A.NOTHING, ((_S.HELD,), _COUNTED_WAIT)),
    _E.DUE: _row(_A.NOTHING, ((_S.RETURNED,), _BACK), ((_S.EARLY,), _To(None, _A.IMPOSSIBLE))),
    _E.DUE_HERE: _row(_A.NOTHING, ((_S.RETURNED, _S.EARLY), _QUEUE)),
    # The broker sends everything unacknowledged again, by itself. What is held or waits here is recognised then.
    _E.LINK_LOST: _row(_A.NOTHING, ((_S.QUEUED, _S.EARLY), _To(_S.BACK))),
    _E.STOPPED: _row(_A.NOTHING, ((_S.QUEUED, _S.EARLY, _S.RETURNED), _BACK)),
    # A dead letter that is still being stored can then exist beside the record, which is marked.
    _E.CLOSED: _row(
        _A.NOTHING,
        ((_S.QUEUED, _S.EARLY, _S.ASIDE, _S.RETURNED, _S.LETTER), _BACK),
        ((_S.HELD,), _COUNTED_BACK),
    ),
    # A dead letter that is being stored replaces its record, which is recognised when it arrives again: not both.
    _E.MOVED: _row(_A.NOTHING, (tuple(_S)[1:], _FORGET), ((_S.LETTER,), _STAYS)),
    _E.FORGOTTEN: _row(
        _A.IMPOSSIBLE, ((_S.ACKED, _S.SETTLED, _S.BACK), _To(_S.UNKNOWN)), ((_S.UNKNOWN,), _STAYS)
    ),
}  # fmt: skip


def _step(state: RecordState, event: RecordEvent) -> Step:
    others, cells = _ROWS[event]
    to = cells.get(state, others)
    return Step(state if to.state is None else to.state, to.action, to.counted)


#: What each event does in each state: every pair is here.
TABLE: Final[Mapping[tuple[RecordState, RecordEvent], Step]] = {
    (state, event): _step(state, event) for state in RecordState for event in RecordEvent
}
#: States of each transport. The embedded broker is itself the broker: its acknowledgements are final in their call,
#: its dead letters too, and it delays records before it sends them. pulsar-client has no receipts and no transactions.
MEMORY: Final = frozenset(RecordState) - {_S.EARLY, _S.LETTER, _S.ACKED, _S.SETTLED}
PULSAR_CLIENT: Final = frozenset(RecordState) - {_S.IN_TRANSACTION, _S.SETTLED}
WIRE: Final = frozenset(RecordState)


def advance(state: RecordState, event: RecordEvent) -> Step:
    """Return what ``event`` does to a record in ``state``.

    Raises:
        AssertionError: the event can't happen in this state, so the transport has an error.
    """
    step = TABLE[state, event]
    if step.action is Action.IMPOSSIBLE:
        raise AssertionError(f"a record that is {state.name.lower()}, and {event.value}")
    return step


#: For each event, the next state of each byte, for ``bytes.translate``; _NEVER for what can't happen.
_NEVER: Final = 255
_NEXT: Final = {
    event: bytes(
        _NEVER if (cell := TABLE[state, event]).action is Action.IMPOSSIBLE else cell.state for state in RecordState
    ).ljust(256, bytes([_NEVER]))
    for event in RecordEvent
}
_ALL_STATES: Final = bytes(RecordState)
_GONE: Final = bytes((UNKNOWN, SETTLED))
_ELSEWHERE: Final = bytes((UNKNOWN, ACKED, SETTLED, BACK))
#: The digit of each state in an ack set: 1 for what is not acknowledged.
_DIGITS: Final = bytes.maketrans(_ALL_STATES, bytes(b"01"[state not in (ACKED, SETTLED)] for state in _ALL_STATES))


def step(states: bytearray, index: int, event: RecordEvent) -> Step:
    """Pass an event of one record of an entry; return what to do, as ``advance``."""
    done = advance(RecordState(states[index]), event)
    states[index] = done.state
    return done


def step_all(states: bytearray, event: RecordEvent) -> list[int]:
    """Pass an event of a whole entry, such as LINK_LOST; return the indexes of the records whose state changed."""
    after = states.translate(_NEXT[event])
    if after == states:
        return []
    if _NEVER in after:
        advance(RecordState(states[after.index(_NEVER)]), event)
    changed = [index for index, state in enumerate(states) if state != after[index]]
    states[:] = after
    return changed


def arrived(size: int, left: int | None = None) -> bytearray:
    """Return the states of a new entry with ``size`` records.

    ``left`` is the broker's ack set: bit ``i`` is set if record ``i`` is not acknowledged; None: all are.
    """
    if left is None:
        return bytearray((QUEUED,)) * size
    return bytearray(QUEUED if bit == "1" else UNKNOWN for bit in _bits(left, size))


def _bits(left: int | None, size: int) -> str:
    """Return an ack set as one digit for each record: shifting a huge number by each index would take too long."""
    return "1" * size if left is None else f"{left & (1 << size) - 1:0{size}b}"[::-1]


def arrived_again(states: bytearray, left: int | None = None) -> tuple[list[int], list[int]]:
    """Process the arrival of an entry that is known, with the same publish time; ``left`` as for ``arrived``.

    Returns the indexes of the records to queue, and of those to acknowledge again. The permits of all records but those
    to queue are free.
    """
    queued, repeated = [], []
    for index, (state, bit) in enumerate(zip(states, _bits(left, len(states)), strict=True)):
        if bit == "0":
            if state == ACKED:
                states[index] = SETTLED
            elif state == BACK:
                states[index] = UNKNOWN
        elif state in (UNKNOWN, BACK):
            states[index] = QUEUED
            queued.append(index)
        elif state in (ACKED, SETTLED):
            repeated.append(index)
    return queued, repeated


def ack_set(states: bytearray) -> int | None:
    """Return the ack set to send: bit ``i`` is set if record ``i`` is not acknowledged; None: all of them are."""
    return int(states[::-1].translate(_DIGITS), 2) or None


def ack_set_of(size: int, indexes: Iterable[int]) -> int | None:
    """Return the ack set that acknowledges only these records, as a transaction does; None: all of the entry."""
    left = (1 << size) - 1
    for index in indexes:
        left &= ~(1 << index)
    return left or None


def confirm(states: bytearray, sent: int | None = None) -> bool:
    """Process the receipt of an acknowledgement with the ack set ``sent``; return whether the entry is ``settled``."""
    if sent is None:
        states[:] = states.translate(_NEXT[RecordEvent.CONFIRMED])
    else:
        for index, (state, bit) in enumerate(zip(states, _bits(sent, len(states)), strict=True)):
            if state == ACKED and bit == "0":
                states[index] = SETTLED
    return settled(states)


def settled(states: bytearray) -> bool:
    """Return whether an entry can be forgotten: its records are settled, or not here."""
    return not states.translate(None, _GONE)


def unacknowledged(states: bytearray) -> int:
    """Return the number of records of an entry that are here and not acknowledged."""
    return len(states) - states.count(ACKED) - states.count(SETTLED) - states.count(UNKNOWN)


def forgettable(states: bytearray) -> bool:
    """Return whether FORGOTTEN is possible for a whole entry: nothing of it is held or waits here."""
    return not states.translate(None, _ELSEWHERE)


def redelivery_count(failures: int, broker: int, returns: int) -> int:
    """Return the redelivery count to hand out, from the record's ``failures`` here.

    The ``broker``'s count of its entry includes every return, also of a neighbour or of unseen records; ``returns`` is
    how often this client had the broker redeliver the entry.
    """
    return failures + max(0, broker - returns)
