from __future__ import annotations

from jmsaio.errors import SendError
from jmsaio.transport.memory.broker.faults import Faults, SendFault


def test_a_fault_of_a_send_is_used_once_and_for_its_topic() -> None:
    faults, error = Faults(), SendError("x")
    faults.sends.extend([SendFault("a", error), SendFault(None, None, stored=True, delay=1.0)])
    assert faults.next_send("b") == SendFault(None, None, stored=True, delay=1.0)
    assert faults.next_send("b") is None
    assert faults.next_send("a") == SendFault("a", error)
    assert faults.next_send("a") is None


def test_lost_answers_to_commits_are_counted() -> None:
    faults = Faults(lost_commits=2)
    assert [faults.loses_commit() for _ in range(3)] == [True, True, False]


def test_lost_acknowledgements_are_counted() -> None:
    faults = Faults(lost_acknowledgements=2)
    assert [faults.loses_acknowledgement() for _ in range(3)] == [True, True, False]
