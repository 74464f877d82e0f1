"""What a transacted session holds."""

from __future__ import annotations

from jmsaio.errors import SendError
from jmsaio.rules.unit_of_work import UnitOfWork


def test_the_first_failure_decides() -> None:
    work: UnitOfWork[str] = UnitOfWork()
    assert work.failed() is None
    first = SendError("first")
    work.failures += [first, SendError("second")]
    assert work.failed() is first
