"""The table of checks: what each judges good, and what it doesn't; what is not known is never guessed."""

from __future__ import annotations

import re
from typing import Any

import attrs
import pytest

from jmsaio.config import load
from jmsaio.errors import JMSError
from jmsaio.maintenance.diagnosis import CHECKS, Check, CheckState, Facts

#: Of a broker that `jmsaio broker start` has started.
SETTINGS = {
    "acknowledgmentAtBatchIndexLevelEnabled": "true", "entryFilterNames": "[jms]", "allowAutoTopicCreation": "true",
    "dispatcherEntryFilterRescheduledMessageDelay": "1000", "maxUnackedMessagesPerConsumer": "0",
    "maxUnackedMessagesPerSubscription": "0", "allowAutoSubscriptionCreation": "true",
    "subscriptionTypesEnabled": "[Failover, Shared, Key_Shared, Exclusive]",
    "backlogQuotaDefaultLimitBytes": "-1", "backlogQuotaDefaultLimitSecond": "-1",
    "backlogQuotaDefaultRetentionPolicy": "producer_request_hold", "ttlDurationDefaultInSeconds": "0",
    "subscriptionExpirationTimeMinutes": "0", "brokerDeleteInactiveTopicsEnabled": "false",
    "brokerDeleteInactiveTopicsMode": "delete_when_no_subscriptions", "delayedDeliveryEnabled": "true",
    "activeConsumerFailoverDelayTimeMillis": "0",
}  # fmt: skip
GOOD: dict[str, Any] = {
    "connected": None, "anonymous": False, "produce": True, "consume": True, "administer": True, "same cluster": True,
    "version": "4.0.7", "skew": 0.3, "settings": SETTINGS, "policies": {}, "transactions": True,
}  # fmt: skip
NAMED = "pulsar://h?webServiceUrl=http://h:8080"


def facts(url: str = NAMED, needed: tuple[str, ...] = ("produce", "consume"), **changed: Any) -> Facts:
    """The facts about a good broker, but for these; settings and policies are added."""
    added = {name: {**GOOD[name], **changed.pop(name, {})} for name in ("settings", "policies")}
    return Facts(load(url), frozenset(needed), {**GOOD, **added, **changed})


def outcome(name: str, given: Facts) -> tuple[str, str]:
    state, found = next(check for check in CHECKS if check.name == name).judge(given)
    return state.value, found


def test_a_good_broker_lacks_nothing() -> None:
    assert {
        check.name: check.judge(facts())[0] for check in CHECKS if check.judge(facts())[0] is not CheckState.OK
    } == {}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: str(check.name))
def test_each_row_says_what_follows_and_what_to_do(check: Check) -> None:
    assert check.question.endswith("?")
    assert check.consequence and check.change


def test_transactions_are_needed_by_a_client_that_uses_them() -> None:
    given = facts(f"{NAMED}&enableTransaction=true", transactions=False)
    assert outcome("transactions", given) == ("missing", "disabled; this client has enableTransaction=true")


@pytest.mark.parametrize(
    ("name", "setting", "value", "found"),
    [
        ("filter", "entryFilterNames", "[]", "not installed; entry filters: none"),
        ("filter", "entryFilterNames", "[a, b]", "not installed; entry filters: a, b"),
        ("batch acknowledgement", "acknowledgmentAtBatchIndexLevelEnabled", "false", "LevelEnabled=false"),
        ("unacknowledged limits", "maxUnackedMessagesPerConsumer", "40000", "PerConsumer=40000.*up to 40000 rejected"),
        ("unacknowledged limits", "maxUnackedMessagesPerSubscription", "9", "PerSubscription=9; "),
        ("topic creation", "allowAutoTopicCreation", "false", "allowAutoTopicCreation=false"),
        ("subscription creation", "allowAutoSubscriptionCreation", "false", "allowAutoSubscriptionCreation=false"),
        ("time to live", "ttlDurationDefaultInSeconds", "60", "ttlDurationDefaultInSeconds=60"),
        ("idle subscriptions", "subscriptionExpirationTimeMinutes", "5", "ExpirationTimeMinutes=5"),
        ("delayed delivery", "delayedDeliveryEnabled", "false", "delayedDeliveryEnabled=false"),
        ("failover delay", "activeConsumerFailoverDelayTimeMillis", "1000", "DelayTimeMillis=1000"),
    ],
)
def test_a_setting_that_costs_something_is_a_warning(name: str, setting: str, value: str, found: str) -> None:
    state, text = outcome(name, facts(settings={setting: value}))
    assert state == "warning"
    assert re.search(found, text) is not None, text


