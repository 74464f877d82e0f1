"""A send stays with its session until its outcome is known, and its unit of work learns of a failure."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from jmsaio.client.senders.pending import PendingSend, PendingSends
from jmsaio.client.senders.receipt import Receipt
from jmsaio.codec import Stamp
from jmsaio.errors import OperationTimeoutError, SendError, SendInDoubtError
from jmsaio.model.destinations import Queue
from jmsaio.model.wire import WireId
from jmsaio.rules.unit_of_work import UnitOfWork
from jmsaio.transport.base import Transaction

_PLACE = WireId(7, 3, 0, 1)


def started(
    sends: PendingSends, work: UnitOfWork[Transaction] | None = None, message_id: str | None = "ID:1"
) -> PendingSend:
    """A send that the transport has taken."""
    stamp = Stamp(message_id, "connection", 99, 99, 99, None, 0, 4, 2, None, "public/default")
    send = PendingSend(sends, work, stamp, Queue("orders"), asyncio.get_running_loop())
    sends.add(send)
    return send


async def test_a_confirmed_send_is_pending_no_more_and_gives_its_receipt() -> None:
    sends = PendingSends()
    one, other = started(sends), started(sends)
    assert len(sends) == 2
    one(_PLACE, None)
    assert len(sends) == 1
    assert await one == Receipt("ID:1", _PLACE, Queue("orders"), 99)
    assert not other.done()


async def test_a_receipt_without_message_id_names_the_place() -> None:
    sends = PendingSends()
    placed, unplaced = started(sends, message_id=None), started(sends, message_id=None)
    placed(_PLACE, None)
    unplaced(None, None)
    assert (await placed).jms_message_id == str(_PLACE)
    assert (await unplaced).jms_message_id is None


async def test_settle_waits_for_the_last_outcome_whoever_asks() -> None:
    sends = PendingSends()
    first, last = started(sends), started(sends)
    waiting = [asyncio.ensure_future(sends.settle(30)) for _ in range(2)]
    await asyncio.sleep(0)
    first(_PLACE, None)
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    last(None, SendError("refused"))
    await asyncio.gather(*waiting)
    with pytest.raises(SendError, match="refused"):
        await last


async def test_settle_waits_on_when_another_send_starts_before_it_looks() -> None:
    sends = PendingSends()
    first = started(sends)
    waiting = asyncio.ensure_future(sends.settle(30))
    await asyncio.sleep(0)
    first(_PLACE, None)
    second = started(sends)
    await asyncio.sleep(0)
    assert not waiting.done()
    second(_PLACE, None)
    await waiting


async def test_settle_says_how_many_sends_have_no_outcome_in_time() -> None:
    sends = PendingSends()
    started(sends)
    started(sends)
    with pytest.raises(OperationTimeoutError, match=r"2 sends had no outcome within 0\.01 s"):
        await sends.settle(0.01)
    assert len(sends) == 2


async def test_a_failed_send_reaches_its_unit_of_work_even_if_its_future_was_cancelled() -> None:
    sends, work = PendingSends(), UnitOfWork[Transaction]()
    refused, doubtful, fine = started(sends, work), started(sends, work), started(sends, work)
    refused.cancel()
    error, doubt = SendError("refused"), SendInDoubtError("no answer")
    refused(None, error)
    doubtful(None, doubt)
    fine(_PLACE, None)
    assert work.failures == [error, doubt]
    assert work.sent == 2  # what is in doubt may be stored
    with pytest.raises(SendInDoubtError):
        await doubtful


async def test_a_failed_send_that_no_one_awaits_is_complained_of_unless_commit_raises_it() -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    sends, error = PendingSends(), SendError("refused")
    for work in (None, UnitOfWork[Transaction]()):
        started(sends, work)(None, error)
    gc.collect()
    assert [context["exception"] for context in complaints] == [error]
