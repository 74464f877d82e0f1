"""Java and Maven are found, their versions understood, and what is missing is said in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from jmsaio.launcher.errors import ToolError
from jmsaio.launcher.tools import find, missing, parse_version, require


def fake(folder: Path, name: str, text: str, code: int = 0) -> Path:
    """A command that prints a text."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\nexit {code}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', (17, 0, 15)),
        ('java version "1.8.0_381"', (8, 0)),
        ('openjdk version "21" 2023-09-19', (21,)),
        ('openjdk version "25-ea" 2025-09-16', (25,)),
        ("javac 17.0.15", (17, 0, 15)),
        ("javac 1.8.0_381", (8, 0)),
        ("\x1b[1mApache Maven 3.8.7\x1b[m\nMaven home: /usr/share/maven", (3, 8, 7)),
        ("Apache Maven 4.0.0-rc-1 (x)", (4, 0, 0)),
        ("no such thing", None),
    ],
)
def test_the_version_is_read_from_what_the_tools_print(text: str, version: tuple[int, ...] | None) -> None:
    assert parse_version(text) == version


def set_environ(monkeypatch: pytest.MonkeyPatch, **variables: Path | str) -> None:
    """Set what the tools are found by."""
    for name in ("JAVA_HOME", "MAVEN_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, str(value))


def test_home_comes_before_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = fake(tmp_path / "home" / "bin", "java", 'openjdk version "17.0.1"')
    path = fake(tmp_path / "path", "java", 'openjdk version "21.0.1"')
    set_environ(monkeypatch, JAVA_HOME=tmp_path / "home", PATH=tmp_path / "path")
    assert find("java") == home
    set_environ(monkeypatch, JAVA_HOME=tmp_path / "gone")
    assert find("java") == path
    set_environ(monkeypatch)
    assert find("java") == path


def test_missing_tool_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_environ(monkeypatch, PATH=tmp_path)
    with pytest.raises(ToolError, match=r"Apache Maven 3\.2\.5 or newer is needed, .*'mvn' was not found") as caught:
        require("mvn")
    assert caught.value.tool == "mvn"


def test_too_old_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path, "java", 'openjdk version "11.0.2"')
    fake(tmp_path, "mvn", "Apache Maven 3.0.5")
    set_environ(monkeypatch, PATH=f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(ToolError, match=r"Java 17 or newer is needed, but .* is version 11"):
        require("java")
    with pytest.raises(ToolError, match=r"is version 3\.0\.5"):
        require("mvn")


def test_a_stub_that_tells_nothing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path, "java", "The operation couldn't be completed. Unable to locate a Java Runtime.", 1)
    set_environ(monkeypatch, PATH=f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(ToolError, match=r"does not report its version: .*Unable to locate"):
        require("java")


def test_a_file_that_can_not_run_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "java").write_bytes(b"\x7fELF broken")
    (tmp_path / "java").chmod(0o755)
    set_environ(monkeypatch, PATH=tmp_path)
    with pytest.raises(ToolError, match="can't be run"):
        require("java")


def test_missing_lists_one_sentence_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path, "java", 'openjdk version "17.0.2"')
    set_environ(monkeypatch, PATH=f"{tmp_path}:/usr/bin:/bin", JAVA_HOME=tmp_path)
    assert missing("java") == []
    set_environ(monkeypatch, PATH=tmp_path)
    sentences = missing("java", "javac", "mvn")
    assert len(sentences) == 3  # the fake java needs a shell that this path does not have
