"""``jmsaio broker``: what it asks of the launcher, and what it shows. The launcher's own tests start real brokers."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from jmsaio import launcher
from jmsaio.cli import main
from jmsaio.launcher import BrokerStatus, LauncherError, StartOptions, ToolError

STATUS = BrokerStatus(12, 6650, 8080, "4.0.7", "2026-01-01T00:00:00+00:00", Path("/state"), ready=True)


@attrs.define
class Calls:
    """Records what the launcher is asked for, and answers."""

    asked: list[Any] = attrs.field(factory=list)
    running: BrokerStatus | None = STATUS

    def start(self, options: StartOptions, progress: Callable[[str], None]) -> BrokerStatus:
        self.asked.append(options)
        progress("downloading [1/2]")
        return STATUS

    def stop(self, timeout: float, *, directory: Path | None) -> bool:
        self.asked.append((timeout, directory))
        return self.running is not None

    def status(self, *, directory: Path | None) -> BrokerStatus | None:
        self.asked.append(directory)
        return self.running


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    found = Calls()
    for name in ("start", "stop", "status"):
        monkeypatch.setattr(launcher, name, getattr(found, name))
    return found


def test_start_passes_the_options_and_prints_the_status(
    calls: Calls, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = ["broker", "start", "--port", "0", "--fresh", "--no-filter", "--dir", str(tmp_path), "-o", "a=b=c"]
    assert main(arguments) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["service_url"], record["ready"], record["pid"]) == ("pulsar://127.0.0.1:6650", True, 12)
    (options,) = calls.asked
    assert (options.broker_port, options.fresh, options.filters, options.state_directory) == (0, True, False, tmp_path)
    assert options.settings == {"a": "b=c"}
    assert main(["broker", "start", "--no-json"]) == 0
    output = capsys.readouterr()
    assert "export JMSAIO_URL=pulsar://127.0.0.1:6650" in output.out
    assert "downloading [1/2]" in output.err


def test_what_is_printed_connects_to_this_broker(
    calls: Calls, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a REST interface that is not at the default port: quoted for a shell, and as it is in JSON."""
    monkeypatch.setattr("tests.cli.test_broker.STATUS", attrs.evolve(STATUS, web_port=18080))
    url = "pulsar://127.0.0.1:6650?webServiceUrl=http://127.0.0.1:18080"
    assert main(["broker", "start", "--no-json"]) == 0
    output = capsys.readouterr().out
    assert f"export JMSAIO_URL='{url}'" in output
    assert output.count("pulsar://") == output.count(url) == 2
    assert main(["broker", "start", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["url"] == url


def test_a_broker_with_tokens_is_used_with_the_file_of_one(
    calls: Calls, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.cli.test_broker.STATUS", attrs.evolve(STATUS, auth="token"))
    assert main(["broker", "start", "--auth", "token", "--no-json"]) == 0
    assert calls.asked[0].auth == "token"
    output = capsys.readouterr().out
    url = "pulsar://127.0.0.1:6650?authPlugin=token&authParams=file:///state/auth/app.token"
    assert f"export JMSAIO_URL='{url}'" in output
    assert "token of admin   /state/auth/admin.token" in output
    assert main(["broker", "start", "--auth", "token", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["url"] == url
    assert record["tokens"]["guest"] == "/state/auth/guest.token"


def test_stop_and_status(calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["broker", "stop", "--timeout", "0"]) == 0
    assert main(["broker", "status", "--no-json"]) == 0
    assert "Pulsar 4.0.7 is ready" in capsys.readouterr().out
    calls.running = None
    assert main(["broker", "stop", "--no-json"]) == 3
    assert main(["broker", "status", "--no-json"]) == 3
    assert "jmsaio broker start" in capsys.readouterr().out
    assert main(["broker", "status"]) == 3
    assert json.loads(capsys.readouterr().out) == {"running": False}


def test_logs_are_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(launcher, "logs", lambda lines, *, directory: f"{lines} lines\n")
    assert main(["broker", "logs", "-n", "3"]) == 0
    assert capsys.readouterr().out == "3 lines\n"


def test_filter_prints_where_the_archive_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(launcher, "pack_filter", lambda folder, progress: folder / "jms.nar")
    assert main(["broker", "filter", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out) == {"file": str(tmp_path / "jms.nar")}


@pytest.mark.parametrize("error", [ToolError("Java is missing", "java"), LauncherError("no"), ValueError("memory")])
def test_errors_are_one_line(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any) -> BrokerStatus:
        raise error

    monkeypatch.setattr(launcher, "start", fail)
    assert main(["broker", "start"]) == 1
    assert capsys.readouterr().err == f"jmsaio: {error}\n"


def test_a_setting_without_value_is_refused(calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["broker", "start", "-o", "x"]) == 2
    assert "NAME=VALUE" in capsys.readouterr().err
    assert calls.asked == []
