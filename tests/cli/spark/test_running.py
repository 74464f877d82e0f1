"""Options that commands of Spark share, and the session around a job: its errors and its line of progress."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import jmsaio.cli.spark.running
from jmsaio.cli.app import main
from jmsaio.cli.common.connecting import read_connection
from jmsaio.cli.common.output import DATA_LOSS, ERROR, USAGE
from jmsaio.cli.spark.running import read_source
from jmsaio.errors import ConfigurationError, DataLossError
from tests.cli.spark.jobs import URL, Jobs


@pytest.mark.parametrize(
    "command",
    [
        ["check"],
        ["archive", "q", "x", "--once"],
        ["replay", "x"],
        ["dlq", "report", "x"],
    ],
)
def test_without_the_extra_one_sentence_says_what_to_install(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(jmsaio.cli.spark.running, "_EXTRA", ("no_such_package",))
    assert main(["spark", *command, *URL]) == ERROR
    assert capsys.readouterr().err == "jmsaio: Spark is not installed: pip install 'jmsaio[spark]'\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["archive", "q", "folder", "--until", "2026-01-01", *URL], "--until needs --once"),
        (["archive", "q", "folder", "--interval", "0", *URL], "--interval"),
        (["archive", "q", "folder", "--once", "-u", "memory:"], "jmsaio broker start"),
        (["archive", "q", "folder", "--once", *URL, "--conf", "a"], "--conf needs NAME=VALUE"),
        (["replay", "folder", *URL, "--map-destination", "a="], "--map-destination needs A=B"),
        (["replay", "folder", *URL, "--as-new", "--dedup"], "--as-new and --dedup exclude each other"),
    ],
)
def test_wrong_usage_is_refused_before_anything_starts(
    jobs: Jobs, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["spark", *arguments]) == USAGE
    assert words in capsys.readouterr().err
    assert jobs.asked == []


def test_a_file_gives_the_options_of_the_source(tmp_path: Path) -> None:
    file = tmp_path / "broker.json"
    file.write_text(json.dumps({
        "brokerServiceUrl": "pulsar://h", "jms.usePulsarAdmin": True, "producerConfig": {"sendTimeoutMs": 5},
        "connect_timeout": 9, "authPlugin": None,
    }))  # fmt: skip
    assert read_source(read_connection(str(file), {})) == {
        "url": "pulsar://h", "jms.usePulsarAdmin": "true", "producerConfig.sendTimeoutMs": "5", "connect_timeout": "9",
    }  # fmt: skip


def test_lost_messages_have_an_exit_code_of_their_own(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    jobs.failure = DataLossError("messages from 1:0 on are lost")
    assert main(["spark", "archive", "q", "folder", "--once", *URL]) == DATA_LOSS
    assert "1:0" in capsys.readouterr().err


def test_an_error_of_spark_is_one_sentence(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    kind = type("Py4JError", (Exception,), {"__module__": "py4j.protocol"})
    jobs.failure = kind("out of memory\n\tat java.lang.Thread")
    assert main(["spark", "replay", "folder", *URL]) == ERROR
    told = "jmsaio: Spark failed: out of memory; 'jmsaio spark check' checks Java, packages and the broker"
    assert capsys.readouterr().err.startswith(told)


def test_other_errors_pass_as_they_are(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> None:
    jobs.failure = ConfigurationError("folder is no archive")
    assert main(["spark", "replay", "folder", *URL]) == USAGE
    assert "folder is no archive" in capsys.readouterr().err
