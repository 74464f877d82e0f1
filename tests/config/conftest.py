"""Every transport counts as installed: these tests are of the tables, which are the same on every Python."""

from __future__ import annotations

import pytest

from jmsaio.config.schemes import TransportEntry


@pytest.fixture(autouse=True)
def all_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also pulsar-client, where it has no wheel."""
    monkeypatch.setattr(TransportEntry, "installed", True)
