"""The client keeps its promises on a cluster that fails, and a client that does not is noticed."""

from __future__ import annotations

from random import Random

import pytest

pytest.importorskip("simloom", reason="simloom is not installed; it needs Python 3.12")

from tests.simulation.faults import FAULTS, IN_TRANSACTIONS
from tests.simulation.network import End, Network
from tests.simulation.running import TRANSFERS, run

#: Each fault that a client could have is noticed with 40 at most.
SEEDS = 100


@pytest.mark.timeout(600)
def test_what_is_promised_is_kept_with_every_seed() -> None:
    for seed in range(SEEDS):
        error = run(seed).error
        if error is not None:
            raise error


def test_a_seed_repeats_exactly() -> None:
    first = [run(seed).trace for seed in range(3)]
    assert [run(seed).trace for seed in range(3)] == first
    assert first[0] != first[1]


async def test_a_direction_that_is_silent_stays_so() -> None:
    """Otherwise a stream would lose bytes in its middle."""
    network = Network(Random(0), lambda text: None)
    one, other = End(network, "broker"), End(network, "broker")
    one.other, other.other = other, one
    network.ends = {one: None, other: None}
    before = set[End]()
    for _ in range(20):
        network.silence()
        silent = {end for end in network.ends if end.silent}
        assert before <= silent
        before = silent


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", [*FAULTS, *IN_TRANSACTIONS])
def test_a_fault_of_the_client_is_noticed(name: str) -> None:
    every = TRANSFERS if name in IN_TRANSACTIONS else 1
    with {**FAULTS, **IN_TRANSACTIONS}[name]():
        assert any(run(seed).error is not None for seed in range(0, 40 * every, every))
