"""Start, stop, status, logs: with a script in Java's place, and with the real broker."""

from __future__ import annotations

import http.server
import os
import signal
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

import jmsaio
from jmsaio import launcher
from jmsaio.launcher import broker as module
from jmsaio.launcher.broker import free_ports, is_ready, require_free
from jmsaio.launcher.errors import PortTakenError, StartError, ToolError
from jmsaio.launcher.maven import fetch_broker
from jmsaio.launcher.settings import BROKER_VERSION, LOGGING, data_text
from jmsaio.launcher.state import is_alive, load, log_files
from tests.support.broker import LaunchedBroker, TestBroker

# A Java that reads the broker's settings and answers as the broker does, or does not.
_JAVA = """#!{python}
import http.server, signal, sys, time
if sys.argv[1] == "-version":
    print('openjdk version "17.0.1"')
    sys.exit(0)
mode = open({mode!r}).read()
if sys.argv[-2].endswith("EndSessions.java"):
    print("can't end it" if mode == "no end" else "ended", *sys.argv[1:])
    open({mode!r} + ".ended", "a").write(" ".join(sys.argv[1:]))
    sys.exit(4 if mode == "no end" else 0)
print("broker log line", flush=True)
if mode == "dies":
    print("cannot do it", flush=True)
    sys.exit(3)
if mode == "port taken":
    print("bind(..) failed: Address already in use", flush=True)
    sys.exit(1)
if mode == "hangs":
    time.sleep(600)
if mode == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
settings = dict(line.rstrip().split("=", 1) for line in open("standalone.conf"))
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        known = mode != "asks who" or self.headers["Authorization"] == "Bearer the-admin"
        self.send_response(200 if known else 401)
        self.end_headers()
        self.wfile.write(b'["public/default"]')
    def log_message(self, *_):
        return
http.server.HTTPServer(("127.0.0.1", int(settings["webServicePort"])), Handler).serve_forever()
"""


# A compiler, whose presence shows that Java can run a program from its source.
_JAVAC = """#!/bin/sh
echo javac 17.0.1
"""


