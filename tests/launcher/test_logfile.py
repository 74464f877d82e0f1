"""The end of a log, and a log that grows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from jmsaio.launcher import LauncherError, follow, logs
from jmsaio.launcher.logfile import tail
from jmsaio.launcher.state import claim


@pytest.mark.parametrize("lines", [0, 1, 2, 3, 100])
@pytest.mark.parametrize("end", ["", "\n"])
def test_tail(tmp_path: Path, lines: int, end: str) -> None:
    path = tmp_path / "log"
    path.write_text("one\ntwo\nthree" + end)
    expected = ["one", "two", "three"][-lines:] if lines else []
    assert tail(path, lines).splitlines() == expected


def test_tail_reads_over_block_borders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jmsaio.launcher.logfile._BLOCK", 7)
    path = tmp_path / "log"
    path.write_text("".join(f"line {number} ä\n" for number in range(100)))
    assert tail(path, 3) == "line 97 ä\nline 98 ä\nline 99 ä\n"


def test_tail_of_nothing(tmp_path: Path) -> None:
    assert tail(tmp_path / "log", 5) == ""
    (tmp_path / "log").write_bytes(b"")
    assert tail(tmp_path / "log", 5) == ""
    (tmp_path / "log").write_bytes(b"\xff\xfebroken\n")
    assert "broken" in tail(tmp_path / "log", 5)
    with pytest.raises(ValueError, match="lines must not be negative"):
        tail(tmp_path / "log", -1)


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
