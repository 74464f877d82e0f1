"""The whole matrix, filled on the real broker with the real Java client, and the guide that shows it."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

import attrs
import pytest

from tests.interop.matrix import COLUMNS, Results, run
from tests.interop.rows import rows
from tests.interop.table import GUIDES, faults, generated, render
from tests.support.broker import TestBroker
from tests.support.java import class_path
from tests.support.secure import SecureBroker

pytestmark = [pytest.mark.broker, pytest.mark.java, pytest.mark.timeout(600), pytest.mark.xdist_group("interop")]


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


@pytest.mark.slow
def test_wire_keeps_each_row_that_pulsar_client_keeps(
    pulsar_broker: TestBroker, java_classpath: str, java_peer_dir: Path
) -> None:
    """Some rows, such as delays on topics, work on wire alone."""
    chosen = [attrs.evolve(row, python={**row.python, "transport": "wire"}) for row in rows()]
    columns = [column for column in COLUMNS if "python" in column]
    results = asyncio.run(run(pulsar_broker, class_path(java_classpath, java_peer_dir), chosen, columns))
    assert len(results) == 3 * len(chosen)
    assert [fault for fault in faults(chosen, results) if "works, although" not in fault] == []


#: Rows that need no topics made through the administration.
_BY_TOKEN = ("JMSMessageID, JMSTimestamp, JMSDestination", "durable", "recover")


@pytest.mark.slow
@pytest.mark.parametrize("right", [True, False])
def test_the_password_of_both_clients_is_a_token(
    right: bool, secure_broker: SecureBroker, java_classpath: str, java_peer_dir: Path
) -> None:
    namespace = secure_broker.namespace(f"matrix-{uuid.uuid4().hex[:8]}")
    options = {
        "authPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
        "jms.useCredentialsFromCreateConnection": True,
        "jms.systemNamespace": namespace,
        "jms.usePulsarAdmin": False,
        "jms.waitForServerStartupTimeout": 60_000 if right else 1_000,  # Java also retries what is refused
    }
    token = secure_broker.token(key=None if right else b"another" * 8)
    chosen = [
        attrs.evolve(row, configuration={**row.configuration, **options}, credentials=("bob", f"token:{token}"))
        for row in rows()
        if row.name in _BY_TOKEN and row.group in ("Headers", "Subscriptions", "Delivery")
    ]
    found = asyncio.run(run(secure_broker, class_path(java_classpath, java_peer_dir), chosen))
    wrong = [each for each in found.values() if (each is None) is not right]
    assert len(chosen) == len(_BY_TOKEN) and wrong == []
    assert right or all("JMSSecurityError" in str(each) or "uthenti" in str(each) for each in found.values()), found
