"""The statistics of the table. Pure functions over lists of numbers."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

import attrs


@attrs.frozen
class Spread:
    """Spread of several measurements.

    Attributes:
        low: smallest value.
        high: largest value.
        count: number of values.
    """

    median: float
    low: float
    high: float
    count: int


def spread(values: Iterable[float]) -> Spread | None:
    """Return median and extremes of ``values``; None without values."""
    ordered = sorted(values)
    if not ordered:
        return None
    return Spread(statistics.median(ordered), ordered[0], ordered[-1], len(ordered))


def percentile(ordered: Sequence[float], part: float) -> float:
    """Return the value below which ``part`` (0.0 to 1.0) of the ascending ``ordered`` values lie (nearest rank).

    Raises ValueError for no values or a part outside 0.0 to 1.0.
    """
    if not ordered:
        raise ValueError("no values")
    if not 0.0 <= part <= 1.0:
        raise ValueError(f"part must be from 0.0 to 1.0, not {part}")
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def paired_ratios(values: Mapping[int, float], references: Mapping[int, float]) -> list[float]:
    """Return the ratio of value to reference in each round that has both, in the order of the rounds.

    Pairing within a round cancels slow changes (another job on the machine, a warmer broker), which the ratio of two
    medians would keep. A round with a reference of 0 is left out.
    """
    return [
        values[number] / references[number]
        for number in sorted(values.keys() & references.keys())
        if references[number] != 0
    ]
