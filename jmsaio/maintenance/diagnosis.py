"""The checks of ``jmsaio doctor``: a table of questions, consequences, remedies, and functions that judge them.

Nothing here contacts a broker: ``jmsaio.transport.registry.collect_facts`` does. A fact that could not be obtained is
the error with the reason; a check that needs it ends as unknown. Nothing is guessed.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from jmsaio.config import Configuration
from jmsaio.errors import JMSError

#: Major version of the broker in the tests.
_TESTED = "4"
#: Maximum difference of the two clocks, in seconds.
_SKEW = 2.0


class CheckState(enum.Enum):
    """Result of a check. Only ``MISSING`` makes the command fail."""

    OK = "ok"
    WARNING = "warning"
    MISSING = "missing"
    UNKNOWN = "unknown"


@attrs.frozen
class Facts:
    """Facts about a broker, ``found`` by name; a JMSError is the reason why one is unknown.

    ``needed`` has the rights that the client needs: ``produce``, ``consume``, ``administer``. The facts are
    ``connected``: the broker accepts the client; ``anonymous``: also one without credentials; the rights that it has;
    ``same cluster``: the REST interface lists a reader that was opened at the broker; ``version``; ``skew``: seconds
    that this machine's clock is ahead; the broker's ``settings``; ``policies`` of the namespace, None if it does not
    exist; ``transactions``: the broker has a coordinator.
    """

    config: Configuration
    needed: frozenset[str]
    found: Mapping[str, Any]

    def known(self, name: str) -> Any:
        """Return a fact. Raises JMSError if it is unknown."""
        fact = self.found[name]
        if isinstance(fact, JMSError):
            raise fact
        return fact

    def setting(self, name: str) -> str:
        """Return a setting of the broker. Raises JMSError if it is unknown."""
        found = self.known("settings").get(name)
        if found is None:
            raise JMSError(f"the broker does not show its setting {name}")
        return str(found)

    def policy(self, name: str, default: Any = None) -> Any:
        """Return a policy of the namespace; ``default`` if it has none. Raises JMSError if it is unknown."""
        found = (self.known("policies") or {}).get(name)
        return default if found is None else found


#: Returns the state and what was found. Raises JMSError with the reason if the answer is unknown.
Judge = Callable[[Facts], tuple[CheckState, str]]


@attrs.frozen
class Check:
    """A row of the table: question, consequence of the wrong answer, remedy, and the function that judges it."""

    name: str
    question: str
    consequence: str
    change: str
    _judge: Judge

    def judge(self, facts: Facts) -> tuple[CheckState, str]:
        try:
            return self._judge(facts)
        except JMSError as error:
            return CheckState.UNKNOWN, f"not known: {error}"


def _warn_if(bad: bool, found: str) -> tuple[CheckState, str]:
    return (CheckState.WARNING if bad else CheckState.OK), found


def _switch(setting: str, policy: str = "", key: str = "") -> Judge:
    """Judge a switch that should be on: ``key`` of the namespace's policy if set, else the broker's setting."""

    def judge(facts: Facts) -> tuple[CheckState, str]:
        own = facts.policy(policy, {}).get(key) if policy else None
        value = facts.setting(setting) if own is None else str(own).lower()
        return _warn_if(value != "true", f"{setting}={value}")

    return judge


def _zero(setting: str, policy: str = "") -> Judge:
    """Judge a number that should be 0: the namespace's policy if set, else the broker's setting."""

    def judge(facts: Facts) -> tuple[CheckState, str]:
        own = facts.policy(policy) if policy else None
        value = int(facts.setting(setting) if own is None else own)
        return _warn_if(value > 0, f"{setting}={value}")

    return judge


def _broker(facts: Facts) -> tuple[CheckState, str]:
    connected = facts.found["connected"]
    if isinstance(connected, JMSError):
        return CheckState.MISSING, str(connected)
    return CheckState.OK, f"{facts.config.service_url} answers, and accepts this client"


def _version(facts: Facts) -> tuple[CheckState, str]:
    version = facts.known("version")
    return _warn_if(version.partition(".")[0] != _TESTED, f"Pulsar {version}")


def _authentication(facts: Facts) -> tuple[CheckState, str]:
    accepts = facts.known("anonymous")
    return _warn_if(accepts, f"the broker {'accepts' if accepts else 'refuses'} clients without credentials")


def _right(name: str) -> Judge:
    def judge(facts: Facts) -> tuple[CheckState, str]:
        where = facts.config.system_namespace
        if name == "administer" and facts.found["policies"] is None:
            return CheckState.MISSING, f"there is no namespace {where}"
        if facts.known(name):
            return CheckState.OK, f"this client is allowed to {name} in {where}"
        state = CheckState.MISSING if name in facts.needed else CheckState.WARNING
        return state, f"this client has no right to {name} in {where}"

    return judge


def _rest(facts: Facts) -> tuple[CheckState, str]:
    config, same, version = facts.config, facts.found["same cluster"], facts.found["version"]
    if not config.use_pulsar_admin:
        return CheckState.WARNING, "switched off with jms.usePulsarAdmin=false"
    if isinstance(version, JMSError):
        return CheckState.MISSING, str(version)
    if isinstance(same, JMSError):
        text = f"{config.web_service_url} answers; whether it is of this broker's cluster is not known: {same}"
        return (CheckState.UNKNOWN if config.web_service_named else CheckState.MISSING), text
    if not same:
        return CheckState.MISSING, f"{config.web_service_url} is the REST interface of another cluster"
    return CheckState.OK, f"{config.web_service_url} is of the same cluster"


def _transactions(facts: Facts) -> tuple[CheckState, str]:
    enabled = facts.known("transactions")
    if not enabled and facts.config.enable_transaction:
        return CheckState.MISSING, "disabled; this client has enableTransaction=true"
    return _warn_if(not enabled, "enabled" if enabled else "disabled")


def _filter(facts: Facts) -> tuple[CheckState, str]:
    own = facts.policy("entryFilters", {}).get("entryFilterNames")
    names = _names(own or facts.setting("entryFilterNames"))
    if "jms" not in names:
        return CheckState.WARNING, f"not installed; entry filters: {', '.join(names) or 'none'}"
    delay = facts.setting("dispatcherEntryFilterRescheduledMessageDelay")
    return CheckState.OK, f"installed; dispatcherEntryFilterRescheduledMessageDelay={delay}"


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.strip("[]").split(",") if name.strip()]


def _unacknowledged(facts: Facts) -> tuple[CheckState, str]:
    kept, limits = facts.config.max_unacknowledged_rejected, {}
    for kind in ("Consumer", "Subscription"):
        own = facts.policy(f"max_unacked_messages_per_{kind.lower()}")
        setting = f"maxUnackedMessagesPer{kind}"
        limits[setting] = int(facts.setting(setting) if own is None else own)
    shown = ", ".join(f"{setting}={limit}" for setting, limit in limits.items())
    bad = any(0 < limit <= kept for limit in limits.values())
    return _warn_if(bad, f"{shown}; the client keeps up to {kept} rejected messages")


def _types(facts: Facts) -> tuple[CheckState, str]:
    types = facts.policy("subscription_types_enabled") or _names(facts.setting("subscriptionTypesEnabled"))
    lacking = sorted({"Exclusive", "Failover", "Shared"} - set(types))
    if lacking:
        return CheckState.MISSING, f"not allowed: {', '.join(lacking)}"
    return CheckState.OK, ", ".join(sorted(types))


def _backlog(facts: Facts) -> tuple[CheckState, str]:
    policies = [quota["policy"] for quota in facts.policy("backlog_quota_map", {}).values()]
    limits = [facts.setting(f"backlogQuotaDefaultLimit{unit}") for unit in ("Bytes", "Second")]
    if not policies and any(int(limit) > 0 for limit in limits):
        policies = [facts.setting("backlogQuotaDefaultRetentionPolicy")]
    return _warn_if("consumer_backlog_eviction" in policies, ", ".join(policies) or "no limit")


def _inactive(facts: Facts) -> tuple[CheckState, str]:
    own = facts.policy("inactive_topic_policies", {})
    deletes = own.get("deleteWhileInactive", facts.setting("brokerDeleteInactiveTopicsEnabled") == "true")
    mode = own.get("inactiveTopicDeleteMode", facts.setting("brokerDeleteInactiveTopicsMode"))
    return _warn_if(deletes and mode != "delete_when_no_subscriptions", mode if deletes else "inactive topics are kept")


def _clock(facts: Facts) -> tuple[CheckState, str]:
    skew = facts.known("skew")
    if abs(skew) <= _SKEW:
        return CheckState.OK, f"within {_SKEW:g} s of the broker's"
    return CheckState.WARNING, f"{abs(skew):.1f} s {'ahead of' if skew > 0 else 'behind'} the broker's"


_GRANT = "pulsar-admin namespaces grant-permission NAMESPACE --role ROLE --actions"
_AUTO_SUBSCRIPTION = "allowAutoSubscriptionCreation"
#: The checks, in the order of the output.
CHECKS = (
    Check("broker", "Does the broker answer, and accept this client?", "Nothing works.",
          "correct what the message names; 'jmsaio guide security' lists each error", _broker),
    Check("version", "Do the tests run with this version?", "Small differences are possible.",
          f"use Pulsar {_TESTED}", _version),
    Check("authentication", "Does the broker ask who its clients are?",
          "Anyone who can reach it can read, send and delete everything.",
          "set authenticationEnabled and authorizationEnabled; 'jmsaio guide security'", _authentication),
    Check("produce", "May this client send?", "Every send fails.", f"{_GRANT} produce", _right("produce")),
    Check("consume", "May this client receive?",
          "Consumers and browsers fail, and so do sends to queues: they can't create the queue's subscription.",
          f"{_GRANT} consume", _right("consume")),
    Check("administer", "May this client administer the namespace?",
          "Temporary queues and topics (request and reply) and 'jmsaio sweep' fail; nothing else needs it.",
          "create the namespace, or make the role one of its tenant's adminRoles", _right("administer")),
    Check("rest", "Is the REST interface there, and of the same cluster?",
          "Creating a queue's subscription, temporary destinations and unsubscribe fail, or happen elsewhere.",
          "set webServiceUrl=http://host:port of this cluster", _rest),
    Check("transactions", "Does the broker have transactions?",
          "Transacted sessions with enableTransaction=true fail, here and in Java; emulated transactions work.",
          "set transactionCoordinatorEnabled=true and systemTopicEnabled=true; in a cluster, also run"
          " 'bin/pulsar initialize-transaction-coordinator-metadata' once", _transactions),
    Check("filter", "Is Starlight's selector filter installed?",
          "The broker sends all messages to clients, which apply their selectors.",
          "'jmsaio broker filter FOLDER' writes it; set entryFilterNames=jms and entryFiltersDirectory", _filter),
    Check("batch acknowledgement", "Can single messages of a batch be acknowledged?",
          "One message that is not acknowledged causes its whole batch to be redelivered.",
          "set acknowledgmentAtBatchIndexLevelEnabled=true", _switch("acknowledgmentAtBatchIndexLevelEnabled")),
    Check("unacknowledged limits", "Does the broker send on while the client keeps rejected messages?",
          "A consumer with a selector receives nothing more once it has rejected that many.",
          "raise both limits (0: none), or lower max_unacknowledged_rejected", _unacknowledged),
    Check("topic creation", "Does the first use of a topic create it?", "Destinations that don't exist are refused.",
          "create them beforehand, or set allowAutoTopicCreation=true",
          _switch("allowAutoTopicCreation", "autoTopicCreationOverride", "allowAutoTopicCreation")),
    Check("subscription creation", "Does the first use of a subscription create it?",
          "Durable topic subscriptions must be created beforehand; queues and others need the REST interface.",
          "set allowAutoSubscriptionCreation=true",
          _switch(_AUTO_SUBSCRIPTION, "autoSubscriptionCreationOverride", _AUTO_SUBSCRIPTION)),
    Check("subscription types", "Are the types of queues and topics allowed?",
          "Consumers of the other types are refused.", "add them to subscriptionTypesEnabled", _types),
    Check("backlog quota", "Is everything kept that no one has received yet?",
          "Messages that were not received are deleted when the quota is reached.",
          "choose the policy producer_request_hold or producer_exception", _backlog),
    Check("time to live", "Are messages without an expiration kept?",
          "Messages that were not received in that time are dropped.", "set the namespace's message TTL to 0",
          _zero("ttlDurationDefaultInSeconds", "message_ttl_in_seconds")),
    Check("idle subscriptions", "Are subscriptions without consumers kept?",
          "Queues and durable subscriptions lose messages that are sent after that.",
          "set subscriptionExpirationTimeMinutes=0",
          _zero("subscriptionExpirationTimeMinutes", "subscription_expiration_time_minutes")),
    Check("inactive topics", "Are topics with subscriptions kept?",
          "Queues and durable subscriptions lose messages that are sent after that.",
          "set brokerDeleteInactiveTopicsMode=delete_when_no_subscriptions", _inactive),
    Check("delayed delivery", "Are messages held back until they are due?",
          "Messages with a delivery delay arrive at once.", "set delayedDeliveryEnabled=true",
          _switch("delayedDeliveryEnabled", "delayed_delivery_policies", "active")),
    Check("failover delay", "Does the next consumer of a failover subscription start at once?",
          "It might receive nothing until the consumers change again: 'jmsaio guide reliability'.",
          "set activeConsumerFailoverDelayTimeMillis=0", _zero("activeConsumerFailoverDelayTimeMillis")),
    Check("clock", "Do this machine's clock and the broker's agree?",
          "Messages expire, and delayed ones arrive, too early or too late.", "synchronize both clocks", _clock),
)  # fmt: skip
