"""A short run of the fuzzer, and that it would notice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jmsaio.codec import bodies
from tests.codec.fuzz import Fuzzer

ROOT = Path(__file__).parents[2]


def test_changed_records_are_read_or_malformed_and_nothing_else() -> None:
    fuzzer = Fuzzer(seed=1)
    assert fuzzer.run(30, inputs=3000) > 0
    assert fuzzer.outcomes["malformed"] > 0 and fuzzer.outcomes["read: map"] > 0


def test_errors_that_are_not_allowed_are_noticed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> object:
        raise IndexError("past the end")

    monkeypatch.setattr(bodies, "decode_body", broken)
    with pytest.raises(IndexError):
        Fuzzer(seed=1).run(30)
    assert "payload" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_reports_that_no_outcome_was_wrong() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.codec.fuzz", "--seconds", "0.5"],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert "inputs, " in done.stdout and "no outcome that is not allowed" in done.stdout
