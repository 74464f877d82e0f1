"""The real broker for tests: brokers that never outlive the test run, and one that somebody else keeps running."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from jmsaio import launcher
from jmsaio.launcher import LauncherError, broker as launch
from jmsaio.launcher.state import locked
from tests.support.watcher import tell_watcher

#: Names of the environment variables that point the tests to a running broker, for development.
SERVICE_URL, WEB_URL = "JMSAIO_TEST_SERVICE_URL", "JMSAIO_TEST_WEB_URL"
#: Settings of a broker that no test kills: without a sync of each entry a slow disk does not hold up everything. One
#: that was killed has been seen to find a ledger damaged ("Digest mismatch").
NEVER_KILLED = {"journalSyncData": "false"}
#: Tries, a second apart, to start a broker on a port that something else has taken while the broker was down.
_TRIES = 30


def not_started(reason: str) -> str:
    """Why a test is left out after another one has failed when it started the same broker."""
    return f"this broker did not start, as the error of another test says: {reason.splitlines()[0]}"


class TestBroker:
    """A real broker that a test may also restart or kill. All calls block: use ``anyio.to_thread.run_sync``.

    Attributes:
        service_url: ``pulsar://127.0.0.1:<port>``, the same after a restart.
        web_service_url: ``http://127.0.0.1:<port>``.
    """

    __test__ = False  # its name is no test's

    def __init__(self, service_url: str, web_service_url: str) -> None:
        self.service_url = service_url
        self.web_service_url = web_service_url

    @property
    def url(self) -> str:
        """What `jmsaio.connect` takes, with the address for the administration; more options go behind ``&``."""
        return f"{self.service_url}?webServiceUrl={self.web_service_url}"

    @property
    def running(self) -> bool:
        """Whether its process lives."""
        return True

    def start(self) -> None:
        """Start it with the data and ports that it had, if it does not run; returns when it is ready."""
        raise RuntimeError(f"the tests use a broker that is not theirs (${SERVICE_URL}): take the fixture own_broker")

    def stop(self) -> None:
        """Stop it in order, if it runs."""
        self.start()

    def kill(self) -> None:
        """End its process with SIGKILL, if it runs."""
        self.start()

    def wipe(self) -> None:
        """Delete the data of a broker that does not run: it starts as a new cluster, at the same ports."""
        self.start()

    def restart(self) -> None:
        """Stop it in order and start it again."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """Freeze its process (SIGSTOP): connections stay open and nothing answers."""
        self.start()

    def resume(self) -> None:
        """Let a frozen process go on."""
        self.start()

    def log(self, lines: int = 200) -> str:
        """The end of its log."""
        return ""


class LaunchedBroker(TestBroker):
    """A broker in a folder of its own, on free ports, started by `start`."""

    def __init__(
        self, folder: Path, memory: str, settings: Mapping[str, str] | None = None, auth: str | None = None
    ) -> None:
        super().__init__("", "")
        self._folder = folder
        self._memory = memory
        self._settings = dict(settings or {})
        self._auth = auth
        self._status: launcher.BrokerStatus | None = None
        self._paused = False

    @property
    def running(self) -> bool:
        return launcher.status(directory=self._folder) is not None

    def start(self) -> None:
        """Start it, or find the one that another process of this run has started in the same folder."""
        if self._paused:
            self.resume()
        last = self._status
        options = launcher.StartOptions(
            broker_port=last.broker_port if last is not None else 0,
            web_port=last.web_port if last is not None else 0,
            state_directory=self._folder,
            memory=self._memory,
            settings=self._settings,
            auth=self._auth,
            timeout=200,
        )
        for attempt in range(_TRIES):
            try:
                self._status = launcher.start(options)
                break
            except launcher.PortTakenError:
                # Somebody's connection got the port: at first another one is chosen; later, when clients know the
                # port, that connection must end.
                if attempt == _TRIES - 1:
                    raise
                time.sleep(1)
        assert self._status is not None
        self.service_url, self.web_service_url = self._status.service_url, self._status.web_service_url

    def share(self) -> None:
        """Start it for all processes of the run. If that fails, only the first test that asks for it fails."""
        failure = self._folder.with_name(f"{self._folder.name}-failure.txt")
        with locked(self._folder.with_name(f"{self._folder.name}.lock")):
            if failure.exists():
                pytest.skip(not_started(failure.read_text(encoding="utf-8")))
            try:
                self.start()
            except LauncherError as error:
                failure.write_text(error.reason, encoding="utf-8")
                raise

    def stop(self) -> None:
        if self._paused:
            self.resume()
        launcher.stop(directory=self._folder)

    def kill(self) -> None:
        self._paused = False
        launcher.stop(0, directory=self._folder)

    def wipe(self) -> None:
        if self.running:
            raise RuntimeError("stop or kill the broker first")
        shutil.rmtree(self._folder / "data")

    def pause(self) -> None:
        assert self._status is not None, "the broker was never started"
        self._signal(signal.SIGSTOP)
        self._paused = True
        # On a crowded machine some of its threads run on for a while: wait until all have stopped.
        os.waitid(os.P_PID, self._status.pid, os.WSTOPPED | os.WNOWAIT)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)
        self._paused = False

    def log(self, lines: int = 200) -> str:
        return launcher.logs(lines, directory=self._folder)

    def _signal(self, number: signal.Signals) -> None:
        assert self._status is not None, "the broker was never started"
        os.killpg(self._status.pid, number)


def external_broker() -> TestBroker | None:
    """The running broker that the environment names, or None."""
    service_url, web_url = os.environ.get(SERVICE_URL), os.environ.get(WEB_URL)
    if (service_url is None) != (web_url is None):
        raise RuntimeError(f"set both ${SERVICE_URL} and ${WEB_URL}, or none")
    return TestBroker(service_url, web_url) if service_url is not None and web_url is not None else None


def watch_launcher() -> None:
    """Make sure that every broker which the launcher starts in this process ends with the test run at the latest.

    The launcher itself lets a broker outlive its starter, as users want it.
    """
    spawn, gone = launch._spawn, launch._gone

    def watched_spawn(arguments: list[str], home: Path) -> subprocess.Popen[bytes]:
        process = spawn(arguments, home)
        tell_watcher("runs", process.pid)
        return process

    def watched_gone(broker: launcher.BrokerStatus, timeout: float) -> bool:
        ended = gone(broker, timeout)
        if ended:
            tell_watcher("ended", broker.pid)
        return ended

    launch._spawn, launch._gone = watched_spawn, watched_gone
