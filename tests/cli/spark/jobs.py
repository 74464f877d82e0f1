"""The jobs of Spark, replaced: what a command passes on, and answers of its choice."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs
import pytest

URL = ["-u", "pulsar://h"]
GROUP: dict[str, Any] = {
    "origin": "persistent://public/default/orders", "subscription": "jms-queue", "type": "tea",
    "properties": {"region": "E|U"}, "letters": 3, "bytes": 90, "redriven": 1, "first": "2026-01-01T00:00:00Z",
    "last": "2026-01-02T00:00:00Z", "oldest_age": 200_000,
    "newest_age": 60,
    "samples": [
        {"id": "ID:1:2:-1", "topic": "persistent://public/default/dead", "position": "1:2", "body": "a\n\x1bb"},
    ],
}  # fmt: skip
PARTITION = {"topic": "persistent://public/default/orders", "start": "1:0", "end": "2:5"}


@attrs.frozen
class Order:
    """An order, whatever it has: what the command passes on."""

    given: dict[str, Any]

    @classmethod
    def make(cls, **given: Any) -> Order:
        return cls(given)


Report = Callable[[dict[str, Any]], None]


@attrs.frozen
class Pace:
    entries: int | None
    interval: float | None = None


@attrs.frozen
class Finding:
    what: str
    found: str
    advice: str = ""


@attrs.define
class Jobs:
    """Stands for the jobs, which need Spark."""

    lost: list[str] = attrs.field(factory=list)
    undecodable: int = 0
    stopped: str = ""
    groups: list[dict[str, Any]] = attrs.field(factory=lambda: [dict(GROUP)])
    left: dict[str, int] = attrs.field(factory=dict)
    unseen: list[str] = attrs.field(factory=list)
    driver: list[Finding] = attrs.field(factory=lambda: [Finding("java", "/usr/bin/java")])
    worker: list[Finding] = attrs.field(factory=lambda: [Finding("worker", "python")])
    failure: Exception | None = None
    more: dict[str, Any] = attrs.field(factory=dict)
    early: signal.Signals | None = None
    signal: signal.Signals = signal.SIGINT
    asked: list[Any] = attrs.field(factory=list)
    orders: list[dict[str, Any]] = attrs.field(factory=list)

    @contextmanager
    def open_session(self, master: str, settings: dict[str, str]) -> Iterator[str]:
        self.asked.append((master, settings))
        if self.failure is not None:
            raise self.failure
        if self.early is not None:
            os.kill(os.getpid(), self.early)
        yield "session"

    def check_session(self, session: str, options: dict[str, str]) -> list[Finding]:
        self.asked.append(options)
        return self.worker

    def archive(
        self, session: str, order: Order, pace: Pace, *, stop: Callable[[], bool], report: Report
    ) -> dict[str, Any]:  # fmt: skip
        self.orders.append(order.given)
        assert session == "session"
        self.asked.append(pace)
        if pace.interval is None:
            assert stop() is (self.early is not None)
            report({"run": 1, "rows": 7})
        else:
            self.go_on(stop, report)
        return {
            "job": "archive", "rows": 7, "lost": self.lost,
            "partitions": [{"topic": PARTITION["topic"], "place": "2:5"}], **self.more,
            **({"stopped": self.stopped} if self.stopped else {}),
        }  # fmt: skip

    def go_on(self, stop: Callable[[], bool], report: Report) -> None:
        """Report a run, and go on until a signal."""
        report({"run": 1, "rows": 7})
        os.kill(os.getpid(), self.signal)
        end = time.monotonic() + 10
        while not stop() and time.monotonic() < end:
            time.sleep(0.001)
        assert stop()

    def describe_archive(self, order: Order) -> dict[str, Any]:
        self.orders.append(order.given)
        return {
            "job": "archive", "dry_run": True, "entries": 3, "bytes": 500,
            "partitions": [{**PARTITION, "entries": 3, "bytes": 500}],
        }  # fmt: skip

    def replay(self, session: str, order: Order, *, dry_run: bool) -> dict[str, Any]:
        assert session == "session"
        self.orders.append(order.given)
        moved = {"source": "queue://orders", "target": "queue://copy", "rows": 4}
        return {"job": "replay", "rows": 4, "undecodable": self.undecodable, "destinations": [moved]}

    def report_dead_letters(self, session: str, order: Order) -> dict[str, Any]:
        self.orders.append(order.given)
        return {
            "job": "dlq report", "letters": 3 if self.groups else 0, "bytes": 90, "redriven": 1, "groups": self.groups,
            "letters_of_other_groups": 0,
        }  # fmt: skip


def last(capsys: pytest.CaptureFixture[str]) -> Any:
    """The summary: the last line."""
    return json.loads(capsys.readouterr().out.splitlines()[-1])
