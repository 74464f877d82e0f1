"""What a transacted session holds."""

from __future__ import annotations

from jmsaio.errors import SendError, SendInDoubtError
from jmsaio.rules.unit_of_work import UnitOfWork


def test_the_first_failure_decides() -> None:
    work: UnitOfWork[str] = UnitOfWork()
    assert work.failed() is None
    first = SendError("first")
    work.send_ended(first)
    work.send_ended(SendError("second"))
    assert work.failed() is first


def test_a_message_that_may_be_stored_counts_as_sent() -> None:
    work: UnitOfWork[str] = UnitOfWork()
    work.send_ended(None)
    work.send_ended(SendInDoubtError("no answer"))
    work.send_ended(SendError("refused"))
    assert work.sent == 2
