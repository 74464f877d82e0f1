"""The whole matrix, filled on the real broker with the real Java client, and the guide that shows it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.interop.matrix import COLUMNS, Results, run
from tests.interop.rows import rows
from tests.interop.table import GUIDES, faults, generated, render
from tests.support.broker import TestBroker
from tests.support.java import class_path

pytestmark = [pytest.mark.broker, pytest.mark.java, pytest.mark.timeout(300), pytest.mark.xdist_group("interop")]


@pytest.fixture(scope="module")
def results(pulsar_broker: TestBroker, java_classpath: str, java_peer_dir: Path) -> Results:
    """What each cell came to, in one run."""
    return asyncio.run(run(pulsar_broker, class_path(java_classpath, java_peer_dir), rows()))


def test_each_cell_works_or_has_its_line_in_the_compatibility_guide(results: Results) -> None:
    assert len(results) == len(rows()) * len(COLUMNS) > 200
    assert faults(rows(), results) == []


def test_the_guide_shows_the_run(results: Results) -> None:
    """`python -m tests.interop --write` writes it."""
    assert generated((GUIDES / "interop.md").read_text(encoding="utf-8")) == render(rows(), results)
