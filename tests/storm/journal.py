"""What was sent, confirmed and delivered in a storm, and whether it adds up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import attrs

from jmsaio.model.wire import WireId

#: Seconds after which the journal keeps no more of a settled message than its number.
LONG_AGO = 300.0
#: Seconds for which a disturbance explains repetitions when it is over: clients connect again one after another.
AFTERMATH = 10.0

TWICE = "stored twice: the client sent it again when its connection broke"
BROKEN = "acknowledged while the connection broke"
CLOSED = "given back when the storm's client was closed, with which the broker's count ends"
UNEXPLAINED = "without a known reason"


@attrs.define
class Delivery:
    """The last delivery of a message.

    Attributes:
        when: loop time.
        places: where all its copies lie, as far as delivered.
        settled: it was acknowledged or committed.
    """

    when: float
    places: set[WireId]
    settled: bool = False


@attrs.define
class Journal:
    """One storm's book.

    Attributes:
        sent: messages that were handed to ``send``.
        confirmed: those that the broker has, by its word.
        outcomes: how the other sends ended.
        deliveries: messages handed to the application, repeated ones too.
        flagged: repetitions that said so.
        repeated: repetitions that did not, by reason.
        reports: calls of the exception listener, by class.
        refusals: calls that failed, by class; they were made again.
        disturbances: what was done to the broker and the network.
        closed: when the storm's client was closed, if it was.
        unexplained: the repetitions without a known reason, in words.
        left: what the client left behind when it was closed, in words.
    """

    sent: int = 0
    confirmed: set[str] = attrs.field(factory=set)
    outcomes: Counter[str] = attrs.field(factory=Counter)
    deliveries: int = 0
    flagged: int = 0
    repeated: Counter[str] = attrs.field(factory=Counter)
    reports: Counter[str] = attrs.field(factory=Counter)
    refusals: Counter[str] = attrs.field(factory=Counter)
    disturbances: Counter[str] = attrs.field(factory=Counter)
    closed: float | None = None
    unexplained: list[str] = attrs.field(factory=list)
    left: list[str] = attrs.field(factory=list)
    _forgotten: bytearray = attrs.field(factory=bytearray)  # 1 at the number of each such message
    _last: dict[str, Delivery] = attrs.field(factory=dict)
    _disturbed: list[tuple[float, float]] = attrs.field(factory=list)  # from, to

    def disturb(self, what: str, begin: float, seconds: float = 0.0) -> None:
        """The broker or the network is disturbed, for so long."""
        self.disturbances[what] += 1
        self._disturbed.append((begin, begin + seconds + AFTERMATH))

    def calm(self, now: float) -> None:
        """The last disturbance is over."""
        begin, _ = self._disturbed[-1]
        self._disturbed[-1] = begin, now + AFTERMATH

    def deliver(self, text: str, place: WireId, flagged: bool, now: float) -> None:
        """A message was handed to the application."""
        self.deliveries += 1
        last = self._last.get(text)
        if last is None:
            if self._is_forgotten(text):
                self.confirmed.add(text)
                self._forgotten[_number(text)] = 0
                if flagged:
                    self.flagged += 1
                else:
                    self.repeated[UNEXPLAINED] += 1
                    self.unexplained.append(f"{text} at {place}: settled more than {LONG_AGO:.0f} s before")
            self._last[text] = Delivery(now, {place})
            return
        if flagged:
            self.flagged += 1
        elif place not in last.places:
            self.repeated[TWICE] += 1
        elif any(begin <= now and last.when <= end for begin, end in self._disturbed):
            self.repeated[BROKEN] += 1
        elif self.closed is not None and last.when <= self.closed and not last.settled:
            self.repeated[CLOSED] += 1
        else:
            self.repeated[UNEXPLAINED] += 1
            over = max((end for _, end in self._disturbed if end <= last.when), default=now)
            self.unexplained.append(
                f"{text} at {place}: {now - last.when:.1f} s after its last delivery, "
                f"which was {last.when - over:.1f} s after the last aftermath"
                f"{' and settled' if last.settled else ''}"
            )
        last.places.add(place)
        last.when, last.settled = now, False

    def settle(self, texts: Iterable[str]) -> None:
        """Messages were acknowledged, or committed."""
        for text in texts:
            self._last[text].settled = True

    def forget(self, now: float) -> None:
        """Keep the number alone of what was confirmed, delivered and settled long ago, or memory would grow with it."""
        self._forgotten.extend(bytes(self.sent + 1 - len(self._forgotten)))
        self._disturbed = [one for one in self._disturbed if one[1] > now - 2 * LONG_AGO] or self._disturbed[-1:]
        old = [text for text, last in self._last.items() if last.settled and last.when < now - LONG_AGO]
        for text in self.confirmed.intersection(old):
            self._forgotten[_number(text)] = 1
            self.confirmed.discard(text)
            del self._last[text]

    def _is_forgotten(self, text: str) -> bool:
        return bool(self._forgotten) and self._forgotten[_number(text) : _number(text) + 1] == b"\1"

    @property
    def lost(self) -> set[str]:
        """Confirmed and never delivered."""
        return self.confirmed - self._last.keys()

    def lines(self) -> list[str]:
        """The figures, for people."""
        lost, forgotten = sorted(self.lost), sum(self._forgotten)
        return [
            f"sent {self.sent}, confirmed {len(self.confirmed) + forgotten}, not confirmed: {_counts(self.outcomes)}",
            f"delivered {self.deliveries} times, {len(self._last) + forgotten} messages",
            f"repetitions: {self.flagged} flagged; not flagged: {_counts(self.repeated)}",
            f"disturbances: {_counts(self.disturbances)}",
            f"calls that failed and were made again: {_counts(self.refusals)}",
            f"told to the exception listener: {_counts(self.reports)}",
            *(f"unexplained: {one}" for one in self.unexplained[:20]),
            f"left behind: {', '.join(self.left) or 'nothing'}",
            f"LOST {len(lost)}: {', '.join(lost[:20])}" if lost else "lost: nothing",
        ]


def _number(text: str) -> int:
    return int(text.rpartition("-")[2])


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(counter.items())) or "none"
