"""Starlight's options without a field here, which are refused or accepted without an effect.

An option that affects the handling of messages or the security of the connection is refused, unless its value changes
nothing; the reason names the alternative. An option that affects only speed, time limits, threads or Java itself is
accepted with any value, so that a map that works in Java loads. The options that jmsaio can set are declared on the
fields of ``Configuration``, ``ProducerConfig``, ``ConsumerConfig`` and the classes of their sections.
"""

from __future__ import annotations

from functools import partial

from jmsaio.config.options import Kind, Option, Section, Status

_F, _T, _I, _C, _M, _S, _L = Kind.FLAG, Kind.TEXT, Kind.INTEGER, Kind.CHOICE, Kind.MAP, Kind.SECRET, Kind.LIST
_KEY_STORES = (
    "jmsaio reads PEM files, not Java's key stores. To convert trust.jks for tlsTrustCertsFilePath: "
    "`keytool -importkeystore -srckeystore trust.jks -destkeystore trust.p12 -deststoretype PKCS12 && "
    "openssl pkcs12 -in trust.p12 -nokeys -out trust.pem`; to convert client.jks for both tlsCertificateFilePath and "
    "tlsKeyFilePath: "
    "`keytool -importkeystore -srckeystore client.jks -destkeystore client.p12 -deststoretype PKCS12 && "
    "openssl pkcs12 -in client.p12 -nodes -out client.pem`. A PKCS12 store needs only openssl"
)
_STORE = "belongs to useKeyStoreTls"
_NONE = "no transport has such a setting"
_CALL = "decided by the destination and by the call that creates the consumer, as in Java"
_PLAIN = "messages are not encrypted; encrypt the body in the application"
_INTERNAL = "for Pulsar's own use"
_NO_POOL = "there is no ConnectionConsumer"
_PROXY = f"{_NONE}; a Pulsar proxy needs none: name it in brokerServiceUrl"
_LEVELS = f"{_NONE}: all topics of a consumer have its priorityLevel; leave it out"
_SSL_FACTORY = "org.apache.pulsar.common.util.DefaultPulsarSslFactory"
_AUTH = "use authPlugin and authParams"


def _row(
    status: Status, section: Section, key: str, kind: Kind, default: object, doc: str, unit: str = "", *choices: str
) -> Option:
    return Option(key, section, kind, default, unit=unit, status=status, choices=choices, doc=doc)


_built, _refused = partial(_row, Status.BUILT), partial(_row, Status.NOT_BUILT)


def _accepted(section: Section, key: str, doc: str, kind: Kind = _T) -> Option:
    return Option(key, section, kind, status=Status.NO_EFFECT, doc=doc)


_TOP, _PRODUCER, _CONSUMER = Section.CONNECTION, Section.PRODUCER, Section.CONSUMER

CONNECTION = (
    _built(_TOP, "useTls", _F, False, "true: use TLS even if the URL begins with pulsar://, on the port given there"),
    _refused(_TOP, "serviceUrl", _T, None, "use brokerServiceUrl, which Java needs, too"),
    _refused(_TOP, "authPluginClassName", _T, None, _AUTH),
    _refused(_TOP, "authParamMap", _M, None, _AUTH),
    _refused(_TOP, "originalPrincipal", _T, None, f"{_NONE}; it is for proxies that act for others"),
    _refused(_TOP, "tlsCiphers", _L, None, f"{_NONE}; limit the ciphers at the broker, and leave it out here"),
    _refused(_TOP, "tlsProtocols", _L, ("TLSv1.2", "TLSv1.3"),
             f"{_NONE}: both speak TLS 1.2 and 1.3; limit them at the broker, and leave it out here"),
    _refused(_TOP, "sslFactoryPlugin", _C, None, "names a Java class; leave it out", "",
             _SSL_FACTORY, f"com.datastax.oss.pulsar.jms.shaded.{_SSL_FACTORY}"),
    _refused(_TOP, "useKeyStoreTls", _F, False, _KEY_STORES),
    _refused(_TOP, "proxyServiceUrl", _T, None, _PROXY),
    _refused(_TOP, "socks5ProxyAddress", _T, None, _PROXY),
    _refused(_TOP, "dnsServerAddresses", _L, None,
             "the system resolves names, perhaps to other brokers; set its name servers and leave it out here"),
    _accepted(_TOP, "tlsTrustStoreType", _STORE),
    _accepted(_TOP, "tlsTrustStorePath", _STORE),
    _accepted(_TOP, "tlsTrustStorePassword", _STORE, _S),
    _accepted(_TOP, "tlsKeyStoreType", _STORE),
    _accepted(_TOP, "tlsKeyStorePath", _STORE),
    _accepted(_TOP, "tlsKeyStorePassword", _STORE, _S),
    _accepted(_TOP, "tlsHostnameVerificationEnable", "Starlight, too, reads tlsEnableHostnameVerification instead"),
    _accepted(_TOP, "sslFactoryPluginParams", "belongs to sslFactoryPlugin"),
    _accepted(_TOP, "sslProvider", "names a Java library; OpenSSL is used"),
    _accepted(_TOP, "autoCertRefreshSeconds", _NONE),
    _accepted(_TOP, "jms.precreateQueueSubscriptionConsumerQueueSize", "without REST it is always 1"),
    _accepted(_TOP, "jms.sessionListenersThreads", "sessions are tasks of the event loop, not threads"),
    _accepted(_TOP, "jms.maxMessagesLimitsParallelism", _NO_POOL),
    _accepted(_TOP, "jms.connectionConsumerStopTimeout", _NO_POOL),
    _accepted(_TOP, "jms.useSharedJNDIContext", "there is no JNDI"),
    _accepted(_TOP, "lookupTimeoutMs", "operationTimeoutMs limits a lookup"),
    _accepted(_TOP, "requestTimeoutMs", "operationTimeoutMs limits a REST call"),
    _accepted(_TOP, "readTimeoutMs", "operationTimeoutMs limits a REST call"),
    _accepted(_TOP, "connectionMaxIdleSeconds", f"{_NONE}: idle connections stay"),
    _accepted(_TOP, "useTcpNoDelay", f"{_NONE}: it is always on"),
    _accepted(_TOP, "maxLookupRequest", _NONE),
    _accepted(_TOP, "maxNumberOfRejectedRequestPerConnection", _NONE),
    _accepted(_TOP, "enableBusyWait", _NONE),
    _accepted(_TOP, "dnsLookupBindAddress", _NONE),
    _accepted(_TOP, "dnsLookupBindPort", _NONE),
    _accepted(_TOP, "proxyProtocol", "belongs to proxyServiceUrl"),
    _accepted(_TOP, "socks5ProxyUsername", "belongs to socks5ProxyAddress"),
    _accepted(_TOP, "socks5ProxyPassword", "belongs to socks5ProxyAddress", _S),
    _accepted(_TOP, "description", _NONE),
)  # fmt: skip

