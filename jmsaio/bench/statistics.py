"""The few statistics that the table needs. Pure functions over lists of numbers."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

import attrs


@attrs.frozen
class Spread:
    """Several measurements of one thing.

    Attributes:
        median: the middle one.
        low: the smallest.
        high: the largest.
        count: how many there are.
    """

    median: float
    low: float
    high: float
    count: int

    @property
    def relative(self) -> float:
        """Distance of the extremes as a part of the median; 0.0 when the median is 0."""
        return (self.high - self.low) / self.median if self.median != 0 else 0.0


def spread(values: Iterable[float]) -> Spread | None:
    """Median and extremes of ``values``, or None when there are none."""
    ordered = sorted(values)
    if not ordered:
        return None
    return Spread(statistics.median(ordered), ordered[0], ordered[-1], len(ordered))


def percentile(ordered: Sequence[float], part: float) -> float:
    """The value below which ``part`` (0.0 to 1.0) of the ascending ``ordered`` values lie (nearest rank).

    Raises ValueError for no values or a part outside 0.0 to 1.0.
    """
    if not ordered:
        raise ValueError("no values")
    if not 0.0 <= part <= 1.0:
        raise ValueError(f"part must be from 0.0 to 1.0, not {part}")
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def paired_ratios(values: Mapping[int, float], references: Mapping[int, float]) -> list[float]:
    """Ratio of value to reference in each round that has both, in the order of the rounds.

    Pairing inside a round takes out what moves slowly (another job on the machine, a warmer broker), which the ratio of
    two medians would keep. A reference of 0 has no ratio and its round is left out.
    """
    return [
        values[number] / references[number]
        for number in sorted(values.keys() & references.keys())
        if references[number] != 0
    ]
