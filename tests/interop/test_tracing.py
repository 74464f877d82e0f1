"""A trace crosses the languages: Java under OpenTelemetry's agent, Python with ``jmsaio.otel``, in both directions."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

import jmsaio
from tests.codec.cases import value
from tests.java.peer import JavaPeer, queue
from tests.support.broker import TestBroker
from tests.support.java import class_path
from tests.test_otel import Collected, links, parent, place

pytestmark = [pytest.mark.broker, pytest.mark.java, pytest.mark.timeout(300)]

AGENT = "io.opentelemetry.javaagent:opentelemetry-javaagent:2.14.0"
#: The agent writes spans to standard error, and nothing else.
SETTINGS = {"OTEL_TRACES_EXPORTER": "logging", "OTEL_METRICS_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none"}
#: A span of the agent: name, ids of trace and span, kind.
SPAN = re.compile(r"LoggingSpanExporter - '(.+)' : ([0-9a-f]{32}) ([0-9a-f]{16}) ([A-Z]+) ")


@pytest.fixture
def agent(maven_jars: Callable[..., list[Path]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Java programs that start from now on run under OpenTelemetry's agent."""
    [jar] = maven_jars(AGENT)
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"{os.environ.get('JAVA_TOOL_OPTIONS', '')} -javaagent:{jar}")
    for name, setting in SETTINGS.items():
        monkeypatch.setenv(name, setting)


async def test_a_trace_goes_from_java_to_python_and_from_python_to_java(
    java_classpath: str, java_peer_dir: Path, pulsar_broker: TestBroker, agent: None, capfd: pytest.CaptureFixture[str]
) -> None:
    there, back = (jmsaio.Queue(f"traced-{way}-{uuid.uuid4()}") for way in ("there", "back"))
    collected, path = Collected(), class_path(java_classpath, java_peer_dir)
    with JavaPeer(path, pulsar_broker.service_url, pulsar_broker.web_service_url) as java:
        async with (
            jmsaio.connect(pulsar_broker.url, tracing=collected.tracing) as connection,
            connection.create_session() as session,
            session.create_consumer(there) as consumer,
        ):
            await java.send(queue(there.name), {"kind": "text", "body": value("string", "there")})
            async with consumer.process(20) as message:
                assert message.get_body(str) == "there"
            await java.subscribe(queue(back.name))
            await (await session.create_producer(back)).send("back")
            [answer] = await java.receive(queue(back.name))
            assert answer["body"] == value("string", "back")
    spans = {
        name: (int(trace, 16), int(span, 16), kind) for name, trace, span, kind in SPAN.findall(capfd.readouterr().err)
    }
    sent, received = spans[f"{there.name} publish"], spans[f"{back.name} receive"]
    assert (sent[2], received[2]) == ("PRODUCER", "CONSUMER")
    assert parent(collected.span("process")) == sent[:2]
    assert links(collected.span("receive")) == [sent[:2]]
    assert received[0] == place(collected.span("send"))[0]
