"""What a consumer tells the broker about itself, key by key as the real Java client does.

``consumer_metadata.json`` has what the Java client sent; ``JMSAIO_WRITE_GOLDEN=1`` has the Java test write it anew.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

import jmsaio
from jmsaio.client.subscriptions.plan import ConsumerKind, ConsumerRequest, plan
from jmsaio.config import load
from jmsaio.model.modes import AcknowledgeMode
from tests.interop.sides import JavaClient, java_client
from tests.support.broker import TestBroker
from tests.support.java import class_path

Name = Callable[[str], str]
Case = dict[str, Any]
GOLDEN = Path(__file__).with_name("consumer_metadata.json")
#: Stands for the client's own connection id.
OWN = "<connection id>"
FILTERING = {"jms.useServerSideFiltering": "true"}
#: Configuration and session mode; destination, way to consume, selector, noLocal.
CONFIGURATIONS: list[tuple[dict[str, str], int]] = [
    ({"jms.enableClientSideEmulation": "true"}, 1),
    (FILTERING, 1),
    ({**FILTERING, "jms.acknowledgeRejectedMessages": "true", "jms.enableJMSPriority": "true"}, 2),
    (FILTERING, 3),
    ({**FILTERING, "jms.emulateTransactions": "true"}, 0),
    (FILTERING, 4),
]
REQUESTS: list[tuple[str, str, str | None, bool]] = [
    ("queue", "plain", None, False),
    ("queue", "plain", "amount > 3", False),
    ("topic", "plain", None, False),
    ("topic", "plain", "region = 'it''s'", True),
    ("topic", "durable", None, False),
    ("topic", "durable", "amount > 3", True),
    ("topic", "shared", "amount > 3", False),
    ("topic", "shared_durable", "b", False),
]
KINDS = {
    "plain": ConsumerKind.SIMPLE, "durable": ConsumerKind.DURABLE, "shared": ConsumerKind.SHARED,
    "shared_durable": ConsumerKind.SHARED_DURABLE,
}  # fmt: skip


async def metadata(broker: TestBroker, name: str) -> dict[str, str]:
    """The metadata of the only consumer of a topic, as the broker shows it."""
    path = f"{broker.web_service_url}/admin/v2/persistent/public/default/{name}/stats"
    async with httpx.AsyncClient() as client:
        subscriptions = (await client.get(path)).raise_for_status().json()["subscriptions"]
    [found] = [consumer["metadata"] for one in subscriptions.values() for consumer in one["consumers"]]
    return dict(found)


def plain(found: dict[str, str], client_id: str) -> dict[str, str]:
    """Metadata without what differs from one connection to the next."""
    own = found.get("jms.filter.JMSConnectionID")
    if own is None:
        return found
    assert own.startswith(f"{client_id}_") and len(own) == len(client_id) + 37
    return found | {"jms.filter.JMSConnectionID": OWN}


def of(case: Case) -> tuple[ConsumerRequest, Any, AcknowledgeMode]:
    """The request, configuration and mode of a case."""
    way, selector = case["way"], case["selector"]
    destination = jmsaio.Queue("q") if case["kind"] == "queue" else jmsaio.Topic("t")
    kind = ConsumerKind.QUEUE if case["kind"] == "queue" else KINDS[way]
    config = load({"brokerServiceUrl": "memory:", **case["configuration"]})
    return ConsumerRequest(destination, kind, "n", selector, case["no_local"]), config, AcknowledgeMode(case["mode"])


@pytest.mark.parametrize("number", range(len(CONFIGURATIONS) * len(REQUESTS)))
def test_each_consumer_sends_what_java_sends(number: int) -> None:
    case: Case = json.loads(GOLDEN.read_text(encoding="utf-8"))[number]
    request, config, mode = of(case)
    planned = plan(request, "c", config, mode, "u", connection_id=OWN, sent_selector=request.selector)
    assert planned.metadata == case["metadata"]


async def capture(java: JavaClient, broker: TestBroker, chosen: int, name: Name) -> list[Case]:
    """What the Java client sends for each request with one of ``CONFIGURATIONS``."""
    (configuration, mode), cases, client_id = CONFIGURATIONS[chosen], [], name(f"client-{chosen}")
    addresses = {"brokerServiceUrl": broker.service_url, "webServiceUrl": broker.web_service_url}
    # of setClientID, the connection id of Java shows nothing
    side = await java.open({**addresses, **configuration, "jms.clientId": client_id}, str(mode), None)
    for number, (kind, way, selector, no_local) in enumerate(REQUESTS):
        target = {"kind": kind, "name": name(f"metadata-{chosen}-{number}")}
        subscription = None if way == "plain" else f"sub-{number}"
        await side.subscribe(
            target, f"{number}", mode=way, subscription=subscription, selector=selector, no_local=no_local
        )
        assert await side.receive(consumer=f"{number}", timeout=0.1) == []  # it opens the consumer of a queue
        sent = plain(await metadata(broker, target["name"]), client_id)
        cases.append(
            {"configuration": configuration, "mode": mode, "kind": kind, "way": way, "selector": selector,
             "no_local": no_local, "metadata": dict(sorted(sent.items()))}
        )  # fmt: skip
    return cases


@pytest.mark.broker
@pytest.mark.java
@pytest.mark.timeout(300)
async def test_the_golden_file_is_what_java_sends(
    pulsar_broker: TestBroker, java_classpath: str, java_peer_dir: Path, name: Name
) -> None:
    classes = class_path(java_classpath, java_peer_dir)
    async with java_client(classes) as java:
        groups = await asyncio.gather(*(capture(java, pulsar_broker, one, name) for one in range(len(CONFIGURATIONS))))
    cases = list(itertools.chain(*groups))
    if os.environ.get("JMSAIO_WRITE_GOLDEN"):
        GOLDEN.write_text(json.dumps(cases, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert cases == json.loads(GOLDEN.read_text(encoding="utf-8"))


@pytest.mark.broker
async def test_the_broker_shows_what_was_planned(pulsar_broker: TestBroker, name: Name) -> None:
    client_id, target = name("client"), name("metadata")
    async with (
        jmsaio.connect(pulsar_broker.url, client_id=client_id, use_server_side_filtering=True) as connection,
        connection.create_session(AcknowledgeMode.CLIENT) as session,
        session.create_durable_consumer(session.create_topic(target), "sub", "amount > 3", no_local=True),
    ):
        assert plain(await metadata(pulsar_broker, target), client_id) == {
            "jms.destination.type": "topic",
            "jms.acknowledgeMode": "CLIENT_ACKNOWLEDGE",
            "jms.filtering": "true",
            "jms.selector": "amount > 3",
            "jms.selector.reject.action": "drop",
            "jms.filter.JMSConnectionID": OWN,
        }
