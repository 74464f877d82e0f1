"""What happens with messages that are gone, and while the broker is unreachable."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import attrs
import pytest

from jmsaio.errors import (
    AdminError,
    BrokerUnavailableError,
    DataLossError,
    JMSError,
    JMSSecurityError,
    NotFoundError,
    OperationTimeoutError,
)
from jmsaio.spark.model.place import Place
from jmsaio.spark.options.parse import SourceOptions
from jmsaio.spark.planning.ranges import Loss
from jmsaio.spark.planning.tolerance import Outage, read_losses, remove_losses, report_loss

T = "persistent://public/default/t"
LOSS = Loss(T, Place(5, 1), Place(8, 0), "the broker has deleted them")


def options(**given: Any) -> SourceOptions:
    """Options of a reader that tolerates losses, unless others are given."""
    return SourceOptions(connection={}, destination=None, columns=(), **{"fail_on_data_loss": False, **given})


def test_a_loss_fails_with_topic_places_and_option() -> None:
    with pytest.raises(DataLossError, match=r"from 5:1 on .* begin at 8:0: .* failOnDataLoss=false") as caught:
        report_loss(LOSS, options(fail_on_data_loss=True))
    assert (caught.value.topic, caught.value.wanted, caught.value.found) == (T, "5:1", "8:0")


def test_a_loss_that_may_be_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        report_loss(attrs.evolve(LOSS, found=None), options())
        report_loss(LOSS, options())
    assert len(caplog.records) == 2
    assert f"{T}: messages from 5:1 on are lost, nothing is stored after it" in caplog.text


@pytest.mark.slow  # pyarrow, which writes the notes, is there in the full run only
def test_losses_that_may_be_are_noted_once_each(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "lost"
    other = attrs.evolve(LOSS, wanted=Place(6, 0))
    for loss in (LOSS, other, LOSS):
        report_loss(loss, options(data_loss_folder=str(folder)))
    assert read_losses(str(folder)) == (str(LOSS), str(other))
    (tmp_path / "file").touch()
    report_loss(LOSS, options(data_loss_folder=str(tmp_path / "file")))
    assert "the loss can't be noted" in caplog.text
    assert read_losses(str(tmp_path / "none")) == ()
    remove_losses(str(folder))
    remove_losses(str(folder))
    assert not folder.exists()
    with pytest.raises(OSError, match=r"^ftp://x/y: "):
        read_losses("ftp://x/y")


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
