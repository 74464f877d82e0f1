"""Commands of Spark without Spark."""

from __future__ import annotations

import asyncio
import sys
from types import SimpleNamespace

import pytest

import jmsaio.cli.spark.running
from tests.cli.spark.jobs import Finding, Jobs, Order, Pace


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Jobs:
    jobs = Jobs()
    modules = {
        "session": SimpleNamespace(
            open_session=jobs.open_session,
        ),
        "jobs.archive": SimpleNamespace(
            describe_archive=jobs.describe_archive,
            archive=jobs.archive,
            ArchiveOrder=Order.make,
            Pace=Pace,
            pace_text=lambda record: f"{record['run']} runs",
            subscription_of=lambda folder: f"own {folder}",
        ),
        "jobs.replay": SimpleNamespace(ReplayOrder=Order.make, replay=jobs.replay),
        "jobs.dead_letters": SimpleNamespace(
            ReportOrder=Order.make,
            report_dead_letters=jobs.report_dead_letters,
        ),
        "worker": SimpleNamespace(call_broker=lambda options, call: asyncio.run(call("transport", "configuration"))),
        "jobs.check": SimpleNamespace(
            Finding=Finding,
            check_driver=lambda: list(jobs.driver),
            check_session=jobs.check_session,
        ),
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, f"jmsaio.spark.{name}", module)
    monkeypatch.setattr(jmsaio.cli.spark.running, "_EXTRA", ())
    return jobs
