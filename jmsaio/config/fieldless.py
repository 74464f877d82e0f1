"""Options of Starlight that have no field here: known by name, and refused or accepted without an effect.

An option that would change what happens to messages, or how secure the connection is, is refused unless it asks for
what happens anyway. An option that concerns only speed, time limits, threads or Java itself is accepted, with any
value: a map that works in Java loads. The options that jmsaio can set are declared on the fields of ``Configuration``,
``ProducerConfig``, ``ConsumerConfig`` and the classes that these hold.
"""

from __future__ import annotations

from functools import partial

from jmsaio.config.options import Kind, Option, Section, Status

_F, _T, _I, _C, _M, _S = Kind.FLAG, Kind.TEXT, Kind.INTEGER, Kind.CHOICE, Kind.MAP, Kind.SECRET
_JKS = "Java key stores are not read; give PEM files: tlsTrustCertsFilePath, tlsCertificateFilePath, tlsKeyFilePath"
_NATIVE = "pulsar-client has no such setting"
_CALL = "decided by the destination and by the call that creates the consumer, as in Java"
_PLAIN = "messages are not encrypted"
_NO_POOL = "there is no ConnectionConsumer"
_PROXY = "connections take the direct way"


def _row(
    status: Status, section: Section, key: str, kind: Kind, default: object, doc: str, unit: str = "", *choices: str
) -> Option:
    return Option(key, section, kind, default, unit=unit, status=status, choices=choices, doc=doc)


_built, _refused = partial(_row, Status.BUILT), partial(_row, Status.NOT_BUILT)


def _accepted(section: Section, key: str, doc: str, kind: Kind = _T) -> Option:
    return Option(key, section, kind, status=Status.NO_EFFECT, doc=doc)


_TOP, _PRODUCER, _CONSUMER = Section.CONNECTION, Section.PRODUCER, Section.CONSUMER

CONNECTION = (
    _refused(_TOP, "enableTransaction", _F, False,
             "pulsar-client has no transactions; the embedded broker always has them"),
    _refused(_TOP, "jms.useServerSideFiltering", _F, False,
             "selectors run in the client, and those that administrators set on subscriptions are not applied"),
    _refused(_TOP, "useTls", _F, False, "write pulsar+ssl:// in front of the host; beside that it is accepted"),
    _refused(_TOP, "tlsCiphers", _T, None, _NATIVE),
    _refused(_TOP, "tlsProtocols", _T, None, _NATIVE),
    _refused(_TOP, "proxyServiceUrl", _T, None, _PROXY),
    _refused(_TOP, "dnsServerAddresses", _T, None, "names are resolved as the system does"),
    _refused(_TOP, "socks5ProxyAddress", _T, None, _PROXY),
    _refused(_TOP, "socks5ProxyUsername", _T, None, _PROXY),
    _refused(_TOP, "socks5ProxyPassword", _S, None, _PROXY),
    _refused(_TOP, "useKeyStoreTls", _F, False, _JKS),
    _refused(_TOP, "tlsTrustStorePath", _T, None, _JKS),
    _refused(_TOP, "tlsTrustStorePassword", _S, None, _JKS),
    _refused(_TOP, "tlsKeyStorePath", _T, None, _JKS),
    _refused(_TOP, "tlsKeyStorePassword", _S, None, _JKS),
    _accepted(_TOP, "tlsTrustStoreType", "belongs to tlsTrustStorePath"),
    _accepted(_TOP, "tlsKeyStoreType", "belongs to tlsKeyStorePath"),
    _accepted(_TOP, "sslProvider", "names a Java library; pulsar-client and the REST client use OpenSSL"),
    _accepted(_TOP, "autoCertRefreshSeconds", _NATIVE),
    _accepted(_TOP, "jms.refreshServerSideFiltersPeriod", "belongs to jms.useServerSideFiltering"),
    _accepted(_TOP, "jms.precreateQueueSubscriptionConsumerQueueSize", "without REST it is always 1"),
    _accepted(_TOP, "jms.sessionListenersThreads", "sessions are tasks of the event loop, not threads"),
    _accepted(_TOP, "jms.maxMessagesLimitsParallelism", _NO_POOL),
    _accepted(_TOP, "jms.connectionConsumerStopTimeout", _NO_POOL),
    _accepted(_TOP, "jms.useSharedJNDIContext", "there is no JNDI"),
    _accepted(_TOP, "lookupTimeoutMs", "a lookup takes at most operationTimeoutMs"),
    _accepted(_TOP, "requestTimeoutMs", "a call of the REST interface takes at most operationTimeoutMs"),
    _accepted(_TOP, "readTimeoutMs", "a call of the REST interface takes at most operationTimeoutMs"),
    _accepted(_TOP, "connectionsPerBroker", _NATIVE),
    _accepted(_TOP, "connectionMaxIdleSeconds", _NATIVE),
    _accepted(_TOP, "useTcpNoDelay", _NATIVE),
    _accepted(_TOP, "maxLookupRequest", _NATIVE),
    _accepted(_TOP, "maxLookupRedirects", _NATIVE),
    _accepted(_TOP, "maxNumberOfRejectedRequestPerConnection", _NATIVE),
    _accepted(_TOP, "keepAliveIntervalSeconds", _NATIVE),
    _accepted(_TOP, "initialBackoffIntervalNanos", _NATIVE),
    _accepted(_TOP, "maxBackoffIntervalNanos", _NATIVE),
    _accepted(_TOP, "enableBusyWait", _NATIVE),
    _accepted(_TOP, "dnsLookupBindAddress", _NATIVE),
    _accepted(_TOP, "dnsLookupBindPort", _NATIVE),
    _accepted(_TOP, "proxyProtocol", "belongs to proxyServiceUrl"),
    _accepted(_TOP, "description", _NATIVE),
)  # fmt: skip

