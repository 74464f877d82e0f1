"""Starlight's options without a field here, which are refused or accepted without an effect.

An option that affects the handling of messages or the security of the connection is refused, unless its value changes
nothing; the reason names the alternative. An option that affects only speed, time limits, threads or Java itself is
accepted with any value, so that a map that works in Java loads. The options that jmsaio can set are declared on the
fields of ``Configuration``, ``ProducerConfig``, ``ConsumerConfig`` and the classes of their sections.
"""

from __future__ import annotations

from functools import partial

from jmsaio.config.options import Kind, Option, Section, Status

_F, _T, _C, _M, _S, _L = Kind.FLAG, Kind.TEXT, Kind.CHOICE, Kind.MAP, Kind.SECRET, Kind.LIST
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
_NO_POOL = "there is no ConnectionConsumer"
_PROXY = f"{_NONE}; a Pulsar proxy needs none: name it in brokerServiceUrl"
_LEVELS = f"{_NONE}: all topics of a consumer have its priorityLevel; leave it out"
_SSL_FACTORY = "org.apache.pulsar.common.util.DefaultPulsarSslFactory"
_AUTH = "use authPlugin and authParams"


def _row(status: Status, section: Section, key: str, kind: Kind, default: object, doc: str, *choices: str) -> Option:
    return Option(key, section, kind, default, status=status, choices=choices, doc=doc)


_built, _refused = partial(_row, Status.BUILT), partial(_row, Status.NOT_BUILT)


def _accepted(section: Section, doc: str, *keys: str, kind: Kind = _T) -> tuple[Option, ...]:
    return tuple(Option(key, section, kind, status=Status.NO_EFFECT, doc=doc) for key in keys)


_TOP, _PRODUCER, _CONSUMER = Section.CONNECTION, Section.PRODUCER, Section.CONSUMER

CONNECTION = (
    _built(_TOP, "useTls", _F, False, "true: use TLS even if the URL begins with pulsar://, on the port given there"),
    _refused(_TOP, "serviceUrl", _T, None, "use brokerServiceUrl, which Java also needs"),
    _refused(_TOP, "authPluginClassName", _T, None, _AUTH),
    _refused(_TOP, "authParamMap", _M, None, _AUTH),
    _refused(_TOP, "originalPrincipal", _T, None, f"{_NONE}; it is for proxies that act for others"),
    _refused(_TOP, "tlsCiphers", _L, None, f"{_NONE}; limit the ciphers at the broker, and leave it out here"),
    _refused(_TOP, "tlsProtocols", _L, ("TLSv1.2", "TLSv1.3"),
             f"{_NONE}: both speak TLS 1.2 and 1.3; limit them at the broker, and leave it out here"),
    _refused(_TOP, "sslFactoryPlugin", _C, None, "names a Java class; leave it out",
             _SSL_FACTORY, f"com.datastax.oss.pulsar.jms.shaded.{_SSL_FACTORY}"),
    _refused(_TOP, "useKeyStoreTls", _F, False, _KEY_STORES),
    _refused(_TOP, "proxyServiceUrl", _T, None, _PROXY),
    _refused(_TOP, "socks5ProxyAddress", _T, None, _PROXY),
    _refused(_TOP, "dnsServerAddresses", _L, None,
             "the system resolves names, perhaps to other brokers; set its name servers and leave it out here"),
    *_accepted(_TOP, _STORE, "tlsTrustStoreType", "tlsTrustStorePath", "tlsKeyStoreType", "tlsKeyStorePath"),
    *_accepted(_TOP, _STORE, "tlsTrustStorePassword", "tlsKeyStorePassword", kind=_S),
    *_accepted(_TOP, "Starlight also reads tlsEnableHostnameVerification instead", "tlsHostnameVerificationEnable"),
    *_accepted(_TOP, "belongs to sslFactoryPlugin", "sslFactoryPluginParams"),
    *_accepted(_TOP, "names a Java library; OpenSSL is used", "sslProvider"),
    *_accepted(_TOP, "without REST it is always 1", "jms.precreateQueueSubscriptionConsumerQueueSize"),
    *_accepted(_TOP, "sessions are tasks of the event loop, not threads", "jms.sessionListenersThreads"),
    *_accepted(_TOP, _NO_POOL, "jms.maxMessagesLimitsParallelism", "jms.connectionConsumerStopTimeout"),
    *_accepted(_TOP, "there is no JNDI", "jms.useSharedJNDIContext"),
    *_accepted(_TOP, "operationTimeoutMs limits a lookup", "lookupTimeoutMs"),
    *_accepted(_TOP, "operationTimeoutMs limits a REST call", "requestTimeoutMs", "readTimeoutMs"),
    *_accepted(_TOP, f"{_NONE}: idle connections stay", "connectionMaxIdleSeconds"),
    *_accepted(_TOP, f"{_NONE}: it is always on", "useTcpNoDelay"),
    *_accepted(_TOP, _NONE, "maxLookupRequest", "maxNumberOfRejectedRequestPerConnection", "enableBusyWait",
               "dnsLookupBindAddress", "dnsLookupBindPort", "autoCertRefreshSeconds", "description"),
    *_accepted(_TOP, "belongs to proxyServiceUrl", "proxyProtocol"),
    *_accepted(_TOP, "belongs to socks5ProxyAddress", "socks5ProxyUsername"),
    *_accepted(_TOP, "belongs to socks5ProxyAddress", "socks5ProxyPassword", kind=_S),
)  # fmt: skip

