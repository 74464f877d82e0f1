"""What happens with messages that are gone."""

from __future__ import annotations

import logging
from pathlib import Path

import attrs
import pytest

from jmsaio.errors import DataLossError
from jmsaio.spark.model.places import Place
from jmsaio.spark.planning.losses import Losses, read_losses, remove_losses
from jmsaio.spark.planning.ranges import Loss

T = "persistent://public/default/t"
LOSS = Loss(T, Place(5, 1), Place(8, 0), "the broker has deleted them")


def test_a_loss_fails_with_topic_places_and_option() -> None:
    with pytest.raises(DataLossError, match=r"from 5:1 on .* begin at 8:0: .* failOnDataLoss=false") as caught:
        Losses(fail=True).report(LOSS)
    assert (caught.value.topic, caught.value.wanted, caught.value.found) == (T, "5:1", "8:0")


def test_a_loss_that_may_be_is_a_warning_and_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    losses = Losses(fail=False)
    with caplog.at_level(logging.WARNING):
        losses.report(attrs.evolve(LOSS, found=None))
        losses.report(LOSS)
    assert losses.count == 2
    assert f"{T}: messages from 5:1 on are lost, nothing is stored after it" in caplog.text


@pytest.mark.slow  # pyarrow, which writes the notes, is there in the full run only
def test_losses_that_may_be_are_noted_once_each(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "lost"
    losses, other = Losses(fail=False, folder=str(folder)), attrs.evolve(LOSS, wanted=Place(6, 0))
    losses.report_all([LOSS, other])
    Losses(fail=False, folder=str(folder)).report(LOSS)
    assert read_losses(str(folder)) == (str(LOSS), str(other))
    (tmp_path / "file").touch()
    Losses(fail=False, folder=str(tmp_path / "file")).report(LOSS)
    assert "the loss can't be noted" in caplog.text
    assert read_losses(str(tmp_path / "none")) == ()
    remove_losses(str(folder))
    remove_losses(str(folder))
    assert not folder.exists()
    with pytest.raises(OSError, match=r"^ftp://x/y: "):
        read_losses("ftp://x/y")
