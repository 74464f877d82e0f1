"""A secret that is given by reference shows up nowhere that Spark or the source writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark import session
from tests.support.broker import TestBroker

CANARY = "canary-7d1f0c52a9"


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(300)
def test_no_file_plan_log_error_or_repr_holds_the_secret(pulsar_broker: TestBroker, tmp_path: Path) -> None:
    with (tmp_path / "output").open("wb") as output:
        subprocess.run(
            [sys.executable, "-m", "tests.spark.canary", pulsar_broker.url, str(tmp_path)],
            cwd=session.ROOT, env=session.environment(JMSAIO_TEST_CANARY=CANARY), stdout=output, stderr=output,
            timeout=280, check=False,
        )  # fmt: skip
    told = (tmp_path / "output").read_text(encoding="utf-8", errors="replace")
    for sign in ("Physical Plan", "numInputRows", "does not exist", "failed: ", "SourceOptions("):
        assert sign in told, told[-3000:]
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"events", "checkpoint", "files", "rows"} <= {path.relative_to(tmp_path).parts[0] for path in written}
    assert [str(path) for path in written if CANARY.encode() in path.read_bytes()] == []
    assert "env:JMSAIO_TEST_CANARY" in told  # the reference itself may be seen
