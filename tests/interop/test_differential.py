from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.differential import CLIENTS, run
from tests.support.broker import TestBroker
from tests.support.java import class_path

pytestmark = [pytest.mark.broker, pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(300)]


async def test_what_each_client_sends_all_read_alike(
    pulsar_broker: TestBroker, java_classpath: str, java_peer_dir: Path
) -> None:
    """240 generated messages; ``python -m tests.interop.differential`` has more."""
    findings = await run(pulsar_broker, class_path(java_classpath, java_peer_dir), count=80, seed=1)
    assert findings.faults == []
    assert set(findings.compared) == {(sender, receiver) for sender in CLIENTS for receiver in CLIENTS}
    assert min(findings.compared.values()) > 60
    assert all(findings.batched[sender] for sender in CLIENTS)
    assert findings.empty["pulsar-client"] and findings.empty["java"]
