"""Start and stop a real Apache Pulsar broker on this machine, without Docker.

A broker is one Java process in its own process group. It keeps running after the program that started it ends; its
state directory stores everything needed to find it again.

The session of a broker that was killed is ended before the next one starts, as a metadata service would have done: a
broker that finds the old node of its own storage deletes it while creating the new one. If the notification of the
deletion arrives late, as on a busy machine, the broker mistakes the new node for the deleted one and recreates it,
again and again: Pulsar 4.0 never recovers from this, answers no requests and fills its log (apache/pulsar#17759).
"""

from __future__ import annotations

import atexit
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import attrs

from jmsaio.launcher import auth, state, tools
from jmsaio.launcher.errors import LauncherError, PortTakenError, StartError, ToolError
from jmsaio.launcher.maven import Progress, fetch_broker, pack_filter, recipe, silent
from jmsaio.launcher.settings import (
    BROKER_VERSION,
    LOGGING,
    StartOptions,
    broker_settings,
    cache_directory,
    command,
    data_text,
    render,
    state_directory,
)
from jmsaio.launcher.state import BrokerStatus, locked, logs, set_aside
from jmsaio.model.durations import seconds

#: Maximum seconds for one check whether a broker is ready.
PROBE_TIMEOUT = 5.0
_HOST = "127.0.0.1"
_REFUSED = (401, 403)
_POLL = 0.1  # seconds between two checks of a process
_KILL_TIMEOUT = 30.0  # seconds to wait for the end of a killed process
_LOG_TAIL = 30  # lines
_OUTPUT_TAIL = 2000  # characters of a failed program's output
#: Maximum seconds for ending the last broker's session: 3 on a quiet machine.
_SESSION_TIMEOUT = 120.0
_PROGRAM = "EndSessions.java"
# For a short program: no threads for a large heap, no optimisation for a long run.
_BRIEF = ("-XX:+IgnoreUnrecognizedVMOptions", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_METADATA = Path("data", "metadata")
_ENDED = "ended-in-order"  # file in the state directory of a broker that left no session
_TAKEN = "Address already in use"  # in the log of a broker that can't listen on a port

# Child processes of this process: they must be waited for, or they stay as zombies.
_children: dict[int, subprocess.Popen[bytes]] = {}


@atexit.register
def _let_run() -> None:
    """Mark the brokers that outlive this process, as they should: Popen would emit a ResourceWarning for each."""
    for process in _children.values():
        if process.poll() is None:
            process.returncode = 0


def fetch(progress: Progress = silent) -> Path:
    """Download everything a broker needs (about 230 MB) and pack its filter, unless already done.

    Returns:
        The folder with the broker's jars.

    Raises:
        ToolError, DownloadError: Java or Maven is missing, or a download failed.
    """
    jars = fetch_broker(progress)
    _filter(progress)
    return jars


def _filter(progress: Progress) -> Path:
    plan = recipe()
    folder = cache_directory() / f"filter-{plan['manifest']['Nar-Version']}"
    if not (folder / plan["name"]).exists():
        pack_filter(folder, progress)
    return folder


def start(options: StartOptions | None = None, progress: Progress = silent) -> BrokerStatus:
    """Start a broker and wait until it is ready; return the running one if it already runs on these ports.

    Args:
        options: ports, folder, memory and more; default `StartOptions()`.
        progress: called with progress messages.

    Raises:
        ToolError: Java 17 is missing; Maven, if a download is needed; or a JDK, after a broker was killed.
        DownloadError: a download failed.
        PortTakenError: a port is in use.
        StartError: the broker ended or was not ready in time (it is then killed).
        LauncherError: another broker runs in the same folder with other ports or authentication.
    """
    options = options if options is not None else StartOptions()
    home = options.state_directory
    home.mkdir(parents=True, exist_ok=True)
    with locked(home / "start.lock"):
        running = status(directory=home)
        if running is not None:
            return _already(running, options)
        java = tools.require("java")
        jars = fetch_broker(progress)
        filters = _filter(progress) if options.filters else home
        if options.fresh:
            shutil.rmtree(home / "data", ignore_errors=True)
        options = _ports(options)
        settings = broker_settings(options, filters, auth.prepare(home) if options.auth else None)
        (home / "standalone.conf").write_text(render(settings), encoding="utf-8")
        (home / LOGGING).write_text(data_text(LOGGING), encoding="utf-8")
        if end_session(home, jars):
            progress("the last broker was killed: what belonged to its session is removed")
        state.forget(home)  # between spawning and saving, the old process must not be mistaken for the new one
        process = _spawn(list(command(java, jars, options)), home)
        started = BrokerStatus(
            pid=process.pid,
            broker_port=options.broker_port,
            web_port=options.web_port,
            version=BROKER_VERSION,
            started_at=datetime.now(UTC).isoformat(timespec="seconds"),
            state_directory=home,
            auth=options.auth,
        )
        try:
            state.save(started)
            progress(f"broker starting as process {process.pid}, log in {started.log_path}")
            _wait_ready(process, started, options.timeout)
            if options.auth:
                auth.grant(started.web_port, auth.headers(home))
        except BaseException:  # not even an interrupt leaves a half-started broker running
            _end(started, 0.0)
            raise
        progress(f"broker ready at {started.client_url()}")
        return attrs.evolve(started, ready=True)


def end_session(home: Path, jars: Path) -> bool:
    """End the session of the last broker of a state directory; return False if it left none."""
    in_order = (home / _ENDED).exists()
    (home / _ENDED).unlink(missing_ok=True)  # the next broker has not ended yet
    if in_order or not (home / _METADATA).exists():
        return False
    try:
        java = tools.require("javac").resolve().with_name("java")
    except ToolError as error:
        text = "the last broker was killed, and what it left behind can't be removed without a JDK (or start it fresh)"
        raise ToolError(f"{text}: {error.reason}", error.tool) from error
    (home / _PROGRAM).write_text(data_text(_PROGRAM), encoding="utf-8")
    arguments = [str(java), *_BRIEF, "-cp", f"{jars}/*", str(home / _PROGRAM), str(home / _METADATA)]
    failed = "the session of the last broker, which was killed, can't be ended"
    try:
        code, output = tools.run(arguments, _SESSION_TIMEOUT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StartError(f"{failed}: {error}") from error
    if code != 0:
        end = output[-_OUTPUT_TAIL:]
        advice = "start it with fresh data if the old data can be deleted"
        raise StartError(f"{failed} (exit code {code}); {advice}:\n{end}", end)
    return True


def _already(running: BrokerStatus, options: StartOptions) -> BrokerStatus:
    """Return the broker that runs in the folder if its ports and authentication match the options."""
    asked = (options.broker_port or running.broker_port, options.web_port or running.web_port)
    if options.auth != running.auth:
        difference = f"with authentication: {running.auth or 'none'}"
    elif asked != (running.broker_port, running.web_port):
        difference = f"on ports {running.broker_port} and {running.web_port}"
    else:
        return running
    raise LauncherError(
        f"a broker already runs in {running.state_directory} {difference} (process {running.pid}); stop it first, or "
        "give the new one its own folder"
    )


def _ports(options: StartOptions) -> StartOptions:
    spare = free_ports(4)
    broker_port = options.broker_port or next(port for port in spare if port != options.web_port)
    web_port = options.web_port or next(port for port in spare if port != broker_port)
    if broker_port == web_port:
        raise ValueError(f"broker_port and web_port are both {broker_port}")
    require_free(broker_port, "for clients")
    require_free(web_port, "for the REST interface")
    storage_port = _storage_port(options.state_directory)
    if storage_port is not None:
        require_free(storage_port, "for the broker's storage, as at its first start")
    return attrs.evolve(options, broker_port=broker_port, web_port=web_port)


def _storage_port(home: Path) -> int | None:
    """Read the port of the storage inside the process, chosen at its first start and kept with its data."""
    try:
        text = (home / "data" / "bookkeeper" / "current" / "VERSION").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = re.search(r'bookieHost: ".*:(\d+)"', text)
    return int(found[1]) if found is not None else None


def _spawn(arguments: list[str], home: Path) -> subprocess.Popen[bytes]:
    """Run the broker in its folder and its own process group, holding its lock; keep the last broker's log."""
    set_aside(home)
    alive = state.claim(home)
    try:
        with (home / state.LOG_NAME).open("ab") as log:  # append: the broker's logging writes to the same file
            process = subprocess.Popen(
                arguments,
                cwd=home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(alive,),
            )
    finally:
        os.close(alive)
    _children[process.pid] = process
    return process


def _wait_ready(process: subprocess.Popen[bytes], started: BrokerStatus, timeout: float) -> None:
    """Wait until the broker is ready. Raises StartError, or PortTakenError if a program took a port meanwhile."""
    deadline = time.monotonic() + timeout
    while not is_ready(started.web_port, auth.headers(started.state_directory)):
        code = process.poll()
        if code is None and time.monotonic() < deadline:
            time.sleep(_POLL)
            continue
        end = logs(_LOG_TAIL, directory=started.state_directory)
        if code is not None and _TAKEN in end:
            raise PortTakenError(f"another program took a port during the broker's start; start it again:\n{end}")
        what = f"was not ready within {timeout:g} s" if code is None else f"ended with exit code {code}"
        raise StartError(f"the broker {what}; the end of its log, {started.log_path}:\n{end}", end)


def status(*, directory: Path | None = None) -> BrokerStatus | None:
    """Return the broker that runs in a state directory, or None.

    Args:
        directory: default `state_directory`.
    """
    home = directory if directory is not None else state_directory()
    if not state.is_alive(home):
        return None
    known = state.load(home)
    return attrs.evolve(known, ready=is_ready(known.web_port, auth.headers(home))) if known is not None else None


def stop(timeout: float = 30.0, *, directory: Path | None = None) -> bool:
    """Stop the broker; its stored data stays in its folder.

    Args:
        timeout: seconds to wait for an orderly end before the process is killed; 0 kills it at once.
        directory: default `state_directory`.

    Returns:
        False if no broker was running.

    Raises:
        ValueError: the time-out is negative or not finite.
        LauncherError: the process can't be ended.
    """
    timeout = seconds(timeout, "timeout")
    home = directory if directory is not None else state_directory()
    known = state.load(home) if state.is_alive(home) else None
    if known is None:
        return False
    _end(known, timeout)
    return True


def _end(broker: BrokerStatus, timeout: float) -> None:
    """End a broker's process group: in order within the time-out, otherwise by force."""
    if timeout > 0:
        _signal(broker.pid, signal.SIGTERM)
        if _gone(broker, timeout):
            (broker.state_directory / _ENDED).touch()
            return
    _signal(broker.pid, signal.SIGKILL)
    if not _gone(broker, _KILL_TIMEOUT):
        raise LauncherError(f"the broker's process {broker.pid} does not end")


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):  # the process has already ended
        os.killpg(group, number)


def _gone(broker: BrokerStatus, timeout: float) -> bool:
    """Wait until the process has ended, and reap it if it is a child; return False after the time-out."""
    deadline = time.monotonic() + timeout
    while state.is_alive(broker.state_directory):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL / 2)
    child = _children.pop(broker.pid, None)
    if child is not None:
        child.wait(timeout=_KILL_TIMEOUT)
    return True


def free_ports(count: int) -> list[int]:
    """Return `count` different ports that nothing listens on right now, chosen by the system."""
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind((_HOST, 0))
        return [probe.getsockname()[1] for probe in probes]


def require_free(port: int, purpose: str) -> None:
    """Raise PortTakenError, with the port and its purpose, if something listens on it."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections that just ended don't count
        try:
            probe.bind((_HOST, port))
        except OSError as error:
            reason = f"port {port} ({purpose}) can't be used: {error.strerror}; stop what uses it, or choose another"
            raise PortTakenError(reason, port) from error


def is_ready(web_port: int, headers: Mapping[str, str] | None = None) -> bool:
    """Return whether the broker serves its default namespace; clients find their topics only then.

    A broker with authentication counts as ready when it refuses a call without credentials.
    """
    try:
        code, answer = auth.call(web_port, "/admin/v2/namespaces/public", headers or {}, PROBE_TIMEOUT)
        return (not headers and code in _REFUSED) or (code == 200 and "public/default" in json.loads(answer))
    except (OSError, http.client.HTTPException, ValueError):
        return False
