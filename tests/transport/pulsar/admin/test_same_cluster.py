"""The REST interface is believed only where it shows what was opened at the broker."""

from __future__ import annotations

import uuid
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx
import pytest

import jmsaio
from jmsaio.cli.app import main
from jmsaio.config import Configuration, schemes
from jmsaio.errors import ConfigurationError, JMSSecurityError, NotFoundError, TransportError
from jmsaio.transport.base import ReaderOptions
from jmsaio.transport.pulsar.admin import same_cluster
from jmsaio.transport.pulsar.admin.paths import topic_path
from tests.support.broker import TestBroker
from tests.support.secure import SecureBroker

pytestmark = pytest.mark.broker
HANG = 60.0


def ask(broker: TestBroker, path: str) -> Any:
    return httpx.get(f"{broker.web_service_url}/admin/v2/{path}", timeout=30).json()


def put(broker: TestBroker, path: str, text: str = "{}", method: str = "PUT") -> None:
    url = f"{broker.web_service_url}/admin/v2/{path}"
    httpx.request(method, url, content=text, headers={"Content-Type": "application/json"}).raise_for_status()


def topics(broker: TestBroker) -> list[str]:
    return [str(name) for name in ask(broker, "persistent/public/default")]


@pytest.fixture(autouse=True)
def unknown(monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, str]]:
    """What this process knows of addresses: nothing yet."""
    known: set[tuple[str, str]] = set()
    monkeypatch.setattr(same_cluster, "_KNOWN", known)
    return known


def guess(monkeypatch: pytest.MonkeyPatch, broker: TestBroker) -> None:
    """Have a broker's REST interface at the default port."""
    monkeypatch.setitem(schemes.WEB_PORTS, "http", urlsplit(broker.web_service_url).port)


@pytest.mark.parametrize(("given", "transport"), [(False, "pulsar-client"), (True, "pulsar-client"), (True, "wire")])
async def test_another_clusters_interface_is_refused_before_anything_is_sent(
    pulsar_broker: TestBroker, own_broker: TestBroker, monkeypatch: pytest.MonkeyPatch, given: bool, transport: Any
) -> None:
    """The queue's subscription was created there, and the confirmed message was deleted here."""
    guess(monkeypatch, own_broker)
    monkeypatch.setattr(same_cluster, "_OWN_LIMIT", HANG)  # a busy broker would be asked for the queue, and create it
    queue = f"elsewhere-{uuid.uuid4()}"
    url = pulsar_broker.service_url + (f"?webServiceUrl={own_broker.web_service_url}" if given else "")
    with anyio.fail_after(HANG):
        async with jmsaio.connect(url, transport=transport) as connection, connection.create_session() as session:
            for _ in range(2):
                with pytest.raises(ConfigurationError, match=r"webServiceUrl.*another cluster") as refused:
                    await (await session.create_producer(session.create_queue(queue))).send("x")
    assert refused.value.key == "webServiceUrl" and ("not given" in str(refused.value)) is not given
    for address in (pulsar_broker.service_url, own_broker.web_service_url):
        assert address in str(refused.value)
    assert not [name for broker in (pulsar_broker, own_broker) for name in topics(broker) if queue in name]


