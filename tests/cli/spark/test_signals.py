"""Signals as a wish to stop."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest

from jmsaio.cli.spark.signals import stop_by_signal


def wait(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition() and time.monotonic() < end:
        time.sleep(0.001)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_a_wish_and_the_second_an_interrupt(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), stop_by_signal() as stop:
        assert not stop()
        os.kill(os.getpid(), number)
        wait(stop)
        assert stop.asked
        os.kill(os.getpid(), number)
        wait(lambda: False)
    assert signal.getsignal(number) == before