class Fake:
    """A broker's folder, and a Java whose behaviour is a word."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "state"
        self.mode = folder / "mode"
        self.javac = folder
        self.behave("good")

    def behave(self, mode: str) -> None:
        self.mode.write_text(mode)

    def options(self, **more: object) -> launcher.StartOptions:
        values = {"broker_port": 0, "web_port": 0, "state_directory": self.home, "timeout": 60.0} | more
        return launcher.StartOptions(**values)  # type: ignore[arg-type] # the test's own values


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    fake = Fake(tmp_path)
    java = tmp_path / "java-home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(_JAVA.format(python=sys.executable, mode=str(fake.mode)))
    java.chmod(0o755)
    fake.javac = java.with_name("javac")
    fake.javac.write_text(_JAVAC)
    fake.javac.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java-home"))
    monkeypatch.setattr(module, "fetch_broker", lambda progress: tmp_path / "jars")
    monkeypatch.setattr(module, "_filter", lambda progress: tmp_path / "filters")
    yield fake
    launcher.stop(0, directory=fake.home)


def test_life_of_a_broker(fake: Fake) -> None:
    assert launcher.status(directory=fake.home) is None
    assert launcher.stop(directory=fake.home) is False
    said: list[str] = []
    started = launcher.start(fake.options(), said.append)
    assert started.ready
    assert started.version == BROKER_VERSION
    assert launcher.status(directory=fake.home) == started
    assert said[-1] == f"broker ready at {started.client_url()}"
    assert launcher.logs(directory=fake.home) == "broker log line\n"
    assert f"brokerServicePort={started.broker_port}\n" in (fake.home / "standalone.conf").read_text()
    assert os.getpgid(started.pid) == started.pid
    assert launcher.stop(directory=fake.home) is True
    assert launcher.status(directory=fake.home) is None
    with pytest.raises(ProcessLookupError):
        os.kill(started.pid, 0)
    assert launcher.logs(directory=fake.home) == "broker log line\n", "the log outlives the broker"


def test_the_session_of_a_killed_broker_is_ended_before_the_next(fake: Fake) -> None:
    metadata, ended, said = fake.home / "data" / "metadata", Path(f"{fake.mode}.ended"), list[str]()
    launcher.start(fake.options())
    metadata.mkdir(parents=True)
    launcher.stop(directory=fake.home)
    launcher.start(fake.options(), said.append)
    assert not ended.exists(), "it ended in order"
    launcher.stop(0, directory=fake.home)
    launcher.start(fake.options(), said.append)
    *_, option, jars, program, folder = ended.read_text().split(" ")
    assert (option, program, folder) == ("-cp", str(fake.home / "EndSessions.java"), str(metadata))
    assert jars.endswith("/jars/*")
    assert [line for line in said if line.startswith("the last")] == [
        "the last broker was killed: what belonged to its session is removed"
    ]
    launcher.stop(0, directory=fake.home)
    ended.unlink()
    launcher.start(fake.options(fresh=True))
    assert not ended.exists(), "nothing is left of it"


def test_a_session_that_cant_be_ended_starts_no_broker(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher.start(fake.options())
    (fake.home / "data" / "metadata").mkdir(parents=True)
    launcher.stop(0, directory=fake.home)
    fake.behave("no end")
    with pytest.raises(launcher.StartError, match=r"exit code 4.*fresh") as caught:
        launcher.start(fake.options())
    assert "can't end it" in caught.value.log_tail
    assert launcher.status(directory=fake.home) is None
    fake.javac.unlink()
    monkeypatch.setenv("PATH", "")
    with pytest.raises(launcher.ToolError, match=r"killed.*fresh.*a JDK 17"):
        launcher.start(fake.options())


def test_a_broker_without_authentication_is_not_taken_for_one_with(fake: Fake) -> None:
    launcher.start(fake.options())
    with pytest.raises(launcher.LauncherError, match=r"already runs .* with authentication: none"):
        launcher.start(fake.options(auth="token"))


def test_starting_twice_is_one_broker(fake: Fake) -> None:
    first = launcher.start(fake.options())
    assert launcher.start(fake.options()) == first
    assert launcher.start(fake.options(broker_port=first.broker_port)) == first
    with pytest.raises(launcher.LauncherError, match=r"already runs in .* stop it first"):
        launcher.start(fake.options(web_port=first.web_port + 1))


def test_a_broker_with_authentication_by_hand_is_asked_with_its_own_credentials(fake: Fake, tmp_path: Path) -> None:
    """They are those of the broker's own client, as text or in a file."""
    fake.behave("asks who")
    plugin = "org.apache.pulsar.client.impl.auth.AuthenticationToken"
    token = tmp_path / "the token"
    token.write_text("the-admin\n")
    for given in ("token:the-admin", "the-admin", token.as_uri()):
        settings = {
            "authenticationEnabled": "true",
            "brokerClientAuthenticationPlugin": plugin,
            "brokerClientAuthenticationParameters": given,
        }
        started = launcher.start(fake.options(settings=settings))
        assert started.ready
        assert launcher.status(directory=fake.home) == started
        assert launcher.stop(0, directory=fake.home)


def test_a_broker_that_refuses_the_launcher_is_not_stopped(fake: Fake) -> None:
    """Without credentials nothing shows that it serves its namespace, but it answers."""
    fake.behave("asks who")
    assert launcher.start(fake.options(settings={"authenticationEnabled": "true"})).ready


def test_wrong_credentials_of_its_own_are_no_start(fake: Fake) -> None:
    fake.behave("asks who")
    settings = {
        "brokerClientAuthenticationPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
        "brokerClientAuthenticationParameters": "token:another",
    }
    with pytest.raises(launcher.StartError, match="was not ready within 1 s") as told:
        launcher.start(fake.options(settings=settings, timeout=1.0))
    assert "another" not in str(told.value)


