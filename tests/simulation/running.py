"""One seed: its applications, in a world without any other chance."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import socket
import sys
from itertools import count
from unittest.mock import patch

import attrs
import simloom

from jmsaio.transport import names
from jmsaio.transport.pulsar.wire.records import record as known
from tests.schedules.running import lawful
from tests.simulation.applications import Simulation
from tests.simulation.transfers import Transfers

#: Every so many seeds amounts move in transactions.
TRANSFERS = 4


def run(seed: int) -> Run:
    """Run a seed."""
    found: list[Simulation] = []

    async def main() -> None:
        found.append((Transfers if seed % TRANSFERS == 0 else Simulation)(seed))
        async with asyncio.timeout(3600):
            await found[0].run()

    logging.getLogger("jmsaio").setLevel(logging.CRITICAL)
    try:
        # What clients send must have the same size in every run: the network cuts it by chance.
        with (
            patch.dict(known._past, clear=True),
            patch.object(names, "_numbers", count(1)),
            patch.object(os, "getpid", lambda: 1),
            patch.object(socket, "gethostname", lambda: "host"),
            patch.object(sys, "argv", ["simulation"]),
        ):
            simloom.run(
                main, seed=seed, scheduler=lawful, virtual_time=True, seed_randomness=True, world=False,
                max_steps_per_instant=200_000, gc_interval=10_000,
            )  # fmt: skip
    except Exception as raised:
        error = raised
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        error.add_note(f"repeat it: python -m tests.simulation --seeds 1 --seed {seed} --trace")
        return Run(seed, found[0].trace if found else [], error)
    finally:
        logging.getLogger("jmsaio").setLevel(logging.NOTSET)
    return Run(seed, found[0].trace, None)


@attrs.frozen
class Run:
    """A seed that was run.

    Attributes:
        seed: its number.
        trace: what happened, with times.
        error: what was wrong, or None.
    """

    seed: int
    trace: list[str]
    error: Exception | None

    @property
    def digest(self) -> str:
        """A digest of everything that happened."""
        return hashlib.sha256("\n".join(self.trace).encode()).hexdigest()[:16]
