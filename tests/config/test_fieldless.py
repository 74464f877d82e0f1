"""The names that Starlight documents: each is known, refused by name, used, or listed as one without an effect."""

import pathlib
import re

import attrs
import pytest

import jmsaio.config
from jmsaio.config import ConsumerConfig, ProducerConfig, load
from jmsaio.config.declaring import directory
from jmsaio.config.options import Kind, Option, Section, Status
from jmsaio.errors import ConfigurationError

CONNECTION = (*directory(Section.CONNECTION).options, *directory(Section.CLIENT).options)
PRODUCER = directory(Section.PRODUCER).options
CONSUMER = directory(Section.CONSUMER).options
DEAD_LETTER = directory(Section.DEAD_LETTER).options

#: All names of Starlight's documentation and code.
STARLIGHT = """
jms.systemNamespace jms.clientId jms.queueSubscriptionName jms.topicSharedSubscriptionType
jms.useExclusiveSubscriptionsForSimpleConsumers jms.usePulsarAdmin jms.allowTemporaryTopicWithoutAdmin
jms.precreateQueueSubscription jms.precreateQueueSubscriptionConsumerQueueSize jms.waitForServerStartupTimeout
jms.enableClientSideEmulation jms.useServerSideFiltering jms.acknowledgeRejectedMessages
jms.refreshServerSideFiltersPeriod jms.enableJMSPriority jms.priorityMapping jms.emulateTransactions
jms.transactionsStickyPartitions jms.forceDeleteTemporaryDestinations jms.sessionListenersThreads
jms.maxMessagesLimitsParallelism jms.connectionConsumerStopTimeout jms.maxNumOfProducers
jms.producerAutoCloseTimeoutSec jms.useCredentialsFromCreateConnection jms.tckUsername jms.tckPassword
jms.useSharedJNDIContext webServiceUrl brokerServiceUrl enableTransaction authPlugin authParams
tlsAllowInsecureConnection tlsEnableHostnameVerification tlsTrustCertsFilePath useKeyStoreTls tlsTrustStoreType
tlsTrustStorePath tlsTrustStorePassword operationTimeoutMs lookupTimeoutMs statsIntervalSeconds numIoThreads
numListenerThreads connectionsPerBroker connectionMaxIdleSeconds useTcpNoDelay useTls tlsKeyFilePath
tlsCertificateFilePath concurrentLookupRequest maxLookupRequest maxLookupRedirects
maxNumberOfRejectedRequestPerConnection keepAliveIntervalSeconds connectionTimeoutMs requestTimeoutMs readTimeoutMs
autoCertRefreshSeconds initialBackoffIntervalNanos maxBackoffIntervalNanos enableBusyWait listenerName sslProvider
tlsKeyStoreType tlsKeyStorePath tlsKeyStorePassword tlsCiphers tlsProtocols memoryLimitBytes proxyServiceUrl
proxyProtocol dnsLookupBindAddress dnsLookupBindPort dnsServerAddresses socks5ProxyAddress socks5ProxyUsername
socks5ProxyPassword description
""".split()  # noqa: SIM905  # a long list of words reads best as text
STARLIGHT_PRODUCER = """
batchingEnabled batchingMaxPublishDelayMicros batchingMaxMessages batchingMaxBytes sendTimeoutMs blockIfQueueFull
maxPendingMessages compressionType chunkingEnabled hashingScheme producerName accessMode initialSequenceId
autoUpdatePartitions lazyStartPartitionedProducers initialSubscriptionName encryptionKeys batcherBuilder properties
""".split()  # noqa: SIM905  # a long list of words reads best as text
STARLIGHT_CONSUMER = """
useSchema receiverQueueSize maxTotalReceiverQueueSizeAcrossPartitions ackTimeoutMillis negativeAckRedeliveryDelayMicros
acknowledgementsGroupTimeMicros ackReceiptEnabled batchIndexAckEnabled consumerName priorityLevel readCompacted
patternAutoDiscoveryPeriod regexSubscriptionMode replicateSubscriptionState maxPendingChunkedMessage
autoUpdatePartitions poolMessages cryptoFailureAction retryEnable properties
""".split()  # noqa: SIM905  # a long list of words reads best as text


@pytest.mark.parametrize(
    ("options", "names"), [(CONNECTION, STARLIGHT), (PRODUCER, STARLIGHT_PRODUCER), (CONSUMER, STARLIGHT_CONSUMER)]
)
def test_every_name_of_starlight_is_known_and_no_name_twice(options: tuple[Option, ...], names: list[str]) -> None:
    keys = [option.key for option in options]
    assert set(names) <= set(keys)
    assert len(keys) == len(set(keys))
    assert [option.name for option in options if not option.doc] == []