def test_processes_of_a_test_run_share_one_broker(fake: Fake) -> None:
    one, other = (LaunchedBroker(fake.home, memory="64m") for _ in range(2))
    one.start()
    other.start()
    assert one.service_url == other.service_url != ""
    assert other.log() == "broker log line\n", "it was started once"
    one.kill()
    assert not other.running


def test_a_broker_of_the_tests_waits_for_its_port(fake: Fake) -> None:
    """While it is down, the system may give its port to a connection of another process."""
    broker = LaunchedBroker(fake.home, memory="64m")
    broker.start()
    url = broker.service_url
    broker.kill()
    with socket.create_server(("127.0.0.1", int(url.rpartition(":")[2]))) as other:
        threading.Timer(0.5, other.close).start()
        broker.start()
    assert broker.running
    assert broker.service_url == url


def test_a_broker_that_ends_is_an_error_with_its_log(fake: Fake) -> None:
    fake.behave("dies")
    with pytest.raises(launcher.StartError, match="ended with exit code 3") as caught:
        launcher.start(fake.options())
    assert caught.value.log_tail == "broker log line\ncannot do it\n"
    assert "cannot do it" in str(caught.value)
    assert launcher.status(directory=fake.home) is None
    fake.behave("good")
    assert launcher.start(fake.options()).ready
    assert "cannot do it" in (fake.home / "broker.previous.log").read_text()


def test_a_port_that_is_taken_during_the_start_is_told_as_one(fake: Fake) -> None:
    fake.behave("port taken")
    with pytest.raises(launcher.PortTakenError, match=r"start it again:\nbroker log line\nbind.*in use"):
        launcher.start(fake.options())
    assert not is_alive(fake.home)


def test_a_broker_that_is_not_ready_in_time_is_killed(fake: Fake) -> None:
    fake.behave("hangs")
    with pytest.raises(launcher.StartError, match=r"was not ready within 1 s"):
        launcher.start(fake.options(timeout=1.0))
    assert not is_alive(fake.home)


def test_an_interrupted_start_leaves_no_broker(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "_wait_ready", interrupt)
    with pytest.raises(KeyboardInterrupt):
        launcher.start(fake.options())
    assert not is_alive(fake.home)


def test_a_broker_that_ignores_the_signal_is_killed(fake: Fake) -> None:
    fake.behave("stubborn")
    started = launcher.start(fake.options())
    assert launcher.stop(0.3, directory=fake.home) is True
    assert not is_alive(fake.home)
    with pytest.raises(ProcessLookupError):
        os.kill(started.pid, 0)
    with pytest.raises(ValueError, match="timeout must not be negative"):
        launcher.stop(-1)


def test_a_killed_broker_is_noticed_and_its_number_is_not_trusted(fake: Fake) -> None:
    started = launcher.start(fake.options())
    os.killpg(started.pid, signal.SIGKILL)
    module._children.pop(started.pid).wait()
    assert launcher.status(directory=fake.home) is None
    known = load(fake.home)
    assert known is not None
    assert known.pid == started.pid, "the file is still there; only the lock tells"
    assert launcher.stop(directory=fake.home) is False


