"""Handling of messages that were to be read and no longer exist."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable
from typing import Self

from jmsaio.errors import DataLossError
from jmsaio.model.log_fields import log_fields
from jmsaio.spark.model.folder import AnyPath, folder_at
from jmsaio.spark.options.parse import SourceOptions
from jmsaio.spark.planning.ranges import Loss

_log = logging.getLogger(__name__)


class Losses:
    """Handler and counter of losses.

    Args:
        fail: raise at the first loss (option ``failOnDataLoss``); if False, log each one as a warning.
        folder: folder for a file per loss that is not an error (option ``dataLossFolder``); or None.
    """

    def __init__(self, fail: bool, folder: str | None = None) -> None:
        self._fail = fail
        self._folder = folder
        self.count = 0

    @classmethod
    def by(cls, options: SourceOptions) -> Self:
        """Return a handler for a reader's options."""
        return cls(options.fail_on_data_loss, options.data_loss_folder)

    def total(self) -> int:
        """Return the number of losses: those that all processes noted in the folder; without one, those found here."""
        return self.count if self._folder is None else len(read_losses(folder_at(self._folder)))

    def report(self, loss: Loss) -> None:
        """Report a loss.

        Raises:
            DataLossError: ``fail`` is set.
        """
        self.count += 1
        if self._fail:
            text = f"{loss}; with the option failOnDataLoss=false, reading continues with the rest"
            raise DataLossError(text, loss.topic, str(loss.wanted), None if loss.found is None else str(loss.found))
        text, about = "%s; failOnDataLoss=false: reading continues with the rest", log_fields(destination=loss.topic)
        _log.warning(text, loss, extra=about)
        if self._folder is not None:
            try:
                write_loss(folder_at(self._folder), str(loss))
            except OSError as error:
                _log.warning("the loss can't be noted in %s: %s", self._folder, error)

    def report_all(self, losses: Iterable[Loss]) -> None:
        """Report each loss."""
        for loss in losses:
            self.report(loss)


def write_loss(folder: AnyPath, sentence: str) -> None:
    """Write a loss to a file. A loss that a repeated task finds again is the same file."""
    folder.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(sentence.encode()).hexdigest()[:16]
    (folder / f"{name}.txt").write_bytes(f"{sentence}\n".encode())


def read_losses(folder: AnyPath) -> tuple[str, ...]:
    """Return the sentences of all losses in a folder, sorted."""
    return tuple(sorted(path.read_bytes().decode().rstrip("\n") for path in folder.glob("*.txt")))
