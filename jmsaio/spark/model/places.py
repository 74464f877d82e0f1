"""Places between the messages of a partition: bounds of ranges, and offsets of streams."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from jmsaio.errors import ConfigurationError
from jmsaio.model.wire import WireId

#: The broker's largest number of a ledger or entry.
_LARGEST: Final = 2**63 - 1
_TEXT: Final = re.compile(r"([0-9]{1,19}):([0-9]{1,19})(?::([0-9]{1,9}))?", re.ASCII)


class Place(NamedTuple):
    """The first message that was not read, or is not to be read. Sorts in the order of the partition.

    Attributes:
        ledger: ledger id.
        entry: entry in the ledger; one behind the last means the end of the ledger.
        batch: index in the batch that the entry holds; 0 is the whole entry.
    """

    ledger: int
    entry: int
    batch: int = 0

    def __str__(self) -> str:
        """``ledger:entry``, with ``:batch`` behind it where it is not 0."""
        text = f"{self.ledger}:{self.entry}"
        return f"{text}:{self.batch}" if self.batch else text


def place_of(message_id: WireId) -> Place:
    """Where a message is: the place before it."""
    return Place(message_id.ledger, message_id.entry, max(message_id.batch_index, 0))


def parse_place(text: str, what: str) -> Place:
    """The place written as ``ledger:entry`` or ``ledger:entry:batch``.

    Args:
        text: as ``str`` of a place writes it.
        what: where the text was given, for the error: ``option startingOffsets, topic x``.

    Raises:
        ConfigurationError: not such a text, or a number above 2^63-1.
    """
    found = _TEXT.fullmatch(text)
    if found is None or int(found[1]) > _LARGEST or int(found[2]) > _LARGEST:
        raise ConfigurationError(f"{what}: a position is written ledger:entry or ledger:entry:batch, not {text!r:.100}")
    return Place(int(found[1]), int(found[2]), int(found[3] or 0))