PRODUCER = (
    _built(_PRODUCER, "blockIfQueueFull", _F, None,
           "no effect: send always waits for room, without blocking the event loop"),
    _refused(_PRODUCER, "hashingScheme", _C, "JavaStringHash",
             "JavaStringHash, Starlight's default, is used; leave it out in Java as well", "JavaStringHash"),
    _refused(_PRODUCER, "encryptionKeys", _L, None, _PLAIN),
    _refused(_PRODUCER, "cryptoKeyReader", _T, None, _PLAIN),
    *_accepted(_PRODUCER, "belongs to encryptionKeys", "cryptoFailureAction"),
    *_accepted(_PRODUCER, _NONE, "batchingPartitionSwitchFrequencyByPublishDelay"),
    *_accepted(_PRODUCER, "the producers of all partitions are created together", "lazyStartPartitionedProducers"),
    *_accepted(_PRODUCER, "use send_window_messages", "maxPendingMessages", "maxPendingMessagesAcrossPartitions"),
    *_accepted(_PRODUCER, "messages are bytes", "multiSchema"),
    *_accepted(_PRODUCER, "for Pulsar's own use", "nonPartitionedTopicExpected", "replProducer"),
    *_accepted(_PRODUCER, "decided by the destination, as in Java", "topicName"),
)  # fmt: skip

CONSUMER = (
    _refused(_CONSUMER, "topicConfigurations", _L, None, _LEVELS),
    _refused(_CONSUMER, "cryptoKeyReader", _T, None, _PLAIN),
    _refused(_CONSUMER, "retryEnable", _F, False, "there is no retry letter topic; use deadLetterPolicy"),
    _refused(_CONSUMER, "startPaused", _F, False, "use auto_start=False or connection.stop()"),
    *_accepted(_CONSUMER, _NONE, "autoScaledReceiverQueueSizeEnabled", "maxAcknowledgmentGroupSize",
               "negativeAckPrecisionBitCnt", "tickDurationMillis"),
    *_accepted(_CONSUMER, "a misspelling; write maxPendingChunkedMessage", "maxPendingChuckedMessage"),
    *_accepted(_CONSUMER, "JMS can't move a subscription", "resetIncludeHead"),
    *_accepted(_CONSUMER, "concerns Java's memory only", "poolMessages"),
    *_accepted(_CONSUMER, _CALL, "topicNames", "topicsPattern", "subscriptionName", "subscriptionType",
               "subscriptionMode", "subscriptionInitialPosition"),
    *_accepted(_CONSUMER, _CALL, "subscriptionProperties", kind=_M),
)  # fmt: skip

DEAD_LETTER = _accepted(Section.DEAD_LETTER, "belongs to consumerConfig.retryEnable", "retryLetterTopic")
