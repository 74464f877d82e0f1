"""Waiting for an unreachable broker."""

from __future__ import annotations

import asyncio

import pytest

from jmsaio.errors import (
    AdminError,
    BrokerUnavailableError,
    JMSError,
    JMSSecurityError,
    NotFoundError,
    OperationTimeoutError,
)
from jmsaio.spark.planning.outage import Outage


class Broker:
    """Answers the calls that no error is left for."""

    def __init__(self, *errors: JMSError) -> None:
        self.errors, self.calls = list(errors), 0

    async def call(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "answer"


async def test_what_an_unreachable_broker_fails_with_is_asked_again_and_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    outage = Outage(300.0)
    restarting = AdminError("restarting", 503), BrokerUnavailableError("refused"), OperationTimeoutError("no answer")
    broker = Broker(*restarting, AdminError("no connection"))
    assert await outage.wait(broker.call) == "answer"
    assert broker.calls == 5
    assert outage.shown() is None
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]


@pytest.mark.parametrize("error", [JMSSecurityError("no"), NotFoundError("gone"), AdminError("no", 412)], ids=repr)
async def test_another_failure_is_raised_at_once(error: JMSError) -> None:
    broker = Broker(error)
    with pytest.raises(type(error)):
        await Outage(300.0).wait(broker.call)
    assert broker.calls == 1


async def test_an_outage_has_a_bound(caplog: pytest.LogCaptureFixture) -> None:
    outage = Outage(10.0)
    broker = Broker(*(BrokerUnavailableError(str(number)) for number in range(100)))
    waiting = asyncio.create_task(outage.wait(broker.call))
    await asyncio.sleep(5)
    shown = outage.shown()
    assert shown is not None and shown["seconds"] > 0 and int(shown["reason"]) > 0
    with pytest.raises(BrokerUnavailableError):
        await waiting
    assert 5 < broker.calls < 20
    assert len(caplog.records) == 1
