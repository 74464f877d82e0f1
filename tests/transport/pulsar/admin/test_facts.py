"""The facts about real brokers: one where everything is there, one that asks for rights, one with other settings."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import anyio
import httpx
import pytest

import jmsaio
from jmsaio import AcknowledgeMode
from jmsaio.config import Configuration, load
from jmsaio.errors import IllegalStateError, JMSError, JMSSecurityError
from jmsaio.launcher import auth
from jmsaio.maintenance.diagnosis import CHECKS, Facts
from jmsaio.transport.pulsar.admin import facts as module
from jmsaio.transport.registry import collect_facts
from tests.support.broker import LaunchedBroker, TestBroker
from tests.support.secure import SecureBroker

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("doctor")]
RIGHTS = ("produce", "consume", "administer")
#: Each makes one check complain.
CHANGED = {
    "acknowledgmentAtBatchIndexLevelEnabled": "false", "transactionCoordinatorEnabled": "false", "entryFilterNames": "",
    "maxUnackedMessagesPerSubscription": "30000", "allowAutoTopicCreation": "false",
    "allowAutoSubscriptionCreation": "false", "backlogQuotaDefaultLimitBytes": "1000000",
    "backlogQuotaDefaultRetentionPolicy": "consumer_backlog_eviction", "ttlDurationDefaultInSeconds": "3600",
    "subscriptionExpirationTimeMinutes": "60", "brokerDeleteInactiveTopicsEnabled": "true",
    "brokerDeleteInactiveTopicsMode": "delete_when_subscriptions_caught_up", "delayedDeliveryEnabled": "false",
    "activeConsumerFailoverDelayTimeMillis": "1000", "subscriptionTypesEnabled": "Exclusive,Failover",
}  # fmt: skip


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is given time to answer."""
    monkeypatch.setattr(module, "_CALL", 60.0)
    monkeypatch.setattr(module, "_LIMIT", 120.0)


async def examine(config: Configuration, topic: str | None = None) -> Facts:
    return Facts(config, frozenset(RIGHTS), await collect_facts(config, topic))


@pytest.fixture(scope="module")
def other_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LaunchedBroker]:
    """A broker with settings that cost something."""
    broker = LaunchedBroker(tmp_path_factory.mktemp("doctor"), "400m", CHANGED)
    broker.start()
    yield broker
    broker.kill()


def call(broker: TestBroker, method: str, path: str, body: object = None, token: str = "-") -> Any:
    """A call of the REST interface."""
    url, headers = f"{broker.web_service_url}/admin/v2/{path}", {"Authorization": f"Bearer {token}"}
    answer = httpx.request(method, url, json=body, headers=headers, timeout=30)
    return answer.raise_for_status().json() if method == "GET" else answer.raise_for_status()


def states(facts: Facts) -> dict[str, str]:
    return {check.name: check.judge(facts)[0].value for check in CHECKS}


def names(facts: Facts, state: str) -> set[str]:
    return {name for name, found in states(facts).items() if found == state}


@pytest.mark.parametrize("transport", ["pulsar-client", "wire"])
async def test_a_broker_of_ours_has_everything(pulsar_broker: TestBroker, transport: Any) -> None:
    """But authentication; and nothing stays behind."""
    namespace = f"public/doctor-{uuid.uuid4().hex[:12]}"
    call(pulsar_broker, "PUT", f"namespaces/{namespace}")
    facts = await examine(load(f"{pulsar_broker.url}&jms.systemNamespace={namespace}", transport=transport))
    assert call(pulsar_broker, "GET", f"persistent/{namespace}") == []
    assert states(facts) == {check.name: "ok" for check in CHECKS} | {"authentication": "warning"}
    assert -2 < facts.known("skew") < 2 and facts.known("version")[0].isdigit()


async def test_a_broker_without_transactions_refuses_transacted_sessions_at_once(other_broker: LaunchedBroker) -> None:
    """With the settings to change."""
    async with jmsaio.connect(other_broker.url, enable_transaction=True) as connection:
        with pytest.raises(IllegalStateError, match="transactionCoordinatorEnabled=true and systemTopicEnabled=true"):
            async with connection.create_session(AcknowledgeMode.TRANSACTED):
                pass


async def test_settings_that_cost_something_are_found(other_broker: LaunchedBroker) -> None:
    facts = await examine(load(other_broker.url))
    assert names(facts, "missing") == {"subscription types"}
    assert names(facts, "warning") == {
        "authentication", "transactions", "filter", "batch acknowledgement", "unacknowledged limits", "topic creation",
        "subscription creation", "backlog quota", "time to live", "idle subscriptions", "inactive topics",
        "delayed delivery", "failover delay",
    }  # fmt: skip
    assert names(facts, "unknown") == {"produce", "consume", "rest", "administer"}  # no topic to try them on
    assert "not tried" in str(facts.found["administer"])  # the REST interface is not shown to be this broker's
    assert "does not create topics" in str(facts.found["produce"])
    topic = f"persistent://public/default/doctor-{uuid.uuid4()}"
    path = topic.replace("://", "/")
    call(other_broker, "PUT", f"{path}/partitions", 2)
    facts = await examine(load(other_broker.url), topic)
    assert names(facts, "unknown") == set()
    assert [states(facts)[name] for name in ("produce", "consume", "rest")] == ["ok", "ok", "ok"]
    assert call(other_broker, "GET", f"{path}-partition-0/subscriptions") == []


