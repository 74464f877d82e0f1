"""Ctrl-C: a command closes its connection, even if the key is pressed twice; a later one ends it at once."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from jmsaio.cli.common.interrupts import run
from jmsaio.cli.common.output import INTERRUPTED

_COMMAND = """
import asyncio
import jmsaio.cli.app
from jmsaio.cli.common.interrupts import run

async def work():
    try:
        print("started", flush=True)
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep({closing})
        print("closed", flush=True)

@jmsaio.cli.app.app.command("wait")
def wait():
    return run(work())

raise SystemExit(jmsaio.cli.app.main(["wait"]))
"""


def test_run_gives_the_code() -> None:
    async def work() -> int:
        return 7

    assert run(work()) == 7


@pytest.mark.parametrize(
    ("closing", "pauses", "closed"), [(0.2, [], True), (0.5, [0.03, 0.03], True), (60, [0.03, 1.2], False)]
)
def test_only_an_interrupt_a_second_after_the_first_ends_a_command_before_it_is_closed(
    closing: float, pauses: list[float], closed: bool
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _COMMAND.format(closing=closing)], text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGINT)
    for pause in pauses:
        time.sleep(pause)
        process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=50)
    assert process.returncode == INTERRUPTED
    assert output == ("closed\n" if closed else "")
    assert errors.strip() == ("jmsaio: interrupted" if closed else "jmsaio: interrupted again")
