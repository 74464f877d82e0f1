"""Options of Starlight that have no field here: known by name, and refused unless they ask for what happens anyway.

The options that jmsaio can set are declared on the fields of ``Configuration``, ``ProducerConfig``, ``ConsumerConfig``
and the classes that these hold.
"""

from __future__ import annotations

from functools import partial

from jmsaio.config.options import Kind, Option, Section, Status

_F, _T, _I, _C, _M, _S = Kind.FLAG, Kind.TEXT, Kind.INTEGER, Kind.CHOICE, Kind.MAP, Kind.SECRET
_JKS = "Java key stores are not read; give PEM files: tlsTrustCertsFilePath, tlsCertificateFilePath, tlsKeyFilePath"
_NATIVE = "pulsar-client has no such setting"
_JAVA = "takes a Java object"
_CALL = "decided by the destination and by the call that creates the consumer"
_PLAIN = "messages are not encrypted"
_NO_POOL = "there is no ConnectionConsumer"


def _row(
    status: Status, section: Section, key: str, kind: Kind, default: object, doc: str, unit: str = "", *choices: str
) -> Option:
    return Option(key, section, kind, default, unit=unit, status=status, choices=choices, doc=doc)


_accepted, _later, _never = (partial(_row, status) for status in Status)
_TOP, _PRODUCER, _CONSUMER = Section.CONNECTION, Section.PRODUCER, Section.CONSUMER

CONNECTION = (
    _later(_TOP, "enableTransaction", _F, False,
           "pulsar-client has no transactions; the embedded broker always has them"),
    _later(_TOP, "jms.useServerSideFiltering", _F, False, "selectors run in the client"),
    _later(_TOP, "jms.refreshServerSideFiltersPeriod", _I, 300, "belongs to jms.useServerSideFiltering", "s"),
    _later(_TOP, "useTls", _F, False, "write pulsar+ssl:// in front of the host"),
    _later(_TOP, "lookupTimeoutMs", _I, -1, _NATIVE, "ms"),
    _later(_TOP, "connectionsPerBroker", _I, 1, _NATIVE),
    _later(_TOP, "connectionMaxIdleSeconds", _I, 180, _NATIVE, "s"),
    _later(_TOP, "useTcpNoDelay", _F, True, _NATIVE),
    _later(_TOP, "maxLookupRequest", _I, 50000, _NATIVE),
    _later(_TOP, "maxLookupRedirects", _I, 20, _NATIVE),
    _later(_TOP, "maxNumberOfRejectedRequestPerConnection", _I, 50, _NATIVE),
    _later(_TOP, "keepAliveIntervalSeconds", _I, 30, _NATIVE, "s"),
    _later(_TOP, "requestTimeoutMs", _I, 60000, _NATIVE, "ms"),
    _later(_TOP, "readTimeoutMs", _I, 60000, _NATIVE, "ms"),
    _later(_TOP, "autoCertRefreshSeconds", _I, 300, _NATIVE, "s"),
    _later(_TOP, "initialBackoffIntervalNanos", _I, 100_000_000, _NATIVE, "ns"),
    _later(_TOP, "maxBackoffIntervalNanos", _I, 60_000_000_000, _NATIVE, "ns"),
    _later(_TOP, "enableBusyWait", _F, False, _NATIVE),
    _later(_TOP, "sslProvider", _T, None, _NATIVE),
    _later(_TOP, "tlsCiphers", _T, None, _NATIVE),
    _later(_TOP, "tlsProtocols", _T, None, _NATIVE),
    _later(_TOP, "proxyServiceUrl", _T, None, _NATIVE),
    _later(_TOP, "proxyProtocol", _T, None, _NATIVE),
    _later(_TOP, "dnsLookupBindAddress", _T, None, _NATIVE),
    _later(_TOP, "dnsLookupBindPort", _I, 0, _NATIVE),
    _later(_TOP, "dnsServerAddresses", _T, None, _NATIVE),
    _later(_TOP, "socks5ProxyAddress", _T, None, _NATIVE),
    _later(_TOP, "socks5ProxyUsername", _T, None, _NATIVE),
    _later(_TOP, "socks5ProxyPassword", _S, None, _NATIVE),
    _later(_TOP, "description", _T, None, _NATIVE),
    _never(_TOP, "useKeyStoreTls", _F, False, _JKS),
    _never(_TOP, "tlsTrustStoreType", _T, "JKS", _JKS),
    _never(_TOP, "tlsTrustStorePath", _T, None, _JKS),
    _never(_TOP, "tlsTrustStorePassword", _S, None, _JKS),
    _never(_TOP, "tlsKeyStoreType", _T, "JKS", _JKS),
    _never(_TOP, "tlsKeyStorePath", _T, None, _JKS),
    _never(_TOP, "tlsKeyStorePassword", _S, None, _JKS),
    _never(_TOP, "jms.precreateQueueSubscriptionConsumerQueueSize", _I, 0, "without REST it is always 1"),
    _never(_TOP, "jms.sessionListenersThreads", _I, None, "sessions are tasks of the event loop, not threads"),
    _never(_TOP, "jms.maxMessagesLimitsParallelism", _F, False, _NO_POOL),
    _never(_TOP, "jms.connectionConsumerStopTimeout", _I, 20000, _NO_POOL, "ms"),
    _never(_TOP, "jms.useSharedJNDIContext", _F, False, "there is no JNDI"),
)  # fmt: skip