@pytest.mark.parametrize(
    ("name", "policies", "setting"),
    [
        ("filter", {"entryFilters": {"entryFilterNames": "other"}}, {}),
        ("unacknowledged limits", {"max_unacked_messages_per_consumer": 100}, {}),
        ("unacknowledged limits", {"max_unacked_messages_per_subscription": 100}, {}),
        ("topic creation", {"autoTopicCreationOverride": {"allowAutoTopicCreation": False}}, {}),
        ("subscription creation", {"autoSubscriptionCreationOverride": {"allowAutoSubscriptionCreation": False}}, {}),
        ("backlog quota", {"backlog_quota_map": {"message_age": {"policy": "consumer_backlog_eviction"}}}, {}),
        ("backlog quota", {}, {"backlogQuotaDefaultLimitBytes": "9"}),
        ("time to live", {"message_ttl_in_seconds": 60}, {}),
        ("idle subscriptions", {"subscription_expiration_time_minutes": 5}, {}),
        ("inactive topics", {"inactive_topic_policies": {"deleteWhileInactive": True}}, {}),
        ("inactive topics", {}, {"brokerDeleteInactiveTopicsEnabled": "true"}),
        ("delayed delivery", {"delayed_delivery_policies": {"active": False}}, {}),
    ],
)
def test_the_namespaces_policy_comes_before_the_brokers_setting(
    name: str, policies: dict[str, Any], setting: dict[str, str]
) -> None:
    evicting = {"backlogQuotaDefaultRetentionPolicy": "consumer_backlog_eviction"}
    caught_up = {"brokerDeleteInactiveTopicsMode": "delete_when_subscriptions_caught_up"}
    given = facts(policies=policies, settings={**evicting, **caught_up, **setting})
    assert outcome(name, given)[0] == "warning"
    allowed = facts(policies=policies | {"subscription_types_enabled": []}, settings=setting)
    assert outcome("subscription types", allowed)[0] == "ok"


def test_a_policy_can_also_be_better_than_the_setting() -> None:
    bad = {"ttlDurationDefaultInSeconds": "60", "allowAutoTopicCreation": "false", "entryFilterNames": "[]"}
    policies = {
        "message_ttl_in_seconds": 0, "autoTopicCreationOverride": {"allowAutoTopicCreation": True},
        "entryFilters": {"entryFilterNames": "a, jms"},
    }  # fmt: skip
    for name in ("time to live", "topic creation", "filter"):
        assert outcome(name, facts(settings=bad))[0] == "warning"
        assert outcome(name, facts(settings=bad, policies=policies))[0] == "ok"


def test_a_type_of_subscription_that_is_needed_is_missing() -> None:
    given = facts(policies={"subscription_types_enabled": ["Exclusive", "Key_Shared"]})
    assert outcome("subscription types", given) == ("missing", "not allowed: Failover, Shared")


def test_only_a_needed_right_is_missing() -> None:
    given: dict[str, Any] = {"produce": False, "consume": False, "administer": False}
    states = [outcome(name, facts(needed=("consume",), **given))[0] for name in given]
    assert states == ["warning", "missing", "warning"]
    assert outcome("administer", facts(needed=("administer",), **given))[0] == "missing"
    nowhere = facts("pulsar://h?jms.systemNamespace=a/b", **given)
    nowhere = attrs.evolve(nowhere, found={**nowhere.found, "policies": None})
    assert outcome("administer", nowhere) == ("missing", "there is no namespace a/b")


def test_a_broker_that_refuses_or_is_away_is_missing() -> None:
    assert outcome("broker", facts(connected=JMSError("no token"))) == ("missing", "no token")


@pytest.mark.parametrize(
    ("url", "changed", "state", "part"),
    [
        (NAMED, {"same cluster": False}, "missing", "http://h:8080 is the REST interface of another cluster"),
        (NAMED, {"same cluster": JMSError("why")}, "unknown", "is not known: why"),
        ("pulsar://h", {"same cluster": JMSError("why")}, "missing", "is not known: why"),
        (NAMED, {"version": JMSError("connection refused")}, "missing", "connection refused"),
        ("pulsar://h?jms.usePulsarAdmin=false", {"version": JMSError("off")}, "warning", "jms.usePulsarAdmin=false"),
    ],
)
def test_the_rest_interface(url: str, changed: dict[str, Any], state: str, part: str) -> None:
    found = outcome("rest", facts(url, **changed))
    assert found[0] == state and part in found[1]


@pytest.mark.parametrize(
    ("name", "changed", "found"),
    [
        ("version", {"version": "3.3.1"}, "Pulsar 3.3.1"),
        ("authentication", {"anonymous": True}, "the broker accepts clients without credentials"),
        ("transactions", {"transactions": False}, "disabled"),
        ("clock", {"skew": 2.5}, "2.5 s ahead of the broker's"),
        ("clock", {"skew": -61.0}, "61.0 s behind the broker's"),
    ],
)
def test_what_differs_is_a_warning(name: str, changed: dict[str, Any], found: str) -> None:
    assert outcome(name, facts(**changed)) == ("warning", found)


def test_nothing_is_guessed() -> None:
    """Without any fact no check is good, and each says why."""
    none = Facts(load(NAMED), frozenset(["produce"]), dict.fromkeys(GOOD, JMSError("the reason")))
    found = {check.name: check.judge(none) for check in CHECKS}
    assert {state for name, (state, _) in found.items() if name not in ("broker", "rest")} == {CheckState.UNKNOWN}
    assert all("the reason" in text for _, text in found.values())
    hidden = facts()
    hidden = attrs.evolve(hidden, found={**hidden.found, "settings": {}})
    assert outcome("failover delay", hidden) == (
        "unknown", "not known: the broker does not show its setting activeConsumerFailoverDelayTimeMillis"
    )  # fmt: skip
