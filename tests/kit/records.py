"""Records in tests: one from fixed values, their texts, and what a sender says of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import attrs

from jmsaio.errors import JMSError
from jmsaio.model.wire import WireId


class HasPayload(Protocol):
    """What `texts` reads."""

    @property
    def payload(self) -> bytes | None: ...


def texts(records: Iterable[HasPayload]) -> list[str]:
    """The payloads of records."""
    return [(record.payload or b"").decode() for record in records]


@attrs.define(eq=False)
class Outcomes:
    """The callback of `Sender.send`; records what it gets, one place and one error for each record."""

    places: list[WireId | None] = attrs.field(factory=list)
    errors: list[JMSError | None] = attrs.field(factory=list)

    def __call__(self, place: WireId | None, error: JMSError | None) -> None:
        assert place is None or error is None
        self.places.append(place)
        self.errors.append(error)

    def __len__(self) -> int:
        return len(self.places)

    @property
    def stored(self) -> list[WireId | None]:
        """Places of the records that were sent without an error; None where the broker told none."""
        return [place for place, error in zip(self.places, self.errors, strict=True) if error is None]

    @property
    def failures(self) -> list[JMSError]:
        """The errors alone."""
        return [error for error in self.errors if error is not None]
