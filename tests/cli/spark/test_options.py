"""Options that commands of Spark share."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import jmsaio.cli.spark.options
from jmsaio.cli.app import main
from jmsaio.cli.common.output import ERROR, USAGE
from jmsaio.cli.spark.options import read_source
from tests.cli.spark.jobs import URL, Jobs


@pytest.mark.parametrize(
    "command",
    [
        ["check"],
        ["archive", "q", "x", "--once"],
        ["replay", "x"],
        ["dlq", "report", "x"],
        ["cleanup", "x", "--all"],
    ],
)
def test_without_the_extra_one_sentence_says_what_to_install(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(jmsaio.cli.spark.options, "_EXTRA", ("no_such_package",))
    assert main(["spark", *command]) == ERROR
    assert capsys.readouterr().err == "jmsaio: Spark is not installed: pip install 'jmsaio[spark]'\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["archive", "q", "folder", "--until", "2026-01-01", *URL], "--until needs --once"),
        (["archive", "q", "folder", "--interval", "0", *URL], "--interval"),
        (["archive", "q", "folder", "--once", "-u", "memory:"], "jmsaio broker start"),
        (["archive", "q", "folder", "--once", *URL, "--conf", "a"], "--conf needs A=B"),
        (["replay", "folder", *URL, "--map-destination", "a="], "--map-destination needs A=B"),
        (["replay", "folder", *URL, "--rate", "0"], "--rate"),
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
        "connect_timeout": 9,
    }))  # fmt: skip
    assert read_source(str(file), ()) == {
        "url": "pulsar://h", "jms.usePulsarAdmin": "true", "producerConfig.sendTimeoutMs": "5", "connect_timeout": "9",
    }  # fmt: skip
