"""The properties that raw rows carry, as pulsar-client's users write them: strings."""

from __future__ import annotations

from benchmarks.workload import AMOUNT, KIND, KIND_VALUE, REGION, REGION_VALUE


def raw_properties(number: int) -> dict[str, str]:
    """Three string properties, one of them a number."""
    return {REGION: REGION_VALUE, AMOUNT: str(number), KIND: KIND_VALUE}
