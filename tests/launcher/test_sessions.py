"""What is left of a broker that was killed; how starting uses it stands in test_broker.py."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jmsaio.launcher import sessions, tools
from jmsaio.launcher.errors import StartError, ToolError
from jmsaio.launcher.maven import fetch_broker

# Java and its compiler.
_TOOL = """#!{python}
import pathlib, sys
here, tool = pathlib.Path({here!r}), pathlib.Path(sys.argv[0]).name
if sys.argv[1] == "-version":
    sys.exit(print("javac 17.0.1"))
(here / "calls").open("a").write(" ".join([tool, *sys.argv[1:]]) + "\\n")
if tool == "javac":
    classes = pathlib.Path(sys.argv[sys.argv.index("-d") + 1])
    classes.mkdir()
    (classes / "EndSessions.class").write_text(pathlib.Path(sys.argv[-1]).read_text())
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


def compiled(jars: Path) -> list[Path]:
    return sorted(path for path in jars.parent.iterdir() if path.is_dir() and path != jars)


def left_by_a_broker(home: Path) -> Path:
    metadata = home / "data" / "metadata"
    metadata.mkdir(parents=True)
    return metadata


def test_nothing_is_left_where_no_broker_was(tmp_path: Path, java: Path, jars: Path) -> None:
    assert not sessions.end_last(tmp_path, java, jars)
    assert calls(tmp_path) == []


def test_one_that_ended_in_order_left_nothing_once(tmp_path: Path, java: Path, jars: Path) -> None:
    metadata = left_by_a_broker(tmp_path)
    sessions.mark_ended(tmp_path)
    assert not sessions.end_last(tmp_path, java, jars)
    assert calls(tmp_path) == []
    assert sessions.end_last(tmp_path, java, jars), "the mark was of the broker before"
    [classes] = compiled(jars)
    _, call = calls(tmp_path)
    assert call.startswith("java ")
    assert call.endswith(f" -cp {classes}:{jars}/* EndSessions {metadata}")


def test_the_program_is_compiled_once_for_each_text_of_it(
    tmp_path: Path, java: Path, jars: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_by_a_broker(tmp_path)
    for _ in range(2):
        assert sessions.end_last(tmp_path, java, jars)
    assert [call.split()[0] for call in calls(tmp_path)] == ["javac", "java", "java"]
    [first] = compiled(jars)
    monkeypatch.setattr(sessions, "data_text", lambda name: f"another {name}")
    assert sessions.end_last(tmp_path, java, jars)
    [other] = set(compiled(jars)) - {first}
    assert (other / "EndSessions.class").read_text() == "another EndSessions.java"
    assert f"{other}:" in calls(tmp_path)[-1]


def test_two_at_once_compile_it_once(tmp_path: Path, java: Path, jars: Path) -> None:
    homes = [tmp_path / name for name in ("one", "two", "three")]
    for home in homes:
        left_by_a_broker(home)
    with ThreadPoolExecutor() as pool:
        assert all(pool.map(lambda home: sessions.end_last(home, java, jars), homes))
    assert sorted(call.split()[0] for call in calls(tmp_path)) == ["java", "java", "java", "javac"]
    assert len(compiled(jars)) == 1


def test_a_compiler_that_fails_says_why_and_leaves_nothing(tmp_path: Path, java: Path, jars: Path) -> None:
    left_by_a_broker(tmp_path)
    (tmp_path / "javac-fails").touch()
    with pytest.raises(StartError, match="what javac says"):
        sessions.end_last(tmp_path, java, jars)
    assert compiled(jars) == []
    (tmp_path / "javac-fails").unlink()
    assert sessions.end_last(tmp_path, java, jars)


def test_a_failure_says_what_java_said(tmp_path: Path, java: Path, jars: Path) -> None:
    left_by_a_broker(tmp_path)
    (tmp_path / "java-fails").touch()
    with pytest.raises(StartError, match="what java says") as caught:
        sessions.end_last(tmp_path, java, jars)
    assert caught.value.log_tail == "what java says\n"
    java.unlink()
    with pytest.raises(StartError, match="can't be ended"):
        sessions.end_last(tmp_path, java, jars)


def test_without_a_jdk_it_is_refused_until_it_was_compiled(
    tmp_path: Path, java: Path, jars: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_by_a_broker(tmp_path)
    javac = java.with_name("javac")
    javac.rename(java.with_name("hidden"))
    monkeypatch.setenv("PATH", "")
    for _ in range(2):
        with pytest.raises(ToolError, match=r"killed.*fresh.*a JDK 17") as caught:
            sessions.end_last(tmp_path, java, jars)
        assert caught.value.tool == "javac"
    java.with_name("hidden").rename(javac)
    assert sessions.end_last(tmp_path, java, jars)
    javac.unlink()
    assert sessions.end_last(tmp_path, java, jars)


@pytest.mark.java
def test_the_real_program_runs_as_it_was_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice on an empty store, the second time without a compiler."""
    jars = tmp_path / "broker" / "lib"
    jars.parent.mkdir()
    jars.symlink_to(fetch_broker())
    left_by_a_broker(tmp_path)
    java = tools.find("java")
    assert sessions.end_last(tmp_path, java, jars)
    monkeypatch.setattr(sessions, "_compiler", lambda: pytest.fail("it is compiled already"))
    assert sessions.end_last(tmp_path, java, jars)
