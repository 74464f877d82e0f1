"""``jmsaio doctor``: its output and exit codes; what it finds on real brokers is in ``tests/maintenance``."""

from __future__ import annotations

import json

import pytest

from jmsaio.cli.app import main
from jmsaio.config import Configuration
from jmsaio.errors import JMSError
from jmsaio.maintenance.diagnosis import CHECKS
from jmsaio.transport import registry
from tests.maintenance.test_diagnosis import GOOD
from tests.support.broker import TestBroker
from tests.support.secure import SecureBroker


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """The facts that the command finds, with what it asked for; collecting them has its own tests."""
    found: dict[str, object] = dict(GOOD)

    async def collect(config: Configuration, topic: str | None) -> dict[str, object]:
        found["asked"] = (config.service_url, topic)
        return found

    monkeypatch.setattr(registry, "collect_facts", collect)
    return found


def test_a_good_broker_has_a_line_for_each_check(found: dict[str, object], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "-u", "pulsar://h", "--no-json"]) == 0
    output = capsys.readouterr()
    assert len(output.out.splitlines()) == len(CHECKS)
    assert "ok       version: Pulsar 4.0.7" in output.out
    assert f"{len(CHECKS)} ok" in output.err
    assert found["asked"] == ("pulsar://h:6650", None)


def test_what_is_missing_comes_with_the_consequence_and_what_to_do(
    found: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    unknown = JMSError("no\x1b[1m date")
    found |= {"produce": False, "transactions": False, "skew": unknown, "settings": unknown}
    assert main(["doctor", "-u", "pulsar://h", "-o", "jms.systemNamespace=a/b", "-t", "q", "--no-json"]) == 1
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("missing  produce: this client has no right to produce in a/b")
    assert lines[at + 1 : at + 3] == [
        "         Every send fails.",
        "         To do: pulsar-admin namespaces grant-permission a/b --role ROLE --actions produce",
    ]
    assert "warning  transactions: disabled" in lines
    assert lines[-1].startswith("unknown  filter, batch acknowledgement, ")
    assert lines[-1].endswith(r"failover delay, clock: not known: no\x1b[1m date")
    assert found["asked"] == ("pulsar://h:6650", "persistent://a/b/q")


def test_a_right_that_is_not_needed_is_a_warning(found: dict[str, object], capsys: pytest.CaptureFixture[str]) -> None:
    found |= {"produce": False}
    assert main(["doctor", "-u", "pulsar://h", "--need", "consume", "--json"]) == 0
    records = {record["check"]: record for record in map(json.loads, capsys.readouterr().out.splitlines())}
    assert list(records) == [check.name for check in CHECKS]
    assert records["produce"] == {
        "check": "produce", "state": "warning", "question": "May this client send?",
        "found": "this client has no right to produce in public/default", "consequence": "Every send fails.",
        "change": "pulsar-admin namespaces grant-permission public/default --role ROLE --actions produce",
    }  # fmt: skip
    assert records["consume"]["consequence"] is None and records["consume"]["change"] is None


def test_the_embedded_broker_needs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "-u", "memory://x", "--no-json"]) == 0
    assert "nothing is needed" in capsys.readouterr().out
    assert main(["doctor", "-u", "memory:", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "ok"


def test_wrong_usage_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("JMSAIO_URL", raising=False)
    for arguments, sentence in (
        ([], "no broker is configured"),
        (["-u", "pulsar://h?nosuch=1"], "nosuch"),
        (["-u", "pulsar://h", "--need", "everything"], "everything"),
    ):
        assert main(["doctor", *arguments]) == 2
        assert sentence in capsys.readouterr().err


@pytest.mark.broker
def test_real_brokers_are_examined(
    pulsar_broker: TestBroker, secure_broker: SecureBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "-u", pulsar_broker.url, "--json"]) == 0
    assert "secret" not in capsys.readouterr().out
    options = [f"{name}={value}" for name, value in secure_broker.options(params=secure_broker.token("guest")).items()]
    given = [word for option in options for word in ("-o", option)]
    assert main(["doctor", *given, "--json"]) == 1
    output = capsys.readouterr()
    assert secure_broker.token("guest") not in output.out + output.err
    states = {record["check"]: record["state"] for record in map(json.loads, output.out.splitlines())}
    assert (states["broker"], states["produce"], states["filter"]) == ("ok", "missing", "unknown")
    assert main(["doctor", "-u", "pulsar://127.0.0.1:1", "--no-json"]) == 1
    assert "missing  broker: no broker answers" in capsys.readouterr().out