@pytest.mark.parametrize("option", CONNECTION, ids=lambda o: o.name)
def test_the_default_may_always_be_written(option: Option) -> None:
    if option.default is None or option.name == "brokerServiceUrl" or option.kind is Kind.SECRET:
        return
    text = str(option.default).lower() if option.kind is Kind.FLAG else str(option.default)
    config = load({option.name: text, "brokerServiceUrl": "memory:"} if text else {"brokerServiceUrl": "memory:"})
    assert attrs.evolve(config, client={}) == load("memory:")


@pytest.mark.parametrize(
    "option", [o for o in CONNECTION if o.status is Status.NOT_BUILT], ids=lambda o: o.name
)  # fmt: skip
def test_what_is_not_built_is_refused_by_name(option: Option) -> None:
    other = {
        Kind.FLAG: str(option.default is not True).lower(), Kind.TEXT: "x", Kind.SECRET: "x", Kind.INTEGER: "777",
    }.get(option.kind, option.choices[-1] if option.choices else "x")  # fmt: skip
    sentence = f"option {re.escape(option.name)}.* known but not built yet"
    with pytest.raises(ConfigurationError, match=sentence) as caught:
        load({option.name: other, "brokerServiceUrl": "pulsar://h"})
    assert caught.value.key == option.name


@pytest.mark.parametrize("option", (*PRODUCER, *CONSUMER), ids=lambda o: o.name)
def test_defaults_may_be_written_and_what_is_not_built_may_not(option: Option) -> None:
    base: ProducerConfig | ConsumerConfig = ProducerConfig() if option in PRODUCER else ConsumerConfig()
    if option.default is not None:
        assert base.merge({option.key: option.default}) == base
    if option.status is Status.NOT_BUILT and option.kind in (Kind.FLAG, Kind.INTEGER, Kind.TEXT):
        with pytest.raises(Exception, match=f"option {option.name}.* known but not built yet"):
            base.merge({option.key: {Kind.FLAG: not option.default, Kind.INTEGER: 777}.get(option.kind, "x")})


IDLE = [o for o in (*CONNECTION, *PRODUCER, *CONSUMER, *DEAD_LETTER) if o.status is Status.NO_EFFECT]


@pytest.mark.parametrize("option", IDLE, ids=lambda o: o.name)
@pytest.mark.parametrize("value", [False, True, 777, "x"])
def test_an_option_without_an_effect_is_accepted_and_listed(option: Option, value: object) -> None:
    """Whatever its value is, in each way to write its name, and nothing else depends on it."""
    head, _, last = option.name.rpartition(".")
    base: dict[str, object] = {"consumerConfig.deadLetterPolicy.maxRedeliverCount": 3}
    given: object = {last: value} if option.kind is Kind.MAP else value
    nested: dict[str, object] = {last: given}
    for name in reversed(head.split(".") if head else []):
        nested = {name: nested}
    written = [base | {option.name: given}]
    if option.section is not Section.DEAD_LETTER:  # a policy is replaced whole
        written.append(base | nested)
    for config in written:
        loaded = load({"brokerServiceUrl": "memory:", **config})
        assert loaded.without_effect == (option.name,)
        assert attrs.evolve(loaded, without_effect=()) == load({"brokerServiceUrl": "memory:", **base})


def test_options_without_an_effect_are_listed_under_keywords_too() -> None:
    policy = {"max_redeliver_count": 3, "retryLetterTopic": "r"}
    config = load("memory:", producer={"maxPendingMessages": 5}, consumer={"poolMessages": True, "dead_letter": policy})
    assert config.without_effect == (
        "producerConfig.maxPendingMessages",
        "consumerConfig.poolMessages",
        "consumerConfig.deadLetterPolicy.retryLetterTopic",
    )
    assert load("memory:", consumer=config.consumer).without_effect == ()


def _code(*parts: str) -> str:
    """The source of parts of the package, without configuration and command line."""
    package = pathlib.Path(jmsaio.config.__file__).parents[1]
    files = [path for path in package.rglob("*.py") if not {"config", "cli"} & set(path.relative_to(package).parts)]
    chosen = [path for path in files if path.relative_to(package).parts[: len(parts)] == parts]
    return "\n".join(path.read_text(encoding="utf-8") for path in chosen)


def test_no_option_is_taken_and_ignored() -> None:
    """Every field of an option that is built is read somewhere outside this package."""
    code = _code()
    options = (*CONNECTION, *PRODUCER, *CONSUMER, *DEAD_LETTER)
    fields = {option.field for option in options if option.field and option.status is Status.BUILT}
    assert sorted(field for field in fields if re.search(rf"[.\"]{field}\b", code) is None) == []


@pytest.mark.parametrize("name", ["memory", "pulsar"])
def test_a_transport_reads_no_option_that_is_declared_without_effect_on_it(name: str) -> None:
    code = _code("transport", name)
    options = (*CONNECTION, *PRODUCER, *CONSUMER, *DEAD_LETTER)
    elsewhere = {option.field for option in options if name not in option.transports} - {"properties"}
    assert len(elsewhere) >= 1
    assert sorted(field for field in elsewhere if re.search(rf"config\.{field}\b", code)) == []
