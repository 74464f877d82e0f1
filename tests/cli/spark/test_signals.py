"""Signals as a wish to stop."""

from __future__ import annotations

import os
import signal

import pytest

from jmsaio.cli.spark.signals import stop_by_signal


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_a_wish_and_the_second_an_interrupt(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), stop_by_signal() as stop:
        assert not stop.is_set()
        os.kill(os.getpid(), number)
        assert stop.wait(10)
        os.kill(os.getpid(), number)
        stop.wait(10)
        stop.clear()
        stop.wait(10)
    assert signal.getsignal(number) == before
