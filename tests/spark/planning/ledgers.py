"""A model of what the broker does with the ledgers of a topic. It knows every entry that was ever written."""

from __future__ import annotations

import attrs
from hypothesis import strategies as st

from jmsaio.model.wire import WireId
from jmsaio.spark.model.place import Place
from jmsaio.spark.planning.plan import Stored, stored
from jmsaio.transport.administration import Ledger, TopicLog

TOPIC = "persistent://public/default/t"


@attrs.define
class Ledgers:
    """A topic, as Pulsar 4.0 keeps it.

    Attributes:
        written: every entry that was ever written, in order.
        counts: the entries of each ledger that is stored, oldest first; the last ledger is open.
        mark: the last entry that the durable subscription has acknowledged.
        has_subscription: there is one, and the broker deletes nothing behind its mark.
    """

    has_subscription: bool = True
    written: list[Place] = attrs.field(factory=list)
    counts: dict[int, int] = attrs.field(factory=lambda: {3: 0})
    mark: Place | None = None
    ids: list[int] = attrs.field(factory=lambda: [3])

    @property
    def kept(self) -> list[Place]:
        """The entries that are stored."""
        return [place for place in self.written if place.ledger in self.counts]

    def append(self, number: int) -> None:
        """Write entries."""
        for _ in range(number):
            self.written.append(Place(self.ids[-1], self.counts[self.ids[-1]]))
            self.counts[self.ids[-1]] += 1

    def rollover(self) -> None:
        """Begin another ledger. An empty one stays open."""
        if self.counts[self.ids[-1]]:
            self._begin()

    def unload(self) -> None:
        """Begin another ledger. An empty one is discarded."""
        if not self.counts[self.ids[-1]]:
            del self.counts[self.ids[-1]]
        self._begin()

    def _begin(self) -> None:
        self.ids.append(self.ids[-1] + 2)
        self.counts[self.ids[-1]] = 0

    def trim(self) -> None:
        """Delete closed ledgers, the oldest first, as far as no subscription keeps them."""
        for ledger in list(self.counts)[:-1]:
            last = Place(ledger, self.counts[ledger] - 1)
            if self.has_subscription and (self.mark is None or self.mark < last):
                return
            del self.counts[ledger]

    def acknowledge(self, before: Place | None) -> None:
        """Let the subscription acknowledge all entries before a place."""
        passed = [place for place in self.written if before is not None and place < before]
        self.mark = max([place for place in (self.mark, *passed[-1:]) if place is not None], default=None)

    def stored(self) -> Stored:
        """What planning makes of it."""
        mark = self.mark if self.has_subscription else None
        last = WireId(*self.kept[-1][:2]) if self.kept else None
        log = TopicLog(
            ledgers=tuple(Ledger(ledger, entries, 10 * entries) for ledger, entries in self.counts.items()),
            last=last, last_readable=last, is_readable_known=True, deduplication=False,
            kept_after=None if mark is None else WireId(mark.ledger, mark.entry),
        )  # fmt: skip
        return stored(log, None)

    def do(self, step: str) -> None:
        """Take one of ``STEPS``, but for ``batch``."""
        if step == "acknowledge":
            self.acknowledge(Place(self.ids[-1], self.counts[self.ids[-1]]))
        elif step.isdigit():
            self.append(int(step))
        elif step != "batch":
            getattr(self, step)()


#: What happens to a topic; a number is that of entries written. ``batch``: a stream reads on.
STEPS = st.lists(st.sampled_from(["1", "3", "rollover", "unload", "unload", "trim", "batch", "batch"]), max_size=25)
