from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import jmsaio
from jmsaio.testing import EmbeddedBroker, ManualClock
from jmsaio.testing.plugin import jms_broker, jms_clock  # noqa: F401 - fixtures, as a conftest has them


async def test_a_broker_for_each_test(jms_broker: EmbeddedBroker) -> None:  # noqa: F811 - the fixture
    assert jms_broker.topics() == []
    async with jmsaio.connect(jms_broker.url) as connection, connection.create_session() as session:
        await (await session.create_producer(session.create_queue("orders"))).send("x")
    assert jms_broker.backlog("orders") == 1


def test_the_next_test_has_another(jms_broker: EmbeddedBroker) -> None:  # noqa: F811 - the fixture
    assert jms_broker.topics() == []


def test_with_a_clock(jms_broker: EmbeddedBroker, jms_clock: ManualClock) -> None:  # noqa: F811 - the fixtures
    assert not jms_broker._broker.self_timed
    before = jms_broker._broker.now()
    jms_clock.advance(5)
    assert jms_broker._broker.now() == before + 5


def test_the_fixtures_are_there_as_the_guide_says(tmp_path: Path) -> None:
    """With the line of the testing guide in the topmost conftest, and nothing else."""
    guide = (Path(jmsaio.__file__).parent / "guide" / "testing.md").read_text(encoding="utf-8")
    [line] = re.findall(r"^pytest_plugins = .*$", guide, re.MULTILINE)
    (tmp_path / "conftest.py").write_text(line)
    (tmp_path / "test_it.py").write_text("def test_it(jms_broker, jms_clock):\n    assert jms_broker.topics() == []\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
