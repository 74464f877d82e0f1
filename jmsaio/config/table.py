"""Every option of the connection, one row each: Starlight's top-level names and our own.

Rows of ``producerConfig`` and ``consumerConfig`` are in ``jmsaio.config.table_streams``. Defaults have the row's unit.
Our own options have no ``jms.`` prefix; their name is the field's name and their durations are seconds.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from jmsaio.config.options import Kind, Option, Section, Status

MIB = 1024 * 1024
#: Values of ``jms.topicSharedSubscriptionType``.
SHARED_TYPES = ("Shared", "Key_Shared", "Failover")


def _row(section: Section, key: str, kind: Kind, default: object, field: str = "", **more: Any) -> Option:
    return Option(key=key, section=section, kind=kind, default=default, field=field, **more)


_top = partial(_row, Section.CONNECTION)
_client = partial(_row, Section.CLIENT)
_F, _T, _I, _D, _C, _N = Kind.FLAG, Kind.TEXT, Kind.INTEGER, Kind.DURATION, Kind.CHOICE, Kind.NUMBER
_LATER: dict[str, Any] = {"status": Status.NOT_BUILT}
_NEVER: dict[str, Any] = {"status": Status.NO_MEANING}
_THREADS = "sessions are tasks of the event loop, not threads"
_JKS = "Java key stores are not read; give PEM files: tlsTrustCertsFilePath, tlsCertificateFilePath, tlsKeyFilePath"
_ENGINE = "pulsar-client has no such setting"

JMS = (
    _top("jms.systemNamespace", _T, "public/default", "system_namespace", note="tenant/namespace of short names"),
    _top("jms.clientId", _T, None, "client_id", note="client identifier of every connection"),
    _top("jms.queueSubscriptionName", _T, "jms-queue", "queue_subscription_name", note="subscription of a queue"),
    _top("jms.topicSharedSubscriptionType", _C, "Shared", "topic_shared_subscription_type", choices=SHARED_TYPES,
         note="type of shared topic consumers"),
    _top("jms.useExclusiveSubscriptionsForSimpleConsumers", _F, True,
         "use_exclusive_subscriptions_for_simple_consumers", note="false: plain topic consumers use the shared type"),
    _top("jms.usePulsarAdmin", _F, True, "use_pulsar_admin", note="false: never use the broker's REST interface"),
    _top("jms.allowTemporaryTopicWithoutAdmin", _F, False, "allow_temporary_topic_without_admin",
         note="temporary destinations without the REST interface"),
    _top("jms.precreateQueueSubscription", _F, True, "precreate_queue_subscription",
         note="make a queue's subscription before the first send, and for a consumer where the broker makes none"),
    _top("jms.precreateQueueSubscriptionConsumerQueueSize", _I, 0, **_NEVER, note="without REST it is always 1"),
    _top("jms.waitForServerStartupTimeout", _D, 60000, "wait_for_server_startup_timeout", unit="ms",
         note="creating a queue's subscription is repeated each second for this time"),
    _top("jms.enableClientSideEmulation", _F, None, "enable_client_side_emulation",
         note="false, when given: selectors and noLocal are refused where Java refuses them"),
    _top("jms.useServerSideFiltering", _F, False, **_LATER, note="selectors run in the client"),
    _top("jms.acknowledgeRejectedMessages", _F, False, "acknowledge_rejected_messages",
         note="what a selector rejects on a shared subscription is acknowledged"),
    _top("jms.refreshServerSideFiltersPeriod", _I, 300, unit="s", **_LATER,
         note="belongs to jms.useServerSideFiltering"),
    _top("jms.enableJMSPriority", _F, False, "enable_jms_priority",
         note="partitions by priority, and a consumer takes what it has in order of priority"),
    _top("jms.priorityMapping", _C, "linear", "priority_mapping", choices=("linear", "non-linear"), exact=True,
         note="how priorities are spread over partitions"),
    _top("jms.emulateTransactions", _F, False, "emulate_transactions",
         note="transacted sessions where the engine has no transactions: sends go out at once"),
    _top("jms.transactionsStickyPartitions", _F, False, "transactions_sticky_partitions",
         note="the messages of a transaction go to one partition"),
    _top("jms.forceDeleteTemporaryDestinations", _F, False, "force_delete_temporary_destinations",
         note="delete a temporary destination also with clients connected"),
    _top("jms.sessionListenersThreads", _I, None, **_NEVER, note=_THREADS),
    _top("jms.maxMessagesLimitsParallelism", _F, False, **_NEVER, note="there is no ConnectionConsumer"),
    _top("jms.connectionConsumerStopTimeout", _I, 20000, unit="ms", **_NEVER, note="there is no ConnectionConsumer"),
    _top("jms.maxNumOfProducers", _I, 1000, "max_num_of_producers", low=1, note="senders kept open for reuse"),
    _top("jms.producerAutoCloseTimeoutSec", _D, -1, "producer_auto_close", unit="s", off=-1e-9,
         note="idle time after which a kept sender is closed; below 0: never"),
    _top("jms.useCredentialsFromCreateConnection", _F, False, "use_credentials_from_create_connection",
         note="the password of create_connection is the token"),
    _top("jms.tckUsername", _T, None, "tck_username", note="user name that create_connection checks"),
    _top("jms.tckPassword", Kind.SECRET, None, "tck_password", note="password that create_connection checks"),
    _top("jms.useSharedJNDIContext", _F, False, **_NEVER, note="there is no JNDI"),
)  # fmt: skip

BROKER = (
    _top("brokerServiceUrl", _T, "memory:", "service_url", note="where the broker is"),
    _top("webServiceUrl", _T, "", "web_service_url",
         note="REST interface; not given: port 8080 of the broker's first host"),
    _top("enableTransaction", _F, False, **_LATER,
         note="pulsar-client has no transactions; the embedded broker has them anyway"),
    _top("authPlugin", _T, None, "auth_plugin", note="Pulsar's authentication class or its short name"),
    _top("authParams", Kind.SECRET, None, "auth_params", note="parameters of the authentication"),
    _top("tlsAllowInsecureConnection", _F, False, "tls_allow_insecure_connection", note="take any certificate"),
    _top("tlsEnableHostnameVerification", _F, True, "tls_enable_hostname_verification",
         note="the certificate must name the host"),
    _top("tlsTrustCertsFilePath", _T, None, "tls_trust_certs_file_path", note="PEM file of trusted certificates"),
    _top("tlsKeyFilePath", _T, None, "tls_key_file_path", note="PEM file of the client's key"),
    _top("tlsCertificateFilePath", _T, None, "tls_certificate_file_path", note="PEM file of the client's certificate"),
    _top("useKeyStoreTls", _F, False, **_NEVER, note=_JKS),
    _top("tlsTrustStoreType", _T, "JKS", **_NEVER, note=_JKS),
    _top("tlsTrustStorePath", _T, None, **_NEVER, note=_JKS),
    _top("tlsTrustStorePassword", Kind.SECRET, None, **_NEVER, note=_JKS),
    _top("tlsKeyStoreType", _T, "JKS", **_NEVER, note=_JKS),
    _top("tlsKeyStorePath", _T, None, **_NEVER, note=_JKS),
    _top("tlsKeyStorePassword", Kind.SECRET, None, **_NEVER, note=_JKS),
    _top("operationTimeoutMs", _D, 30000, "operation_timeout", unit="ms", low=1, note="one request to the broker"),
    _top("memoryLimitBytes", _I, 64 * MIB, "send_window_bytes", unit="bytes", low=1,
         note="bytes on their way at most, of one sender"),
    _client("statsIntervalSeconds", _I, 0, "stats_interval_in_seconds", unit="s", low=0,
            note="how often pulsar-client logs statistics; 0: never (Starlight: 60)"),
    _client("numIoThreads", _I, 1, "io_threads", low=1, high=1000, note="network threads of pulsar-client"),
    _client("numListenerThreads", _I, 1, "message_listener_threads", low=1, high=1000,
            note="callback threads of pulsar-client"),
    _client("concurrentLookupRequest", _I, 5000, "concurrent_lookup_requests", low=1, note="lookups at the same time"),
    _client("connectionTimeoutMs", _I, 10000, "connection_timeout_ms", unit="ms", low=1,
            note="opening one network connection"),
    _client("listenerName", _T, None, "listener_name", note="which advertised address of the broker is used"),
)  # fmt: skip

#: Fields of Pulsar's Java client that this client can't set.
_REMAINING = (
    ("lookupTimeoutMs", _I, -1, "ms"), ("connectionsPerBroker", _I, 1, ""), ("connectionMaxIdleSeconds", _I, 180, "s"),
    ("useTcpNoDelay", _F, True, ""), ("maxLookupRequest", _I, 50000, ""), ("maxLookupRedirects", _I, 20, ""),
    ("maxNumberOfRejectedRequestPerConnection", _I, 50, ""), ("keepAliveIntervalSeconds", _I, 30, "s"),
    ("requestTimeoutMs", _I, 60000, "ms"), ("readTimeoutMs", _I, 60000, "ms"), ("autoCertRefreshSeconds", _I, 300, "s"),
    ("initialBackoffIntervalNanos", _I, 100_000_000, "ns"), ("maxBackoffIntervalNanos", _I, 60_000_000_000, "ns"),
    ("enableBusyWait", _F, False, ""), ("sslProvider", _T, None, ""), ("tlsCiphers", _T, None, ""),
    ("tlsProtocols", _T, None, ""), ("proxyServiceUrl", _T, None, ""), ("proxyProtocol", _T, None, ""),
    ("dnsLookupBindAddress", _T, None, ""), ("dnsLookupBindPort", _I, 0, ""), ("dnsServerAddresses", _T, None, ""),
    ("socks5ProxyAddress", _T, None, ""), ("socks5ProxyUsername", _T, None, ""),
    ("socks5ProxyPassword", Kind.SECRET, None, ""), ("description", _T, None, ""),
)  # fmt: skip

PULSAR = (
    _top("useTls", _F, False, **_LATER, note="write pulsar+ssl:// in front of the host"),
    *(_top(key, kind, default, unit=unit, **_LATER, note=_ENGINE) for key, kind, default, unit in _REMAINING),
)

_own = partial(_row, Section.CONNECTION)

OURS = (
    _own("strict_client_id", _F, False, "strict_client_id",
         note="refuse an unshared durable subscription of a connection without client id"),
    _own("acknowledge_scope", _C, "session", "acknowledge_scope", choices=("session", "group"), exact=True,
         note="what acknowledge in CLIENT mode covers: all of the session, or up to this message"),
    _own("queue_browser_read_max", _I, 0, "queue_browser_read_max",
         note="messages a browser looks at; 0 and below: all"),
    _own("expired_messages", _C, "remove", "expired_messages", choices=("remove", "dead-letter"), exact=True,
         note="expired messages of queues whose consumer has a deadLetterPolicy: removed, or dead letters"),
    _own("malformed", _C, "raise", "malformed", choices=("raise", "dead-letter", "deliver"), exact=True,
         note="a message that can't be read: raised as an error; a dead letter, where its consumer can make one; "
              "or delivered as a BytesMessage with the properties as they were received"),
    _own("auto_start", _F, True, "auto_start", note="connect() starts the connection"),
    _own("connect_timeout", _D, 30, "connect_timeout", unit="s", low=0.001, note="connecting as a whole"),
    _own("close_timeout", _D, 30, "close_timeout", unit="s", note="bound of every close as a whole"),
    _own("send_window_messages", _I, 5000, "send_window_messages", low=1, high=1_000_000,
         note="messages on their way at most, of one sender"),
    _own("receive_buffer", _I, 1000, "receive_buffer", low=1, high=1_000_000,
         note="received messages held in Python, of one session"),
    _own("receive_buffer_bytes", _I, 64 * MIB, "receive_buffer_bytes", unit="bytes", low=1,
         note="bytes of messages received in advance, of one connection; one message of each consumer may go beyond"),
    _own("max_unacknowledged_rejected", _I, 40_000, "max_unacknowledged_rejected", low=1, high=1_000_000,
         note="what a selector may reject and keep unacknowledged on Pulsar, of one consumer of a queue or shared "
              "subscription; 1000000 at most. Keep it below the broker's maxUnackedMessagesPerConsumer (50000) and, "
              "for all consumers of a subscription together, maxUnackedMessagesPerSubscription (200000)"),
    _own("memory_limit", _I, 256 * MIB, "memory_limit", unit="bytes", low=1,
         note="bytes that an embedded broker stores"),
    _own("listener_concurrency", _I, 1, "listener_concurrency", low=1, high=1000,
         note="listener calls at the same time, of one session; 1000 at most"),
    _own("max_local_redeliveries", _I, 6, "max_local_redeliveries", low=0,
         note="how often a message whose listener failed is tried again at once"),
)  # fmt: skip

CONNECTION = (*BROKER, *JMS, *PULSAR, *OURS)
