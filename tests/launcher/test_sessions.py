"""What is left of a broker that was killed; how starting uses it stands in test_broker.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jmsaio.launcher import sessions
from jmsaio.launcher.errors import StartError, ToolError


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Java that notes how it is called, and fails when told so."""
    home = tmp_path / "jdk" / "bin"
    home.mkdir(parents=True)
    java, javac = home / "java", home / "javac"
    java.write_text(
        f"#!{sys.executable}\nimport pathlib, sys\nhere = pathlib.Path({str(tmp_path)!r})\n"
        "(here / 'calls').open('a').write(' '.join(sys.argv[1:]) + '\\n')\n"
        "print('what Java says')\nsys.exit((here / 'fails').exists())\n"
    )
    javac.write_text("#!/bin/sh\necho javac 17.0.1\n")
    for tool in (java, javac):
        tool.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(home.parent))
    return java


def calls(folder: Path) -> list[str]:
    noted = folder / "calls"
    return noted.read_text().splitlines() if noted.exists() else []


def left_by_a_broker(home: Path) -> Path:
    metadata = home / "data" / "metadata"
    metadata.mkdir(parents=True)
    return metadata


def test_nothing_is_left_where_no_broker_was(tmp_path: Path, java: Path) -> None:
    assert not sessions.end_last(tmp_path, java, tmp_path)
    assert calls(tmp_path) == []


def test_one_that_ended_in_order_left_nothing_once(tmp_path: Path, java: Path) -> None:
    metadata = left_by_a_broker(tmp_path)
    sessions.mark_ended(tmp_path)
    assert not sessions.end_last(tmp_path, java, tmp_path / "jars")
    assert calls(tmp_path) == []
    assert sessions.end_last(tmp_path, java, tmp_path / "jars"), "the mark was of the broker before"
    [call] = calls(tmp_path)
    assert call.startswith(f"-cp {tmp_path / 'jars'}/* ")
    assert call.endswith(f"EndSessions.java {metadata}")


def test_a_failure_says_what_java_said(tmp_path: Path, java: Path) -> None:
    left_by_a_broker(tmp_path)
    (tmp_path / "fails").touch()
    with pytest.raises(StartError, match="what Java says") as caught:
        sessions.end_last(tmp_path, java, tmp_path)
    assert caught.value.log_tail == "what Java says\n"
    java.unlink()
    with pytest.raises(StartError, match="can't be ended"):
        sessions.end_last(tmp_path, java, tmp_path)


def test_without_a_jdk_it_is_refused(tmp_path: Path, java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left_by_a_broker(tmp_path)
    java.with_name("javac").unlink()
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolError, match="a JDK 17"):
        sessions.end_last(tmp_path, java, tmp_path)
