"""What is left of a broker that was killed; how starting uses it stands in test_broker.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jmsaio.launcher import sessions
from jmsaio.launcher.errors import StartError, ToolError
from jmsaio.launcher.maven import fetch_broker

# Java and its compiler.
_TOOL = """#!{python}
import pathlib, sys
here, tool = pathlib.Path({here!r}), pathlib.Path(sys.argv[0]).name
if sys.argv[1] == "-version":
    sys.exit(print("javac 17.0.1"))
(here / "calls").open("a").write(" ".join([tool, *sys.argv[1:]]) + "\\n")
print("what", tool, "says")
sys.exit((here / f"{{tool}}-fails").exists())
"""


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A JDK that notes what it is called for; its programs fail when told so."""
    home = tmp_path / "jdk" / "bin"
    home.mkdir(parents=True)
    java, javac = home / "java", home / "javac"
    script = _TOOL.format(python=sys.executable, here=str(tmp_path))
    for tool in (java, javac):
        tool.write_text(script)
        tool.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(home.parent))
    return java


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    """The folder of the broker's jars in a cache."""
    jars = tmp_path / "broker" / "lib"
    jars.mkdir(parents=True)
    return jars


def calls(folder: Path) -> list[str]:
    noted = folder / "calls"
    return noted.read_text().splitlines() if noted.exists() else []


def left_by_a_broker(home: Path) -> Path:
    metadata = home / "data" / "metadata"
    metadata.mkdir(parents=True)
    return metadata


def test_nothing_is_left_where_no_broker_was(tmp_path: Path, java: Path, jars: Path) -> None:
    assert not sessions.end_last(tmp_path, jars)
    assert calls(tmp_path) == []


def test_one_that_ended_in_order_left_nothing_once(tmp_path: Path, java: Path, jars: Path) -> None:
    metadata = left_by_a_broker(tmp_path)
    sessions.mark_ended(tmp_path)
    assert not sessions.end_last(tmp_path, jars)
    assert calls(tmp_path) == []
    assert sessions.end_last(tmp_path, jars), "the mark was of the broker before"
    [call] = calls(tmp_path)
    assert call.startswith("java ")
    assert call.endswith(f" -cp {jars}/* {tmp_path / 'EndSessions.java'} {metadata}")


def test_a_failure_says_what_java_said(tmp_path: Path, java: Path, jars: Path) -> None:
    left_by_a_broker(tmp_path)
    (tmp_path / "java-fails").touch()
    with pytest.raises(StartError, match="what java says") as caught:
        sessions.end_last(tmp_path, jars)
    assert caught.value.log_tail == "what java says\n"
    java.unlink()
    with pytest.raises(StartError, match="can't be ended"):
        sessions.end_last(tmp_path, jars)


def test_without_a_jdk_it_is_refused(tmp_path: Path, java: Path, jars: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left_by_a_broker(tmp_path)
    java.with_name("javac").unlink()
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolError, match=r"killed.*fresh.*a JDK 17") as caught:
        sessions.end_last(tmp_path, jars)
    assert caught.value.tool == "javac"


@pytest.mark.java
def test_the_real_program_runs_from_its_source(tmp_path: Path) -> None:
    left_by_a_broker(tmp_path)
    assert sessions.end_last(tmp_path, fetch_broker())
