"""``jmsaio sweep``."""

from __future__ import annotations

import json
import uuid

import attrs
import httpx
import pytest

import jmsaio.maintenance.sweep
from jmsaio.cli.app import main
from jmsaio.errors import AdminError, JMSError
from jmsaio.maintenance.sweep import Leftover
from jmsaio.transport.pulsar.native.transport import PulsarTransport
from tests.support.broker import TestBroker

TOPIC = "persistent://public/default/jms-temp-queue-1"
FOUND = [Leftover(TOPIC, None, 7200.0), Leftover("t", "jmsaio-nd-1", 4000.0), Leftover("t", "jmsaio-nd-2", None)]


@attrs.define
class Broker:
    """Stands for the work itself, which has its own tests; no broker is connected to for it."""

    found: list[Leftover] = attrs.field(factory=lambda: list(FOUND))
    refused: JMSError | None = None
    asked: list[object] = attrs.field(factory=list)

    async def find(self, admin: object, namespace: str, idle: float) -> list[Leftover]:
        self.asked += [namespace, idle]
        return self.found

    async def delete(
        self, admin: object, namespace: str, idle: float, found: list[Leftover], watch: float
    ) -> dict[Leftover, JMSError | None]:
        self.asked.append(watch)
        return {one: self.refused if one.subscription else None for one in found if one.idle is not None}


async def _reached(transport: PulsarTransport) -> None:
    """Return without asking a broker."""


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    broker = Broker()
    monkeypatch.setattr(jmsaio.maintenance.sweep, "find_leftovers", broker.find)
    monkeypatch.setattr(jmsaio.maintenance.sweep, "delete_leftovers", broker.delete)
    monkeypatch.setattr(PulsarTransport, "check_reachable", _reached)
    return broker


def test_it_lists_by_default(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "-u", "pulsar://h", "--no-json"]) == 0
    output = capsys.readouterr()
    assert output.out.splitlines() == [
        f"topic {TOPIC}: idle for 2 hours",
        "subscription jmsaio-nd-1 of t: idle for 67 minutes",
        "subscription jmsaio-nd-2 of t: age unknown, never deleted",
    ]
    assert "3 found; --yes deletes them" in output.err
    assert broker.asked == ["public/default", 3600.0]


def test_it_deletes_when_told_to(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["sweep", "-u", "pulsar://h", "-o", "jms.systemNamespace=a/b", "--yes", "--idle", "10", "--json"]
    assert main(arguments) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["state"] for record in records] == ["deleted", "deleted", "age unknown"]
    assert records[1] == {
        "topic": "t", "subscription": "jmsaio-nd-1", "idle": 4000.0, "state": "deleted", "reason": None,
    }  # fmt: skip
    assert broker.asked == ["a/b", 10.0, 60.0]


def test_what_could_not_be_deleted(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    broker.refused = AdminError("a consumer is connected", 412)
    assert main(["sweep", "-u", "pulsar://h", "--yes", "--watch", "0", "--no-json"]) == 1
    output = capsys.readouterr()
    assert "idle for 2 hours, deleted" in output.out
    assert "not deleted: a consumer is connected" in output.out
    assert "1 of 3 deleted" in output.err


def test_nothing_left_behind(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    broker.found = []
    assert main(["sweep", "-u", "pulsar://h", "--yes", "--no-json"]) == 3
    assert "nothing left behind in public/default" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["-u", "memory:"], "the embedded broker lives in one process only"),
        (["-u", "pulsar://h?jms.usePulsarAdmin=false"], "needs the admin interface"),
        (["-u", "pulsar://h", "--idle", "-1"], "--idle"),
    ],
)
def test_what_cant_be_swept_is_refused_with_the_reason(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", *arguments]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.broker
def test_the_real_broker(pulsar_broker: TestBroker, capsys: pytest.CaptureFixture[str]) -> None:
    """Listing deletes nothing, so it may look where others work."""
    url = pulsar_broker.url
    assert main(["sweep", "-u", url, "--idle", "1000000", "--json"]) == 3
    assert capsys.readouterr().out == ""
    missing = ["-o", "jms.systemNamespace=public/no-such-namespace"]
    assert main(["sweep", "-u", url, *missing]) == 1
    assert "jmsaio:" in capsys.readouterr().err


@pytest.mark.broker
def test_sweeping_the_real_broker(pulsar_broker: TestBroker, capsys: pytest.CaptureFixture[str]) -> None:
    """In a namespace of its own: with age 0 other tests' destinations would go."""
    namespace = f"public/sweep-{uuid.uuid4().hex[:12]}"
    url = f"{pulsar_broker.url}&jms.systemNamespace={namespace}"
    with httpx.Client(base_url=f"{pulsar_broker.web_service_url}/admin/v2", timeout=30) as client:
        client.put(f"/namespaces/{namespace}", json={}).raise_for_status()
        for topic in ("jms-temp-topic-left", "kept"):
            client.put(f"/persistent/{namespace}/{topic}", json={}).raise_for_status()
        client.put(f"/persistent/{namespace}/kept/subscription/jmsaio-nd-left").raise_for_status()
        arguments = ["sweep", "-u", url, "--idle", "0", "--json"]
        for more, state in ((), "found"), ((), "found"), (("--yes", "--watch", "0"), "deleted"):
            assert main([*arguments, *more]) == 0
            records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
            assert [(one["topic"].rpartition("/")[2], one["subscription"], one["state"]) for one in records] == [
                ("jms-temp-topic-left", None, state), ("kept", "jmsaio-nd-left", state),
            ]  # fmt: skip
        assert main(arguments) == 3
        assert client.get(f"/persistent/{namespace}").json() == [f"persistent://{namespace}/kept"]