PRODUCER = (
    _accepted(_PRODUCER, "blockIfQueueFull", _F, None,
              "accepted: send always waits for room, without blocking the event loop"),
    _accepted(_PRODUCER, "hashingScheme", _C, "JavaStringHash", "hash of the group id", "", "JavaStringHash"),
    _later(_PRODUCER, "autoUpdatePartitions", _F, True, _NATIVE),
    _later(_PRODUCER, "autoUpdatePartitionsIntervalSeconds", _I, 60, _NATIVE, "s"),
    _later(_PRODUCER, "initialSubscriptionName", _T, None, _NATIVE),
    _later(_PRODUCER, "encryptionKeys", _T, None, _PLAIN),
    _later(_PRODUCER, "cryptoFailureAction", _C, "FAIL", _PLAIN, "", "FAIL", "SEND"),
    _later(_PRODUCER, "maxPendingMessagesAcrossPartitions", _I, 0, "use maxPendingMessages"),
    _later(_PRODUCER, "messageRoutingMode", _C, "RoundRobinPartition", "by group id, else in turn", "",
           "RoundRobinPartition"),
    _later(_PRODUCER, "chunkMaxMessageSize", _I, -1, _NATIVE, "bytes"),
    _never(_PRODUCER, "cryptoKeyReader", _T, None, _JAVA),
    _never(_PRODUCER, "multiSchema", _F, True, "messages are bytes"),
)  # fmt: skip

CONSUMER = (
    _later(_CONSUMER, "retryEnable", _F, False, _NATIVE),
    _later(_CONSUMER, "autoUpdatePartitions", _F, True, _NATIVE),
    _later(_CONSUMER, "autoUpdatePartitionsIntervalSeconds", _I, 60, _NATIVE, "s"),
    _later(_CONSUMER, "maxAcknowledgmentGroupSize", _I, 1000, _NATIVE),
    _later(_CONSUMER, "negativeAckPrecisionBitCnt", _I, 8, _NATIVE),
    _later(_CONSUMER, "tickDurationMillis", _I, 1000, _NATIVE, "ms"),
    _later(_CONSUMER, "expireTimeOfIncompleteChunkedMessageMillis", _I, 60000, _NATIVE, "ms"),
    _later(_CONSUMER, "resetIncludeHead", _F, False, _NATIVE),
    _later(_CONSUMER, "autoScaledReceiverQueueSizeEnabled", _F, False, _NATIVE),
    _never(_CONSUMER, "poolMessages", _F, False, "concerns Java's memory only"),
    _never(_CONSUMER, "startPaused", _F, False, "use auto_start=False or connection.stop()"),
    _never(_CONSUMER, "cryptoKeyReader", _T, None, _JAVA),
    _never(_CONSUMER, "topicNames", _T, None, _CALL),
    _never(_CONSUMER, "topicsPattern", _T, None, _CALL),
    _never(_CONSUMER, "subscriptionName", _T, None, _CALL),
    _never(_CONSUMER, "subscriptionType", _T, None, _CALL),
    _never(_CONSUMER, "subscriptionMode", _T, None, _CALL),
    _never(_CONSUMER, "subscriptionProperties", _M, {}, _CALL),
    _never(_CONSUMER, "subscriptionInitialPosition", _T, None, _CALL),
)  # fmt: skip
