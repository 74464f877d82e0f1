"""Places between the messages of a partition: bounds of ranges, and offsets of streams."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from jmsaio.errors import ConfigurationError
from jmsaio.model.wire import WireId

#: Largest ledger or entry id of the broker.
_LARGEST: Final = 2**63 - 1
_TEXT: Final = re.compile(r"([0-9]{1,19}):([0-9]{1,19})(?::([0-9]{1,9}))?", re.ASCII)


class Place(NamedTuple):
    """Bound before the first message that was not read, or is not to be read. Sorts in the order of the partition.

    Not a ``WireId``: the bound is in one known partition, can be after the last entry of a ledger, and starts an entry
    at ``batch`` 0, whether or not the entry holds a batch. It is compared, pickled and written as text.
    """

    ledger: int
    entry: int
    batch: int = 0

    def __str__(self) -> str:
        text = f"{self.ledger}:{self.entry}"
        return f"{text}:{self.batch}" if self.batch else text


def place_of(message_id: WireId) -> Place:
    return Place(message_id.ledger, message_id.entry, max(message_id.batch_index, 0))


def parse_place(text: str, what: str) -> Place:
    """Parse a place as ``str`` writes it; ``what`` is the source of the text, for the ConfigurationError."""
    found = _TEXT.fullmatch(text)
    if found is None or int(found[1]) > _LARGEST or int(found[2]) > _LARGEST:
        raise ConfigurationError(f"{what}: a position is written ledger:entry or ledger:entry:batch, not {text!r:.100}")
    return Place(int(found[1]), int(found[2]), int(found[3] or 0))
