"""``jmsaio spark``: arguments, output and exit codes. The jobs themselves have their tests where Spark is installed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

import jmsaio.cli.spark.archive
from jmsaio.cli.app import main
from jmsaio.cli.exits import DATA_LOSS, ERROR, OK, PARTLY, USAGE
from jmsaio.cli.spark.archive import read_source
from jmsaio.errors import ConfigurationError, DataLossError

URL = ["-u", "pulsar://h"]
PARTITION = {"topic": "persistent://public/default/orders", "start": "1:0", "end": "2:5"}


@attrs.frozen
class Order:
    """An order, whatever it has: what the command passes on."""

    given: dict[str, Any]

    @classmethod
    def make(cls, **given: Any) -> Order:
        return cls(given)


@attrs.frozen
class Finding:
    what: str
    found: str
    advice: str = ""


@attrs.define
class Jobs:
    """Stands for the jobs, which need Spark."""

    lost: list[str] = attrs.field(factory=list)
    problems: list[str] = attrs.field(factory=list)
    undecodable: int = 0
    stopped: str = ""
    driver: list[Finding] = attrs.field(factory=lambda: [Finding("java", "/usr/bin/java")])
    worker: list[Finding] = attrs.field(factory=lambda: [Finding("worker", "python")])
    failure: Exception | None = None
    asked: list[Any] = attrs.field(factory=list)
    orders: list[dict[str, Any]] = attrs.field(factory=list)

    @contextmanager
    def open_session(self, master: str, settings: dict[str, str]) -> Iterator[str]:
        self.asked.append((master, settings))
        if self.failure is not None:
            raise self.failure
        yield "session"

    def tasks_done(self, session: str) -> tuple[int, int]:
        return 1, 2

    def check_session(self, session: str, connection: dict[str, str]) -> list[Finding]:
        self.asked.append(connection)
        return self.worker

    def archive_range(self, session: str, order: Order) -> dict[str, Any]:
        self.orders.append(order.given)
        return {
            "job": "archive", "rows": 7, "files": 2, "archived": 9, "lost": self.lost,
            "partitions": [{**PARTITION, "rows": 7}],
        }  # fmt: skip

    def archive_once(self, session: str, order: Order, entries: int) -> dict[str, Any]:
        self.asked.append(entries)
        return {**self.archive_range(session, order), **({"stopped": self.stopped} if self.stopped else {})}

    def describe_archive(self, order: Order) -> dict[str, Any]:
        self.orders.append(order.given)
        return {
            "job": "archive", "dry_run": True, "entries": 3, "bytes": 500, "lost": self.lost,
            "partitions": [{**PARTITION, "entries": 3, "bytes": 500}],
        }  # fmt: skip

    def verify(self, session: str, folder: Path) -> dict[str, Any]:
        self.asked.append(folder)
        return {"job": "verify", "rows": 9, "problems": self.problems, "lost": []}

    def replay(self, session: str, order: Order, *, dry_run: bool) -> dict[str, Any]:
        self.orders.append(order.given)
        moved = {"source": "queue://orders", "target": "queue://copy", "rows": 4}
        return {"job": "replay", "rows": 4, "undecodable": self.undecodable, "destinations": [moved]}


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Jobs:
    jobs = Jobs()
    modules = {
        "session": SimpleNamespace(open_session=jobs.open_session, tasks_done=jobs.tasks_done),
        "jobs.archive": SimpleNamespace(archive_range=jobs.archive_range, describe_archive=jobs.describe_archive),
        "jobs.streaming": SimpleNamespace(archive_once=jobs.archive_once),
        "jobs.extent": SimpleNamespace(ArchiveOrder=Order.make),
        "jobs.verify": SimpleNamespace(verify=jobs.verify),
        "jobs.replay": SimpleNamespace(ReplayOrder=Order.make, replay=jobs.replay),
        "jobs.check": SimpleNamespace(
            Finding=Finding, check_driver=lambda: list(jobs.driver), check_session=jobs.check_session
        ),
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, f"jmsaio.spark.{name}", module)
    monkeypatch.setattr(jmsaio.cli.spark.archive, "_EXTRA", ())
    return jobs


def last(capsys: pytest.CaptureFixture[str]) -> Any:
    """The summary: the last line."""
    return json.loads(capsys.readouterr().out.splitlines()[-1])


@pytest.mark.parametrize("command", [["check"], ["archive", "q", "x", "--range"], ["verify", "x"], ["replay", "x"]])
def test_without_the_extra_one_sentence_says_what_to_install(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(jmsaio.cli.spark.archive, "_EXTRA", ("no_such_package",))
    assert main(["spark", *command]) == ERROR
    assert capsys.readouterr().err == "jmsaio: Spark is not installed: pip install 'jmsaio[spark]'\n"


def test_the_group_alone_shows_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spark"]) == OK
    output = capsys.readouterr().out
    assert all(name in output for name in ("archive", "check", "replay", "verify"))


def test_a_range_is_archived_with_what_was_asked_for(
    jobs: Jobs, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = ["spark", "archive", "orders", str(tmp_path), "--range", *URL, "-o", "webServiceUrl=http://h", "--json"]
    filters = ["--selector", "a = 1", "--since", "2026-01-01", "--until", "2026-02-01"]
    assert main([*arguments, *filters, "--master", "local[4]", "--conf", "a.b=c"]) == OK
    assert last(capsys)["rows"] == 7
    assert jobs.asked == [("local[4]", {"a.b": "c"})]
    assert jobs.orders == [
        {
            "connection": {"url": "pulsar://h", "webServiceUrl": "http://h", "connect_timeout": "3.0"},
            "destination": "queue://orders", "folder": tmp_path, "selector": "a = 1", "since": "2026-01-01",
            "until": "2026-02-01", "fail_on_data_loss": True,
        }
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "destination"),
    [(["orders"], "queue://orders"), (["-t", "news"], "topic://news"), (["-t", "queue://q"], "queue://q")],
)
def test_a_destination_is_a_queue_unless_it_says_otherwise(
    jobs: Jobs, arguments: list[str], destination: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["spark", "archive", *arguments, "folder", "--range", *URL]) == OK
    assert jobs.orders[0]["destination"] == destination


def test_an_archive_in_text_names_partitions_and_losses(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    jobs.lost = ["1:0 is gone"]
    assert main(["spark", "archive", "q", "folder", "--range", "--accept-loss", *URL, "--no-json"]) == DATA_LOSS
    assert capsys.readouterr().out.splitlines() == [
        "persistent://public/default/orders: 1:0 to 2:5, 7 messages",
        "lost: 1:0 is gone",
        "7 messages archived in 2 files, 9 in all",
    ]
    assert jobs.orders[0]["fail_on_data_loss"] is False


def test_runs_that_were_kept_before_a_failure_are_told(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["spark", "archive", "q", "folder", "--once", "--entries", "50", *URL, "--no-json"]
    assert main(arguments) == OK
    assert jobs.asked[1] == 50
    jobs.stopped = "no space left"
    assert main(arguments) == PARTLY
    line = capsys.readouterr().out.splitlines()[-1]
    assert line == "7 messages archived in 2 files, 9 in all; stopped, the same command goes on: no space left"


def test_a_dry_run_starts_no_session(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spark", "archive", "q", "folder", "--range", "--dry-run", *URL, "--no-json"]) == OK
    assert capsys.readouterr().out.splitlines() == [
        "persistent://public/default/orders: 1:0 to 2:5, 3 entries",
        "3 entries, about 500 bytes to archive",
    ]
    assert jobs.asked == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["archive", "q", "folder", *URL], "give --range"),
        (["archive", "q", "folder", "--range", "--once", *URL], "give --range or --once"),
        (["archive", "q", "folder", "--range", "-u", "memory:"], "jmsaio broker start"),
        (["archive", "q", "folder", "--range", *URL, "--conf", "a"], "--conf needs A=B"),
        (["replay", "folder", *URL, "--map-destination", "a="], "--map-destination needs A=B"),
        (["replay", "folder", *URL, "--rate", "0"], "--rate"),
    ],
)
def test_wrong_usage_is_refused_before_anything_starts(
    jobs: Jobs, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["spark", *arguments]) == USAGE
    assert words in capsys.readouterr().err
    assert jobs.asked == []


def test_lost_messages_have_an_exit_code_of_their_own(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    jobs.failure = DataLossError("messages from 1:0 on are lost")
    assert main(["spark", "archive", "q", "folder", "--range", *URL]) == DATA_LOSS
    assert "1:0" in capsys.readouterr().err


def test_an_archive_is_verified_and_problems_are_told(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spark", "verify", "folder", "--no-json"]) == OK
    assert capsys.readouterr().out == "9 messages, all there\n"
    jobs.problems = ["t: 2 of 9 rows are missing"]
    assert main(["spark", "verify", "folder", "--no-json"]) == DATA_LOSS
    assert capsys.readouterr().out.splitlines() == ["t: 2 of 9 rows are missing", "9 messages, 1 problems"]
    assert main(["spark", "verify", "folder", "--json"]) == DATA_LOSS
    assert last(capsys)["problems"] == jobs.problems
    assert jobs.asked[1] == Path("folder")


def test_an_archive_is_replayed_where_it_was_mapped_to(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["spark", "replay", "folder", *URL, "--map-destination", "orders=copy", "--rate", "10", "--no-json"]
    assert main(arguments) == OK
    assert capsys.readouterr().out.splitlines() == ["queue://orders to queue://copy: 4", "4 messages sent"]
    order = jobs.orders[0]
    assert (order["mapping"], order["rate"], order["allow_same"]) == ({"orders": "copy"}, 10.0, False)
    jobs.undecodable = 2
    assert main([*arguments, "--dry-run"]) == PARTLY
    assert "4 messages to send, 2 left out" in capsys.readouterr().out


def test_a_check_says_of_each_thing_whether_it_is_there(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spark", "check", *URL, "--no-json"]) == OK
    assert capsys.readouterr().out.splitlines() == ["ok    java: /usr/bin/java", "ok    worker: python", "all is there"]
    assert jobs.asked[1] == {"brokerServiceUrl": "pulsar://h", "connect_timeout": "3.0"}
    jobs.worker = [Finding("pyarrow on the worker", "missing", "install it")]
    assert main(["spark", "check", *URL, "--json"]) == ERROR
    summary = last(capsys)
    assert summary["ok"] is False
    assert summary["findings"][1] == {"what": "pyarrow on the worker", "found": "missing", "advice": "install it"}


def test_a_check_that_fails_early_starts_no_session(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    jobs.driver = [Finding("java", "missing", "install Java 17")]
    assert main(["spark", "check", *URL, "--no-json"]) == ERROR
    assert "FAIL  java: install Java 17" in capsys.readouterr().out
    assert jobs.asked == []


def test_a_session_that_does_not_start_is_a_finding(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    jobs.failure = RuntimeError("\nJava gateway process exited\nmore")
    assert main(["spark", "check", *URL, "--no-json"]) == ERROR
    assert "session: Spark did not start at local[2]: Java gateway process exited; see" in capsys.readouterr().out


def test_an_error_of_spark_is_one_sentence(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    kind = type("Py4JError", (Exception,), {"__module__": "py4j.protocol"})
    jobs.failure = kind("out of memory\n\tat java.lang.Thread")
    assert main(["spark", "verify", "folder"]) == ERROR
    assert capsys.readouterr().err.startswith("jmsaio: Spark failed: out of memory; 'jmsaio spark check'")


def test_other_errors_pass_as_they_are(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    jobs.failure = ConfigurationError("folder is no archive")
    assert main(["spark", "verify", "folder"]) == USAGE
    assert "folder is no archive" in capsys.readouterr().err


def test_a_file_gives_the_options_of_the_source(tmp_path: Path) -> None:
    file = tmp_path / "broker.json"
    file.write_text(json.dumps({
        "brokerServiceUrl": "pulsar://h", "jms.usePulsarAdmin": True, "producerConfig": {"sendTimeoutMs": 5},
        "connect_timeout": 9,
    }))  # fmt: skip
    assert read_source(str(file), ()) == {
        "url": "pulsar://h", "jms.usePulsarAdmin": "true", "producerConfig.sendTimeoutMs": "5", "connect_timeout": "9",
    }  # fmt: skip


def test_the_line_of_progress_counts_tasks_while_spark_says() -> None:
    counts = iter([(1, 2), (0, 0)])
    column = jmsaio.cli.spark.archive._Tasks(lambda: next(counts))
    texts = [str(column.render(None)) for _ in range(3)]  # the third call fails
    assert texts == ["1 of 2 tasks", "", ""]
