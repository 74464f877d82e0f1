"""The status file, and the lock that tells whether the broker's process lives."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

from jmsaio import config
from jmsaio.launcher import logs
from jmsaio.launcher.errors import LauncherError
from jmsaio.launcher.state import (
    BrokerStatus,
    claim,
    forget,
    is_alive,
    load,
    locked,
    log_files,
    save,
    set_aside,
)


def status(folder: Path) -> BrokerStatus:
    return BrokerStatus(
        pid=4711, broker_port=6650, web_port=8080, version="4", started_at="2025-01-01", state_directory=folder
    )


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    assert load(tmp_path) is None
    save(attrs.evolve(status(tmp_path), ready=True))
    assert load(tmp_path) == status(tmp_path), "readiness is asked anew, never remembered"
    assert [path.name for path in tmp_path.iterdir()] == ["broker.json"]
    forget(tmp_path)
    forget(tmp_path)
    assert load(tmp_path) is None


def test_urls_and_log(tmp_path: Path) -> None:
    known = status(tmp_path)
    assert known.service_url == "pulsar://127.0.0.1:6650"
    assert known.web_service_url == "http://127.0.0.1:8080"
    assert known.log_path == tmp_path / "broker.log"


def test_the_url_for_clients_is_complete(tmp_path: Path) -> None:
    """It names the REST interface unless that is where it is looked for anyway."""
    known = status(tmp_path)
    assert known.client_url() == known.service_url
    moved, wary = attrs.evolve(known, web_port=18080), attrs.evolve(known, web_port=18080, auth="token")
    assert moved.client_url() == "pulsar://127.0.0.1:6650?webServiceUrl=http://127.0.0.1:18080"
    assert config.load(moved.client_url()).web_service_url == moved.web_service_url
    assert (
        wary.client_url() == f"{moved.client_url()}&{attrs.evolve(known, auth='token').client_url().partition('?')[2]}"
    )


@pytest.mark.parametrize("text", ["", "[1]", '{"pid": 1}', '{"pid": 1, "future": 2}'])
def test_a_broken_file_is_an_error_that_names_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "broker.json").write_text(text)
    with pytest.raises(LauncherError, match=r"broker\.json can't be read"):
        load(tmp_path)


def test_the_lock_lives_as_long_as_the_process_that_inherited_it(tmp_path: Path) -> None:
    assert not is_alive(tmp_path)
    handle = claim(tmp_path)
    code = "import sys; print('up', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=(handle,)
    ) as process:
        os.close(handle)
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        assert is_alive(tmp_path)
        process.kill()
    assert not is_alive(tmp_path)


def test_only_one_can_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jmsaio.launcher.state._CLAIM_TIMEOUT", 0.0)
    handle = claim(tmp_path)
    with pytest.raises(LauncherError, match="another broker holds"):
        claim(tmp_path)
    os.close(handle)
    os.close(claim(tmp_path))


def test_lock_keeps_another_process_out_and_goes_with_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "new" / "lock"
    probe = (
        "import fcntl, sys\n"
        "try:\n    fcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
        "except BlockingIOError:\n    sys.exit(3)\n"
    )

    def other() -> int:
        return subprocess.run([sys.executable, "-c", probe, str(path)], timeout=60, check=False).returncode

    with locked(path):
        assert other() == 3
    assert other() == 0


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
    assert [path.name for path in log_files(tmp_path)] == [
        "broker.log",
        "broker.1.log",
        "broker.2.log",
        "broker.10.log",
    ]
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