def test_sweep_does_not_look_at_another_cluster(
    pulsar_broker: TestBroker,
    own_broker: TestBroker,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    guess(monkeypatch, own_broker)
    assert main(["sweep", "-u", pulsar_broker.service_url, "--yes", "--watch", "0"]) != 0
    assert "another cluster" in capsys.readouterr().err


async def test_an_address_that_was_given_and_proves_nothing_is_used_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One warning, with the consequence."""

    async def partitions(topic: str) -> list[str]:
        raise NotFoundError("the broker creates no topics")

    async def never(*_: object) -> Any:
        raise AssertionError("nothing can be opened, and nothing is looked at")

    config = Configuration(service_url="pulsar://a:1", web_service_url="http://a:2", web_service_named=True)
    one = same_cluster.SameCluster(config, partitions, never)
    for _ in range(2):
        await one.check("/admin/v2/namespaces/public", "a call", never)
    (warning,) = [each.message for each in caplog.records if "is not known" in each.message]
    for part in ("webServiceUrl", "pulsar://a:1", "http://a:2", "creates no topics", "can lose"):
        assert part in warning


async def test_the_brokers_own_interface_is_proved_once(
    pulsar_broker: TestBroker, monkeypatch: pytest.MonkeyPatch, unknown: set[tuple[str, str]]
) -> None:
    """For all connections of a process."""
    guess(monkeypatch, pulsar_broker)
    proofs = 0
    is_seen = same_cluster.SameCluster.is_seen

    async def counted(
        one: same_cluster.SameCluster, own: str | None, list_consumers: same_cluster.ListConsumers
    ) -> bool:
        nonlocal proofs
        proofs += 1
        return await is_seen(one, own, list_consumers)

    monkeypatch.setattr(same_cluster.SameCluster, "is_seen", counted)
    with anyio.fail_after(HANG):
        for _ in range(2):
            async with jmsaio.connect(pulsar_broker.service_url) as connection, connection.create_session() as session:
                async with session.create_consumer(session.create_queue(f"own-{uuid.uuid4()}")) as consumer:
                    producer = await session.create_producer()
                    await producer.send(consumer.destination, "x")
                    assert await consumer.receive_body(str, timeout=HANG) == "x"
    assert proofs == 1
    assert unknown == {(pulsar_broker.service_url, pulsar_broker.web_service_url)}


async def test_where_the_broker_creates_no_topics_the_topic_of_the_call_proves_it(
    pulsar_broker: TestBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic that is missing proves nothing, and the error says what to do."""
    guess(monkeypatch, pulsar_broker)
    namespace = f"public/strict-{uuid.uuid4().hex[:12]}"
    put(pulsar_broker, f"namespaces/{namespace}")
    put(pulsar_broker, f"namespaces/{namespace}/autoTopicCreation", '{"allowAutoTopicCreation": false}', "POST")
    put(pulsar_broker, f"persistent/{namespace}/here/partitions", "2")
    url = f"{pulsar_broker.service_url}?jms.systemNamespace={namespace}"
    with anyio.fail_after(HANG):
        async with jmsaio.connect(url) as connection, connection.create_session() as session:
            with pytest.raises(ConfigurationError, match=r"can't be shown.*set webServiceUrl=") as refused:
                await (await session.create_producer(session.create_queue("missing"))).send("x")
            assert refused.value.key == "webServiceUrl"
            await (await session.create_producer(session.create_queue("here"))).send("x")
            async with session.create_consumer(session.create_queue("here")) as consumer:
                assert await consumer.receive_body(str, timeout=HANG) == "x"
    assert {name.rpartition("/")[2] for name in ask(pulsar_broker, f"persistent/{namespace}")} == {
        "here-partition-0", "here-partition-1",
    }  # fmt: skip


@pytest.mark.parametrize("tls", [False, True])
async def test_the_right_to_send_and_receive_is_enough(
    secure_broker: SecureBroker, monkeypatch: pytest.MonkeyPatch, tls: bool, unknown: set[tuple[str, str]]
) -> None:
    """Also over TLS, whose REST interface is at a port of its own."""
    options = secure_broker.options(tls=tls)
    web = str(options.pop("webServiceUrl"))
    monkeypatch.setitem(schemes.WEB_PORTS, "https" if tls else "http", urlsplit(web).port)
    with anyio.fail_after(HANG):
        async with jmsaio.connect(options) as connection, connection.create_session() as session:
            await (await session.create_producer(session.create_queue(f"few-{uuid.uuid4()}"))).send("x")
    assert unknown == {(options["brokerServiceUrl"], web)}


async def test_without_the_rights_it_is_a_matter_of_rights(
    secure_broker: SecureBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not of the configuration: whoever may not use the interface is told so, as without the proof."""
    options = secure_broker.options(params=secure_broker.token("guest"))
    monkeypatch.setitem(schemes.WEB_PORTS, "http", urlsplit(str(options.pop("webServiceUrl"))).port)
    with anyio.fail_after(HANG):
        async with jmsaio.connect(options) as connection, connection.create_session() as session:
            with pytest.raises(JMSSecurityError):
                await (await session.create_producer(session.create_queue(f"none-{uuid.uuid4()}"))).send("x")


class Opened:
    """A reader of one topic."""

    async def aclose(self, timeout: float) -> None:
        pass


@pytest.mark.parametrize("refuses", [True, False])
async def test_where_the_broker_has_no_non_persistent_topics_the_topic_of_the_call_proves_it(
    monkeypatch: pytest.MonkeyPatch, refuses: bool
) -> None:
    """pulsar-client reports that, or asks again until its time is over."""
    monkeypatch.setattr(same_cluster, "_OWN_LIMIT", 0.01)
    own = "persistent://public/default/t"
    names: dict[str, str] = {}

    async def partitions(topic: str) -> list[str]:
        if topic.startswith("non-persistent://") and refuses:
            raise TransportError("not allowed", "NotAllowedError")
        if topic.startswith("non-persistent://"):
            await anyio.sleep_forever()
        return [topic]

    async def open_reader(options: ReaderOptions) -> Any:
        names[options.topic] = options.name or ""
        return Opened()

    async def list_consumers(topic: str) -> set[str]:
        return {names[topic]}

    config = Configuration(service_url="pulsar://a:1", web_service_url="http://a:2")
    one = same_cluster.SameCluster(config, partitions, open_reader)
    with anyio.fail_after(HANG):
        await one.check(topic_path(own) + "/stats", "stats", list_consumers)
    assert list(names) == [own]


async def test_an_interface_that_showed_nothing_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker may just have handed its topics over."""
    monkeypatch.setattr(same_cluster, "_PAUSES", (0.0,))
    monkeypatch.setattr(same_cluster, "_AGAIN", 0.05)
    opened, shown = list[str](), set[str]()

    async def partitions(topic: str) -> list[str]:
        return [topic]

    async def open_reader(options: ReaderOptions) -> Any:
        opened.append(str(options.name))
        return Opened()

    async def list_consumers(topic: str) -> set[str]:
        return shown or set(opened[2:])

    config = Configuration(service_url="pulsar://a:1", web_service_url="http://a:2")
    same = same_cluster.SameCluster(config, partitions, open_reader)
    for _ in range(2):  # the second one is not looked at
        with pytest.raises(ConfigurationError, match="another cluster"):
            await same.check("/admin/v2/namespaces/public", "a call", list_consumers)
    assert len(opened) == 1
    await anyio.sleep(0.1)
    shown.add("another reader")
    with pytest.raises(ConfigurationError, match="another cluster"):
        await same.check("/admin/v2/namespaces/public", "a call", list_consumers)
    await anyio.sleep(0.1)
    shown.clear()
    for _ in range(2):
        await same.check("/admin/v2/namespaces/public", "a call", list_consumers)
    assert len(opened) == 3