PRODUCER = (
    _built(_PRODUCER, "blockIfQueueFull", _F, None,
           "no effect: send always waits for room, without blocking the event loop"),
    _refused(_PRODUCER, "hashingScheme", _C, "JavaStringHash",
             "JavaStringHash, Starlight's default, is used; leave it out in Java, too", "", "JavaStringHash"),
    _refused(_PRODUCER, "encryptionKeys", _L, None, _PLAIN),
    _refused(_PRODUCER, "cryptoKeyReader", _T, None, _PLAIN),
    _accepted(_PRODUCER, "cryptoFailureAction", "belongs to encryptionKeys"),
    _accepted(_PRODUCER, "batchingPartitionSwitchFrequencyByPublishDelay", _NONE),
    _accepted(_PRODUCER, "lazyStartPartitionedProducers", "the producers of all partitions are created together"),
    _accepted(_PRODUCER, "maxPendingMessages", "use send_window_messages"),
    _accepted(_PRODUCER, "maxPendingMessagesAcrossPartitions", "use send_window_messages"),
    _accepted(_PRODUCER, "multiSchema", "messages are bytes"),
    _accepted(_PRODUCER, "nonPartitionedTopicExpected", _INTERNAL),
    _accepted(_PRODUCER, "replProducer", _INTERNAL),
    _accepted(_PRODUCER, "topicName", "decided by the destination, as in Java"),
)  # fmt: skip

CONSUMER = (
    _refused(_CONSUMER, "topicConfigurations", _L, None, _LEVELS),
    _refused(_CONSUMER, "cryptoKeyReader", _T, None, _PLAIN),
    _refused(_CONSUMER, "retryEnable", _F, False, "there is no retry letter topic; use deadLetterPolicy"),
    _refused(_CONSUMER, "startPaused", _F, False, "use auto_start=False or connection.stop()"),
    _accepted(_CONSUMER, "autoScaledReceiverQueueSizeEnabled", _NONE),
    _accepted(_CONSUMER, "maxAcknowledgmentGroupSize", _NONE),
    _accepted(_CONSUMER, "maxPendingChuckedMessage", "a misspelling; write maxPendingChunkedMessage"),
    _accepted(_CONSUMER, "negativeAckPrecisionBitCnt", _NONE),
    _accepted(_CONSUMER, "resetIncludeHead", "JMS can't move a subscription"),
    _accepted(_CONSUMER, "poolMessages", "concerns Java's memory only"),
    _accepted(_CONSUMER, "tickDurationMillis", _NONE),
    _accepted(_CONSUMER, "topicNames", _CALL),
    _accepted(_CONSUMER, "topicsPattern", _CALL),
    _accepted(_CONSUMER, "subscriptionName", _CALL),
    _accepted(_CONSUMER, "subscriptionType", _CALL),
    _accepted(_CONSUMER, "subscriptionMode", _CALL),
    _accepted(_CONSUMER, "subscriptionProperties", _CALL, _M),
    _accepted(_CONSUMER, "subscriptionInitialPosition", _CALL),
)  # fmt: skip

DEAD_LETTER = (_accepted(Section.DEAD_LETTER, "retryLetterTopic", "belongs to consumerConfig.retryEnable"),)