async def test_policies_of_the_namespace_are_found(other_broker: LaunchedBroker) -> None:
    """They make most of what the broker's settings do good again."""
    namespace = f"public/doctor-{uuid.uuid4().hex[:12]}"
    policies: dict[str, Any] = {
        "messageTTL": 0, "maxUnackedMessagesPerSubscription": 0, "subscriptionExpirationTime": 0,
        "autoTopicCreation": {"allowAutoTopicCreation": True, "topicType": "non-partitioned"},
        "autoSubscriptionCreation": {"allowAutoSubscriptionCreation": True},
        "subscriptionTypesEnabled": ["Exclusive", "Failover", "Shared"],
        "delayedDelivery": {"active": True, "tickTime": 100},
        "backlogQuota": {"limitSize": 10**7, "policy": "producer_exception"},
    }  # fmt: skip
    call(other_broker, "PUT", f"namespaces/{namespace}")
    for name, value in policies.items():
        call(other_broker, "POST", f"namespaces/{namespace}/{name}", value)
    facts = await examine(load(f"{other_broker.url}&jms.systemNamespace={namespace}"))
    assert names(facts, "unknown") == names(facts, "missing") == set()
    assert names(facts, "warning") == {
        "authentication", "transactions", "filter", "batch acknowledgement", "inactive topics", "failover delay"
    }  # fmt: skip


async def test_a_namespace_that_does_not_exist_is_missing(pulsar_broker: TestBroker) -> None:
    facts = await examine(load(f"{pulsar_broker.url}&jms.systemNamespace=public/no-such-namespace"))
    assert states(facts)["administer"] == "missing"


@pytest.mark.parametrize(
    ("role", "grants", "has", "transport"),
    [
        (auth.ADMIN, [], RIGHTS, "pulsar-client"),
        (auth.APP, [], ("produce", "consume"), "pulsar-client"),
        (auth.APP, [], ("produce", "consume"), "wire"),
        ("doctor-reader", ["consume"], ("consume",), "wire"),
        ("doctor-writer", ["produce"], ("produce",), "pulsar-client"),
        (auth.GUEST, [], (), "pulsar-client"),
        (auth.GUEST, [], (), "wire"),
    ],
)
async def test_the_rights_of_each_role(
    secure_broker: SecureBroker, role: str, grants: list[str], has: tuple[str, ...], transport: str
) -> None:
    if grants:
        path = f"namespaces/public/default/permissions/{role}"
        call(secure_broker, "POST", path, grants, secure_broker.token(auth.ADMIN))
    with anyio.fail_after(120):  # a broker that has just started may not know yet whether it has transactions
        while True:
            facts = await examine(
                load(secure_broker.options(params=secure_broker.token(role)) | {"transport": transport})
            )
            found = states(facts)
            if found["transactions"] != "unknown":
                break
    expected = {name: "ok" if name in has else "missing" for name in RIGHTS}
    if "consume" not in has:
        expected["administer"] = "unknown"  # only a consumer proves whose the REST interface is
    assert {name: found[name] for name in RIGHTS} == expected
    others = {check.name: check.judge(facts) for check in CHECKS}
    assert {others[name][0].value for name in ("broker", "authentication", "transactions")} == {"ok"}, others
    assert found["rest"] == ("ok" if "consume" in has else "unknown")
    assert {found["filter"], found["clock"]} == ({"ok"} if role == auth.ADMIN else {"unknown", "ok"})


@pytest.mark.parametrize(("tls", "transport"), [(False, "pulsar-client"), (True, "pulsar-client"), (True, "wire")])
async def test_credentials_that_are_refused(secure_broker: SecureBroker, tls: bool, transport: str) -> None:
    """Which rights the client has is not known then: nothing is said about them."""
    token = secure_broker.token(key=b"x" * 32)
    facts = await examine(load(secure_broker.options(tls=tls, params=token) | {"transport": transport}))
    assert isinstance(facts.found["connected"], JMSSecurityError)
    assert names(facts, "missing") == {"broker", "rest"}
    assert names(facts, "ok") | names(facts, "warning") == set()
    assert token not in str(facts)


async def test_another_clusters_rest_interface_is_not_believed(
    pulsar_broker: TestBroker, other_broker: LaunchedBroker
) -> None:
    facts = await examine(load(f"{pulsar_broker.service_url}?webServiceUrl={other_broker.web_service_url}"))
    assert facts.found["same cluster"] is False
    assert names(facts, "missing") == {"rest"}
    assert names(facts, "ok") == {"broker", "version", "produce", "consume"}


async def test_without_the_rest_interface(pulsar_broker: TestBroker) -> None:
    facts = await examine(load(f"{pulsar_broker.service_url}?jms.usePulsarAdmin=false"))
    assert names(facts, "ok") == {"broker", "produce", "consume"}
    assert names(facts, "warning") == {"authentication", "rest"}
    assert "jms.usePulsarAdmin=false" in str(facts.found["settings"])


async def test_an_address_where_no_broker_is(pulsar_broker: TestBroker) -> None:
    """Nothing there, and something else: the REST interface speaks no binary protocol."""
    other = pulsar_broker.web_service_url.removeprefix("http://")
    for url in ("pulsar://127.0.0.1:1", f"pulsar://{other}"):
        facts = await examine(load(f"{url}?webServiceUrl=http://127.0.0.1:1&connect_timeout=2"))
        assert isinstance(facts.found["connected"], JMSError)
        assert names(facts, "missing") == {"broker", "rest"}
        assert len(names(facts, "unknown")) == len(CHECKS) - 2
