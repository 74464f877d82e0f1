"""The end of a log, and a log that grows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from jmsaio.launcher import LauncherError, follow, logs
from jmsaio.launcher.logfile import parts, set_aside
from jmsaio.launcher.state import claim


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
    with pytest.raises(LauncherError, match="no broker was started"):
        next(follow(directory=tmp_path))


def test_follow_gives_old_lines_then_new_ones_until_the_broker_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "broker.log"
    path.write_text("a\nb\nc\n")
    handle = claim(tmp_path)  # stands for a broker that runs
    steps: Iterator[str] = iter(["d\ne", "e\n", "last", ""])

    def grow(_: float) -> None:
        text = next(steps)
        with path.open("a") as file:
            file.write(text)
        if text == "last":
            os.close(handle)

    monkeypatch.setattr("time.sleep", grow)
    assert list(follow(2, directory=tmp_path)) == ["b", "c", "d", "ee", "last"]


def test_follow_of_a_broker_that_has_ended_ends(tmp_path: Path) -> None:
    (tmp_path / "broker.log").write_text("a\nb\n")
    assert list(follow(1, directory=tmp_path)) == ["b"]


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


def test_follow_goes_on_in_the_next_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line is missed or repeated when the broker begins new files, one or several between two looks."""
    log, first, second = (tmp_path / name for name in ("broker.log", "broker.1.log", "broker.2.log"))
    log.write_text("a\n")
    handle = claim(tmp_path)  # stands for a broker that runs

    def append(text: str) -> None:
        with log.open("a") as file:
            file.write(text)

    def rotate() -> None:
        if first.exists():
            first.replace(second)
        log.replace(first)

    def half() -> None:  # between its two steps
        append("b\n")
        rotate()

    def twice() -> None:
        for text in ("d\n", "e\n"):
            append(text)
            rotate()
        append("f\n")
        os.close(handle)

    steps = iter([half, lambda: append("c\n"), twice])
    monkeypatch.setattr("time.sleep", lambda _: next(steps, lambda: None)())
    assert list(follow(1, directory=tmp_path)) == ["a", "b", "c", "d", "e", "f"]


def test_of_the_last_brokers_log_the_newest_file_is_kept(tmp_path: Path) -> None:
    """A new broker's log does not grow on top of all that others wrote."""
    set_aside(tmp_path)
    assert list(tmp_path.iterdir()) == []
    written(tmp_path, _1="b\n", _2="a\n", _previous="old\n")
    (tmp_path / "broker.log").write_text("c\n")
    set_aside(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["broker.previous.log"]
    assert (tmp_path / "broker.previous.log").read_text() == "c\n"
