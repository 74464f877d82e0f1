"""How long to wait before the next attempt to connect."""

from __future__ import annotations

from typing import Final

import attrs

#: Seconds of success after which the next attempt follows at once, and failures are counted from 0 again.
STABLE: Final = 1.0


@attrs.frozen
class Backoff:
    """The waits between attempts."""

    first: float = 0.1
    longest: float = 10.0

    def delay(self, failures: int, uniform: float) -> float:
        """Return the seconds to wait after ``failures`` failed attempts in a row, at least one.

        The wait doubles with each failure. Up to a fifth of it is left out at random, so that clients that lost the
        same broker do not all return in the same moment.

        Args:
            uniform: a random number in [0, 1).
        """
        longest = min(self.first * 2.0 ** min(failures - 1, 60), self.longest)
        return longest * (1.0 - 0.2 * uniform)
