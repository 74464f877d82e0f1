"""The fixtures that other tests stand on."""

from __future__ import annotations

import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.broker import TestBroker


@pytest.mark.broker
def test_session_broker_answers(pulsar_broker: TestBroker) -> None:
    with urllib.request.urlopen(f"{pulsar_broker.web_service_url}/admin/v2/namespaces/public", timeout=30) as answer:
        assert b"public/default" in answer.read()


@pytest.mark.broker
def test_own_broker_can_be_killed_and_started_again(own_broker: TestBroker) -> None:
    url = own_broker.service_url
    own_broker.kill()
    assert not own_broker.running
    own_broker.start()
    assert own_broker.running
    assert own_broker.service_url == url
    assert "Deleting path: /ledgers/available/" not in own_broker.log(100_000), "a node of the killed one was there"


@pytest.mark.java
def test_java_sources_are_compiled(tmp_path: Path, javac: Callable[..., Path], java_classpath: str) -> None:
    source = tmp_path / "Hello.java"
    source.write_text(
        "public class Hello { public static void main(String[] a) throws Exception {"
        ' System.out.println(Class.forName("com.datastax.oss.pulsar.jms.PulsarConnectionFactory").getSimpleName()'
        " + jakarta.jms.Session.AUTO_ACKNOWLEDGE); } }"
    )
    classes = javac([source])
    done = subprocess.run(
        ["java", "-cp", f"{classes}:{java_classpath}", "Hello"], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "PulsarConnectionFactory1"
    assert javac([source]) == classes
