"""A short run of the fuzzer, and that it would notice."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from jmsaio.transport.pulsar.wire.connections import connection
from tests.transport.pulsar.wire.fuzz import run


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_changed_bytes_end_in_values_or_errors_and_nothing_else() -> None:
    """Closed connections are opened again, and what waits for them is bounded."""
    outcomes = run(60, seed=1, sessions=40)
    assert outcomes["connections"] > 100 and outcomes["send: done"] > 1000 and outcomes["record: read"] > 1000
    assert outcomes["open: ProtocolError"] + outcomes["sender: ProtocolError"] > 0


def test_errors_that_are_not_allowed_are_noticed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> object:
        raise IndexError("past the end")

    monkeypatch.setattr(connection, "read_receipt", broken)
    with pytest.raises(AssertionError, match="past the end"):
        run(60, seed=1, sessions=5)
    assert "--one 1000000" in capsys.readouterr().err