PRODUCER = (
    _built(_PRODUCER, "blockIfQueueFull", _F, None,
           "accepted: send always waits for room, without blocking the event loop"),
    _built(_PRODUCER, "hashingScheme", _C, "JavaStringHash", "hash of the group id", "", "JavaStringHash"),
    _refused(_PRODUCER, "autoUpdatePartitions", _F, True, "new partitions are always used"),
    _refused(_PRODUCER, "initialSubscriptionName", _T, None, _NATIVE),
    _refused(_PRODUCER, "encryptionKeys", _T, None, _PLAIN),
    _refused(_PRODUCER, "cryptoKeyReader", _T, None, _PLAIN),
    _refused(_PRODUCER, "messageRoutingMode", _C, "RoundRobinPartition", "by group id, else in turn", "",
             "RoundRobinPartition"),
    _accepted(_PRODUCER, "cryptoFailureAction", "belongs to encryptionKeys"),
    _accepted(_PRODUCER, "autoUpdatePartitionsIntervalSeconds", _NATIVE),
    _accepted(_PRODUCER, "batchingPartitionSwitchFrequencyByPublishDelay", _NATIVE),
    _accepted(_PRODUCER, "chunkMaxMessageSize", "chunks are as large as the broker allows"),
    _accepted(_PRODUCER, "lazyStartPartitionedProducers", "each partition's producer is created on first use"),
    _accepted(_PRODUCER, "maxPendingMessages", "use send_window_messages"),
    _accepted(_PRODUCER, "maxPendingMessagesAcrossPartitions", "use send_window_messages"),
    _accepted(_PRODUCER, "multiSchema", "messages are bytes"),
)  # fmt: skip

CONSUMER = (
    _refused(_CONSUMER, "autoUpdatePartitions", _F, True, "new partitions are always used"),
    _refused(_CONSUMER, "cryptoKeyReader", _T, None, _PLAIN),
    _refused(_CONSUMER, "expireTimeOfIncompleteChunkedMessageMillis", _I, 60000, _NATIVE, "ms"),
    _refused(_CONSUMER, "resetIncludeHead", _F, False, _NATIVE),
    _refused(_CONSUMER, "retryEnable", _F, False, _NATIVE),
    _refused(_CONSUMER, "startPaused", _F, False, "use auto_start=False or connection.stop()"),
    _accepted(_CONSUMER, "acknowledgementsGroupTimeMicros", "acknowledgements are grouped for at most 130 ms"),
    _accepted(_CONSUMER, "autoScaledReceiverQueueSizeEnabled", _NATIVE),
    _accepted(_CONSUMER, "autoUpdatePartitionsIntervalSeconds", _NATIVE),
    _accepted(_CONSUMER, "maxAcknowledgmentGroupSize", _NATIVE),
    _accepted(_CONSUMER, "negativeAckPrecisionBitCnt", _NATIVE),
    _accepted(_CONSUMER, "poolMessages", "concerns Java's memory only"),
    _accepted(_CONSUMER, "tickDurationMillis", _NATIVE),
    _accepted(_CONSUMER, "topicNames", _CALL),
    _accepted(_CONSUMER, "topicsPattern", _CALL),
    _accepted(_CONSUMER, "subscriptionName", _CALL),
    _accepted(_CONSUMER, "subscriptionType", _CALL),
    _accepted(_CONSUMER, "subscriptionMode", _CALL),
    _accepted(_CONSUMER, "subscriptionProperties", _CALL, _M),
    _accepted(_CONSUMER, "subscriptionInitialPosition", _CALL),
)  # fmt: skip

DEAD_LETTER = (_accepted(Section.DEAD_LETTER, "retryLetterTopic", "belongs to consumerConfig.retryEnable"),)
