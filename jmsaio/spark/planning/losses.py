"""What happens with messages that were to be read and are gone."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable
from pathlib import Path

from jmsaio.errors import DataLossError
from jmsaio.spark.planning.ranges import Loss

_log = logging.getLogger(__name__)


class Losses:
    """What happens with losses, and how many there were.

    Args:
        fail: raise at the first one (option ``failOnDataLoss``); else each is a warning in the log.
        folder: where each that is no error becomes a file, too (option ``dataLossFolder``); None: nowhere.
    """

    def __init__(self, fail: bool, folder: str | None = None) -> None:
        self._fail = fail
        self._folder = folder
        self.count = 0

    def tell(self, loss: Loss) -> None:
        """Tell of one.

        Raises:
            DataLossError: the user wants to fail.
        """
        self.count += 1
        if self._fail:
            text = f"{loss}; with the option failOnDataLoss=false, reading goes on with what is left"
            raise DataLossError(text, loss.topic, str(loss.wanted), None if loss.found is None else str(loss.found))
        _log.warning("%s; failOnDataLoss=false: reading goes on with what is left", loss)
        if self._folder is not None:
            try:
                write_loss(Path(self._folder), str(loss))
            except OSError as error:
                _log.warning("the loss can't be noted in %s: %s", self._folder, error)

    def tell_all(self, losses: Iterable[Loss]) -> None:
        """Tell of each."""
        for loss in losses:
            self.tell(loss)


def write_loss(folder: Path, sentence: str) -> None:
    """Make a file of a loss. The same one, found again by a repeated task, is the same file."""
    folder.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(sentence.encode()).hexdigest()[:16]
    (folder / f"{name}.txt").write_text(f"{sentence}\n", encoding="utf-8")


def read_losses(folder: Path) -> tuple[str, ...]:
    """The sentences of all losses that became files in a folder, in the order of their texts."""
    return tuple(sorted(path.read_text(encoding="utf-8").rstrip("\n") for path in folder.glob("*.txt")))
