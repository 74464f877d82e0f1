"""What a read tolerates, as its options say: lost messages, and outages of the broker."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs

from jmsaio.errors import DataLossError, JMSError
from jmsaio.model.log_fields import log_fields
from jmsaio.spark.options.parse import SourceOptions
from jmsaio.spark.planning.ranges import Loss
from jmsaio.transport.subscriptions import passes

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_log = logging.getLogger(__name__)


def report_loss(loss: Loss, options: SourceOptions) -> None:
    """Log a loss and write it to ``dataLossFolder``; raise DataLossError instead if ``failOnDataLoss`` is set."""
    if options.fail_on_data_loss:
        text = f"{loss}; with the option failOnDataLoss=false, reading continues with the rest"
        raise DataLossError(text, loss.topic, str(loss.wanted), None if loss.found is None else str(loss.found))
    text, about = "%s; failOnDataLoss=false: reading continues with the rest", log_fields(destination=loss.topic)
    _log.warning(text, loss, extra=about)
    if options.data_loss_folder is not None:
        try:
            write_loss(options.data_loss_folder, str(loss))
        except OSError as error:
            _log.warning("the loss can't be noted in %s: %s", options.data_loss_folder, error)


def write_loss(folder: str, sentence: str) -> None:
    """Write a loss to a file. A loss that a repeated task finds again is the same file."""
    system, path = folder_at(folder)
    system.create_dir(path)
    name = hashlib.sha256(sentence.encode()).hexdigest()[:16]
    with system.open_output_stream(f"{path}/{name}.txt") as file:
        file.write(f"{sentence}\n".encode())


def read_losses(folder: str) -> tuple[str, ...]:
    system, path = folder_at(folder)
    paths = [f"{path}/{name}" for name in names_in(system, path) if name.endswith(".txt")]
    return tuple(sorted(read_bytes(system, each).decode().rstrip("\n") for each in paths))


def remove_losses(folder: str) -> None:
    system, path = folder_at(folder)
    if names_in(system, path):
        system.delete_dir(path)


def folder_at(text: str) -> tuple[FileSystem, str]:
    """Return the file system and path of an absolute path or URL; credentials come from the environment."""
    from pyarrow.fs import FileSystem

    try:
        system, path = FileSystem.from_uri(re.sub("^s3[an]:", "s3:", text))
    except ValueError as error:
        raise OSError(f"{text}: {error}") from error
    return system, path


def names_in(system: FileSystem, path: str) -> list[str]:
    from pyarrow.fs import FileSelector

    return [each.base_name for each in system.get_file_info(FileSelector(path, allow_not_found=True))]


def read_bytes(system: FileSystem, path: str) -> bytes:
    with system.open_input_stream(path) as file:
        return bytes(file.read())


T = TypeVar("T")
#: Seconds between two attempts.
_PAUSE: Final = 1.0


@attrs.define(eq=False)
class Outage:
    """State of a broker outage, as one planner or task sees it."""

    limit: float  # in seconds (option ``outageTimeout``); with 0, every error is raised at once
    _since: float | None = attrs.field(init=False, default=None)
    _reason: str = attrs.field(init=False, default="")

    def note(self, error: JMSError) -> None:
        """Log the first failure of an outage; raise ``error`` itself after the limit, or if it is another failure."""
        now = asyncio.get_running_loop().time()
        begun = now if self._since is None else self._since
        if not passes(error) or now - begun >= self.limit:
            raise error
        if self._since is None:
            self._since = begun
            _log.warning("the broker is unreachable; waiting for up to %g s (outageTimeout): %s", self.limit, error)
        self._reason = str(error)

    def end(self) -> None:
        if self._since is not None:
            seconds = asyncio.get_running_loop().time() - self._since
            self._since = None
            _log.warning("the broker answers again after %.0f s", seconds)

    def shown(self) -> dict[str, Any] | None:
        if self._since is None:
            return None
        return {"seconds": round(asyncio.get_running_loop().time() - self._since, 1), "reason": self._reason}

    async def wait(self, call: Callable[[], Awaitable[T]]) -> T:
        """Retry a call once a second until the broker answers; raises as ``note``."""
        while True:
            try:
                answer = await call()
            except JMSError as error:
                self.note(error)
            else:
                self.end()
                return answer
            await asyncio.sleep(_PAUSE)
