"""The end of a log."""

from __future__ import annotations

from pathlib import Path

import pytest

from jmsaio.launcher import LauncherError, logs
from jmsaio.launcher.logfile import parts, set_aside


@pytest.mark.parametrize("lines", [0, 1, 2, 3, 100])
@pytest.mark.parametrize("end", ["", "\n"])
def test_logs_have_as_many_lines_as_asked_for(tmp_path: Path, lines: int, end: str) -> None:
    (tmp_path / "broker.log").write_text("one\ntwo\nthree" + end)
    expected = ["one", "two", "three"][-lines:] if lines else []
    assert logs(lines, directory=tmp_path).splitlines() == expected


def test_logs_of_an_empty_or_broken_file(tmp_path: Path) -> None:
    (tmp_path / "broker.log").write_bytes(b"")
    assert logs(5, directory=tmp_path) == ""
    (tmp_path / "broker.log").write_bytes(b"\xff\xfebroken\n")
    assert "broken" in logs(5, directory=tmp_path)
    with pytest.raises(ValueError, match="lines must not be negative"):
        logs(-1, directory=tmp_path)


def test_logs_where_no_broker_was(tmp_path: Path) -> None:
    with pytest.raises(LauncherError, match="no broker was started"):
        logs(directory=tmp_path)


def written(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"broker{name.replace('_', '.')}.log").write_text(text)


def test_logs_go_on_in_older_files(tmp_path: Path) -> None:
    """The end of a log is found whatever file it was written to."""
    written(tmp_path, _="", _10="a\n", _2="b\nc\n", _1="d\n", _previous="of another broker\n")
    (tmp_path / "broker..log").replace(tmp_path / "broker.log")
    assert [path.name for path in parts(tmp_path)] == ["broker.log", "broker.1.log", "broker.2.log", "broker.10.log"]
    assert logs(2, directory=tmp_path) == "c\nd\n"
    assert logs(100, directory=tmp_path) == "a\nb\nc\nd\n"
    assert logs(0, directory=tmp_path) == ""


def test_of_the_last_brokers_log_the_newest_file_is_kept(tmp_path: Path) -> None:
    """A new broker's log does not grow on top of all that others wrote."""
    set_aside(tmp_path)
    assert list(tmp_path.iterdir()) == []
    written(tmp_path, _1="b\n", _2="a\n", _previous="old\n")
    (tmp_path / "broker.log").write_text("c\n")
    set_aside(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["broker.previous.log"]
    assert (tmp_path / "broker.previous.log").read_text() == "c\n"