def test_a_broker_that_is_just_being_spawned_is_not_taken_for_the_last_one(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = launcher.start(fake.options())
    launcher.stop(directory=fake.home)
    spawn, seen = module._spawn, []

    def look(arguments: list[str], home: Path) -> object:
        process = spawn(arguments, home)
        seen.append((is_alive(home), launcher.status(directory=home), launcher.stop(directory=home)))
        return process

    monkeypatch.setattr(module, "_spawn", look)
    assert launcher.start(fake.options()).pid != last.pid
    assert seen == [(True, None, False)]


def test_a_taken_port_is_found_before_anything_starts(fake: Fake) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(launcher.PortTakenError, match=rf"port {port} \(for clients\)"):
            launcher.start(fake.options(broker_port=port))
    assert not (fake.home / "broker.log").exists()
    with pytest.raises(ValueError, match="are both"):
        launcher.start(fake.options(broker_port=port, web_port=port))


def test_the_storages_old_port_must_be_free_too(fake: Fake) -> None:
    cookie = fake.home / "data" / "bookkeeper" / "current" / "VERSION"
    cookie.parent.mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as server:
        cookie.write_text(f'5\nbookieHost: "127.0.0.1:{server.getsockname()[1]}"\njournalDir: "x"\n')
        with pytest.raises(launcher.PortTakenError, match="storage"):
            launcher.start(fake.options())
        assert launcher.start(fake.options(fresh=True)).ready
    assert not cookie.exists()


def test_two_starts_at_once_are_one_broker(fake: Fake) -> None:
    found: list[launcher.BrokerStatus] = []
    threads = [threading.Thread(target=lambda: found.append(launcher.start(fake.options()))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    assert len(found) == 3
    assert len({status.pid for status in found}) == 1


@pytest.mark.broker
@pytest.mark.java
@pytest.mark.timeout(300)
@pytest.mark.xdist_group("another broker")
def test_the_real_broker(tmp_path: Path) -> None:
    options = launcher.StartOptions(broker_port=0, web_port=0, state_directory=tmp_path, memory="512m", timeout=200)
    try:
        started = launcher.start(options)
        assert started.ready
        assert launcher.status(directory=tmp_path) == started
        assert launcher.logs(3, directory=tmp_path).count("\n") == 3
        assert launcher.stop(directory=tmp_path) is True
        assert launcher.status(directory=tmp_path) is None
    finally:
        launcher.stop(0, directory=tmp_path)


@pytest.mark.parametrize("megabytes", [7, 11])
async def test_chunked_messages_are_stored(own_broker: TestBroker, megabytes: int) -> None:
    """A message of several full chunks goes through, and costs no more than a few lines in the broker's log."""
    body = os.urandom(1 << 20) * megabytes
    config = {
        "brokerServiceUrl": own_broker.service_url,
        "webServiceUrl": own_broker.web_service_url,
        "producerConfig": {"chunkingEnabled": "true", "batchingEnabled": "false"},
    }
    before = own_broker.log(10**9).count("\n")
    async with jmsaio.connect(config) as connection, connection.create_session() as session:
        queue = session.create_queue(f"chunked-{uuid.uuid4()}")
        producer = await session.create_producer(queue)
        await producer.send(body)
        message = await (await session.create_consumer(queue)).receive(timeout=60)
    assert message is not None
    assert message.get_body(bytes) == body
    assert own_broker.log(10**9).count("\n") < before + 2000


@pytest.mark.broker
@pytest.mark.java
@pytest.mark.timeout(300)
@pytest.mark.xdist_group("another broker")
def test_the_real_brokers_log_is_written_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker begins a new file when one is full, and keeps as many as it is told."""
    text = data_text(LOGGING)
    assert ('size="10 MB"' in text, 'max="4"' in text) == (True, True)
    small = text.replace("10 MB", "8 KB").replace('max="4"', 'max="2"')
    monkeypatch.setattr(module, "data_text", lambda name: small)
    options = launcher.StartOptions(broker_port=0, web_port=0, state_directory=tmp_path, memory="512m", timeout=200)
    try:
        launcher.start(options)
        assert [path.name for path in log_files(tmp_path)] == ["broker.log", "broker.1.log", "broker.2.log"]
        assert all(path.stat().st_size < 64 * 1024 for path in log_files(tmp_path))
        assert launcher.logs(5, directory=tmp_path).count("\n") == 5
    finally:
        launcher.stop(0, directory=tmp_path)


Serve = Callable[[int, bytes], AbstractContextManager[int]]


@pytest.fixture
def serve() -> Serve:
    """``with serve(status, body) as port``: a server that gives one answer to everything."""

    @contextmanager
    def run(status: int, body: bytes) -> Iterator[int]:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(status)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.02,))
            thread.start()
            yield server.server_address[1]
            server.shutdown()
            thread.join()

    return run


def test_a_broker_that_outlives_its_starter_is_no_warning(tmp_path: Path) -> None:
    program = (
        "import pathlib, sys; from jmsaio.launcher.broker import _spawn; "
        "print(_spawn(['sleep', '600'], pathlib.Path(sys.argv[1])).pid)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", program, str(tmp_path)], capture_output=True, text=True, check=True
    )
    os.kill(int(done.stdout), signal.SIGKILL)  # it was still running
    assert done.stderr == ""


def test_free_ports_differ() -> None:
    ports = free_ports(5)
    assert len(set(ports)) == 5
    for port in ports:
        require_free(port, "test")


def test_a_taken_port_is_named_with_its_purpose() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(PortTakenError, match=rf"port {port} \(for clients\) can't be used") as caught:
            require_free(port, "for clients")
        assert caught.value.port == port
    require_free(port, "for clients")


@pytest.mark.parametrize(
    ("status", "body", "ready"),
    [
        (200, b'["public/default"]', True),
        (200, b'["public/functions"]', False),
        (200, b"<html>", False),
        (200, b"\xff\xfe", False),
        (500, b'["public/default"]', False),
        (401, b"Authentication required", True),
        (403, b"Forbidden", True),
    ],
)
def test_ready_means_the_default_namespace_is_served(serve: Serve, status: int, body: bytes, ready: bool) -> None:
    with serve(status, body) as port:
        assert is_ready(port) is ready


@pytest.mark.parametrize("status", [401, 403])
def test_refused_credentials_are_not_ready(serve: Serve, status: int) -> None:
    """While it starts, a broker may refuse the credentials that it accepts a moment later."""
    with serve(status, b"") as port:
        assert not is_ready(port, {"Authorization": "Bearer x"})


def test_nothing_there_is_not_ready() -> None:
    (port,) = free_ports(1)
    assert not is_ready(port)


def test_something_else_on_the_port_is_not_ready() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            peer, _ = server.accept()
            with peer:
                peer.recv(1000)
                peer.sendall(b"SSH-2.0-nope\r\n")

        thread = threading.Thread(target=greet)
        thread.start()
        assert not is_ready(server.getsockname()[1])
        thread.join()


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
    assert not module.end_session(tmp_path, jars)
    assert calls(tmp_path) == []


def test_one_that_ended_in_order_left_nothing_once(tmp_path: Path, java: Path, jars: Path) -> None:
    metadata = left_by_a_broker(tmp_path)
    (tmp_path / "ended-in-order").touch()
    assert not module.end_session(tmp_path, jars)
    assert calls(tmp_path) == []
    assert module.end_session(tmp_path, jars), "the mark was of the broker before"
    [call] = calls(tmp_path)
    assert call.startswith("java ")
    assert call.endswith(f" -cp {jars}/* {tmp_path / 'EndSessions.java'} {metadata}")


def test_a_failure_says_what_java_said(tmp_path: Path, java: Path, jars: Path) -> None:
    left_by_a_broker(tmp_path)
    (tmp_path / "java-fails").touch()
    with pytest.raises(StartError, match="what java says") as caught:
        module.end_session(tmp_path, jars)
    assert caught.value.log_tail == "what java says\n"
    java.unlink()
    with pytest.raises(StartError, match="can't be ended"):
        module.end_session(tmp_path, jars)


def test_without_a_jdk_it_is_refused(tmp_path: Path, java: Path, jars: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left_by_a_broker(tmp_path)
    java.with_name("javac").unlink()
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolError, match=r"killed.*fresh.*a JDK 17") as caught:
        module.end_session(tmp_path, jars)
    assert caught.value.tool == "javac"


@pytest.mark.java
def test_the_real_program_runs_from_its_source(tmp_path: Path) -> None:
    left_by_a_broker(tmp_path)
    assert module.end_session(tmp_path, fetch_broker())
