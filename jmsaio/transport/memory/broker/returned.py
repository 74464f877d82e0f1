"""Records of one subscription that wait for their time: delayed ones, and those given back with a delay."""

from __future__ import annotations

from collections.abc import Callable

from jmsaio.transport.clock import Timers
from jmsaio.transport.memory.broker.consumer import Consumer


class Delays:
    """The timers of one subscription's records.

    Args:
        timers: the broker's.
        due: called with the number of a record whose time has come.
    """

    __slots__ = ("_due", "_timers", "_waiting")

    def __init__(self, timers: Timers, due: Callable[[int], None]) -> None:
        self._timers = timers
        self._due = due
        self._waiting: dict[int, tuple[int, Consumer | None]] = {}

    def __contains__(self, number: int) -> bool:
        return number in self._waiting

    def add(self, number: int, due: float, consumer: Consumer | None) -> None:
        """Have a record wait until ``due``, in steady time; ``consumer`` gave it back, None: it is new."""
        self._waiting[number] = (self._timers.add(due, self._ring, number), consumer)
        if consumer is not None:
            consumer.waiting.add(number)

    def end(self, number: int) -> None:
        """A record waits no more."""
        token, consumer = self._waiting.pop(number)
        self._timers.cancel(token)
        if consumer is not None:
            consumer.waiting.discard(number)

    def clear(self) -> None:
        """None waits any more."""
        for number in list(self._waiting):
            self.end(number)

    def _ring(self, number: int, token: int) -> None:
        self.end(number)
        self._due(number)
