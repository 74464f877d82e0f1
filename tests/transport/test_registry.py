"""Another transport needs ``transport/base.py``, the contract suite and a row of the registry, nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

import jmsaio
from jmsaio.config import load
from jmsaio.config.schemes import SCHEMES
from jmsaio.transport.memory.broker.broker import forget_broker
from jmsaio.transport.pulsar.native import open_transport
from jmsaio.transport.registry import connected
from tests.transport import loopback


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Add the tests' own transport to the registry."""
    monkeypatch.setitem(SCHEMES, loopback.SCHEME.name, loopback.SCHEME)
    monkeypatch.setattr(loopback, "OPENED", [])
    request.addfinalizer(lambda: forget_broker(loopback.BEHIND))


async def test_messages_go_through_a_transport_that_only_the_registry_names() -> None:
    name = str(uuid.uuid4())
    async with jmsaio.connect("loopback://?jms.clientId=billing") as connection:
        assert connection.get_client_id() == "billing"
        session = await connection.create_session()
        queue = session.create_queue(name)
        await (await session.create_producer(queue)).send("text")
        message = await (await session.create_consumer(queue)).receive(10)
    assert isinstance(message, jmsaio.TextMessage) and message.get_text() == "text"
    assert [config.scheme for config in loopback.OPENED] == ["loopback"]


async def test_a_transport_refuses_urls_itself() -> None:
    with pytest.raises(jmsaio.ConfigurationError, match="nothing behind it"):
        jmsaio.ConnectionFactory("loopback://host:1")
    assert loopback.OPENED == []


def test_an_unknown_scheme_is_refused_with_the_ones_that_exist() -> None:
    with pytest.raises(jmsaio.ConfigurationError, match=r"did you mean 'loopback'.* or loopback://"):
        jmsaio.ConnectionFactory("lopback://")


def test_only_the_transport_in_use_is_imported() -> None:
    code = (
        "import asyncio, sys, jmsaio\n"
        "async def main():\n"
        "    async with jmsaio.connect('memory://alone'): pass\n"
        "asyncio.run(main())\n"
        "assert 'jmsaio.transport.memory' in sys.modules\n"
        "assert 'jmsaio.transport.pulsar' not in sys.modules and '_pulsar' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


async def test_a_transport_is_closed_with_its_block_whatever_ends_it() -> None:
    with pytest.raises(LookupError):
        async with connected(load(f"memory://{uuid.uuid4()}")) as transport:
            await transport.end("persistent://public/default/any")
            raise LookupError
    with pytest.raises(jmsaio.ObjectClosedError):
        await transport.end("persistent://public/default/any")


PULSAR_CLIENT = ("pulsar", "_pulsar")
#: What Python lacks on Windows, as far as jmsaio uses it.
UNIX = ("fcntl", "resource", "termios")


#: Sends a message to a scripted peer through the default transport, and prints which that is and what the peer got.
SENDS = """
import asyncio, logging, jmsaio
from tests.transport.pulsar.wire.peer import listening
logging.basicConfig(level=logging.INFO)
async def main():
    async with listening() as peer:
        options = "?jms.precreateQueueSubscription=false&jms.usePulsarAdmin=false"
        async with jmsaio.connect(peer.url + options) as connection, connection.create_session() as session:
            print(jmsaio.ConnectionFactory(peer.url).configuration.used_transport)
            await (await session.create_producer(session.create_queue("q"))).send("hello")
        print(*(payload.decode() for _, payload in peer.entries.values()))
asyncio.run(main())
"""


def run_without(folder: Path, modules: tuple[str, ...], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command of jmsaio, or ``python -c``, without these modules; without those of Unix there are no forks."""
    forks = "del os.fork, os.register_at_fork" if modules == UNIX else ""
    (folder / "sitecustomize.py").write_text(f"import os, sys\nsys.modules |= dict.fromkeys({modules})\n{forks}")
    command = [sys.executable, *([] if arguments[0] == "-c" else ["-m", "jmsaio"]), *arguments]
    environment = os.environ | {"PYTHONPATH": str(folder)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("missing", "arguments"),
    [
        (PULSAR_CLIENT, ["doctor", "-u", "memory:"]),
        (PULSAR_CLIENT, ["demo"]),
        (UNIX, ["demo"]),
    ],
)
def test_the_embedded_broker_needs_neither_pulsar_client_nor_unix(
    tmp_path: Path, missing: tuple[str, ...], arguments: list[str]
) -> None:
    ran = run_without(tmp_path, missing, *arguments)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("scheme", ["http", "pulsar"])
def test_what_needs_pulsar_client_says_so_where_it_is_missing(tmp_path: Path, scheme: str) -> None:
    ran = run_without(tmp_path, PULSAR_CLIENT, "queues", "--url", f"{scheme}://localhost:1?transport=pulsar-client")
    assert ran.returncode == 2
    assert "transport=pulsar-client needs pulsar-client, which can't be imported here (import of _pulsar" in ran.stderr
    assert "transport=wire" in ran.stderr


def test_a_pulsar_url_without_pulsar_client_uses_wire_and_says_so_once(tmp_path: Path) -> None:
    ran = run_without(tmp_path, PULSAR_CLIENT, "-c", SENDS)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["wire", "hello"]
    [line] = [line for line in ran.stderr.splitlines() if "wire" in line]
    assert line.startswith("INFO:jmsaio.transport.pulsar:pulsar://127.0.0.1:")
    assert line.endswith(" uses transport=wire, because pulsar-client is not installed")


async def test_an_import_that_fails_for_another_reason_is_not_blamed_on_pulsar_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "jmsaio.transport.pulsar.native.transport", None)
    with pytest.raises(ImportError, match=r"jmsaio\.transport\.pulsar\.native\.transport"):
        await open_transport(load("pulsar://localhost:1"))


@pytest.mark.parametrize(
    ("option", "lines"),
    [
        ("transport=wire", []),
        ("enableTransaction=true", ["pulsar://localhost:1 uses transport=wire, for enableTransaction=true"]),
    ],
)
async def test_the_transport_that_the_configuration_chooses_is_opened(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, option: str, lines: list[str]
) -> None:
    monkeypatch.setitem(sys.modules, "jmsaio.transport.pulsar.wire", loopback)
    caplog.set_level("INFO", "jmsaio.transport.pulsar")
    async with connected(load(f"pulsar://localhost:1?{option}")):
        assert [config.used_transport for config in loopback.OPENED] == ["wire"]
    assert caplog.messages == lines
